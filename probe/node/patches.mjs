/** Replacements on one object that can be taken back. */

/** A property of `owner` replaced until `undo`; its class stays as it is. */
export class InstancePatch {
  #owner;
  #name;
  #own;
  #replacement;

  /**
   * @param {object} owner
   * @param {string} name of a method.
   * @param {Function} replacement
   */
  constructor(owner, name, replacement) {
    this.#owner = owner;
    this.#name = name;
    this.#own = Object.getOwnPropertyDescriptor(owner, name);
    this.#replacement = replacement;
    Object.defineProperty(owner, name, {
      value: replacement,
      configurable: true,
      enumerable: this.#own?.enumerable ?? false,
      writable: true,
    });
  }

  /** Idempotent. What somebody else put there in the meantime is left to them. */
  undo() {
    if (Object.getOwnPropertyDescriptor(this.#owner, this.#name)?.value !== this.#replacement) {
      return;
    }
    if (this.#own === undefined) delete this.#owner[this.#name];
    else Object.defineProperty(this.#owner, this.#name, this.#own);
  }
}
