/**
 * What the scripted calls know about LiveKit releases: found by looking, never by version.
 *
 * Every private name the calls rely on is in here. What a release has not got is answered with a
 * reason, so that a scenario can say in one line why it does not run.
 */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ReadableStream } from 'node:stream/web';

import { entryOf, installation } from '../compat.mjs';
import { ScenarioError } from './signals.mjs';

export const SOURCE_RATE_HZ = 24_000;
export const TOOL = 'look_up';

const INSTEAD = {
  'interruption-model': 'barge-in-activity',
  'vad-before-model': 'barge-in-model',
  pause: 'barge-in-cut',
  'echo-warmup': 'caller-ignored',
};

/** A release of `@livekit/agents`, loaded. */
export class Release {
  #dist;

  /** @param {string} home folder whose `node_modules` holds the build. */
  static async load(home) {
    const { agents, rtc } = installation([home]);
    if (!agents || !rtc) {
      throw new ScenarioError(`${home}: expected an installation of @livekit/agents, found none`);
    }
    const release = new Release();
    release.home = home;
    release.version = agents.version;
    release.#dist = dirname(fileURLToPath(entryOf(agents)));
    release.rtc = await import(entryOf(rtc));
    release.agents = await import(entryOf(agents));
    release.roomOutputs = await release.#part('voice/room_io/_output.js');
    release.AudioInput = (await release.#part('voice/io.js'))?.AudioInput;
    release.interruption = (await release.#part('voice/turn_config/interruption.js')) ?? {};
    release.detector = await release.#part('inference/interruption/interruption_detector.js');
    return release;
  }

  async #part(name) {
    const file = join(this.#dist, name);
    return existsSync(file) ? import(pathToFileURL(file).href) : null;
  }

  get #options() {
    return this.interruption.defaultInterruptionOptions ?? {};
  }

  /** What it lacks for a scenario that requires these features, and why; null: it runs. */
  lacks(required, at) {
    const reasons = {
      'interruption-model': () =>
        !this.detector?.AdaptiveInterruptionDetector?.prototype.createStream &&
        'it has no interruption model (AdaptiveInterruptionDetector)',
      'vad-before-model': () =>
        !('backchannelBoundary' in this.#options) &&
        at !== 'before-first-frame' &&
        "with the interruption model on, VAD can't pause a reply that has begun " +
          '(no backchannelBoundary option)',
      pause: () =>
        !(
          'resumeFalseInterruption' in this.#options &&
          Object.hasOwn(this.roomOutputs?.ParticipantAudioOutput?.prototype ?? {}, 'pause')
        ) && 'it does not pause (no resumeFalseInterruption option, or a sink that can not)',
    };
    for (const [feature, reason] of Object.entries(reasons)) {
      if (!required.has(feature)) continue;
      const why = reason();
      if (why) return { feature, why };
    }
    return null;
  }

  /** @throws {ScenarioError} naming what the release lacks, and what to run instead. */
  require(name, required, at) {
    if (!this.roomOutputs?.ParticipantAudioOutput) {
      throw new ScenarioError(
        `${name} can't run on @livekit/agents ${this.version}: it has no room output under ` +
          'voice/room_io/_output.js',
      );
    }
    const lack = this.lacks(required, at);
    if (lack === null) return;
    throw new ScenarioError(
      `${name} can't run on @livekit/agents ${this.version}: ${lack.why}; ` +
        `run ${INSTEAD[lack.feature]} instead`,
    );
  }

  /** Arguments of `AgentSession` for these options, under the names the release knows. */
  sessionArguments(options) {
    const ms = (seconds) => (seconds === undefined ? undefined : seconds * 1000);
    const boundary = options.backchannel_boundary_s;
    const interruption = {
      enabled: options.allow_interruptions,
      mode: options.interruption_model ? 'adaptive' : 'vad',
      minDuration: ms(options.min_duration_s),
      minWords: options.min_words,
      falseInterruptionTimeout: ms(options.false_interruption_timeout_s),
      resumeFalseInterruption: options.resume_false_interruption,
      discardAudioIfUninterruptible: options.discard_audio_if_uninterruptible,
      // The second value holds back transcripts near the end of a reply; it stays as it comes.
      backchannelBoundary: boundary === undefined ? undefined : [ms(boundary), 1000],
    };
    const endpointing = { minDelay: ms(options.min_endpointing_delay_s) };
    return {
      aecWarmupDuration: ms(options.aec_warmup_s) ?? null,
      userAwayTimeout: null,
      // Releases before the grouped options take the first two of these and the last.
      turnDetection: 'vad',
      voiceOptions: given({
        allowInterruptions: interruption.enabled,
        minInterruptionDuration: interruption.minDuration,
        minInterruptionWords: interruption.minWords,
        minEndpointingDelay: endpointing.minDelay,
        discardAudioIfUninterruptible: interruption.discardAudioIfUninterruptible,
        userAwayTimeout: null,
      }),
      ...(this.interruption.defaultInterruptionOptions && {
        voiceOptions: undefined,
        turnHandling: {
          turnDetection: 'vad',
          endpointing: given(endpointing),
          interruption: given(interruption),
          preemptiveGeneration: { enabled: false },
        },
      }),
    };
  }

  /** The room output the framework would make, playing into `room`. */
  roomOutput(room, channels) {
    const { TrackPublishOptions, TrackSource } = this.rtc;
    const output = new this.roomOutputs.ParticipantAudioOutput(room, {
      sampleRate: SOURCE_RATE_HZ,
      numChannels: channels,
      trackPublishOptions: new TrackPublishOptions({ source: TrackSource.SOURCE_MICROPHONE }),
      queueSizeMs: 200, // what the framework's own room session asks for
    });
    return output;
  }

  /** The one tool of a reply that calls one, in the shape the release takes. */
  tools() {
    const made = this.agents.llm.tool({
      name: TOOL,
      description: 'Look something up.',
      parameters: EMPTY,
      execute: async () => 'found',
    });
    return this.agents.llm.toToolContext ? [made] : { [TOOL]: made };
  }

  /**
   * Has sessions that start from now on make `judge`'s stand-in where they make the model.
   *
   * The session decides by itself whether it wants one; only the hosted service is stood in for.
   *
   * @returns {{judge: (isInterruption: boolean) => boolean, undo: () => void}}
   */
  standInForModel() {
    const { prototype } = this.detector.AdaptiveInterruptionDetector;
    const original = prototype.createStream;
    const opened = [];
    prototype.createStream = function createStream() {
      const stream = new VerdictStream(this);
      opened.push(stream);
      return stream;
    };
    // The real one refuses to be made without a key of the service; nothing is sent.
    process.env.LIVEKIT_API_KEY ??= 'scripted';
    process.env.LIVEKIT_API_SECRET ??= 'scripted';
    return {
      judge(isInterruption) {
        opened.at(-1)?.judge(isInterruption);
        return opened.length > 0;
      },
      undo() {
        prototype.createStream = original;
      },
    };
  }
}

const EMPTY = { type: 'object', properties: {}, additionalProperties: false };

function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/**
 * The stand-in for the interruption model's hosted service.
 *
 * It is fed like the real one's stream and keeps the same books: an overlap that ends without a
 * verdict is answered with "no interruption". Only the positive verdict comes from the script. It
 * is delivered even where the session no longer waits for one, which the real service does only
 * while an answer is on its way: that is what lets a verdict fall on a reply VAD has paused.
 */
class VerdictStream {
  #model;
  #controller;
  #closed = false;
  #agentSpeaks = false;
  #overlap = false;
  #startedAt;
  #lastStartedAt;

  constructor(model) {
    this.#model = model;
    this.#events = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
    });
  }

