/** Pushed to sent: finding the blocks that left a source again in what was pushed to it. */

import { Queue } from './queue.mjs';
import { Readings, labelled } from './readings.mjs';
import { SampleStore, isConstant, isZero } from './store.mjs';

const LIMIT_VALUES = 8 << 20; // pushed and kept while it is not sent
const HISTORY_VALUES = 1 << 14;
const BUDGET_VALUES = 8 << 20;
const REFILL_VALUES = 32 << 10;
const BLOCK_NS = 10_000_000;

/**
 * Finds the blocks that left a source again in what was pushed to it.
 *
 * The native queue is a pipe: what leaves is what was put in, in order, unless a clear emptied it.
 * A block is a whole block of the queue, or silence where less than a block was inside. What
 * survives a clear begins at the front of a push that was still under way, or of a piece of it.
 *
 * What is decided is told as stretches `{ block, offset, kind, position, values, ambiguous, latest
 * }`: the block and the value of it that one begins with, its kind (`sent`, `inserted` or
 * `unknown`), where its first value was pushed, and when a clear would have discarded it.
 */
export class WireMatcher {
  #store;
  #queue;
  #readings;
  #block;
  #slack;
  #heldFrom = 0; // number of the block the readings' labels begin with
  #stray = null; // the last block if nobody knows it
  #began;
  #sentTo; // behind all that is known to have been sent
  #budget = BUDGET_VALUES;

  /**
   * @param {object} source
   * @param {number} source.block values it hands on per tick.
   * @param {number|null} source.piece how it cuts up frames longer than its queue.
   * @param {number} source.slack how far the given times of blocks may be wrong.
   * @param {number} source.quiet for how long it puts out nothing when it runs dry, before silence.
   * @param {number} source.start position of the first value that will be pushed.
   */
  constructor({ block, piece = null, slack = 60_000_000, quiet = 0, start = 0 }) {
    this.#block = block;
    this.#slack = slack;
    this.#began = this.#sentTo = start;
    this.#store = new SampleStore(LIMIT_VALUES, start);
    this.#queue = new Queue(piece, BLOCK_NS);
    this.#readings = new Readings(this.#queue, this.#store, block, slack, quiet);
  }

  /** Whether the last block is one nobody knows, held for the next one to explain. */
  get hasStray() {
    return this.#stray !== null;
  }

  /** How many blocks are held because more than one reading fits. */
  get undecidedBlocks() {
    return this.#readings.paths[0].labels.length;
  }

  /** Positions in front of this one will not be reported any more. */
  get neededFrom() {
    return this.#store.base;
  }

  /** Adds an accepted push; returns how many values had to be forgotten unsent. */
  push(key, values, at) {
    const start = this.#store.end;
    this.#queue.push(key, start, start + values.length, at);
    this.#store.append(values);
    const { base } = this.#store;
    let lost = 0;
    for (const path of this.#readings.paths) {
      lost = Math.max(lost, base - path.position);
      path.position = Math.max(path.position, base);
      path.low = Math.max(path.low, base);
    }
    return lost;
  }

  /** The call of a push ended: all of it was inside the queue by then (if it returned). */
  pushEnded(key, ended, returned) {
    this.#queue.pushEnded(key, ended, returned);
  }

  /** Takes back the last push, which was refused; false if it is not last, or was seen sent. */
  retract(key) {
    const start = this.#queue.lastPush(key);
    if (start === null || this.wasSent(start)) return false;
    this.#queue.retract(key);
    this.#store.truncate(start);
    return true;
  }

  /** Whether anything from position `start` on is known to have been sent. */
  wasSent(start) {
    return this.#readings.paths.some(({ position }) => position > start);
  }

  /** The queue is being emptied; what was pushed so far may be gone. */
  clear(at, ended = at) {
    this.#queue.clears.push({ at, ended, high: this.#store.end });
  }

