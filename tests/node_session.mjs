/**
 * What the probe for Node does to a session, seen from the session: `node node_session.mjs FOLDER`.
 *
 * Session, sink and source are of straw, with the same public surface as LiveKit's. Prints one JSON
 * document: scenario to what was found.
 */

import { execFileSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { attach } from '../probe/node/index.mjs';

class Frame {
  constructor(samples, value = 1) {
    this.samplesPerChannel = samples;
    this.channels = 1;
    this.sampleRate = 24_000;
    this.data = new Int16Array(samples).map((_, index) => value * 1000 + (index % 997));
  }
}

class Source {
  sampleRate = 24_000;
  numChannels = 1;
  queueSize = 200;
  pushed = [];

  async captureFrame(frame) {
    await this.refuse?.();
    if (frame.sampleRate !== this.sampleRate) throw new RangeError('another rate');
    this.pushed.push(frame);
    return 'pushed';
  }

  clearQueue() {
    return 'cleared';
  }

  async close() {}
}

class Sink extends EventEmitter {
  static EVENT_PLAYBACK_FINISHED = 'playbackFinished';

  constructor(source = new Source(), nextInChain = undefined) {
    super();
    this.audioSource = source;
    this.nextInChain = nextInChain;
  }

  async captureFrame(frame) {
    await this.audioSource.captureFrame(frame);
    return 'captured';
  }

  flush() {
    return 'flushed';
  }

  clearBuffer() {
    this.flush();
    this.audioSource.clearQueue();
    return 'cleared';
  }

  pause() {
    throw new TypeError('no pause');
  }

  resume() {}
}

class Output {
  #sink = null;

  get audio() {
    return this.#sink;
  }

  set audio(sink) {
    this.#sink = sink;
  }
}

class Handle {
  interrupted = false;
  over = false;
  #heard = [];

  constructor(id) {
    this.id = id;
  }

  interrupt() {
    this.interrupted = true;
    return this;
  }

  done() {
    return this.over;
  }

  addDoneCallback(heard) {
    this.#heard.push(heard);
  }

  finish() {
    this.over = true;
    for (const heard of this.#heard) heard(this);
  }
}

class Session extends EventEmitter {
  output = new Output();
  agentState = 'listening';
}

/** Closes like LiveKit's: every way goes through one method, which interrupts what is spoken. */
class ClosingSession extends Session {
  started = true;
  agent = { id: 'first' };
  _roomIO = undefined;
  speaking = new Handle('spoken');

  get currentAgent() {
    if (!this.agent) throw new Error('AgentSession is not running');
    return this.agent;
  }

  async closeImpl(reason, error = null) {
    if (!this.started) return 'it did not run';
    await Promise.resolve();
    this.speaking.interrupt();
    this.started = false;
    this.emit('close', { reason, error });
    return 'closed';
  }
}

const [folder] = process.argv.slice(2);
const found = {};
let number = 0;

function path() {
  number += 1;
  return join(folder, `${number}.jsonl`);
}

function eventsOf(recording) {
  return readFileSync(recording.path, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
}

function shapeOf(owner) {
  const names = Object.getOwnPropertyNames(owner).filter((name) => name !== 'pushed');
  return JSON.stringify([names, owner.eventNames?.()]);
}

async function raised(work) {
  try {
    await work();
    return null;
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

async function scenario(name, work) {
  try {
    found[name] = await work();
  } catch (error) {
    found[name] = { failed: `${error.stack}` };
  }
}

await scenario('passes_everything_through', async () => {
  const session = new Session();
  const sink = new Sink();
  const recording = attach(session, path(), { wire: false });
  session.output.audio = sink;
  const answers = [
    await sink.captureFrame(new Frame(480)),
    sink.flush(),
    sink.clearBuffer(),
    await raised(() => sink.pause()),
    await raised(() => sink.audioSource.captureFrame({ ...new Frame(480), sampleRate: 8000 })),
  ];
  recording.close();
  return { answers, pushed: sink.audioSource.pushed.length, events: eventsOf(recording) };
});

await scenario('gives_no_place_to_a_frame_that_is_refused_late', async () => {
  const session = new Session();
  const sink = new Sink();
  const { audioSource: source } = sink;
  source.captureFrame = async (frame) => {
    await new Promise((resolve) => setTimeout(resolve, frame.sampleRate === 24_000 ? 1 : 150));
    if (frame.sampleRate !== 24_000) throw new RangeError('another rate');
  };
  session.output.audio = sink;
  const recording = attach(session, path(), { wire: false });
  const alien = raised(() => source.captureFrame({ ...new Frame(480), sampleRate: 8000 }));
  await new Promise((resolve) => setTimeout(resolve, 70));
  await source.captureFrame(new Frame(240));
  await alien;
  recording.close();
  return eventsOf(recording);
});

await scenario('leaves_nothing_behind', async () => {
  const session = new Session();
  const sink = new Sink();
  session.output.audio = sink;
  const handle = new Handle('one');
  const objects = [session, session.output, sink, sink.audioSource, handle];
  const before = objects.map(shapeOf);
  const exits = process.listenerCount('exit');
  const recording = attach(session, path(), { wire: false });
  session.emit('speech_created', { speechHandle: handle, source: 'say' });
  await sink.captureFrame(new Frame(480));
  const during = objects.map(shapeOf);
  recording.close();
  recording.close();
  const again = attach(session, path(), { wire: false });
  again.close();
  return {
    before,
    during,
    after: objects.map(shapeOf),
    exits: process.listenerCount('exit') - exits,
    trailers: eventsOf(recording).filter((event) => event.event === 'trailer').length,
  };
});

await scenario('leaves_to_others_what_they_replaced', async () => {
  const session = new Session();
  const sink = new Sink();
  session.output.audio = sink;
  const recording = attach(session, path(), { wire: false });
  const probed = sink.flush;
  sink.flush = () => `theirs, ${probed.call(sink)}`;
  const during = sink.flush();
  recording.close();
  return { during, after: sink.flush() };
});

await scenario('records_a_sink_of_a_chain_once', async () => {
  const session = new Session();
  const inner = new Sink();
  const recording = attach(session, path(), { wire: false });
  session.output.audio = inner;
  const outer = new Sink(undefined, inner);
  delete outer.audioSource;
  outer.captureFrame = (frame) => inner.captureFrame(frame);
  session.output.audio = outer;
  await outer.captureFrame(new Frame(480));
  recording.close();
  return eventsOf(recording);
});

await scenario('never_raises_into_the_session', async () => {
  const session = new Session();
  const sink = new Sink();
  const recording = attach(session, path(), { wire: false });
  session.output.audio = sink;
  const odd = new Frame(480);
  Object.defineProperty(odd, 'data', {
    get() {
      throw new Error('secret words');
    },
  });
  const answer = await sink.captureFrame(odd);
  session.emit('speech_created', {});
  session.emit('conversation_item_added', undefined);
  sink.emit('playbackFinished', undefined);
  recording.close();
  return { answer, faults: recording.faults, events: eventsOf(recording) };
});

await scenario('tells_who_interrupts', async () => {
  const session = new Session();
  const recording = attach(session, path(), { wire: false });
  const handles = ['activity', 'transcript', 'code', 'late'].map((id) => new Handle(id));
  for (const speechHandle of handles) session.emit('speech_created', { speechHandle });
  const activity = {
    interruptByAudioActivity: () => handles[0].interrupt(),
    async cancelSpeechPause() {
      await Promise.resolve();
      handles[1].interrupt();
    },
  };
  activity.interruptByAudioActivity();
  await activity.cancelSpeechPause();
  handles[2].interrupt();
  handles[2].interrupt();
  handles[3].finish();
  handles[3].interrupt();
  handles[0].finish();
  recording.close();
  return eventsOf(recording);
});

await scenario('keeps_words_out', async () => {
  const session = new Session();
  const recording = attach(session, path(), { wire: false });
  session.emit('user_input_transcribed', { transcript: 'four words of it', isFinal: true });
  const item = { id: 'i', role: 'assistant', textContent: 'four words of it' };
  session.emit('conversation_item_added', { item });
  recording.close();
  return { text: readFileSync(recording.path, 'utf8'), events: eventsOf(recording) };
});

await scenario('refuses_what_is_no_session', async () => {
  const session = new Session();
  const recording = attach(session, path(), { wire: false });
  const reasons = [
    await raised(() => attach({}, path())),
    await raised(() => attach(session, path())),
    await raised(() => attach(new Session(), join(recording.path, 'below'))),
    await raised(() => attach(new Session(), '/proc/no-such-folder/call.jsonl')),
  ];
  recording.close();
  const second = attach(session, recording.path, { wire: false });
  second.close();
  return { reasons, second: second.path, first: recording.path };
});

await scenario('closes_after_the_session', async () => {
  const session = new Session();
  const recording = attach(session, path(), { wire: false });
  session.emit('close', {});
  session.emit('agent_state_changed', { oldState: 'speaking', newState: 'listening' });
  await new Promise((resolve) => setTimeout(resolve, 900));
  return eventsOf(recording);
});

await scenario('tells_a_close_before_what_it_interrupts', async () => {
  const session = new ClosingSession();
  const recording = attach(session, path(), { wire: false });
  session.emit('speech_created', { speechHandle: session.speaking });
  const answers = [await session.closeImpl('user_initiated'), await session.closeImpl('again')];
  recording.close();
  const own = Object.hasOwn(session, 'closeImpl');
  return { answers, own, faults: recording.faults, events: eventsOf(recording) };
});

await scenario('tells_where_only_the_end_of_a_session_is_seen', async () => {
  const session = new Session();
  const recording = attach(session, path(), { wire: false });
  session.emit('close', { reason: 'job_shutdown' });
  recording.close();
  return eventsOf(recording);
});

await scenario('tells_that_the_caller_left', async () => {
  const session = new ClosingSession();
  const room = new EventEmitter();
  const linkedParticipant = { identity: 'caller' };
  session._roomIO = { rtcRoom: room, linkedParticipant };
  room.on('participantDisconnected', () => delete session._roomIO.linkedParticipant);
  const recording = attach(session, path(), { wire: false });
  const during = room.listenerCount('participantDisconnected');
  room.emit('participantDisconnected', { identity: 'other', disconnectReason: 1 });
  session._roomIO.linkedParticipant = linkedParticipant;
  await new Promise((resolve) => setTimeout(resolve, 30));
  room.emit('participantDisconnected', { identity: 'caller', disconnectReason: 1 });
  room.emit('participantDisconnected', { identity: 'caller', disconnectReason: 1 });
  recording.close();
  const after = room.listenerCount('participantDisconnected');
  return { during, after, faults: recording.faults, events: eventsOf(recording) };
});

await scenario('tells_of_a_handoff_before_what_is_interrupted_for_it', async () => {
  const session = new ClosingSession();
  const [first, second] = [session.agent, { id: 'second' }];
  const recording = attach(session, path(), { wire: false });
  session.emit('speech_created', { speechHandle: session.speaking });
  session.agent = second;
  session.speaking.interrupt();
  session.agent = null;
  session.emit('agent_state_changed', { oldState: 'speaking', newState: 'listening' });
  session.agent = first;
  await new Promise((resolve) => setTimeout(resolve, 30));
  recording.close();
  return { faults: recording.faults, events: eventsOf(recording) };
});

await scenario('says_which_sink_a_mark_goes_to', async () => {
  const session = new Session();
  const [old, fresh] = [new Sink(), new Sink()];
  const wrapped = new Sink(null, fresh);
  for (const sink of [old, fresh]) sink.pause = () => {};
  wrapped.pause = () => fresh.pause();
  const recording = attach(session, path(), { wire: false });
  session.output.audio = old;
  await old.captureFrame(new Frame(480));
  session.output.audio = wrapped;
  session.output.audio.pause();
  old.clearBuffer();
  recording.close();
  return eventsOf(recording);
});

await scenario('keeps_the_words_of_livekit_s_own_audio', async () => {
  const foreign = join(folder, 'agent');
  const livekit = join(folder, 'node_modules', '@livekit', 'rtc-node', 'dist');
  const refusals = [];
  for (const [place, file] of [
    [livekit, 'audio_source.mjs'],
    [livekit, 'participant.mjs'],
    [foreign, 'audio_source.mjs'],
  ]) {
    mkdirSync(place, { recursive: true });
    writeFileSync(
      join(place, file),
      'export async function refuse() { throw new Error("the rates " + "differ ".repeat(50)); }',
    );
    refusals.push((await import(join(place, file))).refuse);
  }
  const session = new Session();
  const sink = new Sink();
  const recording = attach(session, path(), { wire: false });
  session.output.audio = sink;
  const ends = [];
  for (const refuse of refusals) {
    sink.audioSource.refuse = refuse;
    ends.push(await raised(() => sink.captureFrame(new Frame(480))));
  }
  recording.close();
  return { ends: new Set(ends).size, events: eventsOf(recording) };
});

await scenario('writes_within_a_quarter_second', async () => {
  const session = new Session();
  const sink = new Sink();
  session.output.audio = sink;
  const recording = attach(session, path(), { wire: false });
  await sink.captureFrame(new Frame(480));
  await new Promise((resolve) => setTimeout(resolve, 250));
  const events = eventsOf(recording);
  recording.close();
  return events;
});

await scenario('says_that_the_wire_could_not_be_read', async () => {
  const session = new Session();
  const rtc = { LocalAudioTrack: {}, AudioStream: class {} };
  const recording = attach(session, path(), { rtc });
  session.output.audio = new Sink();
  await recording.ready;
  recording.close();
  return { faults: recording.faults, events: eventsOf(recording) };
});

await scenario('reads_the_wire_without_a_bound', async () => {
  const asked = [];
  const request = (said) => asked.push(said.message.value);
  globalThis._ffiClientInstance = { request };
  class AudioStream {
    constructor() {
      const message = { case: 'newAudioStream', value: {} };
      globalThis._ffiClientInstance.request({ message });
    }

    getReader() {
      return { read: () => new Promise(() => {}), cancel: async () => {} };
    }
  }
  const rtc = { LocalAudioTrack: { createAudioTrack: () => ({}) }, AudioStream };
  const session = new Session();
  const recording = attach(session, path(), { rtc });
  session.output.audio = new Sink();
  await recording.ready;
  recording.close();
  const untouched = globalThis._ffiClientInstance.request === request;
  delete globalThis._ffiClientInstance;
  return { asked, untouched, faults: recording.faults, events: eventsOf(recording) };
});

await scenario('tells_of_a_stall', async () => {
  const recording = attach(new Session(), path(), { wire: false });
  await new Promise((resolve) => setTimeout(resolve, 30));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120);
  await new Promise((resolve) => setTimeout(resolve, 30));
  recording.close();
  return eventsOf(recording);
});

await scenario('warns_of_nothing_with_many_sessions', async () => {
  const warnings = [];
  const heard = (warning) => warnings.push(warning.message);
  process.on('warning', heard);
  const before = process.listenerCount('exit');
  const recordings = Array.from({ length: 12 }, () =>
    attach(new Session(), path(), { wire: false }),
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const recording of recordings) recording.close();
  process.off('warning', heard);
  return { warnings, left: process.listenerCount('exit') - before };
});

// In a process of its own, whose working directory is gone and whose packages are broken.
await scenario('attaches_where_nothing_can_be_looked_up', async () => {
  const trace = path();
  const folder = `${trace}-gone`;
  const broken = `${trace}-broken/node_modules/@livekit/agents`;
  mkdirSync(folder);
  mkdirSync(broken, { recursive: true });
  writeFileSync(join(broken, 'package.json'), '{');
  const script = `
    import { EventEmitter } from 'node:events';
    import { rmdirSync } from 'node:fs';
    import { attach } from ${JSON.stringify(import.meta.resolve('../probe/node/index.mjs'))};
    rmdirSync(process.cwd());
    for (const options of [{}, { from: [${JSON.stringify(`${trace}-broken`)}] }]) {
      const session = Object.assign(new EventEmitter(), { output: {} });
      attach(session, ${JSON.stringify(trace)}, { wire: false, ...options }).close();
    }
    console.log('attached');`;
  const command = ['--input-type=module', '-e', script];
  return execFileSync(process.execPath, command, { cwd: folder }).toString();
});

// In a process of its own, whose files may not grow beyond a few kilobytes.
await scenario('survives_a_full_disk', async () => {
  const script = `
    import { EventEmitter } from 'node:events';
    import { attach } from ${JSON.stringify(import.meta.resolve('../probe/node/index.mjs'))};
    const session = Object.assign(new EventEmitter(), { output: {} });
    const recording = attach(session, ${JSON.stringify(path())}, { wire: false });
    for (let mark = 0; mark < 500; mark += 1) recording.mark('x'.repeat(100));
    await new Promise((resolve) => setTimeout(resolve, 200));
    recording.mark('afterwards');
    recording.close();
    console.log(JSON.stringify(recording.faults));`;
  const limited = 'ulimit -f 16; exec "$0" --input-type=module -e "$1"';
  const said = execFileSync('bash', ['-c', limited, process.execPath, script]);
  return { faults: JSON.parse(said.toString()) };
});

// Left open on purpose: the process ends with it.
const left = attach(new Session(), path(), { wire: false });
found.left_open = left.path;
process.stdout.write(JSON.stringify(found));
