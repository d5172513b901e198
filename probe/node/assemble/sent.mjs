/** The boundary *sent*: what left one source, as runs of pushed samples and inserted silence. */

import { WireMatcher } from '../follow/wire.mjs';
import { isOld } from './captured.mjs';
import { Grid } from './grid.mjs';
import { PositionMap } from './positions.mjs';
import { Runs } from './runs.mjs';

const STRAY_NS = 250_000_000; // for how long a block nobody knows waits for one to explain it
const OPENING_BLOCKS = 100; // held until the beat of a reading that was just opened is known
const EARLY_PUSHES = 64; // pushes kept for a reading of the wire that may still be opened

const GRID_SLACK_NS = 60_000_000; // how far stamps may be wrong where the beat corrects them
const ARRIVAL_SLACK_NS = 200_000_000; // how far they may be wrong where they are arrivals
const QUIET_NS = 80_000_000; // without a beat nothing comes out for longer than this before silence

/** One audio source: what was pushed to it and what came out of it. */
export class Wire {
  rateHz = null;
  channels = null;
  closed = false;
  #fault;
  #queueMs = null;
  #map = new PositionMap();
  #values = 0;
  #early = []; // the last pushes from before the wire was read
  #clears = [];
  #matcher = null;
  #grid = null;
  #beat = false;
  #rest = new Int16Array(0);
  #blocks = 0;
  #decided = [];
  #held = []; // decided as well, until the beat is known that stamps them
  #runs;
  #arrived = 0;

  constructor(number, fault) {
    this.number = number;
    this.#runs = new Runs(number, this.#map);
    this.#fault = fault;
  }

  get #blockSamples() {
    return Math.max(Math.floor((this.rateHz ?? 0) / 100), 1);
  }

  /** Counting begins at the source, or behind it. */
  *tapped({ boundary, rate_hz, channels, queue_ms, grouped }) {
    this.rateHz = rate_hz ?? this.rateHz;
    this.channels = channels ?? this.channels;
    this.#queueMs = queue_ms ?? this.#queueMs;
    if (boundary !== 'sent') return;
    this.#beat = grouped === true;
    yield* this.#openReading();
  }

  // -- what went in --

  /** Takes an admitted push; returns its position among the values of this source. */
  push(push) {
    const start = this.#values;
    const { frame } = push.record;
    if (frame.samples) {
      this.#map.add(start, push.start, frame.channels);
      this.#values += push.values.length;
      if (this.#matcher === null) {
        this.#early.push({ push, values: push.values });
        if (this.#early.length > EARLY_PUSHES) this.#early.shift();
      } else this.#handOver(push, push.values);
    }
    return start;
  }

  #handOver(push, values) {
    const forgotten = this.#matcher.push(push, values, push.record.at);
    if (forgotten) this.#fault('audio_forgotten', 'pushed, not sent yet', forgotten);
    this.#map.forgetBefore(this.#matcher.neededFrom);
  }

  /** The call of an admitted push ended. */
  pushEnded(push) {
    this.#matcher?.pushEnded(push, push.record.ended, push.record.end === 'returned');
  }

  wasSent(start) {
    return this.#matcher?.wasSent(start) ?? false;
  }

  /** Takes back the last push, which was refused; false if it is not last, or was seen sent. */
  retract(push) {
    const known = this.#matcher !== null && push.record.frame.samples > 0;
    if (known && !this.#matcher.retract(push)) return false;
    this.#early = this.#early.filter((early) => early.push !== push);
    this.#values = push.valueStart;
    this.#map.cut(push.valueStart);
    return true;
  }

  /** The queue was cleared. */
  clear(record) {
    this.#clears.push(record);
    if (this.#matcher !== null) this.#matcher.clear(record.at, record.ended);
    // Only a push still under way can outlive the clear.
    else while (this.#early[0] && this.#early[0].push.record.end !== undefined) this.#early.shift();
  }

  // -- what came out --

  *#openReading() {
    yield* this.close();
    this.#grid = new Grid(this.#beat);
    this.#rest = new Int16Array(0);
    this.#blocks = 0;
    if (this.#matcher !== null) return;
    const block = this.#blockSamples * (this.channels ?? 1);
    const kept = this.#early.reduce((sum, { values }) => sum + values.length, 0);
    this.#matcher = new WireMatcher({
      block,
      piece: this.#queueMs ? Math.floor(this.#queueMs / 10) * block : null,
      slack: this.#beat ? GRID_SLACK_NS : ARRIVAL_SLACK_NS,
      quiet: this.#beat ? 0 : QUIET_NS,
      start: this.#values - kept,
    });
    for (const { push, values } of this.#early.splice(0)) {
      this.#handOver(push, values);
      if (push.ended) this.pushEnded(push);
    }
  }

  /** A reading ended: decides what of it is undecided. */
  *close() {
    if (this.#matcher === null) return;
    this.#decided.push(...this.#matcher.finish());
    yield* this.#join(true);
    yield* this.#runs.close();
  }

  /** Blocks were read back. */
  *take({ at, values, frame }) {
    if (this.#grid === null) {
      this.rateHz ??= frame?.rateHz ?? null;
      this.channels ??= frame?.channels ?? 1;
      yield* this.#openReading();
    }
    this.#arrived = at;
    const size = this.#blockSamples * (this.channels ?? 1);
    const whole = new Int16Array(this.#rest.length + values.length);
    whole.set(this.#rest);
    whole.set(values, this.#rest.length);
    const count = Math.floor(whole.length / size);
    this.#rest = whole.slice(count * size);
    const begun = this.#rest.length ? 1 : 0;
    // What arrives now left with the block that completed it, which may not be whole yet.
    this.#grid.arrived(this.#blocks + count + begun - 1, at);
    if (!count) return;
    const atNs = this.#grid.timeOf(this.#blocks);
    const known = whole.subarray(0, count * size);
    this.#decided.push(...this.#matcher.blocks(this.#blocks, known, atNs));
    this.#blocks += count;
  }

  /** What is decided, or too old to wait. */
  *write(nowNs, last) {
    const clears = this.#clears.splice(0);
    for (const record of clears) {
      if (record.end === undefined && !last && !isOld(record, nowNs)) this.#clears.push(record);
      else yield cleared(record);
    }
    if (this.#matcher === null) return;
    if (this.#matcher.hasStray && nowNs - this.#arrived > STRAY_NS) {
      this.#decided.push(...this.#matcher.giveUpStray());
    }
    yield* this.#join(false);
    yield* this.#runs.close(nowNs);
  }

  /** Joins what is decided to runs, and tells those that are complete. */
  *#join(last) {
    for (const { block, latest, ambiguous } of this.#decided) {
      if (latest !== null && !ambiguous) this.#grid.leftBy(block, latest);
    }
    this.#held.push(...this.#decided.splice(0));
    if (this.#beat && this.#blocks < OPENING_BLOCKS && !last) return;
    for (const stretch of this.#held.splice(0)) {
      yield* this.#runs.join(stretch, this.#grid, this.#blockSamples, this.channels ?? 1);
    }
    this.#grid.forgetBefore(this.#blocks - this.#matcher.undecidedBlocks);
  }
}

function cleared({ at, source, ended, error }) {
  return { event: 'source_cleared', at_ns: at, source, ended_ns: ended, error };
}
