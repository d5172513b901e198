/** The boundary *captured*: every frame and mark, and where each frame's values lie. */

import { PositionMap } from './positions.mjs';

const OPEN_NS = 150_000_000; // a call that runs for longer is written as running

/** Whether a call has run for so long that it is written before it ends. */
export const isOld = (record, nowNs) => nowNs - record.at >= OPEN_NS;

/** What a call that was written while it ran says when it has ended. */
export const endOf = ({ ended: at_ns, end, error, detail }) => ({ at_ns, end, error, detail });

export class Captured {
  #flow;
  #fault;
  #frames = 0;
  #samples = 0;
  #captures = [];
  #marks = [];
  #newest = null;
  /** Positions of captured values to those of samples. */
  map = new PositionMap();

  constructor(flow, fault) {
    this.#flow = flow;
    this.#fault = fault;
  }

  /** A frame entered the sink. */
  take(record) {
    const { frame, values } = record;
    record.values = null;
    this.#frames += 1;
    this.#newest = record;
    const event = {
      event: 'captured',
      at_ns: record.at,
      frame: this.#frames,
      start_sample: this.#samples,
      samples: frame.samples,
      rate_hz: frame.rateHz,
      channels: frame.channels,
      speech: record.speech,
      data_bytes: frame.dataBytes,
    };
    this.#captures.push({ record, event, written: false });
    if (frame.samples) {
      this.map.add(this.#flow.end, this.#samples, frame.channels);
      const forgotten = this.#flow.capture(values);
      if (forgotten) this.#fault('audio_forgotten', 'captured, not pushed yet', forgotten);
      this.map.forgetBefore(this.#flow.neededFrom);
    }
    this.#samples += frame.samples;
  }

  /** Whether the last frame's call was under way at a time. */
  isEntering(atNs) {
    return this.#newest !== null && !(this.#newest.ended < atNs);
  }

  /** The sink saw a pause, resume, clear or flush. */
  takeMark(record) {
    this.#marks.push(record);
  }

  /** What has ended or runs for too long to be waited for. */
  *write(nowNs, last) {
    yield* this.#writeCaptures(nowNs, last);
    const marks = this.#marks.splice(0);
    for (const record of marks) {
      if (record.end === undefined && !last && !isOld(record, nowNs)) this.#marks.push(record);
      else yield marked(record);
    }
  }

  *#writeCaptures(nowNs, last) {
    const captures = this.#captures.splice(0);
    for (const capture of captures) {
      const { record, event, written } = capture;
      const ended = record.end !== undefined;
      if (written && ended) {
        yield { event: 'capture_ended', frame: event.frame, ...endOf(record) };
      } else if (!written && (ended || last || isOld(record, nowNs))) {
        const { end, ended: ended_ns, error, detail } = record;
        yield { ...event, end, ended_ns, error, detail };
        capture.written = true;
      }
      if (!ended) this.#captures.push(capture);
    }
  }
}

function marked({ at, mark, speech, end, ended, error, sink }) {
  return {
    event: 'mark',
    at_ns: at,
    mark,
    speech,
    end: end === 'returned' ? undefined : end,
    ended_ns: ended,
    error,
    sink,
  };
}
