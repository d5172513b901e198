/** The TTS of a scripted call: replies of known content, at the pace of the call. */

import { ReadableStream } from 'node:stream/web';

import { frameBounds, knownSamples } from './audio.mjs';
import { sleep } from './signals.mjs';

/** Length of the control reply. Not a whole number of blocks, so that its tail shows. */
export const CONTROL_MS = 1003;

export class Voice {
  /** Of the reply under way. */
  deliveredMs = 0;
  /** Whether it has stopped delivering until it is let go on. */
  stalled = false;
  #axes;
  #scripted;
  #signals;
  #rtc;
  #callSamples = 0;
  #reply = 0;
  #lengthsMs = [];
  #held = true;
  #goOn;
  #going = new Promise((resolve) => {
    this.#goOn = resolve;
  });

  /** `replies`: how many the script goes through before the control. */
  constructor(axes, replies, signals, rtc) {
    this.#axes = axes;
    this.#scripted = replies;
    this.#signals = signals;
    this.#rtc = rtc;
  }

  /** What is spoken next belongs to a new reply. */
  begin(control) {
    this.#reply += 1;
    const { reply, reply_ms: length } = this.#axes;
    const half = Math.floor(length / 2);
    if (control) this.#lengthsMs = [CONTROL_MS];
    else this.#lengthsMs = reply === 'tool' ? [half, length - half] : [length];
    this.deliveredMs = 0;
  }

  /** Whether there is a tool to call before the reply under way is whole. */
  get wantsTool() {
    return this.#lengthsMs.length > 1;
  }

  /** Ends the stall, now or before it has begun. */
  goOn() {
    this.#held = false;
    this.#goOn();
  }

  /** The audio of the reply that is due, as the framework wants it. */
  stream() {
    const frames = this.#speak();
    return new ReadableStream(
      {
        pull: async (controller) => {
          const { done, value } = await frames.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: async () => {
          await frames.return();
        },
      },
      { highWaterMark: 0 },
    );
  }

  async *#speak() {
    const axes = this.#axes;
    const control = this.#reply > this.#scripted;
    const lengthMs = this.#lengthsMs.shift() ?? CONTROL_MS;
    const total = Math.floor((lengthMs * axes.rate_hz) / 1000);
    const base = this.#callSamples;
    this.#callSamples += total;
    const saidMs = this.deliveredMs;
    let started = performance.now();
    // The stall is where the barge-in lands, and that is in the last reply of the script.
    let stallMs = this.#reply === this.#scripted ? this.#stallMs() : null;
    this.#signals.notify();
    try {
      for (const [start, stop] of frameBounds(total, axes.frame_ms, axes.rate_hz)) {
        if (stallMs !== null && saidMs + (start * 1000) / axes.rate_hz >= stallMs) {
          stallMs = null;
          this.stalled = this.#held;
          this.#signals.notify();
          const began = performance.now();
          await this.#going;
          this.stalled = false;
          started += performance.now() - began;
        }
        const dueInMs = started + (start * 1000) / axes.rate_hz - performance.now();
        if (axes.pacing === 'realtime') await sleep(Math.max(dueInMs, 0));
        // Even a TTS that has it all at once lets the loop turn between two frames.
        else await new Promise((resolve) => setImmediate(resolve));
        if (!control) {
          this.deliveredMs = saidMs + (stop * 1000) / axes.rate_hz;
          this.#signals.notify();
        }
        yield this.#frame(base + start, stop - start);
      }
    } finally {
      if (axes.close_ms && !control) await sleep(axes.close_ms);
    }
  }

  #frame(start, samples) {
    const { rate_hz: rateHz, channels } = this.#axes;
    const values = knownSamples(start, samples, channels);
    return new this.#rtc.AudioFrame(values, rateHz, channels, samples);
  }

  #stallMs() {
    const { at, pacing, frame_ms: frameMs } = this.#axes;
    if (at === 'before-first-frame') return 0;
    if (pacing !== 'stalled' || at === 'after-last-frame' || !this.#held) return null;
    return landingMs(this.#axes) ?? frameMs;
  }
}

/** Where in the reply the first landing is, null at its first and after its last frame. */
export function landingMs({ at, reply_ms: replyMs }) {
  if (typeof at === 'number') return at;
  if (['before-first-frame', 'first-frame', 'after-last-frame'].includes(at)) return null;
  return Math.min(600, Math.floor(replyMs / 3));
}
