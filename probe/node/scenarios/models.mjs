/**
 * The scripted participants of a call: caller, VAD, STT and LLM.
 *
 * Each is a public plugin class of LiveKit with the recognition left out: what it would have found
 * in the audio, the script says. What the session makes of it is the session's own decision.
 */

import { ReadableStream } from 'node:stream/web';

import { sleep } from './signals.mjs';

export const MIC_FRAME_MS = 20;
const MIC_RATE_HZ = 16_000;
const MIC_SAMPLES = (MIC_RATE_HZ * MIC_FRAME_MS) / 1000;
const LOUD = 8000;
const SPEECH_AFTER_FRAMES = 3; // of speech, after which the VAD says that the caller started
const SILENCE_AFTER_FRAMES = 10; // of silence, after which it says that the caller stopped

/** The caller's microphone: a frame every 20 ms, loud while the caller speaks. */
export class Caller {
  speaking = false;
  /** When the caller last began and ended to speak, by the wall clock. */
  spokeFromMs = 0;
  spokeUntilMs = 0;
  /** Frames the microphone took up so far. */
  frames = 0;
  #heard;
  #rtc;
  #controller;
  #stopped = false;

  constructor(heard, rtc) {
    this.#heard = heard;
    this.#rtc = rtc;
    this.stream = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
    });
  }

  /** Keeps the microphone going until stopped. */
  async run() {
    let due = performance.now();
    while (!this.#stopped) {
      this.#takeUp();
      this.#heard();
      due = Math.max(due + MIC_FRAME_MS, performance.now());
      await sleep(due - performance.now());
    }
  }

  stop() {
    this.#stopped = true;
  }

  /** Starts to speak: `ms` of speech arrive at once, as after a hitch of the network. */
  speak(ms) {
    this.speaking = true;
    this.spokeFromMs = Date.now();
    for (let frame = 0; frame < Math.floor(ms / MIC_FRAME_MS); frame += 1) this.#takeUp();
  }

  /** Falls silent. */
  hush() {
    this.speaking = false;
    this.spokeUntilMs = Date.now();
  }

  #takeUp() {
    const samples = new Int16Array(MIC_SAMPLES).fill(this.speaking ? LOUD : 0);
    const frame = new this.#rtc.AudioFrame(samples, MIC_RATE_HZ, 1, MIC_SAMPLES);
    try {
      this.#controller.enqueue(frame);
    } catch {
      this.#stopped = true; // the session has let go of the microphone
    }
    this.frames += 1;
  }
}

/** An audio input of the release's own class that delivers the caller's stream. */
export function microphone(AudioInput, caller) {
  const input = new (class extends AudioInput {})();
  Object.defineProperty(input, 'stream', { get: () => caller.stream });
  return input;
}

/** What a VAD keeps count of, in frames of the microphone. */
class Activity {
  speaking = false;
  loudFrames = 0;
  quietFrames = 0;
  samples = 0;
  speechMs = 0;
  silenceMs = 0;

  event(type, frame) {
    return {
      type,
      samplesIndex: this.samples,
      timestamp: Date.now(),
      speechDuration: this.speechMs,
      silenceDuration: this.silenceMs,
      frames: [frame],
      probability: this.loudFrames ? 1 : 0,
      inferenceDuration: 0,
      speaking: this.speaking,
      rawAccumulatedSpeech: this.loudFrames * MIC_FRAME_MS,
      rawAccumulatedSilence: this.quietFrames * MIC_FRAME_MS,
    };
  }

