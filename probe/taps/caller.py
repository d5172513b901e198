"""The caller a session listens to, who may leave the room. A session without a room has none."""

from __future__ import annotations

from time import monotonic_ns
from typing import Any, Final

from probe import compat
from probe.taps.calls import Put
from probe.taps.guard import Guard
from probe.trace.events import CallerLeft

__all__ = ["CallerTap"]

_LEFT: Final = "participant_disconnected"


class CallerTap:
    """Listens to whichever room the session is in.

    The framework's own listener forgets the caller as they leave, and may be called first. So who
    it is, is looked up as long as they are there.
    """

    def __init__(self, session: Any, put: Put, guard: Guard) -> None:
        self._session = session
        self._put = put
        self._guard = guard
        self._room: Any = None
        self._caller: str | None = None

    def look(self) -> None:
        """See which room it is and who the caller is; cheap, to be asked all the time."""
        room = compat.room(self._session)
        if room is not self._room:
            self.remove()
            if room is not None:
                room.on(_LEFT, self._heard)
                self._room = room
        if room is not None:
            self._caller = compat.linked_identity(self._session)

    def remove(self) -> None:
        """Stop listening; idempotent, from any thread."""
        room, self._room = self._room, None
        if room is not None:
            room.off(_LEFT, self._heard)

    def _heard(self, participant: Any) -> None:
        self._guard.attempt("caller", self._left, participant, monotonic_ns())

    def _left(self, participant: Any, at_ns: int) -> None:
        if participant.identity in (self._caller, compat.linked_identity(self._session)):
            self._caller = None
            self._put(CallerLeft(at_ns, compat.disconnect_reason(participant)))
