"""What is wrong with a trace, told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["ProblemKind", "TraceProblem", "found"]

ProblemKind = Literal[
    "cut",
    "garbled",
    "bad-value",
    "unknown-event",
    "duplicate-header",
    "after-trailer",
    "count",
    "time",
    "missing",
    "inconsistent",
    "late",
    "unanalysed",
]

_HARMLESS: Final = frozenset({"unknown-event", "late"})


@dataclass(frozen=True, slots=True)
class TraceProblem:
    """Something in a trace that is not as it should be. Repetitions are one problem, counted.

    Kinds:
        ``cut``: the trace ends without a trailer, or in the middle of a line or of a compressed
        block; the call was killed or is still running. ``garbled``: a line is no JSON object with
        an event name. ``bad-value``: a known event lacks a field, or a value is of the wrong type
        or beyond all reason. ``unknown-event``: an event this version does not know, written by a
        newer one or damaged. ``duplicate-header`` and ``after-trailer``: lines that belong to no
        trace, ignored. ``count``: the trailer counted other lines than there are. ``time``:
        time runs backwards, or a call ended before it began. ``missing``: numbers of frames or
        pushes are skipped, or what a line speaks of was never written. ``inconsistent``: two lines
        contradict each other. ``late``: stamps came late, by no more than ``Trace.late_ns``.
        ``unanalysed``: an analysis broke on it; no fault of the trace.
    """

    line: int
    """Line in the (uncompressed) file, from 1, where it was seen first; 0: the file as a whole."""
    kind: ProblemKind
    text: str
    """One line: what was expected, what was found."""
    count: int = 1
    """How many times, of this kind."""

    @property
    def spoils(self) -> bool:
        """Whether no figure of the trace can be relied on because of it."""
        return self.kind not in _HARMLESS


def found(bad: Any, line: Any, kind: ProblemKind, text: str) -> Iterator[TraceProblem]:
    """One problem for all rows that are bad, at the first of their lines; none if there are none.

    ``bad`` and ``line`` are arrays of one length: a mask, and numbers of lines.
    """
    if bad.any():
        yield TraceProblem(int(line[bad].min()), kind, text, int(bad.sum()))
