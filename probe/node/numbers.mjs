/** Numbers for objects that a trace must tell apart and may not name. */

/** Counts objects by identity, from 1, in order of appearance; it keeps none of them alive. */
export class Numbers {
  #known = new WeakMap();
  #last = 0;

  /** The number of `thing`; the next free one where it is new. */
  of(thing) {
    if (!this.#known.has(thing)) this.#known.set(thing, (this.#last += 1));
    return this.#known.get(thing);
  }
}