  #events;

  stream() {
    return this.#events;
  }

  async pushFrame(frame) {
    switch (frame?.type) {
      case 'agent-speech-started':
      case 'agent-speech-ended':
        this.#agentSpeaks = frame.type === 'agent-speech-started';
        this.#overlap = false;
        this.#startedAt = undefined;
        break;
      case 'overlap-speech-started':
        if (!this.#agentSpeaks) break;
        this.#overlap = true;
        this.#startedAt = frame.startedAt ?? Date.now() - (frame.speechDuration ?? 0);
        this.#lastStartedAt = this.#startedAt;
        break;
      case 'overlap-speech-ended':
        if (this.#overlap) this.#say(false, frame.endedAt ?? Date.now(), frame.agentEnded);
        this.#startedAt = undefined;
        break;
      default: // audio; there is nobody to listen
    }
  }

  /** Gives the verdict. */
  judge(isInterruption) {
    this.#say(isInterruption, Date.now(), false);
  }

  async flush() {}

  async endInput() {
    await this.close();
  }

  async close() {
    if (!this.#closed) this.#controller.close();
    this.#closed = true;
    this.#model.removeStream?.(this);
  }

  async updateOptions() {}

  #say(isInterruption, detectedAt, agentEnded) {
    this.#overlap = false;
    if (this.#closed) return;
    const event = {
      type: 'overlapping_speech',
      timestamp: detectedAt,
      detectedAt,
      isInterruption,
      agentEnded: agentEnded ?? false,
      totalDurationInS: 0,
      predictionDurationInS: 0,
      detectionDelayInS: 0,
      overlapStartedAt: this.#lastStartedAt,
      probability: isInterruption ? 1 : 0,
      probabilities: [isInterruption ? 1 : 0],
      numRequests: 1,
    };
    this.#model.emit('overlapping_speech', event);
    this.#controller.enqueue(event);
  }
}
