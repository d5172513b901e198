/** Bounded buffer and file of a trace: lines go out between calls, never inside one. */

import { closeSync, existsSync, mkdirSync, openSync, write, writeSync } from 'node:fs';
import { dirname, parse, join } from 'node:path';

const FLUSH_MS = 50;
const MAX_RECORDS = 60_000; // waiting to be looked at
const MAX_WAITING_BYTES = 32 << 20; // waiting for a disk that is stuck
const MAX_TEXT = 4096;
const SLOW_NS = 2_000_000_000; // a write that takes longer is told of

/** Nanoseconds on the monotonic clock since `started`, exact up to a hundred days. */
export class Clock {
  constructor() {
    this.started = process.hrtime.bigint();
    this.startedUnixS = Date.now() / 1000;
  }

  now() {
    return Number(process.hrtime.bigint() - this.started);
  }
}

/** Makes a folder and those above it. Node's own way never ends where /proc refuses one. */
function makeFolder(folder) {
  if (existsSync(folder)) return;
  const above = dirname(folder);
  if (above !== folder) makeFolder(above);
  try {
    mkdirSync(folder);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}

/** Creates the file, or the first of `name-1`, `name-2`, … that does not exist. */
function create(path) {
  makeFolder(dirname(path));
  const { dir, name, ext } = parse(path);
  for (let number = 0; ; number += 1) {
    const tried = number === 0 ? path : join(dir, `${name}-${number}${ext}`);
    try {
      return [openSync(tried, 'wx'), tried];
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
  }
}

/** A line of the trace; what is undefined is left out, a text too long for a line is cut. */
function encode(event) {
  const line = JSON.stringify(event, (key, value) =>
    typeof value === 'string' && value.length > MAX_TEXT
      ? `${value.slice(0, MAX_TEXT - 1)}…`
      : value,
  );
  return `${line}\n`;
}

export class Recorder {
  #fd;
  #assembler;
  #clock;
  #records = [];
  #lost = 0;
  #counts = {}; // lines by the name of their event
  #waiting = [];
  #waitingBytes = 0;
  #writing = null;
  #offset = 0;
  #timer = null;
  #closed = false;
  #broken = false;
  #faults = new Map();

  /**
   * Makes the file and writes its header at once.
   *
   * @throws {Error} where the file can't be made.
   */
  constructor(path, header, assembler, clock) {
    [this.#fd, this.path] = create(path);
    this.#assembler = assembler;
    this.#clock = clock;
    this.#write([header]);
    this.#flush();
    this.#schedule();
  }

  /** What went wrong so far, kind to count. */
  get faults() {
    return Object.fromEntries(this.#faults);
  }

  /** Takes a record; never blocks and never raises. */
  put(record) {
    if (this.#closed) return;
    if (this.#records.length >= MAX_RECORDS) this.#lost += 1;
    else this.#records.push(record);
  }

  /** Takes an event of the trace. */
  event(event) {
    this.put({ kind: 'event', at: event.at_ns, event });
  }

  fault(kind, detail, count = 1) {
    this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + count);
    this.event({ event: 'fault', at_ns: this.#clock.now(), kind, count, detail });
  }

  /** Writes what there is and closes the file, at once; idempotent. */
  close(reason) {
    if (this.#closed) return;
    this.#guarded(() => this.#assemble());
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#guarded(() => {
      this.#write(this.#assembler.finish(this.#clock.now()));
      const counts = { ...this.#counts };
      const events = Object.values(counts).reduce((sum, count) => sum + count, 0);
      this.#write([{ event: 'trailer', at_ns: this.#clock.now(), events, reason, counts }]);
    });
    this.#flushNow();
    // A write that is still on its way holds the file; it closes it then.
    if (this.#writing === null) closeSync(this.#fd);
  }

  #schedule() {
    this.#timer = setTimeout(() => {
      this.#guarded(() => this.#assemble());
      this.#flush();
      if (!this.#closed) this.#schedule();
    }, FLUSH_MS);
    this.#timer.unref();
  }

  #guarded(work) {
    try {
      work();
    } catch (error) {
      this.fault('tap_raised', `recorder: ${error?.name ?? typeof error}`);
    }
  }

  #assemble() {
    const records = this.#records.splice(0);
    if (this.#lost) {
      this.fault('events_lost', 'more came than could be looked at', this.#lost);
      this.#lost = 0;
    }
    for (const record of records) this.#guarded(() => this.#assembler.accept(record));
    this.#write(this.#assembler.tick(this.#clock.now()));
  }

  #write(events) {
    if (this.#broken) return;
    for (const event of events) {
      if (this.#waitingBytes >= MAX_WAITING_BYTES) {
        this.#lost += event.kind === 'events_lost' ? event.count : 1;
        continue;
      }
      const line = Buffer.from(encode(event));
      this.#waiting.push(line);
      this.#waitingBytes += line.length;
      this.#counts[event.event] = (this.#counts[event.event] ?? 0) + 1;
    }
  }

  /** Hands what waits to the operating system, on another thread; one write at a time. */
  #flush() {
    if (this.#writing !== null || this.#waiting.length === 0 || this.#broken) return;
    this.#writing = Buffer.concat(this.#waiting.splice(0));
    this.#waitingBytes = 0;
    const begun = this.#clock.now();
    const go = (from) => {
      const left = this.#writing.length - from;
      write(this.#fd, this.#writing, from, left, this.#offset + from, (error, written) => {
        if (!error && written < left) return void go(from + written);
        this.#written(error, begun);
      });
    };
    go(0);
  }

  #written(error, begun) {
    if (error) this.#fail(error);
    else this.#offset += this.#writing.length;
    this.#writing = null;
    if (this.#closed) closeSync(this.#fd);
    else if (this.#clock.now() - begun > SLOW_NS) this.fault('write_slow', 'a write took long');
  }

  /** At the end nothing runs any more that could wait: a write under way is simply repeated. */
  #flushNow() {
    if (this.#broken) return;
    const data = Buffer.concat([...(this.#writing ? [this.#writing] : []), ...this.#waiting]);
    this.#waiting = [];
    try {
      for (let from = 0; from < data.length; ) {
        from += writeSync(this.#fd, data, from, data.length - from, this.#offset + from);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A trace with a hole in it would be wrong: what is there ends here. */
  #fail(error) {
    this.#broken = true;
    this.#waiting = [];
    this.#faults.set('write_failed', (this.#faults.get('write_failed') ?? 0) + 1);
    this.failure = error.code ?? error.name;
  }
}
