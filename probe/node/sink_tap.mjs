/** The tap at the head of the sink: what the reply calls, and when, and how each call ended. */

import { forwarded, readFrame } from './calls.mjs';
import { currentSpeech, playbackEvents } from './compat.mjs';
import { InstancePatch } from './patches.mjs';

const MARKS = { flush: 'flush', clearBuffer: 'clear', pause: 'pause', resume: 'resume' };

/**
 * Records the calls on one sink, on the object itself: the chain stays as it is, and a reply that
 * already holds the sink is heard as well.
 */
export class SinkTap {
  #session;
  #recorder;
  #clock;
  #number;
  #onSegment;
  #patches = [];
  #listeners = [];
  #inside = false;
  #segmentEnded = true;

  /**
   * `number` gives the number of the sink a mark goes to, `onSegment` is called before the first
   * frame of each segment is recorded.
   */
  constructor(sink, { session, recorder, clock, number, onSegment }) {
    this.sink = sink;
    this.#session = session;
    this.#recorder = recorder;
    this.#clock = clock;
    this.#number = number;
    this.#onSegment = onSegment;
  }

  install() {
    const { sink } = this;
    this.#patch('captureFrame', (frame) => this.#captured(frame));
    for (const [name, mark] of Object.entries(MARKS)) {
      if (typeof sink[name] === 'function') this.#patch(name, () => this.#marked(mark));
    }
    for (const [report, event] of playbackEvents(sink)) {
      const listener = (said) => this.#guarded('playback', () => this.#playback(report, said));
      sink.on(event, listener);
      this.#listeners.push([event, listener]);
    }
  }

  remove() {
    for (const patch of this.#patches.splice(0)) patch.undo();
    for (const [event, listener] of this.#listeners.splice(0)) this.sink.off(event, listener);
    this.#recorder = null;
  }

  #patch(name, record) {
    const tap = this;
    const original = this.sink[name];
    function replacement(...args) {
      // What a sink calls on itself is its own affair: only what the reply calls is recorded.
      if (tap.#inside || tap.#recorder === null) return original.apply(this, args);
      const noted = tap.#guarded(name, () => record(...args)) ?? {};
      tap.#inside = true;
      try {
        return forwarded(noted, tap.#clock, () => original.apply(this, args));
      } finally {
        tap.#inside = false;
      }
    }
    this.#patches.push(new InstancePatch(this.sink, name, replacement));
  }

  #guarded(where, work) {
    try {
      return work();
    } catch (error) {
      // The type only: a message may quote what was said.
      this.#recorder?.fault('tap_raised', `${where}: ${error?.name ?? typeof error}`);
      return undefined;
    }
  }

  #captured(frame) {
    if (this.#segmentEnded) {
      this.#segmentEnded = false;
      this.#guarded('segment', this.#onSegment);
    }
    const at = this.#clock.now();
    const speech = currentSpeech(this.#session);
    const record = { kind: 'capture', at, speech, ...readFrame(frame) };
    this.#recorder.put(record);
    return record;
  }

  #marked(mark) {
    if (mark === 'flush' || mark === 'clear') this.#segmentEnded = true;
    const speech = currentSpeech(this.#session);
    const record = { kind: 'mark', at: this.#clock.now(), mark, speech, sink: this.#number() };
    this.#recorder.put(record);
    return record;
  }

  #playback(report, said = {}) {
    const at_ns = this.#clock.now();
    const speech = currentSpeech(this.#session);
    const event = { event: 'playback', at_ns, report, speech };
    if (report === 'started') event.event_unix_s = ms(said.createdAt);
    else if (report === 'progressed') {
      event.position_s = ms(said.offset);
      event.duration_s = ms(said.duration);
      event.event_unix_s = ms(said.startedAt);
    } else {
      event.position_s = said.playbackPosition;
      event.interrupted = said.interrupted;
      event.transcript_chars = said.synchronizedTranscript?.length;
    }
    this.#recorder.event(event);
  }
}

/** Milliseconds as seconds. */
function ms(value) {
  return typeof value === 'number' ? value / 1000 : undefined;
}
