/** The caller a session listens to, who may leave the room. A session without a room has none. */

import { disconnectReason, linkedIdentity, roomOf } from './compat.mjs';

const LEFT = 'participantDisconnected';

/**
 * Listens to whichever room the session is in.
 *
 * The framework's own listener forgets the caller as they leave, and is called first. So who it is,
 * is looked up as long as they are there.
 */
export class CallerTap {
  #session;
  #left;
  #room = null;
  #caller = null;
  #heard = (participant) => this.#hear(participant);

  /** `left` is called with the reason, as the room calls it; it must not throw. */
  constructor(session, left) {
    this.#session = session;
    this.#left = left;
  }

  /** Sees which room it is and who the caller is; cheap, to be asked all the time. */
  look() {
    const room = roomOf(this.#session);
    if (room !== this.#room) {
      this.remove();
      room?.on(LEFT, this.#heard);
      this.#room = room;
    }
    if (room !== null) this.#caller = linkedIdentity(this.#session);
  }

  /** Stops listening; idempotent. */
  remove() {
    this.#room?.off(LEFT, this.#heard);
    this.#room = null;
  }

  #hear(participant) {
    const identity = participant?.identity;
    if (identity === undefined) return;
    if (identity !== this.#caller && identity !== linkedIdentity(this.#session)) return;
    this.#caller = null;
    this.#left(disconnectReason(participant));
  }
}
