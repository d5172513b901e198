"""Runs: what left a source, joined as far as it is one stretch of samples and of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from probe.assemble.grid import BLOCK_NS, Grid
from probe.assemble.positions import PositionMap
from probe.follow import Kind, Stretch
from probe.trace.events import Event, RunSent, SilenceInserted

__all__ = ["Runs"]

RUN_NS: Final = 200_000_000
"""The longest run; and the age at which a shorter one is written."""

SILENCE_NS: Final = 1_000_000_000
"""The longest stretch of inserted silence in one event."""

GAP_NS: Final = 15_000_000
"""Blocks further apart than this are not one run."""


@dataclass(slots=True)
class _Run:
    """A run or a stretch of silence that is still being joined."""

    kind: Kind
    start: int | None
    samples: int
    offset: int
    at_ns: int
    block: int
    last_block: int
    last_ns: int
    ambiguous: int

    @property
    def longest_ns(self) -> int:
        return SILENCE_NS if self.kind == "inserted" else RUN_NS


class Runs:
    """Joins the decided blocks of one source.

    Args:
        number: of the source.
        positions: of values pushed to it, to those of samples.
    """

    def __init__(self, number: int, positions: PositionMap) -> None:
        self._number = number
        self._positions = positions
        self._run: _Run | None = None

    def join(
        self, stretch: Stretch, grid: Grid, block_samples: int, channels: int
    ) -> Iterator[Event]:
        """Add a stretch; yields what is complete with that."""
        offset = stretch.offset // channels
        block = stretch.block
        ambiguous = stretch.ambiguous_values // channels
        for start, count in list(self._pieces(stretch, channels)):
            samples = count
            while samples:
                # One block at a time, so that a run ends where time has a gap or it gets too long.
                step = min(block_samples - offset, samples)
                doubt = min(ambiguous, step)
                ambiguous -= doubt
                at_ns = grid.time_of(block)
                one = _Run(stretch.kind, start, step, offset, at_ns, block, block, at_ns, doubt)
                yield from self._extend(one)
                if start is not None:
                    start += step
                samples -= step
                offset += step
                if offset == block_samples:
                    offset = 0
                    block += 1

    def close(self, *, older_than_ns: int | None = None) -> Iterator[Event]:
        """What is being joined, if there is anything, and if it began early enough to be due."""
        run = self._run
        if run is None:
            return
        if older_than_ns is not None and older_than_ns - run.at_ns < run.longest_ns:
            return
        self._run = None
        until_ns = run.last_ns + BLOCK_NS
        if run.kind == "inserted":
            yield SilenceInserted(run.at_ns, until_ns, self._number, run.samples, run.ambiguous)
        else:
            yield RunSent(
                run.at_ns,
                until_ns,
                self._number,
                run.start,
                run.samples,
                run.offset,
                run.ambiguous,
            )

    def _pieces(self, stretch: Stretch, channels: int) -> Iterator[tuple[int | None, int]]:
        """What a stretch is made of, in samples."""
        parts: Iterable[tuple[int | None, int]] = (
            [(None, stretch.values)]
            if stretch.position is None
            else self._positions.translate(stretch.position, stretch.values)
        )
        values = stretch.offset
        for start, length in parts:
            first = values // channels
            values += length
            yield start, values // channels - first

    def _extend(self, one: _Run) -> Iterator[Event]:
        """Add samples of one block to the run, or begin another."""
        run = self._run
        if run is not None:
            expected = None if run.start is None else run.start + run.samples
            # Blocks leave no faster than the source ticks: when this one left bears on the first.
            at_ns = min(run.at_ns, one.at_ns - (one.block - run.block) * BLOCK_NS)
            if (
                run.kind == one.kind
                and expected == one.start
                and one.block - run.last_block <= 1
                and one.at_ns - run.last_ns <= GAP_NS
                and one.at_ns + BLOCK_NS - at_ns <= run.longest_ns
            ):
                run.samples += one.samples
                run.at_ns = at_ns
                run.last_block = one.block
                run.last_ns = one.at_ns
                run.ambiguous += one.ambiguous
                return
        yield from self.close()
        self._run = one
