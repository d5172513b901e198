"""What went into the sink and what came back from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

MarkName = Literal["pause", "resume", "clear", "flush"]
CallEnd = Literal["returned", "cancelled", "raised"]


@dataclass(frozen=True, slots=True)
class FrameCaptured:
    """A frame entered the sink. ``at_ns`` is read before the call is forwarded."""

    NAME: ClassVar[str] = "captured"

    at_ns: int
    frame: int
    """Number of the frame in this trace, from 1."""
    start_sample: int
    samples: int
    """Samples per channel, as the frame says."""
    rate_hz: int
    channels: int
    speech: str | None = None
    """``session.current_speech`` when the frame came; ``None`` where code feeds the sink itself."""
    end: CallEnd | None = None
    """How the call ended; ``None`` while it runs: a `CaptureEnded` follows, or the trace is cut."""
    ended_ns: int | None = None
    error: str | None = None
    """Name of the exception's type where the call raised."""
    data_bytes: int | None = None
    """Length of the frame's data where it is not ``samples * channels * 2``."""
    detail: str | None = None
    """What the exception said, where its words are LiveKit's own and hold none of the call."""


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """A capture whose `FrameCaptured` was written while it still ran has ended."""

    NAME: ClassVar[str] = "capture_ended"

    at_ns: int
    frame: int
    end: CallEnd
    error: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SinkMarked:
    """A pause, resume, clear or flush that the head of the sink saw."""

    NAME: ClassVar[str] = "mark"

    at_ns: int
    mark: MarkName
    speech: str | None = None
    end: CallEnd = "returned"
    ended_ns: int | None = None
    error: str | None = None
    sink: int | None = None
    """Number of the sink the call went to, from 1; ``None``: not known (older traces)."""


@dataclass(frozen=True, slots=True)
class PlaybackReported:
    """A playback event that came back from the sink: the framework's claim."""

    NAME: ClassVar[str] = "playback"

    at_ns: int
    report: Literal["started", "progressed", "finished"]
    speech: str | None = None
    position_s: float | None = None
    """finished: ``playback_position``; progressed: ``offset``. Seconds, as reported."""
    duration_s: float | None = None
    """progressed: length of the stretch, seconds."""
    interrupted: bool | None = None
    """finished: whether it was reported as interrupted."""
    event_unix_s: float | None = None
    """started: ``created_at``; progressed: ``started_at``."""
    transcript_chars: int | None = None
    """finished: length of the synchronized transcript."""
