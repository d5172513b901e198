/** Putting the probe on a session and taking it off, leaving nothing behind. */

import { Assembler } from './assemble/assembler.mjs';
import * as compat from './compat.mjs';
import { Heartbeat } from './heartbeat.mjs';
import { Numbers } from './numbers.mjs';
import { Clock, Recorder } from './recorder.mjs';
import { SessionTap } from './session_tap.mjs';
import { SinkTap } from './sink_tap.mjs';
import { SourceTap } from './source_tap.mjs';
import { WireTap } from './wire_tap.mjs';

const SCHEMA = 1;
const LINGER_MS = 500; // after the session's close event, in which the last events come in
const recorded = new WeakMap();
const underWay = new Set(); // recordings, by what ends them with the process

function endAll() {
  for (const end of [...underWay]) end();
}

/**
 * Records a session, from now until `Recording.close` or shortly after the session closes.
 *
 * Works before `session.start()`, so that a greeting is recorded whole, and after it, also while
 * the agent speaks: that speech goes on, and its segment is partial.
 *
 * @param {object} session the `AgentSession`. One recording at a time.
 * @param {string} path file to write. One that exists is left alone: `call.jsonl` becomes
 *     `call-1.jsonl`; `Recording.path` says which.
 * @param {object} [options]
 * @param {boolean} [options.wire] whether to read back what leaves the source. Without it *sent* is
 *     not tapped.
 * @param {object} [options.rtc] the agent's `@livekit/rtc-node`, as `import * as rtc` has it. Left
 *     out, it is looked for where the agent was started; `Recording.ready` says when it is there.
 * @param {Record<string, string>} [options.labels] the user's own, written into the header.
 * @param {object} [options.run] of a scripted call, what was scripted; written into the header.
 * @param {string[]} [options.from] folders to look for LiveKit from, instead of those of the agent.
 * @returns {Recording}
 * @throws {Error} not a session, recorded already, or the file can't be made.
 */
export function attach(session, path, options = {}) {
  if (typeof session?.on !== 'function' || !session.output) {
    throw new TypeError(`expected an AgentSession, found ${session?.constructor?.name ?? session}`);
  }
  if (recorded.has(session)) {
    const found = recorded.get(session).path;
    throw new Error(
      `expected a session without a probe, found one recorded already (${found}); close that first`,
    );
  }
  const recording = new Recording(session, path, options);
  recorded.set(session, recording);
  return recording;
}

/** A session under record. */
export class Recording {
  #session;
  #recorder;
  #clock = new Clock();
  #wire;
  #rtc = null;
  #beat = false;
  #sinks = [];
  #sinkNumbers = new Numbers();
  #sources = [];
  #wires = [];
  #sessionTap;
  #heartbeat;
  #leaveOutput = () => {};
  #closed = false;
  #onExit = () => this.#close('exit');

