/**
 * Cases of the corpus, put through the probe's own assembler: a case a line on stdin, and for each
 * a line on stdout with the events it gave. What a record is, `run.py` says.
 */

import { createInterface } from 'node:readline';

import { Assembler } from '../../probe/node/assemble/assembler.mjs';
import { valuesOf } from './content.mjs';

const TICK_MS = 50;
const ns = (ms) => Math.round(ms * 1e6);

function raw(rate, record) {
  const { event, mark, speech = null, source = 1, sink } = record;
  if (event) return { kind: 'event', at: event.at_ns, event };
  const call = { at: ns(record.at) };
  const audio = record.capture ?? record.push ?? record.blocks;
  if (audio) {
    const { channels = 1 } = record;
    call.values = valuesOf(audio);
    call.frame = { samples: call.values.length / channels, channels, rateHz: record.rate ?? rate };
  }
  if (record.capture) Object.assign(call, { kind: 'capture', speech });
  else if (mark) Object.assign(call, { kind: 'mark', mark, speech, sink });
  else if (record.push) Object.assign(call, { kind: 'push', source });
  else if (record.clear) Object.assign(call, { kind: 'clear', source: record.clear });
  else Object.assign(call, { kind: 'blocks', source });
  if (record.ended !== undefined) end(call, record.ended, record);
  return call;
}

function end(call, atMs, { as = 'returned', error, detail }) {
  Object.assign(call, { ended: ns(atMs), end: as });
  if (error !== undefined) Object.assign(call, { error, detail });
}

function events({ rate, records, batched, finish }) {
  const assembler = new Assembler();
  const running = new Map();
  const waiting = [];
  const found = [];
  const accept = () => waiting.splice(0).forEach((call) => assembler.accept(call));
  let due = TICK_MS;
  for (const record of records) {
    for (; record.at >= due; due += TICK_MS) {
      accept();
      found.push(...assembler.tick(ns(due)));
    }
    if (record.end) {
      end(running.get(record.end), record.at, record);
      continue;
    }
    const call = raw(rate, record);
    if (record.call) running.set(record.call, call);
    waiting.push(call);
    if (!batched) accept();
  }
  accept();
  return [...found, ...assembler.finish(ns(finish))];
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { events: events(JSON.parse(line)) };
  } catch (error) {
    answer = { failed: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
