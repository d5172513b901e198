/** The tap on one speech: what nobody but its own handle says. */

import { callSite, commitment, interruptedBy, whenDone } from './compat.mjs';
import { InstancePatch } from './patches.mjs';

/** One speech: who asks it to stop, when it becomes interrupted, when it is done. */
export class SpeechTap {
  #handle;
  #taps;
  #patches = [];
  #removed = false;
  #committed = false;

  /**
   * `taps` has what the tap of the session lends: `write`, `guarded`, `clock`, `stopping`, which is
   * called with the time before each interrupt takes effect, and `forget`, once the speech is over.
   */
  constructor(handle, taps) {
    this.#handle = handle;
    this.#taps = taps;
  }

  install() {
    const handle = this.#handle;
    this.#committed = Boolean(handle.interrupted);
    this.#patch('interrupt', (at, before) => this.#asked(at, before));
    // A prepared reply that is thrown away is cancelled without an interrupt.
    if (typeof handle._cancel === 'function') this.#patch('_cancel', () => {});
    // Only heard first where something else interrupts it; the stamp is then late by a turn.
    commitment(handle)?.then(
      () => this.#commit(this.#taps.clock.now()),
      () => {},
    );
    whenDone(handle, () => this.#taps.guarded('speech done', () => this.#done()));
  }

  remove() {
    this.#removed = true;
    for (const patch of this.#patches.splice(0)) patch.undo();
  }

  #patch(name, record) {
    const watch = this;
    const handle = this.#handle;
    const original = handle[name];
    function replacement(...args) {
      if (watch.#removed) return original.apply(this, args);
      const at = watch.#taps.clock.now();
      const before = watch.#before(at);
      let end = 'raised';
      try {
        const result = original.apply(this, args);
        end = 'returned';
        return result;
      } finally {
        watch.#taps.guarded(name, () => {
          if (before !== null) record(at, { ...before, end });
          if (handle.interrupted) watch.#commit(at);
        });
      }
    }
    this.#patches.push(new InstancePatch(handle, name, replacement));
  }

  /** What is known before the call takes effect; null where nothing is left to stop. */
  #before(at) {
    let before = {};
    this.#taps.guarded('interrupt', () => {
      const over = this.#handle.interrupted || this.#handle.done();
      if (!over) this.#taps.stopping(at);
      before = over ? null : { site: callSite() };
    });
    return before;
  }

  #asked(at_ns, { site, end }) {
    this.#taps.write({
      event: 'interrupt_called',
      at_ns,
      speech: this.#handle.id,
      by: site && interruptedBy(site),
      end: end === 'returned' ? undefined : end,
    });
  }

  #commit(at_ns) {
    if (this.#committed || this.#removed) return;
    this.#committed = true;
    this.#taps.write({ event: 'speech_committed', at_ns, speech: this.#handle.id });
  }

  #done() {
    if (this.#removed) return;
    const at_ns = this.#taps.clock.now();
    const interrupted = Boolean(this.#handle.interrupted) || undefined;
    if (interrupted) this.#commit(at_ns);
    this.#taps.write({ event: 'speech_done', at_ns, speech: this.#handle.id, interrupted });
    this.remove();
    this.#taps.forget();
  }
}
