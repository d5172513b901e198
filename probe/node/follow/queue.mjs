/** What is known of a source's native queue from the calls: what went in when, and its clears. */

import { bisect } from './store.mjs';

const stopOf = ({ stop }) => stop;

/**
 * Pushes in their order, the pieces the source takes them in, and the clears between them.
 *
 * Clears are numbered; a reading of the blocks says how many of them it has behind it.
 */
export class Queue {
  #pieceValues;
  #blockNs;
  #pieces = [];
  /** `{ at, ended, high }`: when, and in front of what position all lies that was pushed then. */
  clears = [];
  /** Clears that every reading has behind it, no longer in the list. */
  gone = 0;

  /** @param {number|null} pieceValues how the source cuts up frames longer than its queue; null if
   *     unknown. It only says where to look first after a clear. */
  constructor(pieceValues, blockNs) {
    this.#pieceValues = pieceValues;
    this.#blockNs = blockNs;
  }

  push(key, start, stop, at) {
    const step = this.#pieceValues ?? Math.max(stop - start, 1);
    for (let begin = start; begin < stop; begin += step) {
      const end = Math.min(begin + step, stop);
      // When it was surely inside, and whether that is sure: the call returned.
      this.#pieces.push({ key, start: begin, stop: end, at, inside: null, surely: false });
    }
  }

  pushEnded(key, ended, returned) {
    let index = this.#pieces.findLastIndex((piece) => piece.key === key);
    for (; this.#pieces[index]?.key === key; index -= 1) {
      Object.assign(this.#pieces[index], { inside: ended, surely: returned });
    }
  }

  /** Where the last push begins, if it is this one; else null. */
  lastPush(key) {
    if (this.#pieces.at(-1)?.key !== key) return null;
    return this.#pieces.find((piece) => piece.key === key).start;
  }

  retract(key) {
    this.#pieces = this.#pieces.filter((piece) => piece.key !== key);
  }

  /** Clears a reading does not have behind it. */
  pending(clears) {
    return this.clears.slice(clears - this.gone);
  }

  forgetClears(count) {
    this.clears.splice(0, count);
    this.gone += count;
  }

  forgetBefore(position) {
    const gone = bisect(this.#pieces, position, stopOf, true);
    if (gone > 64) this.#pieces.splice(0, gone);
  }

  /** When the next clear was over that would have taken what lies at `position`; null: none. */
  cleared(position, clears) {
    const next = this.clears[clears - this.gone];
    return next && position < next.high ? next.ended : null;
  }

  /** For how long the source could have sent everything in front of `position` already. */
  overdue(position, emptied, at) {
    const piece = this.#pieceOf(position);
    if (!piece) return 0;
    if (piece.inside !== null && piece.surely) return at - piece.inside;
    // With nothing else inside, the next piece is taken in within two ticks.
    return at - Math.max(piece.at, emptied) - 2 * this.#blockNs;
  }

  /** Where what is sent after the clear may begin, as far as the calls tell; ascending. */
  survivors(clear, position) {
    const high = Math.max(clear.high, position);
    const starts = [high];
    for (const piece of this.#pieces.toReversed()) {
      if (piece.start >= high) continue;
      if (piece.start < position || wasInside(piece, clear)) break;
      starts.unshift(piece.start);
    }
    return starts;
  }

  /** From where on audio may have survived a clear, wherever the source cut it up. */
  survivorsFrom(clear, position) {
    for (const piece of this.#pieces.slice(bisect(this.#pieces, position, stopOf, true))) {
      if (piece.start >= clear.high) break;
      if (!wasInside(piece, clear)) return Math.max(piece.start, position);
    }
    return Math.max(clear.high, position);
  }

  /** When everything in front of `position` was inside the queue; null if unknown. */
  inside(position) {
    return this.#pieceOf(position)?.inside ?? null;
  }

  /** When the push of the value in front of `position` began. */
  pushed(position) {
    return this.#pieceOf(position)?.at ?? 0;
  }

  /** The piece that holds the value in front of `position`. */
  #pieceOf(position) {
    return this.#pieces[bisect(this.#pieces, position, stopOf)];
  }
}

/** Whether a piece was surely in the queue when the clear was called. */
function wasInside({ surely, inside }, clear) {
  return surely && inside !== null && inside < clear.at;
}
