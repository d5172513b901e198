/** Captured to pushed: finding what a sink handed on again in what it was given. */

import { candidates, choose, place } from './jumps.mjs';
import { matchesOf, reachedBy } from './matches.mjs';
import { Placement } from './placement.mjs';
import { isConstant, trailingRun } from './store.mjs';
import { Held, TELLING_VALUES, Upstream } from './upstream.mjs';

const LIMIT_VALUES = 4 << 20; // captured and kept while it is not pushed
const PATIENCE_VALUES = 480_000; // held undecided before flow order decides
const UNDECIDED_CHUNKS = 8; // held for one that tells which of several places it is

/**
 * Finds pushed chunks again in what was captured: stretches may be left out, never reordered.
 *
 * What is decided is told as `matchesOf` has it.
 */
export class FlowMatcher {
  #upstream = new Upstream(LIMIT_VALUES);
  #store = this.#upstream.store;
  #start = 0; // where the held chunks begin if they continue
  #held = new Held();
  #floating = false;
  #flat = false; // whether what contradicts is one value over and over
  #placement = new Placement(this.#upstream);

  /** Position where the next chunk begins if it continues. */
  get #expected() {
    return this.#start + this.#held.fixed;
  }

  get #waits() {
    return this.#held.chunks.length > 0;
  }

  /** Position of the next value to be captured. */
  get end() {
    return this.#store.end;
  }

  /** Positions in front of this one will not be reported any more. */
  get neededFrom() {
    return Math.min(this.#start, this.#store.base);
  }

  /** Values that were captured. Returns how many had to be forgotten unmatched. */
  capture(values) {
    const keptFrom = Math.max(this.#expected, this.#store.base);
    this.#upstream.capture(values);
    const { base } = this.#store;
    if (!this.#waits) this.#start = Math.max(this.#start, base);
    return Math.max(base - keptFrom, 0);
  }

  /** The sink was cleared: what was held is decided, the next push may be what is captured next. */
  clear() {
    const decided = this.finish();
    this.#upstream.fence = this.#store.end;
    return decided;
  }

  /** The chunk that began at `position` was refused and may be handed over again. */
  rewind(position) {
    if (!this.#waits && this.#store.base <= position && position < this.#start) {
      this.#start = position;
    }
  }

  /**
   * Matches the next chunk; returns what is decided now, oldest first (this chunk or not).
   *
   * @param {object} key given back with the match.
   * @param {Int16Array} values
   * @param {boolean} entering whether the last captured frame was just entering the sink.
   */
  push(key, values, entering) {
    if (!values.length) return matchesOf([{ key, values: 0 }], { parts: [], doubts: [] });
    const upstream = this.#upstream;
    const store = this.#store;
    const held = this.#held;
    upstream.refill();
    if (!this.#waits) this.#start = Math.max(this.#start, store.base);
    if (upstream.fence !== null && this.#start >= upstream.fence) upstream.fence = null;
    const constant = isConstant(values);
    this.#flat &&= constant && held.data.at(-1) === values[0];
    const frame = entering ? upstream.newest : null;
    held.add(key, values, store.end, frame);
    if (this.#floating) return this.#resolve(false);
    const ahead = store.commonAhead(this.#expected, values);
    const { habit } = this.#placement;
    const exact = ahead === values.length;
    if (habit !== null) {
      // What is scaled goes on scaled; what was changed may be anything, and as it was again.
      if (constant || !(exact || habit === 'changed')) return this.#settleInPieces();
      if (exact) this.#placement.habit = null;
    }
    if (!exact) {
      held.fixed += ahead;
      this.#floating = true;
      this.#flat = isConstant(values.subarray(ahead));
      return this.#resolve(false);
    }
    const undecided = this.#fitsElsewhere(values, frame, constant);
    held.fixed += values.length;
    if (!undecided) return this.#settle({ parts: [[this.#start, held.fixed]], doubts: [] });
    return held.fixed < PATIENCE_VALUES ? [] : this.#settleByTime();
  }

  /** Whether a chunk that continues could as well be another stretch of what was captured. */
  #fitsElsewhere(values, frame, constant) {
    const store = this.#store;
    const { fence } = this.#upstream;
    // What the clear dropped, or the same captured again after it.
    if (fence !== null && store.matches(fence + this.#held.fixed, values)) return true;
    // What was captured earlier, or the same that is entering just now.
    if (frame > this.#expected && store.matches(frame, values)) return true;
    // Silence up to the end of all that was captured can be nowhere else.
    return constant && this.#expected + values.length < store.end;
  }

  /** Decides what is held by flow order and time: nothing more will come that could tell. */
  finish() {
    if (!this.#waits) return [];
    return this.#floating ? this.#resolve(true) : this.#settleByTime();
  }

  /** Settles what continues, and could as well have been captured after the clear. */
  #settleByTime() {
    const held = this.#held;
    const { fence } = this.#upstream;
    let parts = [[this.#start, held.fixed]];
    if (fence !== null) {
      const split = held.splitByTime(this.#store, fence);
      const cleared = this.#store.matches(fence, held.data.subarray(split));
      if (this.#start + split < fence && cleared) {
        parts = [[this.#start, split], [fence, held.fixed - split]];
      }
    }
    return this.#settle({ parts, doubts: [[0, held.fixed]] });
  }

  /** Places what contradicts the continuation, if it can be told where it belongs. */
  #resolve(finished) {
    const held = this.#held;
    const values = held.values - held.fixed;
    const last = finished || values >= PATIENCE_VALUES;
    const telling = values >= TELLING_VALUES && !this.#flat;
    if (!telling && !last) return [];
    const found = candidates(this.#upstream, held, this.#expected);
    if (found.length > 1 && !last && held.chunks.length < UNDECIDED_CHUNKS) return [];
    return found.length ? this.#land(found, telling) : this.#settleInPieces();
  }

  /** Settles what contradicts at one of the places where it is held whole. */
  #land(found, telling) {
    const held = this.#held;
    this.#placement.habit = null;
    const { position, split, reach } = choose(this.#upstream, held, this.#start, found);
    const landing = position - (held.fixed - split);
    const parts = [[this.#start, split], [landing, held.values - split]];
    // From the clear on all follows that was captured from the clear on.
    const follows = !split && landing === this.#upstream.fence;
    const idle = follows ? 0 : Math.max(reach, held.idleValues(this.#store, this.#expected));
    let since = held.fixed - idle;
    if (!telling) since = Math.min(since, held.fixed - trailingRun(held.before));
    let to = found.length === 1 && telling ? held.fixed : held.values;
    if (landing !== this.#start + split && landing !== this.#upstream.fence) {
      to = Math.max(to, split + held.leadingSilence(this.#store, split, landing));
    }
    return this.#settle({ parts, doubts: [[since, to]] });
  }

  /** Settles what contradicts and is held nowhere whole, each chunk by itself. */
  #settleInPieces() {
    const held = this.#held;
    this.#distrustChance();
    let floor = this.#expected;
    const idle = held.idleValues(this.#store, floor);
    const parts = [[this.#start, held.fixed]];
    const doubts = [[held.fixed - idle, held.fixed]];
    const added = [];
    const habits = [];
    let count = held.fixed;
    for (const piece of held.contradicting()) {
      const placed = this.#placement.of(piece, floor);
      const stop = count + piece.length;
      const [since, to] = doubts.at(-1);
      // Where silence is in doubt, so is which of it the sink put in.
      if (placed.doubtful || (placed.added && since < to && to === count)) {
        doubts.push([count, stop]);
      }
      if (placed.added) added.push([stop - placed.added, stop]);
      if (placed.habit) habits.push([count, placed.habit]);
      count = stop;
      parts.push(...placed.parts);
      floor = reachedBy(placed.parts) ?? floor;
    }
    return this.#settle({ parts, doubts, added, habits });
  }

  /**
   * Takes back a few values that continue at the front of a chunk whose rest is not found as it is:
   * what was changed begins like the original by chance.
   */
  #distrustChance() {
    const held = this.#held;
    const begun = held.starts().findLast((start) => start <= held.fixed);
    const few = held.fixed - begun;
    if (few === 0 || few >= TELLING_VALUES) return;
    const placed = place(this.#upstream, held.contradicting()[0], this.#expected);
    if (placed.every(([position]) => position === null)) held.fixed = begun;
  }

  /** Hands out what was decided and goes on behind the last place found. */
  #settle(decision) {
    const matches = matchesOf(this.#held.chunks, decision, this.#upstream, this.#start);
    const reached = reachedBy(decision.parts);
    if (reached !== null) {
      if (this.#floating) this.#upstream.refill(true);
      this.#start = reached;
    }
    this.#floating = this.#flat = false;
    this.#held.clear();
    this.#upstream.tidy(this.#start);
    return matches;
  }
}
