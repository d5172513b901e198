/**
 * What differs between LiveKit releases, found by looking and never by version number.
 *
 * The only module of the probe that knows private names. It answers with "not known" rather than
 * raise, so that an unknown release is tapped as far as it can be.
 */

import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { arch, platform } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { InstancePatch } from './patches.mjs';

const AGENTS = '@livekit/agents';
const RTC = '@livekit/rtc-node';
const LONGEST_CHAIN = 64; // links followed before a chain is taken for a ring
const HERE = dirname(fileURLToPath(import.meta.url));

// -- where the libraries are --

function packageAt(folder, name) {
  const file = join(folder, 'package.json');
  try {
    const described = JSON.parse(readFileSync(file, 'utf8'));
    return described.name === name ? { folder, version: described.version, described } : null;
  } catch {
    return null; // it is not there, or no package
  }
}

/** The package of that name as code in `from` would find it, or null. */
export function findPackage(name, from) {
  const paths = createRequire(resolve(from, 'noop.js')).resolve.paths(name) ?? [];
  for (const path of paths) {
    const folder = join(path, name);
    if (existsSync(folder)) return packageAt(realpathSync(folder), name);
  }
  return null;
}

/** Folders from which the running agent resolves its packages, the surest first. */
function places() {
  const main = process.argv[1];
  const started = main && existsSync(main) ? [dirname(realpathSync(main))] : [];
  try {
    return [...started, process.cwd()];
  } catch {
    return started; // the working directory was removed
  }
}

/**
 * The agent's own installation.
 *
 * @param {string[]} from folders to look from.
 * @returns {{agents: object|null, rtc: object|null}} `rtc` is what the agents themselves import.
 */
export function installation(from = places()) {
  for (const place of from) {
    const agents = findPackage(AGENTS, place);
    const rtc = findPackage(RTC, agents?.folder ?? place);
    if (agents || rtc) return { agents, rtc };
  }
  return { agents: null, rtc: null };
}

/** The file a package is imported from: the same module the agents have, not a second one. */
export function entryOf({ folder, described }) {
  const exported = described.exports?.['.'] ?? described.exports;
  const named = typeof exported === 'string' ? exported : (exported?.import ?? exported?.default);
  const entry = named?.default ?? named ?? described.module ?? described.main ?? 'index.js';
  const required = exported?.require?.default ?? exported?.require ?? described.main;
  const loaded = typeof required === 'string' ? join(folder, required) : '';
  // An agent that was built as CommonJS has the other one.
  if (loaded && createRequire(import.meta.url).cache[loaded]) return pathToFileURL(loaded).href;
  return pathToFileURL(join(folder, entry)).href;
}

/** Versions of what records; a library that was not found is left out. */
export function runtime({ agents, rtc }) {
  const probe = packageAt(HERE, 'sinkprobe-node');
  return {
    language: 'node',
    language_version: process.versions.node,
    platform: `${platform} ${arch === 'x64' ? 'x86_64' : arch}`,
    livekit: rtc?.version,
    livekit_agents: agents?.version,
    probe: probe?.version,
  };
}

// -- the chain and its source --

/** The links from `head` down to the leaf, both included. */
export function chain(head) {
  const links = [];
  for (let link = head; link && links.length < LONGEST_CHAIN; link = link.nextInChain) {
    links.push(link);
  }
  return links;
}

/** The last link of the chain: where a call on `head` ends up. */
export function leaf(head) {
  return chain(head).at(-1);
}

function isSource(candidate) {
  return (
    typeof candidate?.captureFrame === 'function' &&
    typeof candidate.clearQueue === 'function' &&
    typeof candidate.sampleRate === 'number'
  );
}

/** The audio source under the lowest link that holds one; null where there is none. */
export function findSource(head) {
  for (const link of chain(head).reverse()) {
    for (const held of [link.audioSource, ...Object.values(link)]) {
      if (held !== link.nextInChain && isSource(held)) return held;
    }
  }
  return null;
}

/** Capacity of the source's native queue in ms; undefined where it is not known. */
export function queueMs(source) {
  return Number.isInteger(source.queueSize) ? source.queueSize : undefined;
}

