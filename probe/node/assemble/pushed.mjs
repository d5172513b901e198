/** The boundary *pushed*: which frames the sources took, and what those were made of. */

import { endOf, isOld } from './captured.mjs';

/** A count that is left out where it is zero. */
const counted = (values, channels) => Math.floor(values / channels) || undefined;

export class Pushed {
  #flow;
  #captured;
  #wire;
  #pushes = [];
  #doubtful = [];
  #count = 0;
  #samples = 0;
  #lastAdmitted = null;

  /**
   * @param {FlowMatcher} flow follows what was captured.
   * @param {Captured} captured says where captured values lie in samples.
   * @param {(number: number) => Wire} wire of a source, by its number.
   */
  constructor(flow, captured, wire) {
    this.#flow = flow;
    this.#captured = captured;
    this.#wire = wire;
  }

  /** A frame was handed to a source. */
  take(record) {
    this.settle();
    this.#count += 1;
    const { values } = record;
    record.values = null;
    const wire = this.#wire(record.source);
    const push = { record, wire, values, number: this.#count, start: null, match: null };
    this.#pushes.push(push);
    if (wire.closed || record.end === 'raised') this.#refuse(push);
    else if (this.#mayBeRefused(push)) this.#doubtful.push(push);
    else this.#admit(push);
    this.assign(this.#flow.push(push, values, this.#captured.isEntering(record.at)));
    this.#takeBack(push);
  }

  /** Admits or refuses the pushes whose end decided it, in their order. */
  settle() {
    while (this.#doubtful.length && this.#doubtful[0].record.end !== undefined) {
      const push = this.#doubtful.shift();
      if (push.record.end === 'raised') this.#refuse(push);
      else this.#admit(push);
    }
  }

  /** Tells the matchers of pushes that ended. */
  noteEnds() {
    for (const push of this.#pushes) if (push.record.end !== undefined) this.#noteEnd(push);
  }

  /** Gives decided matches to their pushes. */
  assign(matches) {
    for (const match of matches) match.key.match = match;
  }

  /** What is decided, or too old to wait. */
  *write(nowNs, last) {
    const pushes = this.#pushes.splice(0);
    for (const push of pushes) {
      yield* this.#writePush(push, nowNs, last);
      if (!(push.closed && push.matched)) this.#pushes.push(push);
    }
  }

  // -- in or not --

  /** The native side refuses another geometry, and a frame handed over while one waits for room. */
  #mayBeRefused(push) {
    const { record, wire } = push;
    if (record.end !== undefined) return false;
    const { rateHz, channels } = record.frame;
    if (![null, rateHz].includes(wire.rateHz)) return true;
    if (![null, channels].includes(wire.channels)) return true;
    return this.#pushes.some(
      (other) =>
        other !== push && other.wire === wire && other.record.end === undefined && !other.refused,
    );
  }

  /** The source takes the frame: gives out its positions. */
  #admit(push) {
    push.admitted = true;
    push.start = this.#samples;
    for (const earlier of this.#doubtful) {
      if (earlier.number < push.number) earlier.overtakenAt ??= push.start;
    }
    this.#samples += push.record.frame.samples;
    this.#lastAdmitted = push;
    push.valueStart = push.wire.push(push);
    push.values = null;
  }

  #refuse(push) {
    push.refused = true;
    push.start = push.overtakenAt ?? this.#samples;
    push.values = null;
  }

  /** A refused frame may be handed over again: its captured samples are free once more. */
  #takeBack({ refused, match }) {
    const found = match?.parts.find(([start]) => start !== null);
    if (refused && found) this.#flow.rewind(found[0]);
  }

  #noteEnd(push) {
    if (!push.admitted || push.ended) return;
    push.ended = true;
    const { record, wire } = push;
    if (record.end !== 'raised') {
      wire.pushEnded(push);
      return;
    }
    if (wire.wasSent(push.valueStart)) return; // Part of a long frame went in before the refusal.
    push.refused = true;
    push.admitted = false;
    // Behind it others may hold positions already: then its own stay unused.
    if (push === this.#lastAdmitted && wire.retract(push)) {
      this.#samples = push.start;
      this.#lastAdmitted = null;
    }
    this.#takeBack(push);
  }

  // -- events --

  *#writePush(push, nowNs, last) {
    const { record } = push;
    const ended = record.end !== undefined;
    if (ended) this.#noteEnd(push);
    if (!push.written) {
      const decided = push.admitted || push.refused;
      if (!decided && !last) return;
      if (!decided) this.#refuse(push);
      const old = last || isOld(record, nowNs);
      if (!old && (!ended || push.match === null)) return;
      push.written = true;
      push.closed = ended;
      push.matched = push.match !== null;
      yield this.#pushedEvent(push);
      yield* this.#skipped(push);
    } else if (ended && !push.closed) {
      const accepted = push.refused ? false : undefined;
      yield { event: 'push_ended', push: push.number, accepted, ...endOf(record) };
      push.closed = true;
    }
    if (push.match !== null && !push.matched) {
      yield { event: 'push_matched', at_ns: nowNs, push: push.number, ...this.#origin(push) };
      push.matched = true;
      yield* this.#skipped(push);
    }
  }

  #pushedEvent(push) {
    const { record, number, start, refused } = push;
    return {
      event: 'pushed',
      at_ns: record.at,
      push: number,
      source: record.source,
      start_sample: start,
      samples: record.frame.samples,
      rate_hz: record.frame.rateHz,
      channels: record.frame.channels,
      accepted: refused ? false : undefined,
      ...this.#origin(push),
      end: record.end,
      ended_ns: record.ended,
      error: record.error,
      detail: record.detail,
    };
  }

  /** What a push was made of, as far as that is decided. */
  #origin({ record, match }) {
    if (match === null) return {};
    const { channels } = record.frame;
    return {
      captured: this.#parts(match.parts, channels),
      ambiguous_samples: counted(match.ambiguous, channels),
      added_samples: counted(match.added, channels),
      habit: match.habit ?? undefined,
    };
  }

  /** What the sink passed over in front of a push. */
  *#skipped({ record, match }) {
    for (const [position, values] of match === null ? [] : match.skipped) {
      for (const [start, count] of this.#captured.map.translate(position, values)) {
        const samples = counted(count, record.frame.channels);
        if (start !== null && samples) {
          yield { event: 'skipped', at_ns: record.at, start_sample: start, samples };
        }
      }
    }
  }

  /** The parts of a match in samples; borders inside a sample are rounded so that they add up. */
  #parts(parts, channels) {
    const found = [];
    let values = 0;
    for (const [position, count] of parts) {
      const pieces =
        position === null ? [[null, count]] : this.#captured.map.translate(position, count);
      for (const [start, length] of pieces) {
        const samples = Math.floor((values + length) / channels) - Math.floor(values / channels);
        values += length;
        if (samples > 0) found.push([start, samples]);
      }
    }
    return found;
  }
}
