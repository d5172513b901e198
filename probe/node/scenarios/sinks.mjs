/**
 * The sink of a scripted call: the framework's room output over a room of straw.
 *
 * Calls on it and on its audio source are counted, because a script waits for them and for nothing
 * else.
 */

import { findSource } from '../compat.mjs';
import { InstancePatch } from '../patches.mjs';

/** What went by at the sinks and sources of a call so far. */
export class Counts {
  captures = 0;
  capturedSamples = 0;
  flushes = 0;
  pushedSamples = 0;
  pushing = 0;
  queueClears = 0;
  clearsBeforePause = 0;
  resumes = 0;
  paused = false;

  constructor(signals) {
    this.signals = signals;
  }

  /** Counts what happens on `sink` and its source from now on; it stays on, the sink is ours. */
  watch(sink) {
    this.#before(sink, 'captureFrame', (frame) => {
      this.captures += 1;
      this.capturedSamples += frame.samplesPerChannel;
    });
    this.#before(sink, 'flush', () => {
      this.flushes += 1;
    });
    this.#before(sink, 'pause', () => {
      if (!this.paused) this.clearsBeforePause = this.queueClears;
      this.paused = true;
    });
    this.#before(sink, 'resume', () => {
      this.resumes += this.paused ? 1 : 0;
      this.paused = false;
    });
    const source = findSource(sink);
    this.#before(source, 'clearQueue', () => {
      this.queueClears += 1;
    });
    const push = source.captureFrame;
    const counted = (frame) => {
      this.pushedSamples += frame.samplesPerChannel;
      this.pushing += 1;
      this.signals.notify();
      const ended = () => {
        this.pushing -= 1;
        this.signals.notify();
      };
      const result = push.call(source, frame);
      result.then(ended, ended);
      return result;
    };
    new InstancePatch(source, 'captureFrame', counted);
  }

  #before(owner, name, count) {
    const original = owner[name];
    const counted = (...args) => {
      count(...args);
      this.signals.notify();
      return original.apply(owner, args);
    };
    new InstancePatch(owner, name, counted);
  }
}

/** The part of a room that needs a server: publishing a track and being subscribed to. */
export class Room {
  name = 'scripted';
  identity = 'agent';
  isConnected = false;
  #subscribe;
  #subscribed = new Promise((resolve) => {
    this.#subscribe = resolve;
  });

  get localParticipant() {
    return this;
  }

  /** The subscriber comes. */
  subscribe() {
    this.#subscribe();
  }

  async publishTrack() {
    return { sid: 'TR_scripted', waitForSubscription: () => this.#subscribed };
  }

  on() {
    return this;
  }

  off() {
    return this;
  }
}
