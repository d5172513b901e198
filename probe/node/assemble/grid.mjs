/** The times of blocks from the times they arrived. */

export const BLOCK_NS = 10_000_000; // every tick of a source hands on one block, whatever its rate

const WINDOW_BLOCKS = 500; // arrivals looked at for the beat of the blocks
const YOUNG_NS = 1_900_000_000; // for how long the beat may still be found out quickly
const YOUNG_STEP_NS = 50_000_000;
const STEP_NS = 5_000_000; // by how much it is corrected from one stretch to the next, later on

/**
 * Arrivals are late by all sorts of things, a loop that is busy most of all, and never early: so
 * the earliest of many, relative to the source's own beat, tells the time of all. Where not every
 * tick yields a block, only blocks that follow it closely bear on a block's time.
 */
export class Grid {
  #phases = []; // [last block, phase], phases ascending
  #arrivals = [];
  #phase = null;
  #first = null;
  #begun = 0;

  /** @param {boolean} beat whether every tick yields a block, so that its number tells its time. */
  constructor(beat) {
    this.beat = beat;
  }

  /** Block number `block` is the last one of what arrived at `atNs`. */
  arrived(block, atNs) {
    if (!this.beat) {
      this.#arrivals.push([block, atNs]);
      return;
    }
    this.#note(block, atNs - block * BLOCK_NS);
    while (this.#phases[0][0] < block - WINDOW_BLOCKS) this.#phases.shift();
  }

  /** `block` is known to have left by `atNs`: as good as an arrival. */
  leftBy(block, atNs) {
    if (!this.beat) this.#arrivals.push([block, atNs]);
    else if (this.#phases.length) this.#note(this.#phases.at(-1)[0], atNs - block * BLOCK_NS);
  }

  #note(block, phase) {
    while (this.#phases.at(-1)?.[1] >= phase) this.#phases.pop();
    this.#phases.push([block, phase]);
  }

  /** When `block` left, as far as is known now. */
  timeOf(block) {
    if (this.beat) return this.#phases[0][1] + block * BLOCK_NS;
    const times = this.#arrivals
      .filter(([last]) => last >= block)
      .map(([last, atNs]) => atNs - (last - block) * BLOCK_NS);
    return Math.min(...times);
  }

  /** The same as stretches are stamped: on the beat the one it is in was settled on. */
  stampOf(block) {
    return this.beat ? this.#phase + block * BLOCK_NS : this.timeOf(block);
  }

  /**
   * A stretch begins with `block`: the beat may be corrected now, by a step readers allow, and
   * never so far that the stretch would begin before the one before it.
   */
  settle(block) {
    if (!this.beat) return;
    const earliest = this.#phases[0][1];
    if (this.#phase === null) this.#phase = earliest;
    else {
      this.#first ??= block;
      const young = (block - this.#first) * BLOCK_NS < YOUNG_NS;
      const step = Math.max(earliest - this.#phase, young ? -YOUNG_STEP_NS : -STEP_NS);
      const phase = this.#phase + Math.min(step, STEP_NS);
      this.#phase = Math.max(phase, this.#begun + 1 - block * BLOCK_NS);
    }
    this.#begun = this.stampOf(block);
  }

  forgetBefore(block) {
    while (this.#arrivals.length > 1 && this.#arrivals[0][0] < block) this.#arrivals.shift();
  }
}
