"""All taps of one session, put on and taken off together."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from probe.taps.calls import Put
from probe.taps.guard import Fault, Guard
from probe.taps.heartbeat import Heartbeat
from probe.taps.numbers import Numbers
from probe.taps.output import OutputTap
from probe.taps.queues import QUEUE_SIZES
from probe.taps.realtime.tap import RealtimeTap
from probe.taps.session import SessionTap
from probe.taps.sources import SourceTaps

__all__ = ["Taps"]

FULL: Final = 60_000
"""Records waiting for the writer from which frames take the way that is counted and bounded."""


class Taps:
    """All taps of one session, and where what they see goes."""

    def __init__(
        self,
        session: Any,
        put: Put,
        fault: Fault,
        *,
        queue: deque[Any] | None = None,
        wire: bool = True,
        name: str = "",
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """``put`` takes raw calls and events, ``fault`` a kind and a detail; neither raises.

        ``queue`` is what ``put`` appends to. Given it, frames are appended without the detour
        through ``put``, which costs as much as the rest of the record, and whether there is room
        is looked up a hundred times a second instead.
        """
        guard = self._guard = Guard(fault)

        def put_safely(record: Any) -> None:
            guard.attempt("put", put, record)

        self._put = put_safely
        self._queue = queue
        self._put_frame = put if queue is None else queue.append
        self._full = False
        self._removed = False
        self._looking = contextlib.ExitStack()
        sinks = Numbers()
        self._sources = SourceTaps(put_safely, fault, wire=wire, sinks=sinks)
        self._output = OutputTap(
            session, put_safely, self._put_frame, fault, self._sources, sinks, name=name
        )
        self._heartbeat = Heartbeat(put_safely, on_beat=self._beat)
        self._realtime = RealtimeTap(session, put_safely, fault)
        self._session_tap = SessionTap(
            session,
            put_safely,
            fault,
            on_event=self._occasion,
            on_close=on_close,
            listener=self._realtime,
        )

    def install(self) -> None:
        """Put everything on. Call it on the session's loop, or before there is one."""
        self._guard.attempt("queues", self._looking.enter_context, QUEUE_SIZES.looking())
        self._occasion()
        self._session_tap.install()
        self._output.install()

    def remove(self, *, wire_in_background: bool = False) -> None:
        """Take everything off; idempotent, from any thread."""
        if not self._removed:
            self._removed = True
            for name, step in (
                ("output", self._output.remove),
                ("realtime", self._realtime.remove),
                ("session", self._session_tap.remove),
                ("heartbeat", self._heartbeat.stop),
                ("queues", self._looking.close),
            ):
                self._guard.attempt(name, step)
        if not wire_in_background:
            self._sources.remove("detached")

    def _beat(self) -> None:
        self._look_for_room()
        self._session_tap.look()
        self._realtime.beat()

    def _look_for_room(self) -> None:
        """Where the writer is stuck and the queue full, have `put` turn frames away and count."""
        full = self._queue is not None and len(self._queue) >= FULL
        if full is not self._full:
            self._full = full
            self._output.frames_to(self._put if full else self._put_frame)

    def _occasion(self) -> None:
        """Something happened on the session's loop, outside any capture."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._heartbeat.start(loop)
        self._realtime.look()
        self._output.follow()
