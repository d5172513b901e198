/**
 * One scripted call: participants, room output, script, control.
 *
 * What a script waits for it counts: samples handed to the source, frames of the microphone, calls
 * on the sink. The clock only bounds the waiting, so that a call that hangs ends as an error that
 * says what it waited for.
 */

import { findSource, queueMs } from '../compat.mjs';
import {
  Caller,
  MIC_FRAME_MS,
  microphone,
  scriptedLlm,
  scriptedStt,
  scriptedVad,
} from './models.mjs';
import { SOURCE_RATE_HZ, TOOL } from './releases.mjs';
import { ScenarioError, Signals, sleep } from './signals.mjs';
import { Counts, Room } from './sinks.mjs';
import { CONTROL_MS, Voice, landingMs } from './voice.mjs';

const STEP_LIMIT_MS = 10_000; // how long a step may wait before the call counts as hung
const CLOSE_LIMIT_MS = 5_000;
const WORDS = 'hold on a second please';

const MOMENT = { do: 'wait', ms: 60 };
const SPEAK = { do: 'speak', ms: 600 };
/** By place, what stands for a script's `land`. */
const STEPS_BEFORE_LANDING = {
  'in-pause': [
    { do: 'land' },
    SPEAK,
    { do: 'await-paused' },
    MOMENT,
    { do: 'hush' },
    { do: 'wait', ms: 300 },
  ],
  twice: [
    { do: 'land' },
    SPEAK,
    { do: 'await-paused' },
    MOMENT,
    { do: 'hush' },
    { do: 'await-resumed' },
  ],
  'follow-up': [
    { do: 'land' },
    { do: 'interrupt' },
    { do: 'await-end' },
    { do: 'reply' },
    { do: 'land' },
  ],
};

/** The steps, with what has to happen before the barge-in can land at its place. */
function scriptOf({ steps, call: axes }) {
  const landing = steps.findIndex((step) => step.do === 'land');
  let before = STEPS_BEFORE_LANDING[axes.at];
  if (before === undefined || landing < 0) return steps;
  if (axes.at === 'twice') before = [...before, { do: 'land', ms: 2 * (landingMs(axes) ?? 0) }];
  return [...steps.slice(0, landing), ...before, ...steps.slice(landing + 1)];
}

/** Everything a scenario needs of a release. */
function requiredBy(scenario, script) {
  const required = new Set(scenario.needs);
  if (scenario.options.interruption_model) required.add('interruption-model');
  if (script.some((step) => step.do === 'await-paused')) required.add('pause');
  return required;
}

export class Call {
  #scenario;
  #axes;
  #script;
  #release;
  #progress;
  #signals = new Signals();
  #counts = new Counts(this.#signals);
  #room = new Room();
  #voice;
  #caller;
  #stt;
  #model = null;
  #recording;
  #sinks = [];
  #begun = 0;
  #reply;
  #beforeReply = { captures: 0, flushes: 0, pushedSamples: 0 };
  #speeches = [];
  #heardAfter = 0;
  #control = null;
  #controlDue = false;
  #toldToStop = false;
  #crash = null;
  #limitMs;

