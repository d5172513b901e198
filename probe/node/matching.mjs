/**
 * Following audio from one boundary to the next by what it sounds like, sample for sample.
 *
 * Positions count int16 *values* as they lie interleaved in a frame, from 0 over everything ever
 * appended. Going on where the last match ended is believed until content contradicts it; then the
 * next place where the content is found is taken. Where content can't tell (digital silence, a
 * tone), flow order, clears and time decide, and the values are counted as ambiguous.
 */

const HISTORY_VALUES = 1 << 17; // kept behind the last match, for a frame that is handed on again

/** Values appended in order, of which the newest are kept. */
export class SampleStore {
  #data = new Int16Array(1 << 16);
  #length = 0;
  #limit;

  /**
   * @param {number} base position of the first value to come.
   * @param {number} limit how many values are kept at most.
   */
  constructor(base = 0, limit = 16 << 20) {
    this.#limit = limit;
    /** Position of the oldest value still held. */
    this.base = base;
  }

  /** Position of the value that comes next. */
  get end() {
    return this.base + this.#length;
  }

  /** @returns {number} how many old values had to be forgotten for it. */
  append(values) {
    const excess = this.#length + values.length - this.#limit;
    const forgotten = excess > 0 ? Math.min(excess + (this.#limit >> 2), this.#length) : 0;
    this.forgetBefore(this.base + forgotten);
    if (this.#length + values.length > this.#data.length) {
      const grown = new Int16Array(2 * (this.#length + values.length));
      grown.set(this.#data.subarray(0, this.#length));
      this.#data = grown;
    }
    this.#data.set(values, this.#length);
    this.#length += values.length;
    return forgotten;
  }

  forgetBefore(position) {
    const count = Math.min(position, this.end) - this.base;
    if (count <= 0) return;
    this.#data.copyWithin(0, count, this.#length);
    this.#length -= count;
    this.base += count;
  }

  /** Lets go of what lies far behind `position`, now and then: it moves all the rest. */
  tidy(position) {
    if (position - this.base > 2 * HISTORY_VALUES) this.forgetBefore(position - HISTORY_VALUES);
  }

  /** Takes back the values from `position` on; their positions will be given out again. */
  truncate(position) {
    this.#length = Math.max(Math.min(this.#length, position - this.base), 0);
  }

  /** How many values from the front of `values` equal those from `position` on. */
  common(position, values) {
    const offset = position - this.base;
    if (offset < 0) return 0;
    const count = Math.min(values.length, this.#length - offset);
    for (let index = 0; index < count; index += 1) {
      if (this.#data[offset + index] !== values[index]) return index;
    }
    return Math.max(count, 0);
  }

  /** Whether `values` is held, whole, at `position`. */
  matches(position, values) {
    return this.common(position, values) === values.length;
  }

  /** How many values from `position` on are zero, up to `limit`. */
  zeros(position, limit) {
    const offset = position - this.base;
    if (offset < 0) return 0;
    const stop = Math.min(offset + limit, this.#length);
    let index = offset;
    while (index < stop && this.#data[index] === 0) index += 1;
    return Math.max(index - offset, 0);
  }

  /** Lowest position in `[start, stop)` where `values` is held, whole; -1 if there is none. */
  find(values, start, stop = Infinity) {
    const last = Math.min(this.#length - values.length, stop - 1 - this.base);
    let offset = Math.max(start - this.base, 0);
    while (offset <= last) {
      offset = this.#data.indexOf(values[0], offset);
      if (offset < 0 || offset > last) return -1;
      if (this.matches(this.base + offset, values)) return this.base + offset;
      offset += 1;
    }
    return -1;
  }
}

const TELLING_VALUES = 32; // fewer than this are not searched for: they would be found anywhere
const NEAR_VALUES = 1 << 18; // content that comes again later than this is taken for telling
const HELD_CHUNKS = 500; // held undecided at most
const VAIN_SEARCHES = 100; // after so many a sink is taken for one that changes the audio
const SEARCH_EVERY = 50; // and then only every so many chunks are searched for

/**
 * Finds pushed chunks again in what was captured: stretches may be left out, never reordered.
 *
 * A chunk whose content fits several places is held until one comes that fits only one, which then
 * tells where those before it were; a clear of the sink ends what is held.
 */
export class FlowMatcher {
  #store = new SampleStore();
  #next = 0;
  #fence = null;
  #vain = 0;
  #held = [];

  /** Values that were captured. Returns how many old ones were forgotten unmatched. */
  captured(values) {
    const before = this.#store.base;
    this.#store.append(values);
    return Math.max(this.#store.base - Math.max(before, this.#next), 0);
  }

  /** The sink was cleared: what is handed on next was captured after this, if content allows. */
  cleared() {
    const decided = this.finish();
    this.#fence = this.#store.end;
    return decided;
  }

  /**
   * Where the values of one chunk came from, and those of chunks that had been undecided.
   *
   * @param {Int16Array} values
   * @param {object} key given back with the answer.
   * @param {number|null} hint where the frame begins whose capture is under way: what is handed on
   *     meanwhile is most likely this.
   * @returns {Array<{key: object, parts: Array<[number|null, number]>, ambiguous: number}>}
   *     position and count of each part, in order; a position of null is content that was never
   *     captured.
   */
  match(values, key, hint) {
    const chunk = { values, key, hint };
    const place = this.#onlyPlace(values);
    if (place === undefined) {
      this.#held.push(chunk);
      return this.#held.length > HELD_CHUNKS ? this.finish() : [];
    }
    const decided = this.#release(place ?? this.#store.end);
    decided.push(this.#decide(chunk, place));
    return decided;
  }

  /** Decides what is held. */
  finish() {
    return this.#release(this.#store.end);
  }

  /** The one place where all of it fits; null: none, undefined: several. */
  #onlyPlace(values) {
    const store = this.#store;
    for (const start of this.#starts()) {
      const found = store.find(values, start);
      if (found < 0) continue;
      const again = store.find(values, found + 1, found + NEAR_VALUES);
      return again < 0 ? found : undefined;
    }
    return null;
  }

  /** From where to look, in the order of preference. */
  #starts() {
    const fenced = this.#fence !== null && this.#fence > this.#next;
    return fenced ? [this.#fence, this.#next] : [this.#next];
  }

  /** Places the held chunks in front of `limit`. */
  #release(limit) {
    const held = this.#held.splice(0);
    if (held.length === 0) return [];
    const first = this.#starts()[0];
    const places =
      this.#byHint(held, first, limit) ??
      this.#backwards(held, first, limit) ??
      this.#forwards(held, first);
    const end = places.at(-1) + held.at(-1).values.length;
    const sure = places[0] === this.#next && end === limit && isRow(held, places);
    return held.map((chunk, index) => this.#decide(chunk, places[index], !sure));
  }

  #byHint(held, first, limit) {
    let from = first;
    const places = [];
    for (const { values, hint } of held) {
      const place = hint !== null && hint > from ? hint : from;
      if (place + values.length > limit || !this.#store.matches(place, values)) return null;
      places.push(place);
      from = place + values.length;
    }
    return places;
  }

  #backwards(held, first, limit) {
    let until = limit;
    const places = [];
    for (const { values } of held.toReversed()) {
      until -= values.length;
      if (until < first || !this.#store.matches(until, values)) return null;
      places.unshift(until);
    }
    return places;
  }

  #forwards(held, first) {
    let from = first;
    return held.map(({ values }) => {
      const place = this.#store.find(values, from);
      if (place >= 0) from = place + values.length;
      return place;
    });
  }

  #decide({ values, key }, place, doubtful = false) {
    const whole = place !== null && place >= 0;
    const parts = whole ? [[place, values.length]] : this.#pieces(values);
    if (whole) this.#passed(place + values.length);
    return { key, parts, ambiguous: doubtful ? values.length : 0 };
  }

  #passed(next) {
    this.#next = next;
    if (this.#fence !== null && next > this.#fence) this.#fence = null;
    this.#store.tidy(next);
  }

  /** A chunk that is nowhere whole: its parts, each as long as it can be followed. */
  #pieces(values) {
    const parts = [];
    let rest = values;
    while (rest.length > 0) {
      const [position, count] = this.#piece(rest);
      parts.push([position, count]);
      if (position !== null) this.#passed(position + count);
      rest = rest.subarray(count);
    }
    return parts;
  }

  #piece(rest) {
    const store = this.#store;
    const here = store.common(this.#next, rest);
    if (here > 0) return [this.#next, here];
    if (this.#searchable(rest)) {
      const head = rest.subarray(0, TELLING_VALUES);
      // Behind the last match too: a frame that was refused may be handed on again.
      for (const start of [...this.#starts(), store.base]) {
        const place = store.find(head, start);
        if (place < 0) continue;
        this.#vain = 0;
        return [place, store.common(place, rest)];
      }
      this.#vain += 1;
    }
    return [null, rest.length];
  }

  /** A sink that changes the audio is not searched for every time. */
  #searchable(rest) {
    if (this.#vain < VAIN_SEARCHES) return rest.length >= TELLING_VALUES;
    this.#vain += 1;
    return this.#vain % SEARCH_EVERY === 0;
  }
}

/** Whether the chunks follow each other without anything in between. */
function isRow(chunks, places) {
  return chunks.every(
    ({ values }, index) =>
      index + 1 === chunks.length || places[index] + values.length === places[index + 1],
  );
}

const CLEAR_SLACK_NS = 5_000_000; // how far a block's time may be wrong against that of a clear
const PATIENCE_BLOCKS = 500; // how many silent blocks may be held undecided

/**
 * Finds the blocks that left a source again in what was pushed to it.
 *
 * A source hands on whole blocks from the front of its queue, silence where there is less than one.
 * A clear empties the queue, so a jump always begins with a block; a frame pushed just before the
 * clear can come in after it.
 */
export class WireMatcher {
  #store;
  #blockValues;
  #floor;
  #clears = [];
  #pushes = [];
  #silent = [];
  #fresh = true;

  /**
   * @param {number} blockValues values per block.
   * @param {number} start position of the first value that may leave.
   */
  constructor(blockValues, start = 0) {
    this.#blockValues = blockValues;
    this.#store = new SampleStore(start);
    this.#floor = start;
  }

  /** Values the source was handed. Returns how many old ones were forgotten unmatched. */
  pushed(values, atNs) {
    const before = this.#store.base;
    this.#store.append(values);
    this.#pushes.push([this.#store.end, atNs]);
    return Math.max(this.#store.base - Math.max(before, this.#floor), 0);
  }

  /** The newest values from `position` on were refused after all. */
  takeBack(position) {
    this.#store.truncate(position);
    while (this.#pushes.length && this.#pushes.at(-1)[0] > position) this.#pushes.pop();
  }

  cleared(atNs) {
    this.#clears.push([atNs, this.#store.end]);
  }

  /**
   * What a block was, and what those before it were that had been undecided.
   *
   * @param {Int16Array} values
   * @param {number} block its number.
   * @param {number} atNs when it left.
   * @returns {Array<{block: number, at: number, position: number|null|undefined, ambiguous: number,
   *     inherited?: number}>} in the order they left; a position of undefined is inserted silence,
   *     one of null content that was never pushed, as are the first `inherited` values; ambiguous
   *     counts values.
   */
  block(values, block, atNs) {
    if (values.every((value) => value === 0)) return this.#silence(block, atNs);
    const position = this.#place(values, atNs);
    const inherited = position === null && this.#fresh ? this.#inherited(values, atNs) : 0;
    if (inherited > 0) return this.#open(inherited, block, atNs);
    const decided = this.#settle(atNs, position);
    decided.push({ block, at: atNs, position, ambiguous: 0 });
    if (position !== null) {
      this.#fresh = false;
      this.#passed(position + this.#blockValues, atNs);
    }
    return decided;
  }

  /** How much of a block lay in the source before anything was seen; 0: that is not what it is. */
  #inherited(values, atNs) {
    const front = this.#front(atNs);
    for (let count = 1; count < values.length; count += 1) {
      if (this.#store.matches(front, values.subarray(count))) return count;
    }
    return 0;
  }

  /** A block that begins with what was inherited and goes on with the first that was pushed. */
  #open(inherited, block, atNs) {
    const position = this.#front(atNs);
    const decided = this.#settle(atNs, position);
    decided.push({ block, at: atNs, position, inherited, ambiguous: 0 });
    this.#fresh = false;
    this.#passed(position + this.#blockValues - inherited, atNs);
    return decided;
  }

  /** What the blocks still undecided were. */
  finish() {
    return this.#settle(Infinity, null);
  }

  #passed(floor, atNs) {
    this.#floor = floor;
    while (this.#clears.length && (this.#clears[0][1] <= floor || this.#past(atNs))) {
      this.#clears.shift();
    }
    while (this.#pushes.length > 1 && this.#pushes[0][0] <= floor) this.#pushes.shift();
    this.#store.tidy(floor);
  }

  /** Whether the clear after the oldest one is in force too, which makes that one irrelevant. */
  #past(atNs) {
    return this.#clears.length > 1 && this.#clears[1][0] + CLEAR_SLACK_NS < atNs;
  }

  /** Where the queue begins for a block of that time, as far as the clears tell. */
  #front(atNs) {
    let front = this.#floor;
    for (const [at, end] of this.#clears) {
      if (at + CLEAR_SLACK_NS <= atNs) front = Math.max(front, end);
    }
    return front;
  }

  #place(values, atNs) {
    const store = this.#store;
    const front = this.#front(atNs);
    if (this.#silent.length === 0 && store.matches(front, values)) return front;
    for (const start of new Set([front, this.#floor])) {
      const found = store.find(values, start);
      if (found >= 0) return found;
    }
    return null;
  }

  #silence(block, atNs) {
    const size = this.#blockValues;
    const front = this.#front(atNs) + this.#silent.length * size;
    if (this.#silent.length === 0 && this.#store.zeros(front, size) < size) {
      return [{ block, at: atNs, position: undefined, ambiguous: 0 }];
    }
    this.#silent.push({ block, at: atNs });
    return this.#silent.length > PATIENCE_BLOCKS ? this.#settle(atNs, null) : [];
  }

  /**
   * Decides which of the silent blocks had been pushed, now that the next one is at `position`.
   *
   * Where no clear came in between, all the silence in front of it was sent, and only which block
   * was which is open; elsewhere as much as fits was, and that is a guess.
   */
  #settle(atNs, position) {
    const size = this.#blockValues;
    const known = position !== null && this.#clears.every(([at]) => at > atNs);
    let owed = this.#silent.length;
    if (known) owed = Math.floor(this.#store.zeros(this.#floor, position - this.#floor) / size);
    const decided = this.#silent.map(({ block, at }, index) => {
      const start = this.#front(at);
      const fits =
        owed > 0 &&
        (position === null || start + size <= position) &&
        this.#store.zeros(start, size) === size;
      const must = known && owed >= this.#silent.length - index;
      const sent = fits && (must || this.#pushedBy(start + size) <= at);
      if (sent) {
        this.#floor = start + size;
        owed -= 1;
      }
      return {
        block,
        at,
        position: sent ? start : undefined,
        ambiguous: known || !fits ? 0 : size,
      };
    });
    this.#silent = [];
    if (decided.length) this.#passed(this.#floor, atNs);
    return decided;
  }

  /** When the value in front of `position` was handed over. */
  #pushedBy(position) {
    const push = this.#pushes.find(([end]) => end >= position);
    return push === undefined ? Infinity : push[1];
  }
}
