"""From captured frames to segments: which one each captured sample is of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probe.trace.reader import Trace
from reports.account.facts import Facts
from reports.account.samples import encoded
from reports.account.stretches import Bools, Ints, column, edges, rank

__all__ = ["Frames", "Segments", "find_segments"]


@dataclass(frozen=True, slots=True)
class Frames:
    """Captured frames in the order of their axis; columns of int64."""

    row: Ints
    """Row of the trace's captured columns."""
    start: Ints
    stop: Ints
    reach: Ints
    """Position up to which this frame or an earlier one goes."""
    at_ns: Ints
    geometry: Ints
    """As `encoded`."""
    segment: Ints

    def holding(self, position: Ints) -> Ints:
        """The frame that has each captured position; -1: none has it."""
        if not len(self.start):
            return np.full(len(position), -1, np.int64)
        frame = np.searchsorted(self.start, position, "right") - 1
        inside = (frame >= 0) & (position < self.reach[np.maximum(frame, 0)])
        return np.where(inside, frame, -1)

    def edges(self) -> Ints:
        """Positions where a segment or the geometry may change, or where there is a hole."""
        if not len(self.start):
            return self.start
        before = np.append(0, self.reach[:-1])
        new = self.start != before
        for values in (self.segment, self.geometry):
            new[1:] |= values[1:] != values[:-1]
        return edges(before[new], self.start[new], self.reach[-1:])


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of a trace in order: one row each, columns of int64."""

    frames: Frames
    speech: Ints
    """Index into the trace's texts, -1: none."""
    first_ns: Ints
    first_line: Ints
    start: Ints
    """Captured position of its first sample."""
    stop: Ints
    partial: Bools
    """Whether it was under way when the probe came."""

    @property
    def count(self) -> int:
        return len(self.first_ns)

    def at(self, at_ns: Ints) -> Ints:
        """The segment whose first frame came last before each instant; the first where none did.

        -1 where there is no segment at all.
        """
        if not self.count:
            return np.full(len(at_ns), -1, np.int64)
        return np.maximum(np.searchsorted(self.first_ns, at_ns, "right") - 1, 0)

    def of(self, captured: Ints) -> Ints:
        """Segment of captured positions; -1 where no frame has them."""
        frame = self.frames.holding(captured)
        return np.where(frame >= 0, self.frames.segment[frame] if self.count else -1, -1)

    def owners(self, at_ns: Ints, line: Ints) -> Ints:
        """The same as `at` for lines of the file, whose order decides between equal times."""
        if not self.count:
            return np.full(len(at_ns), -1, np.int64)
        return np.maximum(rank(self.first_ns, self.first_line, at_ns, line) - 1, 0)


def find_segments(trace: Trace, facts: Facts) -> Segments:
    """The segments of a trace."""
    c = trace.captured
    order = np.lexsort((c.line, c.frame, c.start_sample))
    start, stop = c.start_sample[order], (c.start_sample + c.samples)[order]
    at, line, speech = c.at_ns[order], c.line[order], c.speech[order].astype(np.int64)
    break_ns, break_line = map(column, facts.breaks)
    passed = rank(break_ns, break_line, at, line)
    new = np.ones(len(start), np.bool_)
    new[1:] = (passed[1:] != passed[:-1]) | (speech[1:] != speech[:-1])
    first = np.flatnonzero(new)
    reach = np.maximum.accumulate(stop) if len(stop) else stop
    geometry = encoded(c.rate_hz[order], c.channels[order])
    frames = Frames(order, start, stop, reach, at, geometry, np.cumsum(new) - 1)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    return Segments(
        frames,
        speech[first],
        at[first],
        line[first],
        start[first],
        reach[last],
        _partial(at[first], np.sort(break_ns), column(facts.mid_speech)),
    )


def _partial(first_ns: Ints, breaks: Ints, tapped: Ints) -> Bools:
    """Segments that were under way when a tap went on in the middle of a speech."""
    partial = np.zeros(len(first_ns), np.bool_)
    nth = np.searchsorted(first_ns, tapped, "left")
    for row, at in zip(nth.tolist(), tapped.tolist(), strict=True):

        def unbroken(since: int, until: int) -> bool:
            between: int = np.searchsorted(breaks, until, "right") - np.searchsorted(breaks, since)
            return between <= 0

        if row > 0 and unbroken(first_ns[row - 1], at):
            partial[row - 1] = True
        elif row < len(first_ns) and unbroken(at, first_ns[row]):
            partial[row] = True
    return partial
