/**
 * The tap on the session: speeches, states, verdicts, commits, transcripts by their length.
 *
 * It listens to the session's own events and, for what no event says, replaces `interrupt` on each
 * speech handle while that speech lives.
 */

import {
  callSite,
  commitment,
  currentSpeech,
  interruptedBy,
  interruptionOptions,
  runningSpeeches,
  started,
  whenDone,
} from './compat.mjs';
import { InstancePatch } from './patches.mjs';

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

  /** `onClose` is called when the session has closed. */
  constructor(session, { recorder, clock }, onClose) {
    this.#session = session;
    this.#recorder = recorder;
    this.#clock = clock;
    this.#onClose = onClose;
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
      close: () => this.#onClose(),
    };
    for (const [name, handler] of Object.entries(handlers)) {
      const listener = (said) => {
        const at = this.#clock.now();
        this.#guarded(name, () => handler(said, at));
        this.#guarded(name, () => this.lookAtOptions());
      };
      this.#session.on(name, listener);
      this.#listeners.push([name, listener]);
    }
    for (const handle of runningSpeeches(this.#session)) this.#watch(handle);
    this.lookAtOptions();
  }

  /** Stops listening and gives every speech its own methods back. */
  remove() {
    for (const [name, listener] of this.#listeners.splice(0)) this.#session.off(name, listener);
    for (const watch of this.#watches.values()) watch.remove();
    this.#watches.clear();
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
    const watch = new Watch(handle, {
      write: (event) => this.#write(event),
      guarded: (where, work) => this.#guarded(where, work),
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

/** One speech: who asks it to stop, when it becomes interrupted, when it is done. */
class Watch {
  #handle;
  #taps;
  #patches = [];
  #removed = false;
  #committed = false;

  constructor(handle, taps) {
    this.#handle = handle;
    this.#taps = taps;
  }

  install() {
    const handle = this.#handle;
    this.#committed = Boolean(handle.interrupted);
    this.#patch('interrupt', (at, before) => this.#asked(at, before));
    // A prepared reply that is thrown away is cancelled without an interrupt.
    if (typeof handle._cancel === 'function') this.#patch('_cancel', () => {});
    // Only heard first where something else interrupts it; the stamp is then late by a turn.
    commitment(handle)?.then(
      () => this.#commit(this.#taps.clock.now()),
      () => {},
    );
    whenDone(handle, () => this.#taps.guarded('speech done', () => this.#done()));
  }

  remove() {
    this.#removed = true;
    for (const patch of this.#patches.splice(0)) patch.undo();
  }

  #patch(name, record) {
    const watch = this;
    const handle = this.#handle;
    const original = handle[name];
    function replacement(...args) {
      if (watch.#removed) return original.apply(this, args);
      const at = watch.#taps.clock.now();
      const before = watch.#before();
      let end = 'raised';
      try {
        const result = original.apply(this, args);
        end = 'returned';
        return result;
      } finally {
        watch.#taps.guarded(name, () => {
          if (before !== null) record(at, { ...before, end });
          if (handle.interrupted) watch.#commit(at);
        });
      }
    }
    this.#patches.push(new InstancePatch(handle, name, replacement));
  }

  /** What is known before the call takes effect; null where nothing is left to stop. */
  #before() {
    let before = {};
    this.#taps.guarded('interrupt', () => {
      const over = this.#handle.interrupted || this.#handle.done();
      before = over ? null : { site: callSite() };
    });
    return before;
  }

  #asked(at_ns, { site, end }) {
    this.#taps.write({
      event: 'interrupt_called',
      at_ns,
      speech: this.#handle.id,
      by: site && interruptedBy(site),
      end: end === 'returned' ? undefined : end,
    });
  }

  #commit(at_ns) {
    if (this.#committed || this.#removed) return;
    this.#committed = true;
    this.#taps.write({ event: 'speech_committed', at_ns, speech: this.#handle.id });
  }

  #done() {
    if (this.#removed) return;
    const at_ns = this.#taps.clock.now();
    const interrupted = Boolean(this.#handle.interrupted) || undefined;
    if (interrupted) this.#commit(at_ns);
    this.#taps.write({ event: 'speech_done', at_ns, speech: this.#handle.id, interrupted });
    this.remove();
    this.#taps.forget();
  }
}
