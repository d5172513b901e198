"""What the sink reported of each segment: its claims, beside what was sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import PlaybackReported
from probe.trace.reader import NONE, Trace
from reports.account.segments import Segments
from reports.account.stretches import Ints

__all__ = ["Claims", "assign_claims"]


@dataclass(frozen=True, slots=True)
class Claims:
    """Reports of a finish, and which segment each is about: columns with one row per segment."""

    finished_ns: Ints
    """`NONE`: not reported."""
    claimed_s: NDArray[np.float64]
    """NaN: not reported."""
    interrupted: NDArray[np.int8]
    """-1: not reported."""
    finishes: list[tuple[PlaybackReported, int]]
    """Every report with its segment, -1: there was none without one."""


def assign_claims(
    trace: Trace, segments: Segments, finished: tuple[PlaybackReported, ...]
) -> Claims:
    """Each report belongs to the oldest segment that had begun and is still without one.

    The current speech may be gone when its report comes, so another speech's name is no proof, but
    a segment of the same name is the better guess.
    """
    n = segments.count
    claims = Claims(np.full(n, NONE), np.full(n, np.nan), np.full(n, -1, np.int8), [])
    of_speech: dict[str | None, list[int]] = {}
    for row in range(n - 1, -1, -1):
        of_speech.setdefault(trace.text(int(segments.speech[row])), []).append(row)
    waiting = list(range(n - 1, -1, -1))
    for report in finished:
        named = of_speech.get(report.speech, []) if report.speech is not None else []
        row = -1
        # The next of its own name, or else the next of all; both without those that have theirs.
        for rows in (named, waiting):
            while rows and claims.finished_ns[rows[-1]] != NONE:
                rows.pop()
            if row < 0 and rows and segments.first_ns[rows[-1]] <= report.at_ns:
                row = rows[-1]
        claims.finishes.append((report, row))
        if row < 0:
            continue
        claims.finished_ns[row] = report.at_ns
        if report.position_s is not None:
            claims.claimed_s[row] = report.position_s
        if report.interrupted is not None:
            claims.interrupted[row] = int(report.interrupted)
    return claims
