"""What an audio source was handed, what became of it inside, and what left it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from probe.trace.events.sink import CallEnd

SinkHabit = Literal["gain", "noise", "added", "buffer-reused", "changed"]
"""What a sink does to the audio it hands on: scaled (a volume, a fade), equal up to noise of some
bits (dither), silence or repeats of its own beside the captured audio, one buffer used again for
every frame, or changed beyond recognition."""


@dataclass(frozen=True, slots=True)
class FramePushed:
    """A frame was handed to the audio source. ``at_ns`` is read before the call is forwarded."""

    NAME: ClassVar[str] = "pushed"

    at_ns: int
    push: int
    """Number of the push in this trace, from 1."""
    source: int
    start_sample: int
    """Position among the *accepted* samples of the trace; of a refused frame, where it would have
    begun."""
    samples: int
    rate_hz: int
    channels: int
    accepted: bool = True
    """False where the source raised or was closed: nothing of the frame got in."""
    captured: list[tuple[int | None, int]] | None = None
    """What it was made of, in order: ``(captured start_sample, samples)``; a start of ``None`` is
    audio that was never seen at captured. Adds up to ``samples``. ``None``: not decided yet, a
    `PushMatched` follows."""
    ambiguous_samples: int = 0
    """How many of its samples were placed by flow order and time because content could not tell."""
    end: CallEnd | None = None
    ended_ns: int | None = None
    error: str | None = None
    added_samples: int = 0
    """Of the ranges without a captured position: what the sink put in itself, silence or audio it
    had handed on before."""
    habit: SinkHabit | None = None
    """What the sink does to the audio, where the ranges rest on that; ``None``: they are equal
    sample for sample."""
    detail: str | None = None
    """What the exception said, where its words are LiveKit's own and hold none of the call."""


@dataclass(frozen=True, slots=True)
class PushEnded:
    """A push whose `FramePushed` was written while it still ran has ended."""

    NAME: ClassVar[str] = "push_ended"

    at_ns: int
    push: int
    end: CallEnd
    error: str | None = None
    accepted: bool = True
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class PushMatched:
    """Where the samples of an earlier `FramePushed` came from, decided later."""

    NAME: ClassVar[str] = "push_matched"

    at_ns: int
    push: int
    captured: list[tuple[int | None, int]]
    ambiguous_samples: int = 0
    added_samples: int = 0
    habit: SinkHabit | None = None


@dataclass(frozen=True, slots=True)
class AudioSkipped:
    """Captured audio that the sink passed over: what was captured behind it was pushed, and what
    was left out is silence, or nothing had told the sink to drop it."""

    NAME: ClassVar[str] = "skipped"

    at_ns: int
    """When the push came that what was left out should have come before."""
    start_sample: int
    """Captured position."""
    samples: int
    silent: bool = True
    """Whether all of it is digital silence."""


@dataclass(frozen=True, slots=True)
class QueueCleared:
    """The source's queue was cleared. ``at_ns`` before the call, ``ended_ns`` after it."""

    NAME: ClassVar[str] = "source_cleared"

    at_ns: int
    source: int
    ended_ns: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SourceClosed:
    """The source was closed: what was inside is gone, what comes later is refused."""

    NAME: ClassVar[str] = "source_closed"

    at_ns: int
    source: int


@dataclass(frozen=True, slots=True)
class RunSent:
    """A run of pushed samples that left the source: contiguous in samples and in time.

    It ends at a gap over 15 ms and at the latest after 200 ms. The source hands on whole blocks,
    so sample ``k`` of the run left at ``at_ns + (block_offset_samples + k) // block * block time``.
    """

    NAME: ClassVar[str] = "sent"

    at_ns: int
    """When its first block left the source's queue."""
    until_ns: int
    """When its last block left, plus the time of one block (half open)."""
    source: int
    start_sample: int | None
    """Position of the first sample among the pushed; ``None``: audio never seen at pushed."""
    samples: int
    block_offset_samples: int = 0
    """Where in its first block the run begins."""
    ambiguous_samples: int = 0


@dataclass(frozen=True, slots=True)
class SilenceInserted:
    """Silence the source put out because it had nothing to send."""

    NAME: ClassVar[str] = "inserted"

    at_ns: int
    until_ns: int
    source: int
    samples: int
    ambiguous_samples: int = 0
