/** Audio that was kept to be found again, as values: int16 numbers as they lie in a frame. */

const ALIGNMENT_TRIES = 512; // hits of a search at odd bytes that are passed over at most

const bytesOf = ({ buffer, byteOffset, byteLength }) =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Values appended in order, of which the newest are kept. */
export class SampleStore {
  #data = new Int16Array(1 << 12);
  #length = 0;
  #limit;

  /**
   * @param {number} limit how many values are kept at most.
   * @param {number} base position of the first value to come.
   */
  constructor(limit = Infinity, base = 0) {
    this.#limit = limit;
    /** Position of the oldest value still held. */
    this.base = base;
  }

  /** Position of the value that comes next. */
  get end() {
    return this.base + this.#length;
  }

  /** What of a range is held; good until the store is changed. */
  view(start, stop = this.end) {
    const until = Math.min(stop, this.end) - this.base;
    return this.#data.subarray(Math.max(start - this.base, 0), Math.max(until, 0));
  }

  append(values) {
    if (this.#length + values.length > this.#data.length) {
      const grown = new Int16Array(2 * (this.#length + values.length));
      grown.set(this.#data.subarray(0, this.#length));
      this.#data = grown;
    }
    this.#data.set(values, this.#length);
    this.#length += values.length;
    // A quarter more than needed: every forgetting moves what stays.
    const excess = this.#length - this.#limit;
    if (excess > 0) this.forgetBefore(this.base + excess + Math.floor(this.#limit / 4));
  }

  /** Lets go of the values in front of `position`. */
  forgetBefore(position) {
    const count = Math.min(position, this.end) - this.base;
    if (count <= 0) return;
    this.#data.copyWithin(0, count, this.#length);
    this.#length -= count;
    this.base += count;
  }

  /** Takes back the values from `position` on; their positions will be given out again. */
  truncate(position) {
    if (position >= this.base) this.#length = Math.min(this.#length, position - this.base);
  }

  /** How many values from the front of `values` equal those from `position` on. */
  commonAhead(position, values) {
    const offset = position - this.base;
    if (offset < 0) return 0;
    const count = Math.max(Math.min(values.length, this.#length - offset), 0);
    const data = this.#data;
    let index = 0;
    while (index < count && data[offset + index] === values[index]) index += 1;
    return index;
  }

  /** How many values from the back of `values` equal those in front of `position`. */
  commonBehind(position, values) {
    const before = this.view(position - values.length, position);
    const count = Math.min(before.length, values.length);
    let index = 0;
    while (index < count && before.at(-1 - index) === values.at(-1 - index)) index += 1;
    return index;
  }

  /** Whether `values` is held, whole, at `position`. */
  matches(position, values) {
    return position >= this.base && this.commonAhead(position, values) === values.length;
  }

  /** Lowest position from `start` on where `values` is held, whole; null if there is none. */
  find(values, start) {
    const found = indexOf(this.view(this.base), values, Math.max(start - this.base, 0));
    return found < 0 ? null : this.base + found;
  }
}

/** Where `needle` lies first in `values` from `start` on; -1 if it does not. */
export function indexOf(values, needle, start = 0) {
  const bytes = bytesOf(values);
  const wanted = bytesOf(needle);
  let offset = 2 * start;
  for (let tries = 0; tries < ALIGNMENT_TRIES && offset < bytes.length; tries += 1) {
    offset = bytes.indexOf(wanted, offset);
    if (offset < 0) return -1;
    if (offset % 2 === 0) return offset / 2;
    offset += 1;
  }
  return -1;
}

/** How many values at the back equal the last. */
export function trailingRun(values) {
  let count = 0;
  while (count < values.length && values.at(-1 - count) === values.at(-1)) count += 1;
  return count;
}

/** How many values at the front equal the first. */
export function leadingRun(values) {
  const differing = values.findIndex((value) => value !== values[0]);
  return differing < 0 ? values.length : differing;
}

/** Whether all values are one. */
export function isConstant(values) {
  return values.every((value) => value === values[0]);
}

/** Whether all values are zero: digital silence. */
export function isZero(values) {
  return values.every((value) => value === 0);
}

/** First index of a sorted list whose item's key is `value` or more; with `after`, is more. */
export function bisect(list, value, key = (item) => item, after = false) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const found = key(list[middle]);
    if (found < value || (after && found === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}
