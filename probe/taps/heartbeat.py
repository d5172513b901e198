"""How late the session's loop runs: stamps taken on a loop that stalls are late by the stall."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from probe.trace.events import LoopStalled

__all__ = ["Heartbeat"]

INTERVAL_S = 0.01
"""Time between beats: half the shortest stall told, and cheap (a hundred callbacks a second)."""
STALL_NS = 20_000_000
"""Lateness from which a beat is logged as a stall."""


class Heartbeat:
    """A chain of timers on the session's loop; no task, and nothing that keeps the loop running.

    A stall is logged from the moment a beat was due to the moment it ran. It began at most one
    interval earlier, so what is logged is a lower bound, short by at most `INTERVAL_S`.
    """

    def __init__(
        self, put: Callable[[Any], None], *, on_beat: Callable[[], None] = lambda: None
    ) -> None:
        """``on_beat`` is called at every beat and must be cheap."""
        self._put = put
        self._on_beat = on_beat
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns = 0
        self._stopped = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to beat. Call it on ``loop``; a second start on the same loop does nothing."""
        if self._stopped or self._loop is loop:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._loop = loop
        self._schedule(loop)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due_ns = monotonic_ns() + int(INTERVAL_S * 1e9)
        self._timer = loop.call_later(INTERVAL_S, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._stopped or loop is not self._loop:
            return
        now = monotonic_ns()
        if now - self._due_ns > STALL_NS:
            self._put(LoopStalled(self._due_ns, now))
        self._on_beat()
        self._schedule(loop)

    def stop(self) -> None:
        """Stop beating; from any thread, also when the loop is closed."""
        self._stopped = True
        loop, timer = self._loop, self._timer
        self._loop = self._timer = None
        if loop is None or timer is None or loop.is_closed():
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is loop or not loop.is_running():
            timer.cancel()
            return
        try:
            loop.call_soon_threadsafe(timer.cancel)
        except RuntimeError:
            # it was closed in between; its timers went with it
            return
