/**
 * The tap on the session: speeches, states, verdicts, transcripts by their length, and its end.
 *
 * It listens to the session's own events and, for what no event says, replaces `interrupt` on each
 * speech handle while that speech lives, and the call that closes the session.
 */

import { CallerTap } from './caller_tap.mjs';
import {
  CLOSING_CALL,
  currentAgent,
  currentSpeech,
  interruptionOptions,
  runningSpeeches,
  started,
} from './compat.mjs';
import { Numbers } from './numbers.mjs';
import { InstancePatch } from './patches.mjs';
import { SpeechTap } from './speech_tap.mjs';

function unixS(ms) {
  return typeof ms === 'number' ? ms / 1000 : undefined;
}

function words(text) {
  return text.split(/\s+/).filter(Boolean).length;
}

export class SessionTap {
  #session;
  #recorder;
  #clock;
  #onClose;
  #listeners = [];
  #watches = new Map();
  #options = '';
  #caller;
  #agents = new Numbers();
  #agent = null;
  #closing = null;
  #closed = false;

  /** `onClose` is called when the session has closed. */
  constructor(session, { recorder, clock }, onClose) {
    this.#session = session;
    this.#recorder = recorder;
    this.#clock = clock;
    this.#onClose = onClose;
    this.#caller = new CallerTap(session, (reason) =>
      this.#write({ event: 'caller_left', at_ns: this.#clock.now(), reason }),
    );
  }

  /** Starts to listen; speeches that already run are taken along. */
  install() {
    const handlers = {
      speech_created: (said, at) => this.#speechCreated(said, at),
      agent_state_changed: (said, at) => this.#state('agent', said, at),
      user_state_changed: (said, at) => this.#state('user', said, at),
      user_input_transcribed: (said, at) => this.#transcribed(said, at),
      agent_false_interruption: (said, at) =>
        this.#write({ event: 'false_interruption', at_ns: at, resumed: Boolean(said.resumed) }),
      overlapping_speech: (said, at) => this.#overlap(said, at),
      conversation_item_added: (said, at) => this.#item(said, at),
      close: (said, at) => {
        this.#tellClose(said?.reason, at);
        this.#onClose();
      },
    };
    for (const [name, handler] of Object.entries(handlers)) {
      const listener = (said) => {
        const at = this.#clock.now();
        this.look(at);
        this.#guarded(name, () => handler(said, at));
        this.#guarded(name, () => this.lookAtOptions());
      };
      this.#session.on(name, listener);
      this.#listeners.push([name, listener]);
    }
    if (typeof this.#session[CLOSING_CALL] === 'function') this.#seeItClose();
    for (const handle of runningSpeeches(this.#session)) this.#watch(handle);
    this.look();
    this.lookAtOptions();
  }

  /** Stops listening and gives every speech its own methods back. */
  remove() {
    for (const [name, listener] of this.#listeners.splice(0)) this.#session.off(name, listener);
    for (const watch of this.#watches.values()) watch.remove();
    this.#watches.clear();
    this.#closing?.undo();
    this.#caller.remove();
    this.#agent = null;
  }

  /** Sees what changed that no event tells of; a hundred times a second. */
  look(at_ns = this.#clock.now()) {
    this.#guarded('caller', () => this.#caller.look());
    this.#guarded('agent', () => this.#lookAtAgent(at_ns));
  }

  #lookAtAgent(at_ns) {
    const agent = currentAgent(this.#session);
    if (agent === null || agent === this.#agent) return;
    const old = this.#agent === null ? null : this.#agents.of(this.#agent);
    this.#agent = agent;
    const taken = this.#agents.of(agent);
    if (old === null) return;
    this.#write({ event: 'handed_over', at_ns, old, new: taken });
  }

  #seeItClose() {
    const tap = this;
    const session = this.#session;
    const original = session[CLOSING_CALL];
    this.#closing = new InstancePatch(session, CLOSING_CALL, function close(...args) {
      tap.#guarded('close', () => {
        // A session that does not run is not closed by the call.
        if (started(session)) tap.#tellClose(args[0], tap.#clock.now());
      });
      return original.apply(this, args);
    });
  }

  #tellClose(reason, at_ns) {
    if (this.#closed) return;
    this.#closed = true;
    this.#write({ event: 'session_closed', at_ns, reason: reason && String(reason) });
  }

  /** Writes the interruption options if they are not what was written last. */
  lookAtOptions() {
    if (!started(this.#session)) return;
    const options = interruptionOptions(this.#session);
    const seen = JSON.stringify(options);
    if (seen === this.#options) return;
    this.#options = seen;
    this.#write({ event: 'options', at_ns: this.#clock.now(), options });
  }

  #write(event) {
    this.#recorder.event(event);
  }

  #guarded(where, work) {
    try {
      work();
    } catch (error) {
      this.#recorder.fault('tap_raised', `${where}: ${error?.name ?? typeof error}`);
    }
  }

  #speechCreated({ speechHandle: handle, source = '', userInitiated }, at_ns) {
    this.#write({
      event: 'speech_created',
      at_ns,
      speech: handle.id,
      origin: String(source),
      user_initiated: userInitiated,
      allow_interruptions: handle.allowInterruptions,
    });
    this.#watch(handle);
  }

  #watch(handle) {
    if (this.#watches.has(handle)) return;
    const watch = new SpeechTap(handle, {
      write: (event) => this.#write(event),
      guarded: (where, work) => this.#guarded(where, work),
      stopping: (at) => this.look(at),
      clock: this.#clock,
      forget: () => this.#watches.delete(handle),
    });
    this.#watches.set(handle, watch);
    watch.install();
  }

  #state(who, { oldState, newState, createdAt }, at_ns) {
    const event_unix_s = unixS(createdAt);
    this.#write({ event: 'state', at_ns, who, old: oldState, new: newState, event_unix_s });
  }

  #transcribed({ transcript = '', isFinal }, at_ns) {
    const chars = transcript.length;
    const final = Boolean(isFinal);
    this.#write({ event: 'transcript', at_ns, final, chars, words: words(transcript) });
  }

  #overlap(said, at_ns) {
    this.#write({
      event: 'overlap',
      at_ns,
      is_interruption: Boolean(said.isInterruption),
      speech: currentSpeech(this.#session),
      event_unix_s: unixS(said.detectedAt ?? said.timestamp),
      overlap_started_unix_s: unixS(said.overlapStartedAt ?? said.overlapSpeechStartedAt),
      probability: said.probability,
      agent_ended: said.agentEnded || undefined,
    });
  }

  #item({ item }, at_ns) {
    if (item?.role === undefined) return; // a handoff between agents, not a message
    this.#write({
      event: 'item',
      at_ns,
      item: String(item.id),
      role: String(item.role),
      chars: (item.textContent ?? '').length,
      interrupted: item.interrupted || undefined,
      speech: item.role === 'assistant' ? currentSpeech(this.#session) : undefined,
    });
  }
}
