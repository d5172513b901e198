/**
 * Simulated calls, put through the probe's own matching: `node node_model.mjs FOLDER SEED COUNT`.
 *
 * A sink that captures frames, leaves some out while it is paused and hands the rest to a source; a
 * source with a queue of 200 ms that hands on a block every 10 ms, is cleared now and then, and is
 * read back in groups that arrive late. Writes each call's trace, and as one JSON document on
 * stdout what truly happened: for each trace which pushed samples were sent, in order, and whether
 * content could tell.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Assembler } from '../probe/node/assembler.mjs';

const RATE = 24_000;
const BLOCK = 240;
const TICK_NS = 10_000_000;
const QUEUE = 4800;

function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Content of a frame: mostly noise, else silence, a constant, or a beep that comes again. */
function contentOf(kind, samples, random) {
  const values = new Int16Array(samples);
  if (kind === 'noise') for (let i = 0; i < samples; i += 1) values[i] = random(65_535) - 32_767;
  if (kind === 'constant') values.fill(7);
  if (kind === 'beep') for (let i = 0; i < samples; i += 1) values[i] = (i * 37) % 480 || 1;
  return values;
}

function simulate(seed, tellable) {
  const random = generator(seed);
  const assembler = new Assembler();
  const events = [];
  const queue = []; // [value, pushed position]
  const waiting = []; // pushes under way: {record, left}
  const sent = [];
  let group = [];
  let groupAt = 0;
  let arrival = 0;
  let pushed = 0;
  let paused = false;
  let late = [];
  const emit = (record) => assembler.accept(record);
  const geometry = (samples) => ({ samples, channels: 1, rateHz: RATE, dataBytes: undefined });
  const event = (body) => emit({ kind: 'event', at: body.at_ns, event: body });
  event({ event: 'tapped', at_ns: 1, boundary: 'captured' });
  const tap = { source: 1, rate_hz: RATE, channels: 1 };
  event({ event: 'tapped', at_ns: 2, boundary: 'pushed', ...tap, queue_ms: 200 });
  event({
    event: 'tapped', at_ns: 3, boundary: 'sent', ...tap,
    block_samples: BLOCK, grouped: true, resolution_ns: TICK_NS,
  });

  // What the source held before the probe came, of some calls; it opens what is sent first.
  const inherited = seed % 3 === 0 ? 1 + random(700) : 0;
  for (let index = 0; index < inherited; index += 1) queue.push([9 + (index % 7), null]);

  const land = (push) => {
    while (push.left.length && queue.length < QUEUE) queue.push(push.left.shift());
    if (push.left.length === 0) {
      push.record.ended = push.at();
      push.record.end = 'returned';
      waiting.shift();
    }
  };
  const ticks = 300 + random(500);
  let calm = 0;
  for (let tick = 1; tick <= ticks; tick += 1) {
    const now = tick * TICK_NS;
    // The block leaves first: what happens in the rest of the tick comes after it.
    const full = queue.length >= BLOCK;
    const block = full ? queue.splice(0, BLOCK) : [];
    group.push(...(full ? block.map(([value]) => value) : new Array(BLOCK).fill(0)));
    sent.push(...block.map(([, position]) => position));
    groupAt += 1;
    if (groupAt === 5) {
      const stall = random(20) === 0 ? random(120_000_000) : random(2_000_000);
      // Groups come in their order, however late.
      arrival = Math.max(arrival, now + stall);
      late.push({ at: arrival, values: Int16Array.from(group) });
      group = [];
      groupAt = 0;
    }
    let at = now + 1_000_000 + random(3_000_000);
    if (waiting.length) {
      waiting[0].at = () => at;
      land(waiting[0]);
    }
    if (calm > 0) calm -= 1;
    else if (!waiting.length && tick < ticks - 40) {
      const choice = random(24);
      if (choice === 0) {
        paused = !paused;
        const mark = paused ? 'pause' : 'resume';
        emit({ kind: 'mark', at, mark, end: 'returned', ended: at });
      }
      if (choice === 1 && pushed > 0) {
        emit({ kind: 'mark', at, mark: 'clear', end: 'returned', ended: at });
        emit({ kind: 'clear', at: at + 1000, source: 1, end: 'returned', ended: at + 2000 });
        queue.length = 0;
        // What a block leaves in a queue is told from what was cleared only if time has passed.
        calm = 4;
      } else if (choice === 2) calm = random(30);
      else if (choice > 2) {
        const kinds = tellable ? ['noise'] : ['noise', 'noise', 'silence', 'constant', 'beep'];
        const samples = 120 + random(1400);
        const values = contentOf(kinds[random(kinds.length)], samples, random);
        const ended = paused ? { end: 'returned', ended: at + 500 } : {};
        const capture = { kind: 'capture', at, frame: geometry(samples), values, ...ended };
        emit(capture);
        if (!paused) {
          at += 1000;
          const record = { kind: 'push', at, source: 1, frame: geometry(samples), values };
          emit(record);
          const left = Array.from(values, (value, index) => [value, pushed + index]);
          pushed += samples;
          waiting.push({ record, left, at: () => at });
          land(waiting[0]);
          capture.end = 'returned';
          capture.ended = at + 1000;
        }
      }
    }
    const due = late.filter((one) => one.at <= now);
    late = late.filter((one) => one.at > now);
    for (const one of due) emit({ kind: 'blocks', source: 1, ...one });
    if (tick % 5 === 0) events.push(...assembler.tick(now));
  }
  const end = (ticks + 20) * TICK_NS;
  for (const one of late) emit({ kind: 'blocks', source: 1, ...one });
  event({ event: 'untapped', at_ns: end, boundary: 'sent', source: 1, reason: 'stopped' });
  events.push(...assembler.finish(end));
  return { events, sent, end };
}

/** Positions as ranges. */
function ranges(positions) {
  const found = [];
  for (const position of positions) {
    const last = found.at(-1);
    if (position === null) continue;
    if (last && last[1] === position) last[1] += 1;
    else found.push([position, position + 1]);
  }
  return found;
}

const [folder, first, count] = process.argv.slice(2);
const truths = {};
for (let seed = Number(first); seed < Number(first) + Number(count); seed += 1) {
  const tellable = seed % 2 === 0;
  const { events, sent, end } = simulate(seed, tellable);
  const header = {
    event: 'header', schema: 1, started_monotonic_ns: 1, started_unix_s: 1,
    boundaries: ['captured', 'pushed', 'sent'],
  };
  const trailer = { event: 'trailer', at_ns: end + 1, events: events.length + 1 };
  const lines = [header, ...events, trailer].map((line) => JSON.stringify(line));
  const path = join(folder, `${seed}.jsonl`);
  writeFileSync(path, `${lines.join('\n')}\n`);
  truths[path] = { seed, tellable, sent: ranges(sent) };
}
process.stdout.write(JSON.stringify(truths));