  /** @throws {ScenarioError} where the release can't run the scenario. */
  constructor(scenario, release, progress) {
    this.#scenario = scenario;
    this.#axes = scenario.call;
    this.#script = scriptOf(scenario);
    this.#release = release;
    this.#progress = progress;
    if (scenario.realtime) {
      // Run without its model it would be another call under the same name.
      throw new ScenarioError(
        `${scenario.name} can't run on Node: its calls have no realtime model; ` +
          'run barge-in-activity instead',
      );
    }
    release.require(scenario.name, requiredBy(scenario, this.#script), this.#axes.at);
    const { agents, rtc } = release;
    const replies = this.#script.filter(({ do: kind }) => ['reply', 'await-reply'].includes(kind));
    this.#voice = new Voice(this.#axes, 1 + replies.length, this.#signals, rtc);
    this.#caller = new Caller(() => this.#signals.notify(), rtc);
    this.#stt = scriptedStt(agents);
    const { options } = scenario;
    // A reply the script waits for may first have to sit out the options' own delays.
    this.#limitMs = STEP_LIMIT_MS + 1000 * (options.false_interruption_timeout_s ?? 0);
    if (scenario.subscribed !== false) this.#room.subscribe();
    if (options.interruption_model) this.#model = release.standInForModel();
    /** The session, not started yet: the moment to attach a probe. */
    this.session = new agents.voice.AgentSession({
      vad: scriptedVad(agents, rtc),
      stt: this.#stt,
      llm: scriptedLlm(agents, () => (this.#voice.wantsTool ? TOOL : null)),
      ...release.sessionArguments(options),
    });
  }

  /**
   * Runs script and control, and closes the session, however it went.
   *
   * @throws {ScenarioError} where a step waited in vain, or the session broke down.
   */
  async run(recording) {
    this.#recording = recording;
    const { session } = this;
    session.input.audio = microphone(this.#release.AudioInput, this.#caller);
    session.output.audio = this.#newSink();
    const onClose = ({ error, reason }) => {
      this.#fail(`the session closed by itself (${error?.message ?? error ?? reason ?? '?'})`);
    };
    session.on('speech_created', ({ speechHandle }) => this.#speechCreated(speechHandle));
    session.on('close', onClose);
    session.on('error', (said) => this.#errorSaid(said));
    void this.#caller.run();
    try {
      await this.#start();
      this.#ask();
      for (const step of this.#script) {
        this.#begun += 1;
        this.#progress(step.do);
        await this.#take(step);
      }
      this.#progress('control');
      await this.#runControl();
    } finally {
      session.off('close', onClose);
      this.#voice.goOn();
      await this.#bounded(() => session.close());
      this.#caller.stop();
      this.#model?.undo();
      for (const sink of this.#sinks) await this.#bounded(() => sink.close());
    }
  }

  async #bounded(work) {
    await Promise.race([Promise.resolve().then(work).catch(() => {}), sleep(CLOSE_LIMIT_MS)]);
  }

  #newSink() {
    const sink = this.#release.roomOutput(this.#room, this.#axes.channels);
    this.#counts.watch(sink);
    this.#sinks.push(sink);
    sink.start(new AbortController().signal).catch((error) => {
      this.#fail(`the sink failed (${error?.message ?? error})`);
    });
    return sink;
  }

  /** Code asks for a reply, with which the script goes on. */
  #ask() {
    const { session } = this;
    if (this.#axes.reply === 'say') {
      this.#goOnWith(session.say('A scripted reply.', { audio: this.#voice.stream() }));
    } else this.#goOnWith(session.generateReply({ userInput: 'Tell me everything.' }));
  }

  #goOnWith(reply) {
    const { captures, flushes, pushedSamples } = this.#counts;
    this.#reply = reply;
    this.#toldToStop = false;
    this.#beforeReply = { captures, flushes, pushedSamples };
  }

  async #start() {
    const voice = this.#voice;
    const { agents } = this.#release;
    class ScriptedAgent extends agents.voice.Agent {
      async ttsNode(text) {
        for await (const _ of text);
        return voice.stream();
      }
    }
    const described = { instructions: 'A scripted agent.' };
    if (this.#axes.reply === 'tool') described.tools = this.#release.tools();
    const start = this.session.start({ agent: new ScriptedAgent(described), record: false });
    const started = await Promise.race([start.then(() => true), sleep(STEP_LIMIT_MS)]);
    if (!started) {
      throw new ScenarioError(
        `${this.#scenario.name}: the session did not start within ${STEP_LIMIT_MS / 1000} s`,
      );
    }
  }

  #speechCreated(handle) {
    this.#speeches.push(handle);
    this.#voice.begin(this.#controlDue);
    if (this.#controlDue && this.#control === null) {
      this.#control = handle;
      this.#recording.put({ event: 'control', speech: handle.id });
    }
    this.#signals.notify();
  }

  #errorSaid({ error }) {
    if (error?.recoverable) return;
    this.#fail(`the session broke down (${error?.error?.message ?? error?.message ?? error})`);
  }

  #fail(reason) {
    this.#crash ??= reason;
    this.#signals.notify();
  }

  async #until(condition, waitedFor, lengthMs = 0) {
    const limit = this.#limitMs + lengthMs;
    const held = await this.#signals.until(() => this.#crash !== null || condition(), limit);
    const { name } = this.#scenario;
    if (this.#crash !== null) throw new ScenarioError(`${name}: ${this.#crash}`);
    if (!held) {
      throw new ScenarioError(`${name}: waited ${limit / 1000} s for ${waitedFor}, in vain`);
    }
  }

  // -- the steps --

  async #take(step) {
    const steps = {
      land: () => this.#land(step),
      speak: () => this.#caller.speak(step.ms),
      hush: () => this.#hush(),
      'await-paused': () => this.#awaitPaused(),
      'await-parked': () => this.#awaitParked(),
      'await-resumed': () => this.#awaitResumed(),
      'await-interrupted': () =>
        this.#until(() => this.#reply.interrupted, 'the speech to be interrupted'),
      'await-captured': () => this.#awaitCaptured(),
      'await-end': () => this.#awaitEnd(),
      verdict: () => this.#verdict(step),
      transcript: () => this.#transcript(),
      interrupt: () => this.#interrupt(),
      subscribe: () => this.#room.subscribe(),
      wait: () => this.#wait(step.ms),
      reply: () => this.#ask(),
      'await-reply': () => this.#awaitReply(),
      swap: () => {
        this.session.output.audio = this.#newSink();
      },
      pause: () => this.session.output.audio.pause(),
      resume: () => this.session.output.audio.resume(),
      block: () => block(step.ms),
    };
    if (steps[step.do] === undefined) {
      throw new ScenarioError(`${this.#scenario.name}: ${step.do}: not a step of Node's calls`);
    }
    await steps[step.do]();
  }