  *take(frame, types) {
    this.samples += frame.samplesPerChannel;
    const loud = frame.data.some((value) => value !== 0);
    this.loudFrames = loud ? this.loudFrames + 1 : 0;
    this.quietFrames = loud ? 0 : this.quietFrames + 1;
    if (this.speaking) this.speechMs += MIC_FRAME_MS;
    else this.silenceMs += MIC_FRAME_MS;
    yield this.event(types.INFERENCE_DONE, frame);
    if (!this.speaking && this.loudFrames >= SPEECH_AFTER_FRAMES) {
      this.speaking = true;
      this.speechMs = this.loudFrames * MIC_FRAME_MS;
      this.silenceMs = 0;
      yield this.event(types.START_OF_SPEECH, frame);
    } else if (this.speaking && this.quietFrames >= SILENCE_AFTER_FRAMES) {
      this.speaking = false;
      this.silenceMs = this.quietFrames * MIC_FRAME_MS;
      yield this.event(types.END_OF_SPEECH, frame);
      this.speechMs = 0;
    }
  }
}

/** Voice activity is what is not silent. */
export function scriptedVad({ VAD, VADStream, VADEventType }, rtc) {
  class ActivityStream extends VADStream {
    constructor(vad) {
      super(vad);
      void this.#run();
    }

    async #run() {
      let activity = new Activity();
      for (;;) {
        const { done, value } = await this.inputReader.read();
        if (done) return;
        // A flush is a hard boundary: what was heard is forgotten.
        if (!(value instanceof rtc.AudioFrame)) activity = new Activity();
        else for (const event of activity.take(value, VADEventType)) this.#say(event);
      }
    }

    #say(event) {
      // As the release's own detectors do: the stream may have been closed in between.
      if (!this.closed) void this.outputWriter.write(event).catch(() => {});
    }
  }

  return new (class ScriptedVAD extends VAD {
    label = 'scripted';

    constructor() {
      super({ updateInterval: MIC_FRAME_MS });
    }

    stream() {
      return new ActivityStream(this);
    }
  })();
}

/** Delivers a final transcript when told to, on the stream the session opened last. */
export function scriptedStt({ stt }) {
  const { STT, SpeechStream, SpeechEventType } = stt;

  class TranscriptStream extends SpeechStream {
    label = 'scripted';
    #beganMs = null;

    async run() {
      for await (const _ of this.input) this.#beganMs ??= Date.now();
    }

    deliver(text, fromMs, untilMs) {
      const began = this.#beganMs ?? fromMs;
      this.queue.put({
        type: SpeechEventType.FINAL_TRANSCRIPT,
        alternatives: [
          {
            language: 'en',
            text,
            startTime: Math.max(fromMs - began, 0) / 1000,
            endTime: Math.max(untilMs - began, 0) / 1000,
            confidence: 1,
          },
        ],
      });
    }
  }

  return new (class ScriptedSTT extends STT {
    label = 'scripted';
    opened = null;

    constructor() {
      // Some releases only take the interruption model where transcripts carry their times.
      super({ streaming: true, interimResults: false, alignedTranscript: 'chunk' });
    }

    deliver(...said) {
      this.opened.deliver(...said);
    }

    stream() {
      this.opened = new TranscriptStream(this);
      return this.opened;
    }

    async _recognize() {
      throw new Error('a scripted call only streams');
    }
  })();
}

/** Answers at once, always the same: the audio is the TTS's. `tool` names what is to be called. */
export function scriptedLlm({ llm }, tool) {
  const { FunctionCall, LLM, LLMStream } = llm;

  class Answer extends LLMStream {
    async run() {
      const name = tool();
      const calls = name && [FunctionCall.create({ callId: 'scripted', name, args: '{}' })];
      const delta = { role: 'assistant', content: 'A scripted reply.' };
      if (calls) delta.toolCalls = calls;
      this.queue.put({ id: 'scripted', delta });
    }
  }

  return new (class ScriptedLLM extends LLM {
    label() {
      return 'scripted';
    }

    get model() {
      return 'scripted';
    }

    chat({ chatCtx, toolCtx, connOptions }) {
      const options = connOptions ?? { maxRetry: 0, retryIntervalMs: 0, timeoutMs: 10_000 };
      return new Answer(this, { chatCtx, toolCtx, connOptions: options });
    }
  })();
}
