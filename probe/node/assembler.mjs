/**
 * From the raw records of the taps to the events of a trace.
 *
 * Runs between the calls, never inside one. Calls become events once they have ended or have run
 * for 150 ms; what was captured is followed to what was pushed, what was pushed to what was sent,
 * and positions are given out. A push that may be refused (another geometry, or an earlier one
 * still waits at its source) gets its positions when its call has ended, every other one at once.
 */

import { FlowMatcher, WireMatcher } from './matching.mjs';

const BLOCK_NS = 10_000_000; // every tick of a source hands on one block, whatever its rate
const OPEN_NS = 150_000_000; // a call that runs for longer is written as running
const RUN_BLOCKS = 20; // the longest run
const SILENCE_BLOCKS = 100; // the longest stretch of inserted silence in one event
const GAP_NS = 15_000_000; // blocks further apart than this are not one run

const OPENING_BLOCKS = 100; // wait until the beat of a reading that was just opened is known
const WINDOW_BLOCKS = 500; // arrivals looked at for the beat of the blocks
const YOUNG_NS = 1_900_000_000; // for how long the beat may still be found out quickly
const YOUNG_STEP_NS = 50_000_000;
const STEP_NS = 5_000_000; // by how much it is corrected from one stretch to the next, later on

/** Positions of values to positions of samples, piece by piece. */
class PositionMap {
  #pieces = [];

  add(value, sample, channels) {
    const last = this.#pieces.at(-1);
    const goesOn =
      last?.channels === channels && value - last.value === (sample - last.sample) * channels;
    if (!goesOn) this.#pieces.push({ value, sample, channels });
  }

  cut(value) {
    while (this.#pieces.length && this.#pieces.at(-1).value >= value) this.#pieces.pop();
  }

  /** `[sample, values]` for each piece of the range. */
  *translate(value, count) {
    let index = this.#pieces.findLastIndex((piece) => piece.value <= value);
    while (count > 0) {
      const following = this.#pieces[index + 1];
      const step = following ? Math.min(count, following.value - value) : count;
      const piece = this.#pieces[index];
      const offset = piece && Math.floor((value - piece.value) / piece.channels);
      yield [piece ? piece.sample + offset : null, step];
      value += step;
      count -= step;
      index += 1;
    }
  }
}

/**
 * The times of blocks from the times they arrived.
 *
 * Arrivals are late by all sorts of things, a loop that is busy most of all, and never early: so
 * the earliest of many, relative to the source's own beat, tells the time of all.
 */
class Grid {
  #phases = [];
  #phase = null;
  #first = null;
  #begun = 0;
  #arrival = 0;
  #last = 0;

  /** @param {boolean} beat whether every tick yields a block, so that its number tells its time. */
  constructor(beat) {
    this.beat = beat;
  }