  async #land(step) {
    const axes = this.#axes;
    const ms = step.ms ?? landingMs(axes);
    if (axes.at === 'before-first-frame') {
      await this.#until(() => this.#voice.stalled, "the reply's audio to be due");
    } else if (axes.at === 'first-frame') {
      await this.#until(() => this.#captures > 0, "the reply's first frame");
    } else if (axes.at === 'after-last-frame') {
      const handed = () => this.#allHandedOver;
      await this.#until(handed, 'the reply to be handed to the source', axes.reply_ms);
    } else if (axes.pacing === 'stalled' && step.ms === undefined && this.#lastScripted) {
      await this.#until(() => this.#voice.stalled, 'the TTS to stall');
      const inside = () => this.#allInside;
      await this.#until(inside, "everything delivered to be in the source's queue");
    } else {
      const samples = ((ms ?? 0) * SOURCE_RATE_HZ) / 1000;
      const reached = () => this.#counts.pushedSamples - this.#beforeReply.pushedSamples >= samples;
      await this.#until(reached, `${ms} ms of the reply to be handed to the source`, ms ?? 0);
    }
  }

  get #captures() {
    return this.#counts.captures - this.#beforeReply.captures;
  }

  /** Whether no other reply comes before the control. */
  get #lastScripted() {
    const later = this.#script.slice(this.#begun);
    return !later.some((step) => ['reply', 'await-reply'].includes(step.do));
  }

  get #allHandedOver() {
    const { flushes, pushing, pushedSamples, capturedSamples } = this.#counts;
    const steps = this.#axes.reply === 'tool' ? 2 : 1;
    const flushed = flushes - this.#beforeReply.flushes >= steps;
    return flushed && pushing === 0 && pushedSamples >= capturedSamples;
  }

  get #allInside() {
    const { pushing, pushedSamples } = this.#counts;
    const pushedMs = ((pushedSamples - this.#beforeReply.pushedSamples) * 1000) / SOURCE_RATE_HZ;
    // A resampler keeps some of what it got.
    const kept = this.#axes.rate_hz === SOURCE_RATE_HZ ? 0 : 100;
    return pushing === 0 && pushedMs >= Math.floor(this.#voice.deliveredMs) - kept;
  }

  #hush() {
    this.#caller.hush();
    if (!this.#counts.paused) this.#voice.goOn();
  }

  async #awaitPaused() {
    await this.#until(() => this.#counts.paused, 'the sink to be paused');
    if (this.#axes.pacing !== 'stalled') this.#voice.goOn();
  }

  async #awaitParked() {
    if (this.#voice.stalled) return; // that is the stall: nothing comes to stand at the gate
    const counts = this.#counts;
    // The gate empties the source's queue as it stops its first frame.
    const parked = () => counts.queueClears > counts.clearsBeforePause && counts.pushing === 0;
    await this.#until(parked, 'a frame to stand at the closed gate');
  }

  async #awaitResumed() {
    const { resumes } = this.#counts;
    const resumed = () => this.#counts.resumes > resumes || !this.#counts.paused;
    await this.#until(resumed, 'the sink to be resumed');
    this.#voice.goOn();
  }

  async #awaitCaptured() {
    this.#voice.goOn();
    await this.#until(() => this.#captures > 0, 'the first capture to begin');
  }

  async #awaitEnd() {
    const reply = this.#reply;
    if (this.#toldToStop) {
      // A TTS that stalled does not come back at the very moment its reply is cut.
      await this.#signals.until(() => reply.interrupted || reply.done(), this.#limitMs);
    }
    if (!reply.interrupted) this.#voice.goOn();
    await this.#ended(reply, 'reply', this.#axes.reply_ms + this.#axes.close_ms);
  }

  async #ended(handle, name, lengthMs) {
    if (this.#scenario.ends !== false) {
      await this.#until(() => handle.done(), `the ${name} to end`, lengthMs);
      // Whoever else listens for the speech's end hears of it before the call goes on.
      await sleep(0);
      return;
    }
    const limit = lengthMs + STEP_LIMIT_MS / 4;
    const over = await this.#signals.until(() => handle.done(), limit);
    if (!over) this.#recording.mark(`the ${name} did not end`);
  }

  #verdict(step) {
    if (!this.#model?.judge(step.interruption ?? true)) {
      throw new ScenarioError(
        `${this.#scenario.name}: the session asked for no interruption model`,
      );
    }
  }

  #transcript() {
    const caller = this.#caller;
    const later = this.#script.slice(this.#begun).map((step) => step.do);
    const answered = this.#scenario.options.allow_interruptions !== false;
    this.#toldToStop = answered;
    // Words that are followed by others, or by another reply of the script, bring no control.
    const followed = later.some((kind) => ['transcript', 'reply', 'await-reply'].includes(kind));
    this.#controlDue = answered && !followed;
    this.#heardAfter = this.#speeches.length;
    this.#stt.deliver(WORDS, caller.spokeFromMs, caller.spokeUntilMs);
  }

  #interrupt() {
    // The script goes on at once, as after a press of a button; `await-end` waits.
    this.#toldToStop = true;
    this.session.interrupt();
  }

  async #wait(ms) {
    const due = this.#caller.frames + Math.floor(ms / MIC_FRAME_MS);
    await this.#until(() => this.#caller.frames >= due, 'the microphone to go on');
  }

  async #awaitReply() {
    const answered = () => this.#speeches.length > this.#heardAfter;
    await this.#until(answered, 'a reply to what the caller said');
    this.#goOnWith(this.#speeches[this.#heardAfter]);
  }

  async #runControl() {
    this.#voice.goOn();
    if (!this.#controlDue) {
      this.#controlDue = true;
      this.session.generateReply({ userInput: 'And once more.' });
    }
    await this.#until(() => this.#control !== null, 'a reply to what the caller said');
    await this.#ended(this.#control, 'control reply', CONTROL_MS);
    // What the source still holds is played before anything is closed.
    await this.#wait(200 + (queueMs(findSource(this.#sinks.at(-1))) ?? 200));
  }
}

/** Keeps the loop from running. */
function block(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
