"""The boundaries audio crosses, in flow order, and how exact instants at them are."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Final, Literal

from probe.trace.reader import Trace
from reports.results import Unseen

__all__ = [
    "BOUNDARIES",
    "CAPTURED",
    "FOREVER",
    "GAP_NS",
    "LEAKING",
    "LONGEST_SILENCE_NS",
    "NAMES",
    "OWNERLESS",
    "PUSHED",
    "RESOLUTION_NS",
    "SENT",
    "SLACK_NS",
    "Boundary",
]

FOREVER: Final = 2**61
"""A time after everything; the difference of two such still fits."""

GAP_NS: Final = 15_000_000
"""Longest step between two blocks that still counts as contiguous."""

RESOLUTION_NS: Final = 10_000_000
"""Taken for the wire's resolution where the trace does not say: one block."""

SLACK_NS: Final = 20_000_000
"""Allowed between two threads' stamps of one thing, on top of the boundary's resolution."""

LONGEST_SILENCE_NS: Final = 100_000_000
"""How long old releases put out nothing when they begin to run dry, or stamp a block late."""

OWNERLESS: Final[tuple[Unseen, ...]] = ("resampled", "changed", "buffer-reused")


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place where audio is counted, and what sets it apart from the others."""

    name: str
    unit: Literal["samples", "positions"]
    per_source: bool
    """Whether every source has its own tap and its own resolution."""
    balanced: bool
    """Whether it is a term of the law of conservation."""
    resolution_ns: int
    """How exact instants are where the trace does not say."""
    gap_ns: int
    """Longest step in time inside one stretch of what crossed."""
    unseen_by: tuple[Unseen, ...]
    """What makes it unseen, beside not being tapped; the first that holds is the reason."""
    rows: Callable[[Trace], Sized]
    """The columns of a trace in which it is counted."""


CAPTURED: Final = Boundary(
    "captured",
    unit="samples",
    per_source=False,
    balanced=True,
    resolution_ns=0,
    gap_ns=FOREVER,
    unseen_by=("bounded",),
    rows=lambda trace: trace.captured,
)
PUSHED: Final = Boundary(
    "pushed",
    unit="samples",
    per_source=True,
    balanced=True,
    resolution_ns=0,
    gap_ns=FOREVER,
    unseen_by=("bounded", *OWNERLESS),
    rows=lambda trace: trace.pushed,
)
SENT: Final = Boundary(
    "sent",
    unit="samples",
    per_source=True,
    balanced=True,
    resolution_ns=RESOLUTION_NS,
    gap_ns=GAP_NS,
    unseen_by=("bounded", "under-way", "source-unread", *OWNERLESS),
    rows=lambda trace: trace.sent,
)
BOUNDARIES: Final = (CAPTURED, PUSHED, SENT)
"""In flow order."""
NAMES: Final = tuple(boundary.name for boundary in BOUNDARIES)
LEAKING: Final = tuple(boundary.name for boundary in BOUNDARIES if boundary.per_source)
"""Names of those that a leak crosses: behind the sink, in samples that have a source."""
