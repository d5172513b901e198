/**
 * From the raw records of the taps to the events of a trace.
 *
 * Runs between the calls, never inside one. Calls become events once they have ended or have run
 * for 150 ms; what was captured is followed to what was pushed, what was pushed to what was sent,
 * and positions are given out.
 *
 * A push that may be refused (another geometry, or an earlier one still waits at its source) gets
 * its positions when its call has ended, every other one at once. One that is refused after all
 * gives them back, as long as no later push holds any; if one does, they stay unused.
 */

import { FlowMatcher } from '../follow/flow.mjs';
import { Captured } from './captured.mjs';
import { Pushed } from './pushed.mjs';
import { Wire } from './sent.mjs';

/** Turns records into events; times are nanoseconds since the trace began, in and out. */
export class Assembler {
  #flow = new FlowMatcher();
  #wires = new Map();
  #out = [];
  #nowNs = 0;
  #fault = (kind, detail, count) => {
    this.#out.push({ event: 'fault', at_ns: this.#nowNs, kind, count, detail });
  };
  #captured = new Captured(this.#flow, this.#fault);
  #pushed = new Pushed(this.#flow, this.#captured, (number) => this.#wire(number));

  /** Takes a record, in the order they were made. */
  accept(record) {
    this.#nowNs = Math.max(this.#nowNs, record.at);
    switch (record.kind) {
      case 'capture':
        return this.#captured.take(record);
      case 'mark':
        if (record.mark === 'clear') this.#pushed.assign(this.#flow.clear());
        return this.#captured.takeMark(record);
      case 'push':
        return this.#pushed.take(record);
      case 'clear':
        this.#pushed.settle();
        return this.#wire(record.source).clear(record);
      case 'blocks':
        this.#pushed.settle();
        this.#pushed.noteEnds();
        return this.#tell(this.#wire(record.source).take(record));
      default:
        return this.#event(record.event);
    }
  }

  /** Returns the events that are due. */
  tick(nowNs) {
    this.#nowNs = Math.max(this.#nowNs, nowNs);
    this.#write(false);
    return this.#out.splice(0);
  }

  /** Decides and returns everything still held; nothing may be accepted afterwards. */
  finish(nowNs) {
    this.#nowNs = Math.max(this.#nowNs, nowNs);
    this.#pushed.assign(this.#flow.finish());
    this.#write(true);
    for (const wire of this.#wires.values()) this.#tell(wire.close());
    return this.#out.splice(0);
  }

  #write(last) {
    this.#pushed.settle();
    this.#tell(this.#captured.write(this.#nowNs, last));
    this.#tell(this.#pushed.write(this.#nowNs, last));
    for (const wire of this.#wires.values()) this.#tell(wire.write(this.#nowNs, last));
  }

  #tell(events) {
    for (const event of events) this.#out.push(event);
  }

  #wire(number) {
    let wire = this.#wires.get(number);
    if (wire === undefined) this.#wires.set(number, (wire = new Wire(number, this.#fault)));
    return wire;
  }

  #event(event) {
    const wire = event.source === undefined || event.source === null ? null : event.source;
    if (wire !== null && event.event === 'tapped') this.#tell(this.#wire(wire).tapped(event));
    if (wire !== null && event.event === 'untapped' && event.boundary === 'sent') {
      this.#tell(this.#wire(wire).close());
    }
    if (event.event === 'source_closed') this.#wire(wire).closed = true;
    this.#out.push(event);
  }
}
