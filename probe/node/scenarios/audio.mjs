/**
 * Speech of known content: sample `k` of a call has a value that says `k`.
 *
 * The values 1 to 65,535 of 16 bits come in a pseudo-random order, all of them before the first
 * comes again, and in another order every time: no sample is zero, and ten milliseconds at any
 * place of the call occur there and nowhere else.
 */

const PERIOD = 65_535;
const orders = new Map();

/** A small generator of 32-bit numbers with a seed. */
function generator(seed) {
  let state = (seed * 0x9e3779b9 + 0x6d2b79f5) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function order(number) {
  let values = orders.get(number);
  if (values === undefined) {
    const next = generator(number);
    values = Int16Array.from({ length: PERIOD }, (_, index) => index + 1);
    for (let index = PERIOD - 1; index > 0; index -= 1) {
      const other = next() % (index + 1);
      [values[index], values[other]] = [values[other], values[index]];
    }
    if (orders.size >= 4) orders.delete(orders.keys().next().value);
    orders.set(number, values);
  }
  return values;
}

/** By how much the second channel is ahead of the first, so that they have nothing in common. */
const RIGHT = 1000 * PERIOD;

/** Samples `start` to `start + count` of the call, interleaved. */
export function knownSamples(start, count, channels) {
  const values = new Int16Array(count * channels);
  for (let channel = 0; channel < channels; channel += 1) {
    for (let index = 0; index < count; index += 1) {
      const sample = start + index + channel * RIGHT;
      values[index * channels + channel] = order(Math.floor(sample / PERIOD))[sample % PERIOD];
    }
  }
  return values;
}

/** Start and stop sample of each frame of a reply `total` samples long, the last one shorter. */
export function* frameBounds(total, frameMs, rateHz) {
  let start = 0;
  for (let number = 1; start < total; number += 1) {
    const stop = Math.min(
      Math.max(Math.round((number * frameMs * rateHz) / 1000), start + 1),
      total,
    );
    yield [start, stop];
    start = stop;
  }
}