const PLAYBACK = {
  started: ['EVENT_PLAYBACK_STARTED', 'playbackStarted'],
  progressed: ['EVENT_PLAYBACK_PROGRESSED', 'playbackProgressed'],
  finished: ['EVENT_PLAYBACK_FINISHED', 'playbackFinished'],
};

/** Report to the name of the event a sink announces it with. */
export function playbackEvents(sink) {
  const entries = Object.entries(PLAYBACK);
  return entries.map(([report, [held, name]]) => [report, sink.constructor?.[held] ?? name]);
}

/** Whether the installed native library hands on a block with every tick, silence if need be. */
export function everyTickYields({ rtc }) {
  const bindings = rtc && findPackage('@livekit/rtc-ffi-bindings', rtc.folder);
  // The message shows it: this field came with the library that does.
  const described = bindings && join(bindings.folder, 'proto', 'audio_frame_pb.d.ts');
  if (!described || !existsSync(described)) return false;
  const text = readFileSync(described, 'utf8');
  return text.slice(text.indexOf('class NewAudioStreamRequest')).includes('queueSizeFrames');
}

/**
 * Makes a stream whose native queue has no bound, and returns it.
 *
 * The library's own asks for ten blocks: what comes while its thread is late is thrown away. Only
 * the request that is made here is changed, on its way out.
 */
export function unbounded(make) {
  const client = globalThis._ffiClientInstance;
  if (typeof client?.request !== 'function') return make();
  const request = client.request;
  const patch = new InstancePatch(client, 'request', (asked) => {
    const { message } = asked;
    if (message?.case === 'newAudioStream') message.value.queueSizeFrames = 0;
    return request.call(client, asked);
  });
  try {
    return make();
  } finally {
    patch.undo();
  }
}

// -- the session's agent, its caller and its end --

/**
 * Method of the session through which every way to close it goes, with the reason first; it is
 * called as the closing begins, before any speech is interrupted for it.
 */
export const CLOSING_CALL = 'closeImpl';

/** The agent in charge, or about to be: it changes as a handoff begins. Null: there is none. */
export function currentAgent(session) {
  try {
    return session.currentAgent ?? null;
  } catch {
    return null; // the session does not run
  }
}

/** The room the session is in, or null. */
export function roomOf(session) {
  return session._roomIO?.rtcRoom ?? session._roomIO?.room ?? null;
}

/** Identity of the participant the session listens to, while they are there; else null. */
export function linkedIdentity(session) {
  return session._roomIO?.linkedParticipant?.identity ?? null;
}

// Numbers of LiveKit's protocol; there is no looking up names without the library it is in.
const DISCONNECT_REASONS = [
  undefined,
  'CLIENT_INITIATED',
  'DUPLICATE_IDENTITY',
  'SERVER_SHUTDOWN',
  'PARTICIPANT_REMOVED',
  'ROOM_DELETED',
  'STATE_MISMATCH',
  'JOIN_FAILURE',
  'MIGRATION',
  'SIGNAL_CLOSE',
  'ROOM_CLOSED',
  'USER_UNAVAILABLE',
  'USER_REJECTED',
  'SIP_TRUNK_FAILURE',
  'CONNECTION_TIMEOUT',
  'MEDIA_FAILURE',
  'AGENT_ERROR',
];

/** Why a participant left, as the room calls it; undefined where it does not say. */
export function disconnectReason({ disconnectReason: reason }) {
  return DISCONNECT_REASONS[reason] ?? (reason ? String(reason) : undefined);
}

// -- speeches --

function activityOf(session) {
  return session.activity ?? session._activity ?? null;
}

/** Id of the speech that is current, or undefined. */
export function currentSpeech(session) {
  const handle = activityOf(session)?._currentSpeech ?? session.currentSpeech;
  return handle?._id ?? handle?.id;
}

/** Handles of the speeches a session already has, as far as they can be found. */
export function runningSpeeches(session) {
  const activity = activityOf(session);
  const handles = [
    activity?._currentSpeech,
    activity?.pausedSpeech?.handle,
    ...(activity?._backgroundSpeeches ?? []),
  ];
  const known = handles.filter((handle) => typeof handle?.interrupt === 'function');
  return [...new Set(known)].filter((handle) => !handle.done());
}

