/**
 * What really left an audio source: its local track, read back.
 *
 * The source hands blocks of 10 ms to the encoder of whatever track it feeds. A second track on the
 * same source, never published, gets the same blocks. They arrive on the session's loop, late by
 * as long as it is busy; where every tick yields a block, its number tells its time all the same.
 */

import { unbounded } from './compat.mjs';

const GROUP_MS = 50; // read at a time where the number of a block tells its time
const RESOLUTION_NS = 10_000_000;
const RESOLUTION_UNGRIDDED_NS = 20_000_000;

/** Reads back what leaves one source, until stopped. */
export class WireTap {
  #recorder;
  #clock;
  #reader = null;
  #track = null;

  /**
   * @param {object} source
   * @param {number} number the source's in the trace, from 1.
   * @param {object} rtc the agent's own `@livekit/rtc-node`.
   * @param {boolean} beat whether every tick yields a block.
   */
  constructor(source, number, rtc, beat, { recorder, clock }) {
    this.source = source;
    this.number = number;
    this.rtc = rtc;
    this.beat = beat;
    this.#recorder = recorder;
    this.#clock = clock;
  }

  /** Begins to read; takes the loop for a few milliseconds. */
  start() {
    const { AudioStream, LocalAudioTrack } = this.rtc;
    const { sampleRate, numChannels } = this.source;
    const options = { sampleRate, numChannels };
    if (this.beat) options.frameSizeMs = GROUP_MS;
    try {
      this.#track = LocalAudioTrack.createAudioTrack('sinkprobe', this.source);
      this.#reader = unbounded(() => new AudioStream(this.#track, options)).getReader();
    } catch (error) {
      this.#recorder.fault('tap_raised', `wire: ${error?.name ?? typeof error}`);
      return;
    }
    this.#recorder.event({
      event: 'tapped',
      at_ns: this.#clock.now(),
      boundary: 'sent',
      source: this.number,
      rate_hz: sampleRate,
      channels: numChannels,
      block_samples: Math.floor(sampleRate / 100),
      grouped: this.beat || undefined,
      resolution_ns: this.beat ? RESOLUTION_NS : RESOLUTION_UNGRIDDED_NS,
    });
    this.#read();
  }

  stop() {
    const reader = this.#reader;
    if (reader === null) return;
    this.#reader = null;
    this.#ended('stopped');
    reader.cancel().catch(() => {});
    this.#track = null;
  }

  #ended(reason) {
    const at_ns = this.#clock.now();
    const { number: source } = this;
    this.#recorder.event({ event: 'untapped', at_ns, boundary: 'sent', source, reason });
  }

  async #read() {
    const reader = this.#reader;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (this.#reader === null) return;
        if (done) break;
        const at = this.#clock.now();
        this.#recorder.put({ kind: 'blocks', at, source: this.number, values: value.data });
      }
      this.#recorder.fault('wire_hole', `source ${this.number}: the stream ended by itself`);
    } catch (error) {
      this.#recorder.fault('tap_raised', `wire: ${error?.name ?? typeof error}`);
    }
    this.#reader = null;
    this.#ended('ended');
  }
}
