/** Audio as it is described in the corpus; `content.py` says how, and makes the same of it. */

function noise(seed, start, values) {
  const made = new Float64Array(values);
  for (let index = 0; index < values; index += 1) {
    let mixed = (Math.imul(start + index, 0x9e3779b1) + Math.imul(seed, 0x85ebca77)) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) >>> 0;
    mixed ^= mixed >>> 16;
    made[index] = (mixed & 0xffff) - 32768 || 1;
  }
  return made;
}

const clipped = (value) => Math.max(Math.min(value, 32767), -32768);

const GENERATORS = {
  noise,
  quiet: (...told) => noise(...told).map((value) => Math.floor(value / 100)),
  silence: (values) => new Float64Array(values),
  constant: (value, values) => new Float64Array(values).fill(value),
  part: (start, values, pieces) => joined(pieces).slice(start, start + values),
  gain: (first, last, pieces) => {
    const plain = joined(pieces);
    const slope = last - first;
    return plain.map((value, index) =>
      clipped(Math.floor(value * (first + (slope * index) / plain.length) + 0.5)),
    );
  },
  dither: (seed, pieces) => {
    const plain = joined(pieces);
    const added = noise(seed, 0, plain.length);
    // The remainder of what is negative, as a floor leaves it.
    return plain.map((value, index) => clipped(value + ((((added[index] % 3) + 3) % 3) - 1)));
  },
};

function joined(audio) {
  const parts = audio.map(([kind, ...told]) => GENERATORS[kind](...told));
  const whole = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** What a frame with this audio holds. */
export function valuesOf(audio) {
  return Int16Array.from(joined(audio));
}
