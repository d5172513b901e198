/** Runs: what left a source, joined as far as it is one stretch of samples and of time. */

import { BLOCK_NS } from './grid.mjs';

const RUN_BLOCKS = 20; // the longest run
const SILENCE_BLOCKS = 100; // the longest stretch of inserted silence in one event
const GAP_NS = 15_000_000; // blocks further apart than this are not one run

const longest = ({ kind }) => (kind === 'inserted' ? SILENCE_BLOCKS : RUN_BLOCKS);

/** Joins the decided blocks of one source. */
export class Runs {
  #source;
  #positions;
  #run = null;

  /**
   * @param {number} source its number.
   * @param {PositionMap} positions of values pushed to it, to those of samples.
   */
  constructor(source, positions) {
    this.#source = source;
    this.#positions = positions;
  }

  /** Adds a stretch; tells what is complete with that. */
  *join(stretch, grid, blockSamples, channels) {
    let { block } = stretch;
    let offset = Math.floor(stretch.offset / channels);
    let ambiguous = Math.floor(stretch.ambiguous / channels);
    for (let [start, samples] of this.#pieces(stretch, channels)) {
      while (samples > 0) {
        // One block at a time, so that a run ends where time has a gap or it gets too long.
        const count = Math.min(blockSamples - offset, samples);
        const doubt = Math.min(ambiguous, count);
        const part = { kind: stretch.kind, start, samples: count, offset, block, ambiguous: doubt };
        yield* this.#extend(part, grid);
        ambiguous -= doubt;
        if (start !== null) start += count;
        samples -= count;
        offset += count;
        if (offset === blockSamples) {
          offset = 0;
          block += 1;
        }
      }
    }
  }

  /** What is being joined, if there is anything, and if it began early enough to be due. */
  *close(olderThanNs = Infinity) {
    const run = this.#run;
    if (run === null || olderThanNs - run.atNs < longest(run) * BLOCK_NS) return;
    this.#run = null;
    const stretch = {
      at_ns: run.atNs,
      until_ns: run.lastNs + BLOCK_NS,
      source: this.#source,
      samples: run.samples,
      ambiguous_samples: run.ambiguous || undefined,
    };
    if (run.kind === 'inserted') yield { event: 'inserted', ...stretch };
    else {
      const block_offset_samples = run.offset || undefined;
      yield { event: 'sent', ...stretch, start_sample: run.start, block_offset_samples };
    }
  }

  /** What a stretch is in samples; borders inside a sample are rounded so that they add up. */
  *#pieces({ position, values, offset }, channels) {
    const parts =
      position === null ? [[null, values]] : this.#positions.translate(position, values);
    let first = offset;
    for (const [start, count] of parts) {
      yield [start, Math.floor((first + count) / channels) - Math.floor(first / channels)];
      first += count;
    }
  }

  /** Adds samples of one block to the run, or begins another. */
  *#extend(part, grid) {
    const { block } = part;
    const run = this.#run;
    if (run !== null) {
      const lastNs = grid.stampOf(block);
      // Blocks leave no faster than the source ticks: what is known of this one bears on the first.
      const atNs = Math.min(run.atNs, lastNs - (block - run.block) * BLOCK_NS);
      const goesOn =
        run.kind === part.kind &&
        (run.start === null ? null : run.start + run.samples) === part.start &&
        block - run.last <= 1 &&
        lastNs - run.lastNs <= GAP_NS &&
        lastNs + BLOCK_NS - atNs <= longest(run) * BLOCK_NS;
      if (goesOn) {
        run.samples += part.samples;
        run.ambiguous += part.ambiguous;
        Object.assign(run, { last: block, lastNs, atNs });
        return;
      }
      yield* this.close();
    }
    grid.settle(block);
    const atNs = grid.stampOf(block);
    this.#run = { ...part, last: block, lastNs: atNs, atNs };
  }
}