  /** Use `attach`. */
  constructor(session, path, { wire = true, rtc, labels = {}, run, from }) {
    this.#session = session;
    this.#wire = wire;
    const found = compat.installation(from);
    const missing = compat.missing(session);
    if (!wire) missing.sent = 'the wire tap was switched off';
    const header = {
      event: 'header',
      schema: SCHEMA,
      started_monotonic_ns: Number(this.#clock.started),
      started_unix_s: this.#clock.startedUnixS,
      boundaries: wire ? ['captured', 'pushed', 'sent'] : ['captured', 'pushed'],
      missing,
      runtime: compat.runtime(found),
      options: compat.started(session) ? compat.interruptionOptions(session) : {},
      labels: Object.fromEntries(Object.entries(labels).map(([k, v]) => [k, String(v)])),
      run,
    };
    this.#recorder = new Recorder(path, header, new Assembler(), this.#clock);
    /** The file that is written. */
    this.path = this.#recorder.path;
    const taps = { session, recorder: this.#recorder, clock: this.#clock };
    this.#sessionTap = new SessionTap(session, taps, () => this.#sessionClosed());
    this.#heartbeat = new Heartbeat(taps, () => this.#sessionTap.look());
    this.#tapped('captured', {});
    this.#guarded('session', () => this.#sessionTap.install());
    this.#guarded('output', () => this.#watchOutput());
    this.#heartbeat.start();
    // One listener for all: Node warns the user of many.
    if (underWay.size === 0) process.on('exit', endAll);
    underWay.add(this.#onExit);
    /** Fulfilled once all taps are on that can be; never rejected. */
    this.ready = wire ? this.#loadRtc(rtc, found) : Promise.resolve();
  }

  /** What went wrong so far, kind of fault to count; empty: nothing. */
  get faults() {
    return this.#recorder.faults;
  }

  /** Puts a mark of one's own into the trace. */
  mark(name) {
    this.#recorder.event({ event: 'bookmark', at_ns: this.#clock.now(), name: String(name) });
  }

  /** Puts an event of the trace format into it; `at_ns` is now. */
  put(event) {
    this.#recorder.event({ ...event, at_ns: this.#clock.now() });
  }

  /** Takes the probe off and closes the file; idempotent. */
  close() {
    this.#close('closed');
  }

  #close(reason) {
    if (this.#closed) return;
    this.#closed = true;
    underWay.delete(this.#onExit);
    if (underWay.size === 0) process.off('exit', endAll);
    recorded.delete(this.#session);
    this.#heartbeat.stop();
    this.#guarded('output', () => this.#leaveOutput());
    for (const tap of [...this.#sinks, ...this.#sources, this.#sessionTap]) {
      this.#guarded('detach', () => tap.remove());
    }
    for (const wire of this.#wires) this.#guarded('wire', () => wire.stop());
    this.#recorder.close(reason);
  }

  #sessionClosed() {
    setTimeout(() => this.#close('session_closed'), LINGER_MS).unref();
  }

  #guarded(where, work) {
    try {
      work();
    } catch (error) {
      this.#recorder.fault('tap_raised', `${where}: ${error?.name ?? typeof error}`);
    }
  }

  #tapped(boundary, geometry) {
    const speaking = this.#session.agentState === 'speaking' || undefined;
    const at_ns = this.#clock.now();
    this.#recorder.event({ event: 'tapped', at_ns, boundary, ...geometry, mid_speech: speaking });
  }

  async #loadRtc(rtc, found) {
    try {
      this.#beat = compat.everyTickYields(found);
      this.#rtc = rtc ?? (await import(compat.entryOf(found.rtc)));
      if (this.#closed) return;
      for (const { source, number } of this.#sources) this.#openWire(source, number);
    } catch (error) {
      this.#recorder.fault('tap_raised', `wire: @livekit/rtc-node: ${error?.name ?? typeof error}`);
    }
  }

  // -- the sink, whenever it is set --

  #watchOutput() {
    const { output } = this.#session;
    const property = compat.audioProperty(output);
    if (property === null) return;
    const recording = this;
    const own = Object.getOwnPropertyDescriptor(output, 'audio');
    Object.defineProperty(output, 'audio', {
      configurable: true,
      enumerable: property.enumerable,
      get: property.get,
      set(sink) {
        property.set.call(this, sink);
        recording.#guarded('output', () => recording.#tapSink(property.get.call(this)));
      },
    });
    const { set: ours } = Object.getOwnPropertyDescriptor(output, 'audio');
    this.#leaveOutput = () => {
      if (Object.getOwnPropertyDescriptor(output, 'audio')?.set !== ours) return;
      if (own === undefined) delete output.audio;
      else Object.defineProperty(output, 'audio', own);
    };
    this.#tapSink(output.audio);
  }

  /** Of the sinks of one chain only one is tapped: the one the session has. */
  #tapSink(sink) {
    if (!sink || this.#sinks.some((tap) => tap.sink === sink)) return;
    const links = compat.chain(sink);
    this.#sinks = this.#sinks.filter((tap) => {
      const related = links.includes(tap.sink) || compat.chain(tap.sink).includes(sink);
      if (related) tap.remove();
      return !related;
    });
    const tap = new SinkTap(sink, {
      session: this.#session,
      recorder: this.#recorder,
      clock: this.#clock,
      number: () => this.#sinkNumbers.of(compat.leaf(sink)),
      onSegment: () => this.#tapSource(sink, false),
    });
    this.#sinks.push(tap);
    tap.install();
    this.#tapSource(sink, true);
  }

  /** `now`: whether the loop may be taken for the few milliseconds that opening the wire needs. */
  #tapSource(sink, now) {
    const source = compat.findSource(sink);
    if (source === null || this.#sources.some((tap) => tap.source === source)) return;
    const number = this.#sources.length + 1;
    const tap = new SourceTap(source, number, { recorder: this.#recorder, clock: this.#clock });
    this.#tapped('pushed', {
      source: number,
      rate_hz: source.sampleRate,
      channels: source.numChannels,
      queue_ms: compat.queueMs(source),
      sink: this.#sinkNumbers.of(compat.leaf(sink)),
    });
    this.#sources.push(tap);
    tap.install();
    if (!this.#wire || this.#rtc === null) return;
    if (now) this.#openWire(source, number);
    else setImmediate(() => !this.#closed && this.#openWire(source, number));
  }

  #openWire(source, number) {
    const taps = { recorder: this.#recorder, clock: this.#clock };
    const wire = new WireTap(source, number, this.#rtc, this.#beat, taps);
    this.#wires.push(wire);
    wire.start();
  }
}
