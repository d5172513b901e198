"""One source: what was pushed to it, what left it, and when."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from probe.assemble.captured import OPEN_NS
from probe.assemble.frames import Audio, Fault, read_frame
from probe.assemble.grid import Grid
from probe.assemble.positions import PositionMap
from probe.assemble.runs import Runs
from probe.follow import VALUE_BYTES, Stretch, WireMatcher
from probe.taps import calls
from probe.taps.calls import Call
from probe.trace.events import Event, QueueCleared

__all__ = ["Wire"]

STRAY_NS: Final = 250_000_000
"""For how long a block nobody knows waits for the next one to explain it."""

GRID_SLACK_NS: Final = 60_000_000
"""How far stamps may be wrong where the grid of the blocks corrects them."""

ARRIVAL_SLACK_NS: Final = 200_000_000
"""How far they may be wrong where they are arrivals."""

QUIET_NS: Final = 80_000_000
"""Where not every tick yields a block, nothing comes out for longer than this before silence."""

MAX_PUSHED_BYTES: Final = 16 << 20

EARLY_PUSHES: Final = 64
"""Pushes kept for a reading that may still be opened."""


@dataclass(slots=True)
class _Early:
    """A push from before the wire was read."""

    push: int
    record: Call
    data: bytes


class Wire:
    """The boundary *sent* of one source, and the values pushed to it.

    Args:
        number: of the source in the trace.
        fault: takes failures.
    """

    def __init__(self, number: int, fault: Fault) -> None:
        self.number = number
        self.rate_hz: int | None = None
        self.channels: int | None = None
        self.queue_ms: int | None = None
        self.closed = False
        self.beat = False
        """Whether every tick yields a block."""
        self._fault = fault
        self._map = PositionMap()
        self._values = 0
        self._matcher: WireMatcher | None = None
        self._early: list[_Early] = []
        self._clears: list[Call] = []
        self._grid: Grid | None = None
        self._rest = bytearray()
        self._blocks = 0
        self._ready: deque[Stretch] = deque()
        self._runs = Runs(number, self._map)
        self._last_arrival_ns = 0

    @property
    def _block_samples(self) -> int:
        return max((self.rate_hz or 0) // 100, 1)

    # --- what goes in -------------------------------------------------------------------------

    def push(self, push: int, record: Call, audio: Audio, start: int) -> int:
        """An accepted push; returns the position of its first value."""
        value_start = self._values
        if audio.samples:
            self._map.add(value_start, start, audio.channels)
            self._values += len(audio.data) // VALUE_BYTES
            if self._matcher is None:
                self._early.append(_Early(push, record, audio.data))
                # A wire that is not tapped never opens; what still can be inside a queue is little.
                del self._early[:-EARLY_PUSHES]
            else:
                self._follow(self._matcher, push, record, audio.data)
        return value_start

    def _follow(self, matcher: WireMatcher, push: int, record: Call, data: bytes) -> None:
        forgotten = matcher.push(push, data, record[calls.AT])
        if forgotten:
            self._fault("audio_forgotten", "pushed, not sent yet", forgotten)
        self._map.forget_before(matcher.needed_from)

    def push_ended(self, push: int, record: Call, now_ns: int) -> None:
        """The call of an accepted push ended."""
        if self._matcher is not None:
            self._tell_end(self._matcher, push, record, now_ns)

    def _tell_end(self, matcher: WireMatcher, push: int, record: Call, now_ns: int) -> None:
        ended_ns = record[calls.ENDED] or now_ns
        matcher.push_ended(push, ended_ns, returned=calls.end_of(record) == "returned")

    def was_sent(self, value_start: int) -> bool:
        """Whether anything from there on is known to have left."""
        return self._matcher is not None and self._matcher.was_sent(value_start)

    def retract(self, push: int, value_start: int) -> bool:
        """Take the last push back, which was refused after all; False if that can't be done."""
        holds = self._matcher is not None and value_start < self._values
        if holds and self._matcher is not None and not self._matcher.retract(push):
            return False
        self._early = [early for early in self._early if early.push != push]
        self._values = value_start
        self._map.cut(value_start)
        return True

    def clear(self, record: Call) -> None:
        """The queue is being emptied."""
        self._clears.append(record)
        if self._matcher is None:
            # Only a push still under way can outlive the clear.
            while self._early and self._early[0].record[calls.ENDED] is not None:
                self._early.pop(0)
        else:
            self._matcher.clear(record[calls.AT], record[calls.ENDED])

    # --- what comes out -----------------------------------------------------------------------

    def open(self, now_ns: int) -> Iterator[Event]:
        """A reading of the wire begins: its blocks are counted from 0."""
        yield from self.close()
        self._grid = Grid(self.beat)
        self._rest.clear()
        self._blocks = 0
        if self._matcher is not None:
            return
        channels = self.channels or 1
        kept = sum(len(early.data) for early in self._early) // VALUE_BYTES
        piece = None
        if self.queue_ms:
            piece = self.queue_ms // 10 * self._block_samples * channels
        matcher = self._matcher = WireMatcher(
            self._block_samples * channels,
            piece,
            slack_ns=GRID_SLACK_NS if self.beat else ARRIVAL_SLACK_NS,
            quiet_ns=0 if self.beat else QUIET_NS,
            limit_bytes=MAX_PUSHED_BYTES,
            start=self._values - kept,
        )
        for early in self._early:
            self._follow(matcher, early.push, early.record, early.data)
            if early.record[calls.ENDED] is not None:
                self._tell_end(matcher, early.push, early.record, now_ns)
        self._early.clear()

    def close(self) -> Iterator[Event]:
        """A reading of the wire ended: decide what of it is undecided."""
        if self._matcher is not None:
            self._ready.extend(self._matcher.finish())
        yield from self._join()
        yield from self._runs.close()

    def take(self, record: Call, settle: Callable[[], None], now_ns: int) -> Iterator[Event]:
        """Blocks left the source.

        Args:
            record: of the blocks.
            settle: called before they are matched: what was pushed has to be known by then.
            now_ns: the time.
        """
        audio = read_frame(record[calls.BLOCKS_FRAME], self._fault)
        record[calls.BLOCKS_FRAME] = None
        if self._grid is None or self._matcher is None:
            self.rate_hz = self.rate_hz or audio.rate_hz
            self.channels = self.channels or audio.channels
            yield from self.open(now_ns)
        grid, matcher = self._grid, self._matcher
        assert grid is not None
        assert matcher is not None
        settle()
        at_ns = record[calls.AT]
        self._rest += audio.data
        size = self._block_samples * (self.channels or 1) * VALUE_BYTES
        whole = len(self._rest) // size
        begun = len(self._rest) > whole * size
        # What arrives now left with the block that completed it, which may not be whole yet.
        last = self._blocks + whole - (0 if begun else 1)
        missed = grid.missed(last, at_ns)
        if missed > 0:
            self._fault("wire_hole", f"source {self.number}: blocks fell behind the clock", missed)
        grid.arrived(last, at_ns)
        self._last_arrival_ns = at_ns
        if not whole:
            return
        data = bytes(self._rest[: whole * size])
        del self._rest[: whole * size]
        self._ready.extend(matcher.blocks(self._blocks, data, grid.time_of(self._blocks)))
        self._blocks += whole

    # --- events -------------------------------------------------------------------------------

    def write(self, now_ns: int, *, last: bool) -> Iterator[Event]:
        """Clears that ended, and runs that are decided or due by age."""
        yield from self._write_clears(now_ns, last)
        matcher = self._matcher
        if matcher is None:
            return
        if matcher.has_stray and now_ns - self._last_arrival_ns > STRAY_NS:
            self._ready.extend(matcher.give_up_stray())
        yield from self._join()
        yield from self._runs.close(older_than_ns=now_ns)

    def _write_clears(self, now_ns: int, last: bool) -> Iterator[Event]:
        kept = []
        for record in self._clears:
            ended = record[calls.ENDED]
            if ended is None and not last and now_ns - record[calls.AT] < OPEN_NS:
                kept.append(record)
                continue
            error, _ = calls.told_of(record)
            yield QueueCleared(record[calls.AT], self.number, ended, error)
        self._clears = kept

    def _join(self) -> Iterator[Event]:
        """Join what is decided to runs, and yield those that are complete."""
        grid = self._grid
        if grid is None:
            return
        for stretch in self._ready:
            if stretch.latest_ns is not None and not stretch.ambiguous_values:
                grid.left_by(stretch.block, stretch.latest_ns)
        while self._ready:
            stretch = self._ready.popleft()
            yield from self._runs.join(stretch, grid, self._block_samples, self.channels or 1)
        held = 0 if self._matcher is None else self._matcher.undecided_blocks
        grid.forget_before(self._blocks - held)
