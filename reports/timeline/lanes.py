"""The lanes themselves: what lasted, what happened, and columns with a row per frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.reader import NONE

__all__ = [
    "FATES",
    "INHERITED",
    "LOST",
    "PARTLY_LOST",
    "REFUSED",
    "WHOLE",
    "Depth",
    "Frames",
    "Instant",
    "Stretch",
    "Timeline",
]

Ints = NDArray[np.int64]

FATES: Final = ("whole", "partly lost", "lost", "refused", "inherited")
"""What the column ``fate`` counts through. ``whole``: all of it crossed the next boundary, or is
still on its way. ``lost`` and ``partly lost``: it was dropped or cleared. ``refused``: the source
did not take it. ``inherited``: inside when the probe came."""
WHOLE, PARTLY_LOST, LOST, REFUSED, INHERITED = range(len(FATES))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something that lasted."""

    start_ns: int
    stop_ns: int
    what: str
    """What it is, a word or two: a state, ``closed``, ``claimed``, ``dropped`` …"""
    segment: int | None = None
    """From 1; ``None``: of none in particular."""
    speech: str | None = None
    samples: int | None = None
    """Audio it stands for; ``None``: it is no amount of audio."""
    rate_hz: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happened."""

    at_ns: int
    what: str
    """``pause``, ``resume``, ``clear``, ``flush``, ``source cleared``, ``interrupt``, ``commit``,
    ``transcript`` …"""
    speech: str | None = None
    detail: str = ""
    count: int = 1
    """The same mark, again and again with no other in between, is one; so often it came."""
    until_ns: int | None = None
    """The last of them; ``None``: there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """A dense lane, one row per frame or run, in order of time. Columns of int64."""

    at_ns: Ints
    until_ns: Ints
    """When the call ended, or when the last block had left; ``at_ns`` where it is not known."""
    start_sample: Ints
    """Position at its boundary; `NONE`: not known."""
    samples: Ints
    count: Ints
    """Frames in the row: 1 until merged."""
    rate_hz: Ints
    segment: Ints
    """From 1; 0: none."""
    source: Ints
    """Number of the audio source; 0 at captured."""
    fate: Ints
    """Index into `FATES`."""
    lost: Ints
    """Samples of it that were dropped or cleared."""

    @classmethod
    def of(
        cls,
        *,
        at_ns: Ints,
        until_ns: Ints,
        samples: Ints,
        rate_hz: Ints,
        start_sample: Ints | int = NONE,
        segment: Ints | int = 0,
        source: Ints | int = 0,
        fate: Ints | int = WHOLE,
        lost: Ints | int = 0,
    ) -> Frames:
        """One frame a row, put in order of time. One number stands for the same in every row."""
        columns = (
            at_ns, until_ns, start_sample, samples, 1, rate_hz, segment, source, fate, lost,
        )  # fmt: skip
        rows = cls(*(np.broadcast_to(np.asarray(c, np.int64), at_ns.shape) for c in columns))
        return rows.taken(np.argsort(at_ns, kind="stable"))

    def __len__(self) -> int:
        return len(self.at_ns)

    def with_rows(self, more: Frames) -> Frames:
        """These rows and more, in order of time."""
        columns = (
            np.concatenate((getattr(self, name), getattr(more, name))) for name in self.__slots__
        )
        both = Frames(*columns)
        return both.taken(np.argsort(both.at_ns, kind="stable"))

    def taken(self, rows: Ints) -> Frames:
        """These rows of every column."""
        return Frames(*(getattr(self, name)[rows] for name in self.__slots__))

    def merged(self, within_ns: int) -> Frames:
        """Rows that follow each other within this time are one, if they are of one kind.

        Coarser for a view from afar: no row is shorter in time, none is lost, samples add up.
        """
        if len(self) < 2:
            return self
        alike = (
            (self.segment[1:] == self.segment[:-1])
            & (self.source[1:] == self.source[:-1])
            & (self.fate[1:] == self.fate[:-1])
            & (self.rate_hz[1:] == self.rate_hz[:-1])
        )
        reach = np.maximum.accumulate(self.until_ns)
        near = self.at_ns[1:] - reach[:-1] <= within_ns
        first = np.flatnonzero(np.append(True, ~(alike & near)))
        return replace(
            self.taken(first),
            until_ns=np.maximum.reduceat(self.until_ns, first),
            samples=np.add.reduceat(self.samples, first),
            count=np.add.reduceat(self.count, first),
            lost=np.add.reduceat(self.lost, first),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """How much lay in a source's queue: straight lines between the points, two at a step.

    Exact in samples. In time it is as exact as *sent*, and a push counts from when the source had
    taken it. Columns of int64.
    """

    source: int
    rate_hz: int
    queue_ms: int | None
    """Capacity; ``None``: not known."""
    at_ns: Ints
    samples: Ints

    def __len__(self) -> int:
        return len(self.at_ns)

    def merged(self, within_ns: int) -> Depth:
        """Of each stretch of this length the least and the most, for a view from afar."""
        if len(self.at_ns) < 3:
            return self
        first = np.flatnonzero(np.append(True, np.diff(self.at_ns // within_ns) > 0))
        at = np.repeat(self.at_ns[first], 2)
        samples = np.empty(len(at), np.int64)
        samples[0::2] = np.maximum.reduceat(self.samples, first)
        samples[1::2] = np.minimum.reduceat(self.samples, first)
        return replace(
            self,
            at_ns=np.append(at, self.at_ns[-1]),
            samples=np.append(samples, self.samples[-1]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A call in time, lane by lane in flow order."""

    duration_ns: int
    boundaries: tuple[str, ...]
    """Boundaries that were tapped, in flow order; a lane of another one is empty."""
    caller: tuple[Stretch, ...]
    """When the caller spoke."""
    words: tuple[Instant, ...]
    """Transcripts, and verdicts of the interruption model."""
    agent: tuple[Stretch, ...]
    """States of the agent."""
    model: tuple[Stretch, ...]
    """Responses of a realtime model while they were being generated."""
    captured: Frames
    gate: tuple[Stretch, ...]
    """The sink's gate, ``open`` and ``closed``, from the first frame or mark on."""
    pushed: Frames
    depth: tuple[Depth, ...]
    """One per audio source."""
    sent: Frames
    inserted: Frames
    """Silence the sources put out because they had nothing."""
    lost: tuple[Stretch, ...]
    """Dropped and cleared audio: from the instant it was lost, as long as it would have lasted."""
    claimed: tuple[Stretch, ...]
    """Playback as the framework reports it."""
    marks: tuple[Instant, ...]
    """Everything else that happened, in order of time."""
    stalls: tuple[Stretch, ...]
    """The session's loop did not run: stamps taken on it are late."""
