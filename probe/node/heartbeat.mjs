/** How late the session's loop runs: stamps taken on a loop that stalls are late by the stall. */

const INTERVAL_MS = 10;
const STALL_NS = 20_000_000; // lateness from which a beat is written as a stall

/** A chain of timers that keep no process alive. */
export class Heartbeat {
  #timer = null;
  #due = 0;

  /** `onBeat` is called at every beat; it must be cheap and not throw. */
  constructor({ recorder, clock }, onBeat) {
    this.recorder = recorder;
    this.clock = clock;
    this.onBeat = onBeat;
  }

  start() {
    this.#due = this.clock.now() + INTERVAL_MS * 1e6;
    this.#timer = setTimeout(() => this.#beat(), INTERVAL_MS);
    this.#timer.unref();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = null;
  }

  #beat() {
    const until_ns = this.clock.now();
    if (until_ns - this.#due > STALL_NS) {
      this.recorder.event({ event: 'stalled', at_ns: this.#due, until_ns });
    }
    this.onBeat();
    if (this.#timer !== null) this.start();
  }
}
