/**
 * Readings of what happened in a source's native queue, and what tells them apart.
 *
 * Where several readings of the blocks fit, all are kept; content ends most of them. Readings of
 * the same content differ in when they say things happened; one that disagrees with the clock by
 * more than the slack compared with another is given up.
 */

import { isZero } from './store.mjs';

const READINGS = 48;
const HELD_BLOCKS = 400;

/**
 * One reading: what it says of each block still held, as `{ parts, doubtful, latest }` with parts
 * `[kind, position, values]` and the time the block had left at the latest.
 *
 * `low` is from where on the next block may come, wherever the source cuts up what is pushed: before
 * `position` where a clear may have left the rest of a frame.
 * `emptied` is when the last clear it has behind it was called, `spoke` when the last block of the
 * queue left, `sent` a sum over all blocks it says were sent, whatever their order.
 */
const START = { clears: 0, cost: 0, emptied: 0, spoke: 0, sent: 0 };

/** All readings that fit the blocks seen so far. */
export class Readings {
  #queue;
  #store;
  #block;
  #slack;
  #quiet;

  /**
   * @param {Queue} queue what was pushed and cleared.
   * @param {SampleStore} store the audio that was.
   * @param {number} block values the source hands on per tick.
   * @param {number} slack how far the given times of blocks may be wrong.
   * @param {number} quiet for how long a source that runs dry puts out nothing before silence.
   */
  constructor(queue, store, block, slack, quiet) {
    this.#queue = queue;
    this.#store = store;
    this.#block = block;
    this.#slack = slack;
    this.#quiet = quiet;
    this.paths = [{ ...START, position: store.end, low: store.end, labels: [] }];
  }

  /** Lets every reading explain one more block; false: none can, and nothing has changed. */
  step(block, at) {
    const successors = new Map();
    for (const path of this.paths) {
      for (const from of this.#continuations(path, at)) {
        for (const [position, price, label] of this.#options(path, from, block, at)) {
          const speaks = position > from.position;
          const successor = {
            ...from,
            position,
            low: speaks ? position : from.low,
            cost: Math.max(from.cost, price),
            spoke: speaks ? at : path.spoke,
            sent: path.sent + (speaks ? mixed(from.position) : 0),
            labels: [...path.labels, label],
          };
          const key = `${position} ${from.clears}`;
          const known = successors.get(key);
          successors.set(key, known ? better(known, successor) : successor);
        }
      }
    }
    if (!successors.size) return false;
    this.paths = [...successors.values()];
    if (this.paths.length > 1) this.#prune();
    return true;
  }