  /** Block number `block` is the last one of what arrived at `atNs`. */
  arrived(block, atNs) {
    this.#arrival = atNs;
    this.#last = block;
    if (!this.beat) return;
    const phase = atNs - block * BLOCK_NS;
    while (this.#phases.length && this.#phases.at(-1)[1] >= phase) this.#phases.pop();
    this.#phases.push([block, phase]);
    while (this.#phases[0][0] < block - WINDOW_BLOCKS) this.#phases.shift();
  }

  /** When `block` left, as far as is known now. */
  timeOf(block) {
    if (!this.beat) return this.#arrival - (this.#last - block) * BLOCK_NS;
    return (this.#phase ?? this.#phases[0][1]) + block * BLOCK_NS;
  }

  /**
   * A stretch begins with `block`: the beat may be corrected now, by a step readers allow, and
   * never so far that the stretch would begin before the one before it.
   */
  settle(block) {
    if (!this.beat) return;
    const earliest = this.#phases[0][1];
    if (this.#phase === null) this.#phase = earliest;
    else {
      this.#first ??= block;
      const young = (block - this.#first) * BLOCK_NS < YOUNG_NS;
      const step = Math.max(earliest - this.#phase, young ? -YOUNG_STEP_NS : -STEP_NS);
      const phase = this.#phase + Math.min(step, STEP_NS);
      this.#phase = Math.max(phase, this.#begun + 1 - block * BLOCK_NS);
    }
    this.#begun = this.timeOf(block);
  }
}

/** One audio source: what was pushed to it and what came out of it. */
class Source {
  map = new PositionMap();
  values = 0;
  blocks = 0;
  rateHz = null;
  channels = null;
  matcher = null;
  grid = null;
  rest = new Int16Array(0);
  run = null;
  opening = [];
  early = [];

  constructor(number) {
    this.number = number;
  }

  get blockSamples() {
    return Math.max(Math.floor((this.rateHz ?? 0) / 100), 1);
  }
}

const EARLY_PUSHES = 64; // pushes kept for a reading of the wire that may still be opened

/** Turns records into events; times are nanoseconds since the trace began, in and out. */
export class Assembler {
  #flow = new FlowMatcher();
  #capturedMap = new PositionMap();
  #capturedValues = 0;
  #capturedSamples = 0;
  #frames = 0;
  #captures = [];
  #pushes = [];
  #doubtful = [];
  #pushed = 0;
  #pushedSamples = 0;
  #sources = new Map();
  #out = [];
  #nowNs = 0;

  /** Takes a record, in the order they were made. */
  accept(record) {
    this.#nowNs = Math.max(this.#nowNs, record.at);
    switch (record.kind) {
      case 'capture':
        return this.#capture(record);
      case 'mark':
        return this.#mark(record);
      case 'push':
        return this.#push(record);
      case 'clear':
        return this.#clear(record);
      case 'blocks':
        return this.#blocks(record);
      default:
        return this.#event(record);
    }
  }

  /** Returns the events that are due. */
  tick(nowNs) {
    this.#nowNs = Math.max(this.#nowNs, nowNs);
    this.#settleDoubtful();
    this.#writeCaptures(false);
    this.#writePushes(false);
    return this.#take();
  }

  /** Decides and returns everything still held; nothing may be accepted afterwards. */
  finish(nowNs) {
    this.#nowNs = Math.max(this.#nowNs, nowNs);
    this.#settleDoubtful();
    for (const push of this.#doubtful.splice(0)) this.#admit(push);
    this.#assign(this.#flow.finish());
    this.#writeCaptures(true);
    this.#writePushes(true);
    for (const source of this.#sources.values()) this.#closeReading(source);
    return this.#take();
  }

  #take() {
    return this.#out.splice(0);
  }

  #fault(kind, detail, count = 1) {
    this.#out.push({ event: 'fault', at_ns: this.#nowNs, kind, count, detail });
  }

  #source(number) {
    let source = this.#sources.get(number);
    if (source === undefined) this.#sources.set(number, (source = new Source(number)));
    return source;
  }

  #event({ event }) {
    if (event.event === 'tapped' && event.source !== undefined) {
      const source = this.#source(event.source);
      source.rateHz = event.rate_hz;
      source.channels = event.channels;
      if (event.boundary === 'sent') this.#openReading(source, event.grouped);
    } else if (event.event === 'untapped' && event.boundary === 'sent') {
      this.#closeReading(this.#source(event.source));
    }
    this.#out.push(event);
  }

  // -- captured --

  #capture(record) {
    const { frame, values } = record;
    this.#frames += 1;
    this.#captures.push({
      record,
      valueStart: this.#capturedValues,
      written: false,
      event: {
        event: 'captured',
        at_ns: record.at,
        frame: this.#frames,
        start_sample: this.#capturedSamples,
        samples: frame.samples,
        rate_hz: frame.rateHz,
        channels: frame.channels,
        speech: record.speech,
        data_bytes: frame.dataBytes,
      },
    });
    this.#capturedMap.add(this.#capturedValues, this.#capturedSamples, frame.channels);
    const forgotten = this.#flow.captured(values);
    if (forgotten) this.#fault('audio_forgotten', 'captured, not pushed yet', forgotten);
    this.#capturedValues += values.length;
    this.#capturedSamples += frame.samples;
    record.values = null;
  }

  #writeCaptures(last) {
    this.#captures = this.#captures.filter((capture) => {
      const { record, event } = capture;
      const ended = record.end !== undefined;
      if (capture.written && ended) {
        this.#out.push({
          event: 'capture_ended',
          at_ns: record.ended,
          frame: event.frame,
          end: record.end,
          error: record.error,
          detail: record.detail,
        });
      } else if (!capture.written && (ended || last || this.#nowNs - record.at >= OPEN_NS)) {
        const { end, ended: ended_ns, error, detail } = record;
        this.#out.push({ ...event, end, ended_ns, error, detail });
        capture.written = true;
      }
      return !ended;
    });
  }

  #mark(record) {
    if (record.mark === 'clear') this.#assign(this.#flow.cleared());
    this.#out.push({
      event: 'mark',
      at_ns: record.at,
      mark: record.mark,
      speech: record.speech,
      end: record.end === 'returned' ? undefined : record.end,
      ended_ns: record.ended,
      error: record.error,
      sink: record.sink,
    });
  }

  // -- pushed --

  #push(record) {
    this.#settleDoubtful();
    const source = this.#source(record.source);
    this.#pushed += 1;
    const push = {
      record,
      source,
      number: this.#pushed,
      values: record.values,
      start: null,
      wouldStart: this.#pushedSamples,
      refused: false,
      written: false,
      match: null,
      matched: false,
    };
    record.values = null;
    const current = this.#captures.find((capture) => capture.record.end === undefined);
    this.#assign(this.#flow.match(push.values, push, current?.valueStart ?? null));
    const crowded = this.#pushes.some(
      (other) => other.source === source && other.record.end === undefined && !other.refused,
    );
    this.#pushes.push(push);
    const { frame } = record;
    const alien = source.rateHz !== frame.rateHz || source.channels !== frame.channels;
    if (record.end === undefined && (crowded || alien)) this.#doubtful.push(push);
    else this.#decide(push);
  }

  #assign(decided) {
    for (const { key: push, parts, ambiguous } of decided) push.match = { parts, ambiguous };
  }

  #settleDoubtful() {
    while (this.#doubtful.length && this.#doubtful[0].record.end !== undefined) {
      this.#decide(this.#doubtful.shift());
    }
  }

  #decide(push) {
    if (push.record.end === 'raised') {
      push.refused = true;
      push.start = push.wouldStart;
      push.values = null;
    } else this.#admit(push);
  }

  /** The source takes the frame: gives out its positions. */
  #admit(push) {
    const { source, record } = push;
    push.start = this.#pushedSamples;
    this.#pushedSamples += record.frame.samples;
    push.valueStart = source.values;
    source.map.add(source.values, push.start, record.frame.channels);
    source.values += push.values.length;
    if (source.matcher === null) {
      source.early.push(push);
      if (source.early.length > EARLY_PUSHES) source.early.shift().values = null;
    } else this.#handOver(source, push);
  }

  #handOver(source, push) {
    const forgotten = source.matcher.pushed(push.values, push.record.at);
    if (forgotten) this.#fault('audio_forgotten', 'pushed, not sent yet', forgotten);
    push.values = null;
  }

  /** A push taken for accepted was refused: if it is last, its positions are free again. */
  #retract(push) {
    push.refused = true;
    const { source } = push;
    if (push.start + push.record.frame.samples !== this.#pushedSamples) return;
    this.#pushedSamples = push.start;
    source.values = push.valueStart;
    source.map.cut(push.valueStart);
    source.early = source.early.filter((early) => early !== push);
    source.matcher?.takeBack(push.valueStart);
  }

  #writePushes(last) {
    this.#pushes = this.#pushes.filter((push) => {
      const { record } = push;
      const ended = record.end !== undefined;
      if (push.start === null) return true;
      if (record.end === 'raised' && !push.refused) this.#retract(push);
      const old = last || this.#nowNs - record.at >= OPEN_NS;
      if (push.written) this.#follow(push);
      else if (old || (ended && push.match !== null)) {
        this.#out.push(this.#pushedEvent(push));
        push.written = true;
        push.closed = ended;
        push.matched = push.match !== null;
      }
      return !(push.closed && push.matched);
    });
  }

  /** What became known since the push was written. */
  #follow(push) {
    const { record, match } = push;
    if (record.end !== undefined && !push.closed) {
      this.#out.push({
        event: 'push_ended',
        at_ns: record.ended,
        push: push.number,
        end: record.end,
        error: record.error,
        accepted: push.refused ? false : undefined,
        detail: record.detail,
      });
      push.closed = true;
    }
    if (match !== null && !push.matched) {
      this.#out.push({
        event: 'push_matched',
        at_ns: this.#nowNs,
        push: push.number,
        captured: this.#capturedParts(match.parts, record.frame.channels),
        ambiguous_samples: Math.floor(match.ambiguous / record.frame.channels) || undefined,
      });
      push.matched = true;
    }
  }

  #pushedEvent({ record, number, start, refused, match }) {
    const { frame } = record;
    return {
      event: 'pushed',
      at_ns: record.at,
      push: number,
      source: record.source,
      start_sample: start,
      samples: frame.samples,
      rate_hz: frame.rateHz,
      channels: frame.channels,
      accepted: refused ? false : undefined,
      captured: match ? this.#capturedParts(match.parts, frame.channels) : undefined,
      ambiguous_samples: Math.floor((match?.ambiguous ?? 0) / frame.channels) || undefined,
      end: record.end,
      ended_ns: record.ended,
      error: record.error,
      detail: record.detail,
    };
  }

  /** The parts of a match in samples; borders inside a sample are rounded so that they add up. */
  #capturedParts(parts, channels) {
    const found = [];
    let values = 0;
    for (const [position, count] of parts) {
      const pieces =
        position === null ? [[null, count]] : this.#capturedMap.translate(position, count);
      for (const [start, length] of pieces) {
        const samples = Math.floor((values + length) / channels) - Math.floor(values / channels);
        values += length;
        if (samples > 0) found.push([start, samples]);
      }
    }
    return found;
  }

  #clear(record) {
    this.#settleDoubtful();
    const source = this.#source(record.source);
    source.early = source.early.filter(({ record: push }) => push.end === undefined);
    source.matcher?.cleared(record.at);
    this.#out.push({
      event: 'source_cleared',
      at_ns: record.at,
      source: record.source,
      ended_ns: record.ended,
      error: record.error,
    });
  }

  // -- sent --

  #openReading(source, beat) {
    this.#closeReading(source);
    source.grid = new Grid(beat === true);
    source.blocks = 0;
    source.rest = new Int16Array(0);
    const kept = source.early.reduce((sum, push) => sum + push.values.length, 0);
    source.matcher = new WireMatcher(source.blockSamples * source.channels, source.values - kept);
    for (const push of source.early.splice(0)) this.#handOver(source, push);
  }

  #closeReading(source) {
    if (source.matcher === null) return;
    this.#takeIn(source);
    this.#join(source, source.matcher.finish());
    this.#closeRun(source);
  }

  #blocks(record) {
    const source = this.#source(record.source);
    const size = source.blockSamples * source.channels;
    const whole = new Int16Array(source.rest.length + record.values.length);
    whole.set(source.rest);
    whole.set(record.values, source.rest.length);
    const count = Math.floor(whole.length / size);
    source.rest = whole.slice(count * size);
    if (count === 0) return;
    source.grid.arrived(source.blocks + source.opening.length + count - 1, record.at);
    for (let index = 0; index < count; index += 1) {
      source.opening.push(whole.subarray(index * size, (index + 1) * size));
    }
    if (source.blocks > 0 || source.opening.length >= OPENING_BLOCKS) this.#takeIn(source);
  }

  /** Looks at the blocks that wait, in their order. */
  #takeIn(source) {
    for (const values of source.opening.splice(0)) {
      const atNs = source.grid.timeOf(source.blocks);
      this.#join(source, source.matcher.block(values, source.blocks, atNs));
      source.blocks += 1;
    }
  }

  /** Joins blocks to runs and stretches of silence, each contiguous in samples and in time. */
  #join(source, decided) {
    for (const { block, at, position, inherited = 0, ambiguous } of decided) {
      const size = source.blockSamples * source.channels;
      let pieces = [[null, size]];
      if (typeof position === 'number') {
        pieces = [...source.map.translate(position, size - inherited)];
        if (inherited) pieces.unshift([null, inherited]);
      }
      let offset = 0;
      for (const [start, values] of pieces) {
        const samples = values / source.channels;
        const part = { silent: position === undefined, start, samples, offset, block, at };
        this.#extend(source, part, ambiguous / source.channels);
        offset += samples;
      }
    }
  }

  #extend(source, part, ambiguous) {
    const { silent, start, samples, offset, block, at } = part;
    const { run, grid } = source;
    const goesOn =
      run !== null &&
      run.silent === silent &&
      (start === null ? run.start === null : run.start + run.samples === start) &&
      block - run.block < (silent ? SILENCE_BLOCKS : RUN_BLOCKS) &&
      at - run.lastAt <= GAP_NS;
    if (goesOn) {
      run.samples += samples;
      run.ambiguous += ambiguous;
      run.last = block;
      run.lastAt = at;
      return;
    }
    this.#closeRun(source);
    grid.settle(block);
    source.run = { silent, start, samples, offset, block, last: block, ambiguous };
    Object.assign(source.run, { at: grid.beat ? grid.timeOf(block) : at, lastAt: at });
  }

  #closeRun(source) {
    const { run, grid } = source;
    source.run = null;
    if (run === null) return;
    const lasted = grid.beat ? (run.last - run.block) * BLOCK_NS : run.lastAt - run.at;
    const stretch = {
      event: run.silent ? 'inserted' : 'sent',
      at_ns: Math.round(run.at),
      until_ns: Math.round(run.at + lasted + BLOCK_NS),
      source: source.number,
    };
    if (!run.silent) stretch.start_sample = run.start;
    stretch.samples = run.samples;
    if (!run.silent && run.offset) stretch.block_offset_samples = run.offset;
    if (run.ambiguous) stretch.ambiguous_samples = Math.floor(run.ambiguous);
    this.#out.push(stretch);
  }
}
