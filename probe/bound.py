"""A trace that may not grow beyond a size: what is written of it, and what is only counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from probe.trace.events import (
    AudioSkipped,
    CaptureEnded,
    Event,
    Faulted,
    FrameCaptured,
    FramePushed,
    PlaybackReported,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    SizeBounded,
    SumsKept,
)

__all__ = ["Bound"]

SUMS_NS: Final = 5_000_000_000
"""How often sums are written once the bound is reached."""

_OVERRUN: Final = 1.25
_OVERRUN_BYTES: Final = 1 << 16


class Bound:
    """Lets everything through until the file has reached a size; then marks, session events and
    what belongs to lines already written, and after a quarter more nothing but faults and sums."""

    __slots__ = ("_frame", "_most_bytes", "_open", "_push", "_reached", "_sums", "_taken_ns")

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._reached = False
        self._frame = 0
        self._push = 0
        self._open: dict[int, int] = {}
        self._sums: dict[str, int] = {}
        self._taken_ns = 0

    def admit(self, event: Event, size_bytes: int) -> Iterator[Event]:
        """What to write in place of an event, while the file has that size; faults among it."""
        if not self._reached and size_bytes < self._most_bytes:
            self._remember(event)
            yield event
            return
        if not self._reached:
            self._reached = True
            yield SizeBounded(time.monotonic_ns())
        if self._lets_through(event):
            if size_bytes > self._most_bytes * _OVERRUN + _OVERRUN_BYTES:
                event = Faulted(
                    time.monotonic_ns(), "events_lost", 1, "the file is beyond its bound"
                )
            yield event

    def sums(self, now_ns: int, *, last: bool = False) -> Iterator[SumsKept]:
        """What was counted since they were written last, if it is time for that. At the end, the
        pushes that never ended too: nothing says that the source refused them."""
        if not self._reached or not (last or now_ns - self._taken_ns >= SUMS_NS):
            return
        if last:
            for samples in self._open.values():
                self._count(pushed_frames=1, pushed_samples=samples)
        self._taken_ns = now_ns
        if self._sums:
            yield SumsKept(now_ns, **self._sums)
            self._sums = {}

    def _remember(self, event: Event) -> None:
        """The last frame and push that were written, whose ends are still to be."""
        if isinstance(event, FrameCaptured):
            self._frame = max(self._frame, event.frame)
        elif isinstance(event, FramePushed):
            self._push = max(self._push, event.push)

    def _lets_through(self, event: Event) -> bool:
        """Whether to write the event all the same; counts it where not."""
        if isinstance(event, FrameCaptured):
            self._count(captured_frames=1, captured_samples=event.samples)
        elif isinstance(event, CaptureEnded):
            return event.frame <= self._frame
        elif isinstance(event, FramePushed):
            # Whether the source accepts it is known when the call ends, and counted then.
            if event.end is None:
                self._open[event.push] = event.samples
            elif event.accepted:
                self._count(pushed_frames=1, pushed_samples=event.samples)
        elif isinstance(event, PushEnded):
            samples = self._open.pop(event.push, None)
            if samples is None:
                return event.push <= self._push
            if event.accepted:
                self._count(pushed_frames=1, pushed_samples=samples)
        elif isinstance(event, PushMatched):
            return event.push <= self._push
        elif isinstance(event, RunSent):
            self._count(sent_samples=event.samples)
        elif isinstance(event, SilenceInserted):
            self._count(inserted_samples=event.samples)
        elif isinstance(event, PlaybackReported):
            return event.report != "progressed"
        else:
            return not isinstance(event, AudioSkipped)
        return False

    def _count(self, **samples: int) -> None:
        for name, more in samples.items():
            self._sums[name] = self._sums.get(name, 0) + more