  /** Matches whole blocks that left one tick after the other, the first, so numbered, at `at`. */
  blocks(first, values, at) {
    const size = this.#block;
    const count = values.length / size;
    this.#budget = Math.min(this.#budget + count * REFILL_VALUES, BUDGET_VALUES);
    const { paths } = this.#readings;
    if (!paths[0].labels.length) {
      this.#heldFrom = first;
      if (paths.length === 1 && !this.#queue.clears.length) {
        const quick = this.#matchQuickly(paths[0], first, values, at);
        if (quick) return [quick];
      }
    }
    for (let index = 0; index < count; index += 1) {
      const block = values.subarray(index * size, (index + 1) * size);
      const left = at + index * BLOCK_NS;
      if (this.#readings.step(block, left)) this.#stray = null;
      else this.#find(block, left);
    }
    return this.#decide();
  }

  /** Decides what is held by time and flow order: nothing more will come. */
  finish() {
    this.#readings.collapse();
    this.#stray = null;
    return this.#handOut(this.undecidedBlocks);
  }

  /** Hands out a block nobody knows without waiting for the next one to explain it. */
  giveUpStray() {
    this.#stray = null;
    return this.#decide();
  }

  #matchQuickly(path, first, values, at) {
    const { position } = path;
    const { length } = values;
    if (isZero(values)) {
      if (this.#store.end - position < this.#block) {
        return stretch(first, 0, ['inserted', null, length]);
      }
      const inside = this.#queue.inside(position + length);
      if (inside === null || at - inside <= this.#slack) return null;
    }
    if (!this.#store.matches(position, values)) return null;
    path.low = path.position += length;
    this.#sentTo = path.position;
    this.#tidy();
    return stretch(first, 0, ['sent', position, length]);
  }

  /** No reading explains the block: looks for it everywhere it may have come from. */
  #find(block, at) {
    const size = this.#block;
    let since = this.#readings.foundFrom(at);
    const path = this.#readings.collapse();
    let found = this.#search(block, since);
    if (found === null && this.#sentTo < since) {
      // Content tells more than the clock: it left before the clear, and was read late.
      since = this.#sentTo;
      found = this.#search(block, since);
    }
    if (found === null) {
      this.#leaveOpen(path, block, since);
      return;
    }
    const repeated = this.#search(block, found + 1) !== null;
    if (this.#stray !== null && path.labels.length) {
      // A block that began before the probe came, or before the jump, and ended with this.
      const reach = Math.min(this.#store.commonBehind(found, this.#stray), found - since);
      if (reach) {
        const label = labelled('sent', found - reach, reach);
        if (reach < size) label.parts.unshift(['unknown', null, size - reach]);
        path.labels[path.labels.length - 1] = label;
      }
    }
    this.#stray = null;
    path.labels.push(labelled('sent', found, size, null, repeated));
    path.clears = this.#readings.behind(found, at);
    path.low = path.position = found + size;
    path.cost = 0;
  }

  /**
   * Nobody knows the block. What a source held before the probe came ends inside one: behind it
   * lies the head of what was pushed first.
   */
  #leaveOpen(path, block, since) {
    const size = this.#block;
    let reach = this.#sentTo === this.#began ? size - 1 : 0;
    while (reach && !this.#store.matches(since, block.subarray(size - reach))) reach -= 1;
    const strange = labelled('unknown', null, size - reach);
    path.labels.push(strange);
    if (reach) {
      strange.parts.push(['sent', since, reach]);
      strange.doubtful = isConstant(block.subarray(size - reach));
      path.low = path.position = since + reach;
    } else this.#stray = block.slice();
  }

  #search(block, start) {
    if (this.#budget <= 0) return null;
    const found = this.#store.find(block, start);
    this.#budget -= Math.max((found ?? this.#store.end) - start, 0);
    return found;
  }

  /** Hands out what all readings agree on. */
  #decide() {
    const { paths } = this.#readings;
    let agreed = this.#readings.agreed();
    if (paths.length === 1) {
      paths[0].cost = 0;
      if (this.#stray !== null) agreed -= 1;
    }
    this.#forgetClears(paths);
    return this.#handOut(agreed);
  }

  #forgetClears(paths) {
    const queue = this.#queue;
    let done = Math.min(...paths.map(({ clears }) => clears)) - queue.gone;
    // A reading that sits behind a clear's end has that clear behind it.
    while (paths.length === 1 && queue.clears[done]?.high < paths[0].position) {
      done += 1;
      paths[0].clears = queue.gone + done;
    }
    if (done > 0) queue.forgetClears(done);
  }

  #handOut(count) {
    if (!count) return [];
    const stretches = [];
    this.#readings.take(count).forEach(({ parts, doubtful, latest }, index) => {
      let offset = 0;
      for (const part of parts) {
        stretches.push(stretch(this.#heldFrom + index, offset, part, doubtful, latest));
        offset += part[2];
        if (part[1] !== null) this.#sentTo = part[1] + part[2];
      }
    });
    this.#heldFrom += count;
    this.#tidy();
    return stretches;
  }

  #tidy() {
    const position = Math.min(...this.#readings.paths.map(({ low }) => low));
    this.#queue.forgetBefore(position);
    if (position - this.#store.base > 2 * HISTORY_VALUES) {
      this.#store.forgetBefore(position - HISTORY_VALUES);
    }
  }
}

function stretch(block, offset, [kind, position, values], doubtful = false, latest = null) {
  return { block, offset, kind, position, values, ambiguous: doubtful ? values : 0, latest };
}
