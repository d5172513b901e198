/** Where one piece belongs that is not simply the next: found ahead, changed, or the sink's own. */

import { findScaled, isTooQuiet } from './habits.mjs';
import { place } from './jumps.mjs';
import { isConstant, isZero } from './store.mjs';
import { TELLING_VALUES } from './upstream.mjs';

/**
 * Places pieces one after the other, and remembers what the sink does to them.
 *
 * A place is told as `{ parts, doubtful, added, habit }`: where the piece comes from, whether that
 * is in doubt, how many values the sink put in, and what it does to the audio.
 */
export class Placement {
  #upstream;
  /** What was done to the last piece that could tell; null: it was as it had been. */
  habit = null;

  constructor(upstream) {
    this.#upstream = upstream;
  }

  /** Where a piece belongs: as it is, as what the sink makes of audio, or nowhere. */
  of(piece, floor) {
    if (isConstant(piece)) return this.#constant(piece, floor);
    const known = this.#isScaling ? this.#scaled(piece, floor) : null;
    if (known) return known;
    const parts = place(this.#upstream, piece, floor);
    const added = parts.reduce((sum, [start, values]) => sum + (start === null ? values : 0), 0);
    if (!added) {
      this.habit = null;
      return { parts };
    }
    const whole = added === piece.length;
    const scaled = whole && !this.#isScaling ? this.#scaled(piece, floor) : null;
    if (scaled) return scaled;
    if (this.#isAdded(piece, parts, floor)) {
      this.habit = null;
      return { parts, added, habit: 'added' };
    }
    // Before anything was captured nothing can have been changed.
    if (!whole || !this.#upstream.store.end) return { parts };
    this.habit = 'changed';
    return { parts, habit: 'changed' };
  }

  get #isScaling() {
    return this.habit === 'gain' || this.habit === 'noise';
  }

  /** Silence, or a tone of one value: it goes on, or the sink put it in. */
  #constant(piece, floor) {
    const { length } = piece;
    const { end } = this.#upstream.store;
    const parts = place(this.#upstream, piece, floor);
    if (this.habit === 'changed') {
      // It may well be the next: that it looks alike is no evidence either way.
      const doubtful = parts[0][0] !== null;
      return { parts: [[null, length]], doubtful, habit: 'changed' };
    }
    if (parts[0][0] !== null) return { parts, doubtful: true };
    if (piece[0] !== 0 || !end) return { parts };
    const faded = this.habit === 'gain' && floor + length <= end;
    if (faded) return { parts: [[floor, length]], doubtful: true, habit: 'gain' };
    return { parts, added: length, habit: 'added' };
  }

  #scaled(piece, floor) {
    const found = findScaled(this.#upstream, piece, floor);
    if (found !== null) {
      [, this.habit] = found;
      return { parts: [[found[0], piece.length]], habit: this.habit };
    }
    const held = floor + piece.length <= this.#upstream.store.end;
    if (!this.#isScaling || !isTooQuiet(piece) || !held) return null;
    return { parts: [[floor, piece.length]], doubtful: true, habit: this.habit };
  }

  /** Whether all that was never captured is silence, or was handed on before. */
  #isAdded(piece, parts, floor) {
    let begun = 0;
    for (const [position, values] of parts) {
      const part = piece.subarray(begun, begun + values);
      begun += values;
      if (position !== null || isZero(part)) continue;
      if (values < TELLING_VALUES || isConstant(part)) return false;
      const again = this.#upstream.search(part, this.#upstream.store.base);
      if (again === null || again + values > floor) return false;
    }
    return this.#upstream.store.end > 0;
  }
}
