"""All realtime sessions of one agent session, one after the other as agents take over."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from probe import compat
from probe.taps.calls import Put
from probe.taps.guard import Fault
from probe.taps.numbers import Numbers
from probe.taps.realtime.conversation import AgentSide
from probe.taps.realtime.message import RUN_NS
from probe.taps.realtime.model import ModelTap
from probe.taps.realtime.shared import Shared
from probe.trace.events import RealtimeTapped, RealtimeUntapped

__all__ = ["RealtimeTap"]


class RealtimeTap:
    """Taps whichever realtime session is in use, and tells all of them what becomes of speeches.

    Every method is called on the session's loop, but for `remove`.
    """

    def __init__(
        self, session: Any, put: Put, fault: Fault, now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        self._shared = Shared(session, put, fault, now_ns)
        self._agent = AgentSide(self._shared)
        self._realtime: Any = None
        self._taps: dict[int, ModelTap] = {}
        self._numbers = Numbers()

    def look(self) -> None:
        """Tap the realtime session that is in use now, if there is one and it is not tapped."""
        realtime = compat.realtime_session(self._shared.session)
        if realtime is not self._realtime and not self._shared.removed:
            self._realtime = realtime
            if realtime is not None:
                self._shared.guard.attempt("install", self._install, realtime)

    def _install(self, realtime: Any) -> None:
        if realtime in self._numbers:
            return
        number = self._numbers.of(realtime)
        tapped = ModelTap(self._shared, realtime, number, self._agent, self._closed)
        self._taps[id(realtime)] = tapped
        at_ns = self._shared.now_ns()
        self._shared.put(RealtimeTapped(at_ns, number, **compat.realtime_traits(realtime)))
        tapped.install()
        tapped.server.look(at_ns)
        self._agent.look(at_ns)

    def _closed(self, tapped: ModelTap) -> None:
        self._release(tapped, "closed")

    def _release(self, tapped: ModelTap, reason: str) -> None:
        """Take one of them off."""
        attempt = self._shared.guard.attempt
        at_ns = self._shared.now_ns()
        self._taps.pop(id(tapped.realtime), None)
        tapped.remove()
        for response in tapped.responses.live:
            attempt("count", tapped.responses.count, response, at_ns, "detached")
        attempt("context", tapped.server.look, at_ns)
        self._shared.put(RealtimeUntapped(at_ns, tapped.number, reason))

    def remove(self) -> None:
        """Take everything off; idempotent, from any thread. Streams that are being read stay
        readable."""
        if self._shared.removed:
            return
        attempt = self._shared.guard.attempt
        for tapped in list(self._taps.values()):
            attempt("remove", tapped.responses.announce_all)
            attempt("remove", self._release, tapped, "detached")
        for flowing in list(self._shared.flowing):
            flowing.flush()
        if self._numbers:
            attempt("history", self._agent.look, self._shared.now_ns())
        self._shared.removed = True

    # -- what the session's own tap saw --

    def beat(self) -> None:
        """A hundred times a second: what ends or comes without a call."""
        self.look()
        for tapped in list(self._taps.values()):
            if tapped.responses.live:
                self._shared.guard.attempt("beat", tapped.responses.beat)
        if self._shared.flowing:
            due_ns = self._shared.now_ns() - RUN_NS
            for flowing in [known for known in self._shared.flowing if known.began_ns <= due_ns]:
                flowing.flush()

    def speech_created(self, speech: str) -> None:
        """The session made a speech handle."""
        for tapped in self._taps.values():
            tapped.responses.speech_created(speech)

    def speech_committed(self, speech: str, at_ns: int) -> None:
        """A speech is about to be told as interrupted; ``at_ns`` is its commit."""
        for tapped in list(self._taps.values()):
            self._shared.guard.attempt("commit", tapped.responses.count_all, at_ns, "interrupt")

    def speech_done(self, speech: str, at_ns: int) -> None:
        """A speech is done, and was told."""
        attempt = self._shared.guard.attempt
        for tapped in list(self._taps.values()):
            attempt("speech done", tapped.responses.speech_done, speech, at_ns)
            current = tapped.realtime is self._realtime
            attempt("context", tapped.server.look, at_ns, speech, always=current)
        if self._numbers:
            attempt("context", self._agent.look, at_ns, speech, always=True)
