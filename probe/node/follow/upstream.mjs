/** What was captured and can be found again, and what was handed on and is not decided yet. */

import { SampleStore, bisect, isConstant, isZero, leadingRun, trailingRun } from './store.mjs';

export const TELLING_VALUES = 32; // fewer than this are not searched for: they would be anywhere

const HISTORY_VALUES = 1 << 17; // kept behind the last match, for a frame handed over again
const BUDGET_VALUES = 32 << 20;
const REFILL_VALUES = 128 << 10;

/** Captured values by their position, searched with a bounded effort. */
export class Upstream {
  #borders = []; // where captured frames begin, ascending
  #budget = BUDGET_VALUES;

  constructor(limit) {
    this.store = new SampleStore(limit);
    /** What was captured when the sink was last cleared, while that may still matter. */
    this.fence = null;
  }

  capture(values) {
    this.#borders.push(this.store.end);
    this.store.append(values);
  }

  /** `SampleStore.find` within the budget. */
  search(needle, start) {
    const from = Math.max(start, this.store.base);
    if (this.#budget <= 0) return null;
    const found = this.store.find(needle, from);
    this.spend(from, found ?? this.store.end);
    return found;
  }

  /** Takes what reading from one position to another costs; whether it can be afforded. */
  spend(start, stop) {
    const affordable = this.#budget > 0;
    this.#budget -= Math.max(stop - start, 0);
    return affordable;
  }

  /** Lets searches read on: a little with every chunk, all of it once one was found. */
  refill(whole = false) {
    this.#budget = whole ? BUDGET_VALUES : Math.min(this.#budget + REFILL_VALUES, BUDGET_VALUES);
  }

  /** Where the last captured frame begins. */
  get newest() {
    return this.#borders.at(-1) ?? 0;
  }

  /** Whether a captured frame begins there. */
  isBorder(position) {
    return this.#borders[bisect(this.#borders, position)] === position;
  }

  /** Where captured frames begin, both ends included; the last four. */
  borders(start, stop) {
    const from = bisect(this.#borders, start);
    return this.#borders.slice(from, bisect(this.#borders, stop + 1)).slice(-4);
  }

  /** Whether what is passed over is silence, and no clear had it dropped. */
  isSkipped(start, stop) {
    const { store, fence } = this;
    if (start < store.base || start >= stop || (fence !== null && stop >= fence)) return false;
    return isZero(store.view(start, stop));
  }

  /** Lets go of what lies far behind. In large steps: every removal moves what stays. */
  tidy(reached) {
    const { store } = this;
    if (reached - store.base > 2 * HISTORY_VALUES) store.forgetBefore(reached - HISTORY_VALUES);
    const unneeded = bisect(this.#borders, store.base);
    if (unneeded > 4096) this.#borders.splice(0, unneeded);
  }
}

/**
 * Chunks handed on that are not decided, one behind the other.
 *
 * The first `fixed` of their values continue where the last match ended; the rest contradicts.
 */
export class Held {
  #data = new SampleStore();
  /**
   * `{ key, values, captured, entering }`: how many, in front of what position all lies that was
   * captured by then, and where the frame begins that was entering the sink just then, if one was:
   * in a sink that holds nothing back it is that one.
   */
  chunks = [];
  fixed = 0;

  get values() {
    return this.#data.end;
  }

  get data() {
    return this.#data.view(0);
  }

  /** What contradicts. */
  get rest() {
    return this.#data.view(this.fixed);
  }

  /** What continues. */
  get before() {
    return this.#data.view(0, this.fixed);
  }

  add(key, values, captured, entering) {
    this.chunks.push({ key, values: values.length, captured, entering });
    this.#data.append(values);
  }

  clear() {
    this.fixed = 0;
    this.chunks = [];
    this.#data.truncate(0);
  }

  /** Where each chunk begins among the held values. */
  starts() {
    let begun = 0;
    return this.chunks.map(({ values }) => (begun += values) - values);
  }

  /**
   * Of the chunks from each one on, how many would be no frame that was just entering, were the
   * first at `shift`.
   */
  strays(shift) {
    const starts = this.starts();
    const counts = [0];
    for (let index = starts.length - 1; index >= 0; index -= 1) {
      const stray = this.chunks[index].entering !== starts[index] + shift;
      counts.unshift(counts[0] + (stray ? 1 : 0));
    }
    return counts;
  }

  /** What contradicts, cut up as it was handed over. */
  contradicting() {
    return this.starts()
      .map((begun, index) => [Math.max(begun, this.fixed), begun + this.chunks[index].values])
      .filter(([start, stop]) => stop > start)
      .map(([start, stop]) => this.data.subarray(start, stop));
  }

  /** From where on held values had been captured when handed on, were the first at `shift`. */
  inTimeFrom(shift) {
    let stop = this.values;
    for (const chunk of this.chunks.toReversed()) {
      if (stop + shift > chunk.captured) return stop;
      stop -= chunk.values;
    }
    return 0;
  }

  /**
   * How many values in front of the contradiction could be others of the same silence.
   *
   * Upstream the silence (or any constant) goes on where downstream it ended in a jump: which of it
   * was handed on cannot be seen.
   */
  idleValues(store, expected) {
    const { before } = this;
    const following = store.view(expected, expected + 1);
    if (!before.length || following[0] !== before.at(-1)) return 0;
    return trailingRun(before);
  }

  /**
   * How many values from a jump on could be others of the same silence: what lies upstream in front
   * of where the jump leads is that too.
   *
   * @param {SampleStore} store what was captured.
   * @param {number} split where in the held data the jump is.
   * @param {number} landing where it leads.
   */
  leadingSilence(store, split, landing) {
    const moved = this.data.subarray(split);
    return store.view(landing - 1, landing)[0] === moved[0] ? leadingRun(moved) : 0;
  }

  /**
   * Where what was captured after a clear may begin among the held values, when content does not
   * tell: with a whole chunk, from the first on that allows for all behind it to have been captured
   * when they were handed on.
   */
  splitByTime(store, fence) {
    const { data, fixed } = this;
    let least = isConstant(data) ? fixed - store.commonAhead(fence, data) : 0;
    let split = fixed;
    let begun = fixed;
    for (const chunk of this.chunks.toReversed()) {
      least = Math.max(least, begun + fence - chunk.captured);
      begun -= chunk.values;
      if (begun < least) break;
      split = begun;
    }
    return split;
  }
}
