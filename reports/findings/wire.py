"""What left the sources, by segment and by time, for the rules."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from probe.trace.reader import NONE
from reports.account.boundary import FOREVER, GAP_NS
from reports.account.crossings import Audio, Crossed
from reports.account.stretches import Ints
from reports.account.wire import UNSEEN

__all__ = ["Wire"]


class Wire:
    """Every sent part of a trace, indexed once so that a call of an hour is judged in moments."""

    def __init__(self, audio: Audio) -> None:
        self._audio = audio
        self._ledger = audio.ledger

    @cached_property
    def _by_segment(self) -> tuple[Ints, Ints]:
        """Sent parts sorted by segment and time, and where each segment's begin."""
        parts = self._ledger.parts
        rows = np.flatnonzero((parts.run >= 0) & (parts.segment >= 0) & ~parts.inherited)
        rows = rows[np.lexsort((parts.start[rows], parts.sent_ns[rows], parts.segment[rows]))]
        bounds = np.searchsorted(parts.segment[rows], np.arange(self._ledger.count + 1), "left")
        return rows, bounds

    def rows(self, row: int) -> Ints:
        """Rows of the ledger's parts that were sent of a segment, in the order they left."""
        rows, bounds = self._by_segment
        mine: Ints = rows[bounds[row] : bounds[row + 1]]
        return mine

    @cached_property
    def spans(self) -> list[tuple[int, int] | None]:
        """When each segment's first block left and its last had; ``None``: nothing was sent."""
        parts = self._ledger.parts
        return [
            (int(parts.sent_ns[rows].min()), int(parts.sent_until_ns[rows].max()))
            if len(rows := self.rows(row))
            else None
            for row in range(self._ledger.count)
        ]

    def left(self, row: int, since_ns: int, until_ns: int) -> Crossed:
        """What of a segment left the sources from one instant to another."""
        return self._audio.left(self.rows(row), since_ns, until_ns)

    def last_place(self, row: int, until_ns: int) -> int | None:
        """Captured position behind the last sample of a segment that left before an instant."""
        crossed = self.left(row, -FOREVER, until_ns)
        if not len(crossed.stop):
            return None
        last = int(np.argmax(crossed.stop))
        part = crossed.part[last]
        place = int(self._ledger.parts.captured[part])
        if place == NONE:
            return None
        return place + int(crossed.stop[last] - self._ledger.parts.start[part])

    def unread_within(self, since_ns: int, until_ns: int) -> bool:
        """Whether audio may have left between two instants a source whose wire nobody read."""
        pushed_ns, out_ns = self._unread
        return bool(((pushed_ns < until_ns) & (out_ns > since_ns)).any())

    @cached_property
    def _unread(self) -> tuple[Ints, Ints]:
        """Of what nobody saw leave: when it was pushed, and when it was out at the latest."""
        parts = self._ledger.parts
        rows = np.flatnonzero(parts.fate == UNSEEN)
        return self._ledger.trace.pushed.at_ns[parts.push[rows]], parts.sent_until_ns[rows]

    @cached_property
    def stretches(self) -> tuple[Ints, Ints]:
        """Stretches in which audio was sent without a pause over 15 ms: begins and ends."""
        t = self._ledger.trace.sent
        if not len(t):
            return t.at_ns, t.until_ns
        order = np.argsort(t.at_ns, kind="stable")
        begin, end = t.at_ns[order], np.maximum.accumulate(t.until_ns[order])
        new = np.append(True, begin[1:] - end[:-1] > GAP_NS)
        return begin[new], end[np.append(new[1:], True)]
