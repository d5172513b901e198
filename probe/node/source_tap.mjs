/** What an audio source is handed, and when its queue is cleared. */

import { forwarded, readFrame } from './calls.mjs';
import { InstancePatch } from './patches.mjs';

/** Records every `captureFrame`, `clearQueue` and `close` of one source. */
export class SourceTap {
  #recorder;
  #clock;
  #patches = [];

  /** `number` is the source's in the trace, from 1. */
  constructor(source, number, { recorder, clock }) {
    this.source = source;
    this.number = number;
    this.#recorder = recorder;
    this.#clock = clock;
  }

  install() {
    this.#patch('captureFrame', (frame) => ({ kind: 'push', ...readFrame(frame) }));
    this.#patch('clearQueue', () => ({ kind: 'clear' }));
    const { source, number } = this;
    this.#patch('close', () => {
      const event = { event: 'source_closed', source: number };
      return source.closed ? null : { kind: 'event', event };
    });
  }

  remove() {
    for (const patch of this.#patches.splice(0)) patch.undo();
    this.#recorder = null;
  }

  #patch(name, note) {
    const tap = this;
    const original = this.source[name];
    function replacement(...args) {
      if (tap.#recorder === null) return original.apply(this, args);
      const noted = tap.#noted(name, () => note(...args));
      return forwarded(noted, tap.#clock, () => original.apply(this, args));
    }
    this.#patches.push(new InstancePatch(this.source, name, replacement));
  }

  #noted(name, note) {
    try {
      const record = note();
      if (record === null) return {};
      record.at = this.#clock.now();
      record.source = this.number;
      if (record.event) record.event.at_ns = record.at;
      this.#recorder.put(record);
      return record;
    } catch (error) {
      this.#recorder?.fault('tap_raised', `${name}: ${error?.name ?? typeof error}`);
      return {};
    }
  }
}
