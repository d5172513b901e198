"""The taps on the audio sources, which follow the sink from one source to the next."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from livekit import rtc

from probe import compat
from probe.taps.calls import STAMP_NS, Put
from probe.taps.guard import Fault, Guard
from probe.taps.numbers import Numbers
from probe.taps.queues import QUEUE_SIZES
from probe.taps.source import SourceTap
from probe.taps.wire import WireTap
from probe.trace.events import Tapped, Untapped

__all__ = ["SourceTaps"]

OPENING_S: Final = 0.1
"""Longest wait for the wire tap to open, at the moment a sink is set."""

STOPPING_S: Final = 2.0
"""Longest wait for the wire tap of a source used before to stop."""

PLAYED_OUT_NS: Final = 5_000_000_000
"""After how long a source that is no longer used has nothing left inside, whatever its queue."""


@dataclass(slots=True)
class _Tapped:
    source: rtc.AudioSource
    """Kept, so that its id stays its own."""
    number: int
    pushed: SourceTap
    wire: WireTap | None = None
    left_ns: int | None = None
    """When the first segment on another source began; None: this one is in use."""


class SourceTaps:
    """Taps every source that a sink plays into, and lets go of those that have played out."""

    def __init__(self, put: Put, fault: Fault, *, wire: bool, sinks: Numbers) -> None:
        """``wire``: whether to read back what leaves them; ``sinks`` numbers where they stand."""
        self._put = put
        self._fault = fault
        self._guard = Guard(fault)
        self._wire = wire
        self._sinks = sinks
        self._lock = threading.Lock()
        self._taps: dict[int, _Tapped] = {}
        self._numbers = Numbers()
        self._stoppers: list[threading.Thread] = []
        self._closed = False

    def follow(self, head: Any, *, mid_speech: bool = False, wait: bool = False) -> Any:
        """Tap the source under ``head`` and give it; None where there is none. Others stay tapped:
        their queue may still play.

        ``wait``: until the reading has begun, or a moment at most. What is pushed before is lost
        to it; where a sink has just been set nothing is being said and a few ms do no harm.
        """
        return self._guard.attempt("source", self._follow, head, mid_speech, wait)

    def _follow(self, head: Any, mid_speech: bool, wait: bool) -> Any:
        source = compat.find_source(head)
        if source is not None:
            with self._lock:
                if id(source) not in self._taps and not self._closed:
                    self._tap(source, self._sinks.of(compat.leaf(head)), mid_speech, wait)
        return source

    def settle(self, head: Any) -> None:
        """A segment begins at ``head``: tap its source, and let go of those that have played out.

        What was inside a source when the sink was swapped still goes out, and has to be seen.
        """
        source = self.follow(head)
        if source is None or len(self._taps) < 2:
            return
        now_ns = time.monotonic_ns()
        for key, tapped in list(self._taps.items()):
            if key == id(source):
                tapped.left_ns = None
            elif tapped.left_ns is None:
                tapped.left_ns = now_ns
            elif now_ns - tapped.left_ns > PLAYED_OUT_NS:
                self._untap(key, "swapped", wait=False)

    def _tap(self, source: rtc.AudioSource, sink: int, mid_speech: bool, wait: bool) -> None:
        tapped = _Tapped(
            source, number := self._numbers.of(source), SourceTap(source, number, self._put)
        )
        tapped.pushed.install()
        self._taps[id(source)] = tapped
        self._put(
            Tapped(
                time.monotonic_ns(),
                "pushed",
                source=number,
                rate_hz=source.sample_rate,
                channels=source.num_channels,
                queue_ms=QUEUE_SIZES.of(source),
                resolution_ns=STAMP_NS,
                mid_speech=mid_speech,
                sink=sink,
            )
        )
        if self._wire:
            wire = tapped.wire = WireTap(
                source, number, self._put, self._fault, mid_speech=mid_speech
            )
            wire.start()
            if wait:
                wire.opened.wait(OPENING_S)

    def _untap(self, key: int, reason: str, *, wait: bool) -> None:
        with self._lock:
            tapped = self._taps.pop(key, None)
        if tapped is not None:
            self._guard.attempt("source", self._let_go, tapped, reason, wait)

    def _let_go(self, tapped: _Tapped, reason: str, wait: bool) -> None:
        tapped.pushed.remove()
        self._put(Untapped(time.monotonic_ns(), "pushed", source=tapped.number, reason=reason))
        if tapped.wire is None:
            return
        if wait:
            tapped.wire.stop()
            return
        # it waits for its thread, and this may be the first capture of a segment
        stopper = threading.Thread(target=tapped.wire.stop, daemon=True)
        self._stoppers.append(stopper)
        stopper.start()

    def remove(self, reason: str) -> None:
        """Take all of them off; idempotent, from any thread."""
        with self._lock:
            self._closed = True
        for key in list(self._taps):
            self._untap(key, reason, wait=True)
        for stopper in self._stoppers:
            stopper.join(STOPPING_S)
        self._stoppers = []
