/** From positions of values to positions of samples, piece by piece. */

import { bisect } from '../follow/store.mjs';

const KEPT_PIECES = 256;
const valueOf = ({ value }) => value;

export class PositionMap {
  #pieces = [];

  add(value, sample, channels) {
    const last = this.#pieces.at(-1);
    const goesOn =
      last?.channels === channels && value - last.value === (sample - last.sample) * channels;
    if (goesOn) return;
    if (last?.value === value) this.#pieces.pop();
    this.#pieces.push({ value, sample, channels });
  }

  /** Forgets what was added at `value` or behind it. */
  cut(value) {
    while (this.#pieces.at(-1)?.value >= value) this.#pieces.pop();
  }

  /** `[sample, values]` for each piece of the range; a sample of null: no one knows. */
  *translate(value, count) {
    let index = bisect(this.#pieces, value, valueOf, true) - 1;
    while (count > 0) {
      const following = this.#pieces[index + 1];
      const step = following ? Math.min(count, following.value - value) : count;
      const piece = this.#pieces[index];
      yield [
        piece ? piece.sample + Math.floor((value - piece.value) / piece.channels) : null,
        step,
      ];
      value += step;
      count -= step;
      index += 1;
    }
  }

  forgetBefore(value) {
    const index = bisect(this.#pieces, value, valueOf, true) - 1;
    if (index > KEPT_PIECES) this.#pieces.splice(0, index);
  }
}
