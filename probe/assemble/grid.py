"""The times of blocks from the times they arrived."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["BLOCK_NS", "Grid"]

BLOCK_NS: Final = 10_000_000
"""Every tick of a source hands on one block, whatever its rate."""

HOLE_NS: Final = 12_000_000
"""Blocks that fall behind the clock by more than this, for good, were missed."""

HOLE_AFTER_BLOCKS: Final = 500


class Grid:
    """The times of blocks from the times they arrived.

    Arrivals are late by all sorts of things and never early, so the earliest of many, relative to
    the source's own beat, tells the time of all. Where every tick yields a block, the number of a
    block is its beat. Where it does not, only blocks that follow it closely bear on a block's time.
    """

    _WINDOW: Final = 500

    def __init__(self, beat: bool) -> None:
        self._beat = beat
        self._phases: deque[tuple[int, int]] = deque()  # (last block, phase), phases ascending
        self._arrivals: deque[tuple[int, int]] = deque()
        self._behind: tuple[int, int] | None = None

    def arrived(self, block: int, at_ns: int) -> None:
        """``block`` is the last one of what arrived at ``at_ns``."""
        if not self._beat:
            self._arrivals.append((block, at_ns))
            return
        self._note(block, at_ns - block * BLOCK_NS)
        while self._phases[0][0] < block - self._WINDOW:
            self._phases.popleft()

    def left_by(self, block: int, at_ns: int) -> None:
        """``block`` is known to have left by ``at_ns``: as good as an arrival."""
        if not self._beat:
            self._arrivals.append((block, at_ns))
        elif self._phases:
            self._note(self._phases[-1][0], at_ns - block * BLOCK_NS)

    def _note(self, block: int, phase: int) -> None:
        while self._phases and self._phases[-1][1] >= phase:
            self._phases.pop()
        self._phases.append((block, phase))

    def missed(self, block: int, at_ns: int) -> int:
        """Blocks that were missed for certain when ``block`` arrived; asked before `arrived`.

        The reading is behind for good if nothing arrived in time for five seconds.
        """
        if not self._beat or not self._phases:
            return 0
        phase = at_ns - block * BLOCK_NS
        if self._behind is None:
            if phase - self._phases[0][1] > HOLE_NS:
                self._behind = (block, self._phases[0][1])
            return 0
        since, before = self._behind
        if phase - before <= HOLE_NS:
            self._behind = None
            return 0
        if block - since < HOLE_AFTER_BLOCKS:
            return 0
        now = min([phase, *(known for last, known in self._phases if last >= since)])
        self._behind = None
        return round((now - before) / BLOCK_NS)

    def time_of(self, block: int) -> int:
        """When ``block`` left, absolute nanoseconds."""
        if self._beat:
            return self._phases[0][1] + block * BLOCK_NS
        times = [at - (last - block) * BLOCK_NS for last, at in self._arrivals if last >= block]
        return min(times)

    def forget_before(self, block: int) -> None:
        while len(self._arrivals) > 1 and self._arrivals[0][0] < block:
            self._arrivals.popleft()
