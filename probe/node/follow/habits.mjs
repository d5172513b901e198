/**
 * What sinks do to audio on its way: a volume, a fade, dither. Recognised only where it is certain.
 *
 * A stretch is taken for scaled audio where one smooth gain explains every value of it to within
 * the rounding of a sample. A few dozen values of speech or noise can't be explained so by
 * anything else.
 */

import { TELLING_VALUES } from './upstream.mjs';

const PIECE_VALUES = 240; // over how many a gain is taken to be a parabola: 10 ms at 24 kHz
const QUIET = 16; // root mean square under which rounding hides what was done
const ROUNDED = 2; // how far a value may be off where it was rounded or cut off
const DITHERED = 4; // the same where the sink adds noise of its last bits
const SAME_GAIN = 0.002; // how far from 1 a gain may be that is none
const FULL = 32_767;

const LOUD = 200; // root mean square from which scaled audio is looked for elsewhere
const NEEDLE_VALUES = 64; // a part of it is looked for, the loudest
const ALIKE = 0.8; // correlation with it of a place worth to be looked at
const TRIES = 64; // the most alike of such places that are
const WINDOW_VALUES = 1 << 17; // how far ahead, 5 s at 24 kHz
const EFFORT = 8; // what comparing costs, in values that an exact search reads

/**
 * How `heard` follows from `given`, of equal length, as `gain` or `noise`; null: not by a gain or
 * dither, or too quiet to say.
 */
export function scaling(heard, given) {
  const { length } = heard;
  if (given.length !== length || length < TELLING_VALUES) return null;
  if (isTooQuiet(given) || isTooQuiet(heard)) return null;
  let plain = true;
  let off = 0;
  let gain = 1;
  const pieces = Math.max(Math.floor(length / PIECE_VALUES), 1);
  for (let piece = 0, start = 0; piece < pieces; piece += 1) {
    const stop = start + Math.floor(length / pieces) + (piece < length % pieces ? 1 : 0);
    // Too quiet a piece between louder ones: rounding is all that can be held against it.
    const gains = fit(given, heard, start, stop) ?? [gain, 0, 0];
    off = Math.max(off, farthest(given, heard, start, stop, gains));
    if (off > DITHERED) return null;
    gain = gains[0] + gains[1] + gains[2];
    plain &&= Math.abs(gain - 1) <= SAME_GAIN;
    start = stop;
  }
  if (plain) return 'noise';
  return off <= ROUNDED ? 'gain' : null;
}

/** Place of a value in its piece, from -1 to 1. */
const placeIn = (index, start, stop) => (2 * (index - start)) / Math.max(stop - start - 1, 1) - 1;

function farthest(given, heard, start, stop, [constant, linear, square]) {
  let off = 0;
  for (let index = start; index < stop; index += 1) {
    const t = placeIn(index, start, stop);
    const expected = given[index] * (constant + t * (linear + t * square));
    off = Math.max(off, Math.abs(heard[index] - Math.max(Math.min(expected, FULL), -FULL - 1)));
  }
  return off;
}

/** The smooth gain that explains a piece best, as a parabola; null: it is too quiet to say. */
function fit(given, heard, start, stop) {
  if (isTooQuiet(given.subarray(start, stop))) return null;
  const moments = [0, 0, 0, 0, 0];
  const right = [0, 0, 0];
  let clipped = 0;
  for (let index = start; index < stop; index += 1) {
    const x = given[index];
    const y = heard[index];
    if (Math.abs(y) >= FULL) {
      clipped += 1;
      continue;
    }
    const t = placeIn(index, start, stop);
    let power = 1;
    for (let order = 0; order < 5; order += 1, power *= t) {
      moments[order] += x * x * power;
      if (order < 3) right[order] += x * y * power;
    }
  }
  return 2 * clipped > stop - start ? null : solved(moments, right);
}

/** Solves the equations of a least squares fit; what they leave open is kept small. */
function solved(moments, right) {
  const rows = right.map((value, row) => [...moments.slice(row, row + 3), value]);
  for (let row = 0; row < 3; row += 1) rows[row][row] += 1e-9 * moments[0] + 1e-9;
  for (let pivot = 0; pivot < 3; pivot += 1) {
    for (let row = 0; row < 3; row += 1) {
      if (row === pivot) continue;
      const factor = rows[row][pivot] / rows[pivot][pivot];
      rows[row] = rows[row].map((value, column) => value - factor * rows[pivot][column]);
    }
  }
  return rows.map((row, index) => row[3] / row[index]);
}

/**
 * Where a piece lies at or ahead of a position if it is scaled, and how, as `[position, habit]`:
 * the first place is tried first, then where the sink was last cleared, then what correlates.
 */
export function findScaled(upstream, piece, floor) {
  const { store, fence } = upstream;
  const at = (position) => scaling(piece, store.view(position, position + piece.length));
  for (const position of fence === null ? [floor] : [floor, fence]) {
    const habit = at(position);
    if (habit !== null) return [position, habit];
  }
  const begun = loudestPart(piece);
  const needle = piece.subarray(begun, begun + NEEDLE_VALUES);
  const window = store.view(floor + begun, floor + WINDOW_VALUES);
  if (window.length < needle.length || loudness(needle) < LOUD) return null;
  if (!upstream.spend(floor, floor + EFFORT * window.length)) return null;
  for (const offset of resembling(needle, window)) {
    const habit = at(floor + offset);
    if (habit !== null) return [floor + offset, habit];
  }
  return null;
}

/** Where the part of a piece begins that tells most. */
function loudestPart(piece) {
  let found = 0;
  let most = -1;
  for (let start = 0; start + NEEDLE_VALUES <= piece.length; start += NEEDLE_VALUES) {
    const energy = energyOf(piece, start, start + NEEDLE_VALUES);
    if (energy > most) [found, most] = [start, energy];
  }
  return found;
}

/** Offsets at which the window is like the needle, whatever the gain; the most alike first. */
function resembling(needle, window) {
  const size = needle.length;
  const least = ALIKE ** 2 * energyOf(needle, 0, size);
  let around = energyOf(window, 0, size);
  const found = [];
  for (let offset = 0; offset + size <= window.length; offset += 1) {
    let product = 0;
    for (let index = 0; index < size; index += 1) product += needle[index] * window[offset + index];
    const alike = product ** 2 / Math.max(around, 1);
    if (alike >= least) found.push([offset, alike]);
    around += (window[offset + size] ?? 0) ** 2 - window[offset] ** 2;
  }
  found.sort((one, other) => other[1] - one[1]);
  return found.slice(0, TRIES).map(([offset]) => offset);
}

function energyOf(values, start, stop) {
  let energy = 0;
  for (let index = start; index < stop; index += 1) energy += values[index] ** 2;
  return energy;
}

const loudness = (values) => Math.sqrt(energyOf(values, 0, values.length) / (values.length || 1));

/** Whether a piece is too quiet for its gain to be told. */
export function isTooQuiet(piece) {
  return loudness(piece) < QUIET;
}