/** A promise that is fulfilled once the speech is interrupted, or null. */
export function commitment(handle) {
  return handle.interruptFut?.await ?? null;
}

/** Calls `heard` once the speech is done. */
export function whenDone(handle, heard) {
  if (typeof handle.addDoneCallback === 'function') handle.addDoneCallback(heard);
  else handle.doneFut?.await.then(heard, heard);
}

const CALLERS = {
  interruptByAudioActivity: 'activity',
  onInputSpeechStarted: 'activity',
  onVADInferenceDone: 'activity',
  onStartOfSpeech: 'activity',
  onInterruption: 'activity',
  cancelSpeechPause: 'transcript',
  interruptPausedSpeech: 'transcript',
  userTurnCompleted: 'transcript',
  onEndOfTurn: 'transcript',
  onFinalTranscript: 'transcript',
};

/** Where a call comes from; cheap, as nothing is put into words yet. */
export function callSite() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const site = new Error('called from');
  Error.stackTraceLimit = limit;
  return site;
}

/**
 * Who asked a speech to stop, by the site of the call.
 *
 * No release says it; the calling code is looked up, the nearest function that is known to
 * interrupt. Where there is none it was code of the user's.
 */
export function interruptedBy(site) {
  const names = (site.stack ?? '').matchAll(/^ +at (?:async )?(?:[\w$.<>]+\.)?([\w$]+) /gm);
  for (const [, name] of names) {
    if (Object.hasOwn(CALLERS, name)) return CALLERS[name];
  }
  return 'programmatic';
}

// -- options --

function seconds(ms) {
  return typeof ms === 'number' ? ms / 1000 : ms;
}

function plain(value) {
  if (value === null || ['boolean', 'number', 'string'].includes(typeof value)) return value;
  return value?.constructor?.name;
}

/** What decides interruptions, with the keys of the trace; what can't be read is left out. */
export function interruptionOptions(session) {
  const options = session.sessionOptions ?? session.options ?? {};
  const grouped = options.turnHandling?.interruption;
  const flat = options.voiceOptions ?? options;
  const activity = activityOf(session);
  const found = {
    allow_interruptions:
      activity?.allowInterruptions ?? grouped?.enabled ?? flat.allowInterruptions,
    min_duration_s: seconds(grouped?.minDuration ?? flat.minInterruptionDuration),
    min_words: grouped?.minWords ?? flat.minInterruptionWords,
    false_interruption_timeout_s: seconds(
      grouped?.falseInterruptionTimeout ?? flat.falseInterruptionTimeout,
    ),
    resume_false_interruption: grouped?.resumeFalseInterruption ?? flat.resumeFalseInterruption,
    aec_warmup_s: seconds(options.aecWarmupDuration),
    turn_detection: plain(activity?.turnDetection ?? session.turnDetection),
    interruption_model: activity?.isInterruptionDetectionEnabled,
    can_pause: session.output?.audio?.canPause,
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** Whether the session runs, or is on its way. */
export function started(session) {
  return Boolean(activityOf(session)) || Boolean(session.started ?? session._started);
}

/** Signals that can't be seen here, each with the reason in one line. */
export function missing(session) {
  const lacking = {
    interrupt_source: 'not said by this release; told from the calling code',
  };
  if (typeof session[CLOSING_CALL] !== 'function') {
    lacking.session_closed = 'seen at its end only: this release closes in another way';
  }
  if (!('_roomIO' in session)) {
    lacking.caller_left = 'sessions of this release hold their room in another way';
  }
  if (!('currentAgent' in session)) {
    lacking.handed_over = 'sessions of this release do not say which agent is in charge';
  }
  if (audioProperty(session.output) === null) {
    lacking.captured = 'session.output of this release hands out its sink in another way';
  }
  return lacking;
}

/** The accessor through which `session.output` hands out its sink, or null. */
export function audioProperty(output) {
  for (let owner = output; owner; owner = Object.getPrototypeOf(owner)) {
    const property = Object.getOwnPropertyDescriptor(owner, 'audio');
    if (property) return property.get && property.set ? property : null;
  }
  return null;
}
