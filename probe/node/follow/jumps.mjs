/** Where audio goes on that contradicts its continuation: forward, behind what was left out. */

import { bisect, indexOf, isConstant, leadingRun } from './store.mjs';
import { TELLING_VALUES } from './upstream.mjs';

const CANDIDATES = 32;

/** Positions where what contradicts is held whole, ascending, the first few. */
export function candidates(upstream, held, expected) {
  const { fence, store } = upstream;
  const { rest, fixed } = held;
  if (fence !== null) {
    // A clear announced this jump; what lies between was dropped by it.
    if (store.matches(fence, held.data) && !held.inTimeFrom(fence)) return [fence + fixed];
    const inTime = held.inTimeFrom(fence - fixed) <= fixed;
    if (fence >= expected && inTime && store.matches(fence, rest)) return [fence];
  }
  const found = [];
  let position = expected;
  while (found.length < CANDIDATES) {
    position = upstream.search(rest, position);
    if (position === null || held.inTimeFrom(position - fixed) > fixed) break;
    found.push(position);
    position += 1;
  }
  return found;
}

/**
 * Which of the places it is, and where in the held data the jump lies.
 *
 * @param {number} start where the held data begins if it continues.
 * @param {number[]} found where what contradicts is held whole.
 * @returns {{position: number, split: number, reach: number}} the position of the first
 *     contradicting value, how many held values lie before the jump, and over how many values in
 *     front of the contradiction the jump could have been.
 */
export function choose(upstream, held, start, found) {
  const { fence } = upstream;
  const { fixed, before } = held;
  const starts = held.starts();
  const staying = held.strays(start);
  let best = null;
  for (const position of found) {
    const moving = held.strays(position - fixed);
    const behind = fence !== null && position >= fence;
    const reach = Math.min(
      upstream.store.commonBehind(position, before),
      fixed - held.inTimeFrom(position - fixed),
      behind ? position - fence : Infinity,
    );
    const splits = new Set([fixed, ...(behind ? [fixed - reach] : [])]);
    for (const begun of starts) if (fixed - reach <= begun && begun <= fixed) splits.add(begun);
    for (const border of upstream.borders(position - reach, position)) {
      splits.add(fixed - (position - border));
    }
    for (const split of splits) {
      const landing = position - (fixed - split);
      const first = bisect(starts, split);
      let rank = starts[first] === split ? 0 : 2;
      // As much as can be is what was captured after the clear, which announced the jump to just
      // there.
      if (!behind) rank += upstream.isBorder(landing) ? 0 : 1;
      else if (landing === fence) rank = -1;
      const strays = staying[0] - staying[first] + moving[first];
      const order = [rank, strays, position, behind ? split : -split];
      if (best === null || isBefore(order, best.order)) best = { order, position, split, reach };
    }
  }
  return best;
}

function isBefore(one, other) {
  const index = one.findIndex((value, place) => value !== other[place]);
  return index >= 0 && one[index] < other[index];
}

/** Places a piece that may hold jumps of its own, or audio never captured; with bounded effort. */
export function place(upstream, piece, floor, depth = 0) {
  const { store, fence } = upstream;
  if (!piece.length) return [];
  if (store.matches(floor, piece)) return [[floor, piece.length]];
  const cleared = fence !== null && fence >= floor && store.matches(fence, piece);
  const whole = cleared ? fence : upstream.search(piece, floor);
  if (whole !== null) return [[whole, piece.length]];
  if (depth > 3 || isConstant(piece)) return [[null, piece.length]];
  const expected = store.view(floor, floor + TELLING_VALUES);
  const telling = expected.length === TELLING_VALUES && !isConstant(expected);
  const offset = telling ? indexOf(piece, expected) : -1;
  if (offset > 0) {
    // Audio from before the probe came or that the sink put in, and the head of what was captured
    // right behind it.
    const ahead = store.commonAhead(floor, piece.subarray(offset));
    if (offset + ahead === piece.length) return [[null, offset], [floor, ahead]];
  }
  const front = upstream.search(frontNeedle(piece), floor);
  if (front !== null) {
    const ahead = store.commonAhead(front, piece);
    return [[front, ahead], ...place(upstream, piece.subarray(ahead), front + ahead, depth + 1)];
  }
  const needle = piece.subarray(-TELLING_VALUES);
  const back = isConstant(needle) || needle.length < TELLING_VALUES;
  const position = back ? null : upstream.search(needle, floor);
  if (position === null) return [[null, piece.length]];
  const stop = position + TELLING_VALUES;
  const reach = Math.min(store.commonBehind(stop, piece), stop - floor);
  const strange = piece.length - reach;
  return [...(strange ? [[null, strange]] : []), [stop - reach, reach]];
}

/** The front of a piece, just long enough to tell. */
function frontNeedle(piece) {
  const needle = piece.subarray(0, TELLING_VALUES);
  if (needle.length === TELLING_VALUES && !isConstant(needle)) return needle;
  return piece.subarray(0, leadingRun(piece) + TELLING_VALUES);
}
