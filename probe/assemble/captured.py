"""Captures and marks: what entered the sink, numbered and placed over the whole trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from probe.assemble.frames import Audio, Fault, read_frame
from probe.assemble.positions import PositionMap
from probe.follow import FlowMatcher
from probe.taps import calls
from probe.taps.calls import Call
from probe.trace.events import CaptureEnded, Event, FrameCaptured, SinkMarked

__all__ = ["OPEN_NS", "Captured", "rounded_ns"]

OPEN_NS: Final = 150_000_000
"""A call that runs for longer is written as running."""


@dataclass(slots=True)
class _Capture:
    record: Call
    frame: int
    start: int
    audio: Audio
    written: bool = False


class Captured:
    """The boundary *captured*: every frame and mark, and where each frame's values lie."""

    def __init__(self, flow: FlowMatcher, fault: Fault) -> None:
        self._flow = flow
        self._fault = fault
        self._frames = 0
        self._samples = 0
        self._captures: list[_Capture] = []
        self._marks: list[Call] = []
        self._newest: Call | None = None
        self.map = PositionMap()
        """Positions of captured values to those of samples."""

    def take(self, record: Call) -> None:
        """A frame entered the sink."""
        audio = read_frame(record[calls.CAPTURE_FRAME], self._fault)
        record[calls.CAPTURE_FRAME] = None
        self._frames += 1
        self._newest = record
        self._captures.append(_Capture(record, self._frames, self._samples, audio))
        if audio.samples:
            self.map.add(self._flow.end, self._samples, audio.channels)
            forgotten = self._flow.capture(audio.data)
            if forgotten:
                self._fault("audio_forgotten", "captured, not pushed yet", forgotten)
            self.map.forget_before(self._flow.needed_from)
        self._samples += audio.samples
        audio.data = b""

    def is_entering(self, at_ns: int) -> bool:
        """Whether the last frame's call was under way at a time."""
        if self._newest is None:
            return False
        ended = self._newest[calls.ENDED]
        return ended is None or rounded_ns(ended) >= at_ns

    def take_mark(self, record: Call) -> None:
        """The sink saw a pause, resume, clear or flush."""
        self._marks.append(record)

    def write(self, now_ns: int, *, last: bool) -> Iterator[Event]:
        """What has ended or runs for too long to be waited for."""
        yield from self._write_captures(now_ns, last)
        yield from self._write_marks(now_ns, last)

    def _write_captures(self, now_ns: int, last: bool) -> Iterator[Event]:
        kept = []
        for capture in self._captures:
            record = capture.record
            end = calls.end_of(record)
            error, detail = calls.told_of(record)
            ended_ns = None if end is None else rounded_ns(record[calls.ENDED])
            if capture.written:
                if end is not None:
                    yield CaptureEnded(ended_ns or now_ns, capture.frame, end, error, detail)
                    continue
            elif end is not None or last or now_ns - record[calls.AT] >= OPEN_NS:
                audio = capture.audio
                yield FrameCaptured(
                    record[calls.AT],
                    capture.frame,
                    capture.start,
                    audio.samples,
                    audio.rate_hz,
                    audio.channels,
                    record[calls.CAPTURE_SPEECH],
                    end,
                    ended_ns,
                    error,
                    audio.data_bytes,
                    detail,
                )
                capture.written = True
                if end is not None:
                    continue
            kept.append(capture)
        self._captures = kept

    def _write_marks(self, now_ns: int, last: bool) -> Iterator[Event]:
        kept = []
        for record in self._marks:
            ended = record[calls.ENDED]
            if ended is None and not last and now_ns - record[calls.AT] < OPEN_NS:
                kept.append(record)
                continue
            yield SinkMarked(
                record[calls.AT],
                record[calls.MARK_NAME],
                record[calls.MARK_SPEECH],
                calls.end_of(record) or "returned",
                ended,
                calls.told_of(record)[0],
                record[calls.MARK_SINK],
            )
        self._marks = kept


def rounded_ns(seconds: float) -> int:
    """The nanosecond nearest to a reading of the monotonic clock in seconds."""
    return round(seconds * 1e9)
