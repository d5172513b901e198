/** What a script waits for: conditions, never the clock. */

/** Wakes whoever waits for a condition each time something happened. */
export class Signals {
  #waiting = [];

  notify() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Waits until the condition holds; false where it did not within the limit. */
  async until(condition, limitMs) {
    const deadline = performance.now() + limitMs;
    while (!condition()) {
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }
}

/** Why a call can't go on, in one line. */
export class ScenarioError extends Error {
  name = 'ScenarioError';
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