  /** What a block can be there: the position it leads to, its cost, its label. */
  *#options(path, { position, clears, emptied }, block, at) {
    const size = this.#block;
    if (this.#store.matches(position, block)) {
      const early = this.#queue.pushed(position + size) - at;
      const latest = this.#queue.cleared(position, clears);
      yield [position + size, early, labelled('sent', position, size, latest)];
    }
    if (isZero(block)) {
      const late = this.#queue.overdue(position + size, emptied, at);
      const hasty = path.spoke ? path.spoke + this.#quiet - at : 0;
      yield [position, Math.max(late, hasty), labelled('inserted', null, size)];
    }
  }

  /** Where the next block may come from. */
  #continuations({ position, clears, low, cost, emptied }, at) {
    const pending = this.#queue.pending(clears);
    if (!pending.length) return [{ position, clears, low, cost, emptied }];
    const late = Math.max(cost, at - pending[0].ended);
    const found = [{ position, clears, low, cost: late, emptied }];
    pending.forEach((clear, index) => {
      const next = index + 1 < pending.length ? at - pending[index + 1].ended : 0;
      const early = Math.max(cost, clear.at - at, next);
      const behind = { clears: clears + index + 1, cost: early, emptied: clear.at };
      const survived = this.#queue.survivorsFrom(clear, low);
      for (const start of this.#queue.survivors(clear, position)) {
        found.push({ position: start, low: Math.min(survived, start), ...behind });
      }
    });
    return found;
  }

  /** Gives up readings the clock contradicts. */
  #prune() {
    this.paths.sort((one, other) => one.cost - other.cost);
    const limit = this.paths[0].cost + this.#slack;
    const kept = this.paths.slice(0, READINGS).filter(({ cost }) => cost <= limit);
    for (const gone of this.paths.slice(kept.length)) {
      for (const path of kept) {
        // Two readings that differ in a clear only: which samples are gone was decided by the
        // clock. That silence was sent when it was due is confirmed by what follows.
        if (path.clears !== gone.clears) doubt(path, gone);
      }
    }
    this.paths = kept;
    if (kept[0].labels.length > HELD_BLOCKS) this.collapse();
  }

  /** Keeps the reading that fits the clock best and returns it; where others differ is in doubt. */
  collapse() {
    const best = this.paths.reduce((one, other) => (other.cost < one.cost ? other : one));
    for (const other of this.paths) doubt(best, other);
    this.paths = [best];
    return best;
  }

  /**
   * From where on a block may come that no reading explains: behind what the clears that were
   * certainly over by then took for certain.
   */
  foundFrom(at) {
    const origins = this.paths.map(({ low, clears }) => {
      const over = this.#queue.pending(clears).filter(({ ended }) => ended + this.#slack <= at);
      return Math.max(low, ...over.map((clear) => this.#queue.survivorsFrom(clear, low)));
    });
    return Math.min(...origins);
  }

  /**
   * How many clears the only reading has behind it where a block that left at `at` is found at a
   * position: those begun by then that can have left it there.
   */
  behind(position, at) {
    let { clears, low } = this.paths[0];
    for (const clear of this.#queue.pending(clears)) {
      low = this.#queue.survivorsFrom(clear, low);
      if (clear.at - this.#slack > at || low > position) break;
      clears += 1;
    }
    return clears;
  }

  /** How many blocks from the front all readings explain alike. */
  agreed() {
    const [first, ...others] = this.paths;
    const differing = first.labels.findIndex((label, index) =>
      others.some(({ labels }) => !isAlike(labels[index], label)),
    );
    return differing < 0 ? first.labels.length : differing;
  }

  /** The first labels, which all readings agree on, taken off them. */
  take(count) {
    const [handed, ...others] = this.paths.map(({ labels }) => labels.splice(0, count));
    return handed.map(({ parts, doubtful, latest }, index) => {
      const same = others.map((labels) => labels[index]);
      return {
        parts,
        doubtful: doubtful || same.some((label) => label.doubtful),
        latest: same.every((label) => label.latest === latest) ? latest : null,
      };
    });
  }
}

/** What one reading says of a block that is of one kind. */
export function labelled(kind, position, values, latest = null, doubtful = false) {
  return { parts: [[kind, position, values]], doubtful, latest };
}

/**
 * Of two readings that come to the same state, the one that fits the clock better.
 *
 * Where both sent the same, they differ only in when silence was put in between, and what follows
 * confirms either. Where it took a clear to make them meet, the clock decided what was sent.
 */
function better(one, other) {
  const [best, second] = one.cost <= other.cost ? [one, other] : [other, one];
  if (best.sent !== second.sent) doubt(best, second);
  best.labels = best.labels.map((label, index) =>
    label.latest === second.labels[index].latest ? label : { ...label, latest: null },
  );
  return best;
}

/** A number for a position, such that equal sums of them mean equal positions. */
function mixed(position) {
  let found = Math.imul((position ^ (position / 2 ** 31)) + 1, 0x85ebca6b);
  found = Math.imul(found ^ (found >>> 13), 0xc2b2ae35);
  return (found ^ (found >>> 16)) >>> 0;
}

function isAlike({ parts }, other) {
  return (
    parts.length === other.parts.length &&
    parts.every((part, index) => part.every((value, item) => value === other.parts[index][item]))
  );
}

/** Marks where two readings of the same blocks differ. */
function doubt(path, other) {
  path.labels = path.labels.map((label, index) =>
    isAlike(label, other.labels[index]) ? label : { ...label, doubtful: true },
  );
}
