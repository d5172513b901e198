"""What left the sources, in one table, and what the taps of the sources say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.columns import Ints, PushedColumns
from probe.trace.events import Event, Tapped, Untapped

__all__ = ["BLOCK_NS", "Bools", "Stretches"]

Bools = NDArray[np.bool_]

BLOCK_NS: Final = 10_000_000
"""How long a source takes to hand on a block."""

UNKNOWN_RESOLUTION_NS: Final = 20_000_000
"""Taken where a tap does not say how exact its times are: what reading block by block reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Sent runs and inserted silence in one table, reading by reading, each in the order of the
    file, which is the order in which blocks left; and what the tap of their source says."""

    at_ns: Ints
    until_ns: Ints
    samples: Ints
    offset: Ints
    """Where in its first block it begins; 0 for silence, which does not say."""
    line: Ints
    is_sent: Bools
    first: Bools
    """Whether it is the first of its reading."""
    block: Ints
    """Samples per block, 0: not known."""
    grouped: Bools
    resolution_ns: Ints
    since_ns: Ints
    """When its reading began, at the earliest."""
    order: Ints
    """Place of each row: first the sent ones, then the inserted ones."""

    @classmethod
    def of(
        cls,
        events: Sequence[Event],
        event_lines: Ints,
        pushed: PushedColumns,
        sent: Mapping[str, Any],
        inserted: Mapping[str, Any],
    ) -> Stretches:
        line = np.concatenate((sent["line"], inserted["line"]))
        source = np.concatenate((sent["source"], inserted["source"]))
        order = np.lexsort((line, source))
        taps = _Taps.of(events, event_lines)
        reading = taps.reading(source[order], line[order])
        first = np.append(True, (np.diff(source[order]) != 0) | (np.diff(reading) != 0))
        block = taps.block[reading]
        silent = block == 0
        if silent.any() and len(pushed):
            # A tap that does not say it: the source's rate is that of what it was given.
            names, row = np.unique(pushed.source, return_index=True)
            place = np.minimum(np.searchsorted(names, source[order]), len(names) - 1)
            rate = np.where(names[place] == source[order], pushed.rate_hz[row][place], 0)
            block = np.where(silent, rate // 100, block)

        def both(name: str) -> Ints:
            values: Ints = np.concatenate((sent[name], inserted[name]))[order]
            return values

        offset = np.concatenate((sent["block_offset_samples"], np.zeros_like(inserted["line"])))
        return cls(
            at_ns=both("at_ns"),
            until_ns=both("until_ns"),
            samples=both("samples"),
            offset=offset[order],
            line=line[order],
            is_sent=order < len(sent["line"]),
            first=first,
            block=block,
            grouped=taps.grouped[reading] & (block > 0),
            resolution_ns=taps.resolution_ns[reading],
            since_ns=taps.since_ns[reading],
            order=order,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Taps:
    """What begins a reading, by source and by line; the last row stands for none at all."""

    key: Ints
    block: Ints
    grouped: Bools
    resolution_ns: Ints
    since_ns: Ints

    @classmethod
    def of(cls, events: Sequence[Event], lines: Ints) -> _Taps:
        rows = []
        since: dict[int, int] = {}
        for event, line in zip(events, lines.tolist(), strict=True):
            if not isinstance(event, Tapped | Untapped) or event.source is None:
                continue
            if isinstance(event, Tapped) and event.boundary == "sent":
                block = event.block_samples
                resolution = event.resolution_ns
                rows.append(
                    (
                        _key(event.source, line),
                        (event.rate_hz or 0) // 100 if block is None else block,
                        event.grouped,
                        UNKNOWN_RESOLUTION_NS if resolution is None else resolution,
                        min(since.get(event.source, event.at_ns), event.at_ns),
                    )
                )
            else:
                since[event.source] = event.at_ns
        rows.sort()
        rows.append((np.iinfo(np.int64).max, 0, False, UNKNOWN_RESOLUTION_NS, 0))
        table = [np.array(column) for column in zip(*rows, strict=True)]
        return cls(table[0], table[1], table[2], table[3], table[4])

    def reading(self, source: Ints, line: Ints) -> Ints:
        """Row of the tap that each stretch was read by: the last of its source before it, else the
        first."""
        last = len(self.key) - 1
        before = np.searchsorted(self.key, _key(source, line), "right") - 1
        after = np.minimum(before + 1, last)
        own, next_own = ((self.key >> 32)[place] == source for place in (before, after))
        row: Ints = np.where(own & (before >= 0), before, np.where(next_own, after, last))
        return row


def _key(source: Any, line: Any) -> Any:
    """One number that sorts by source, then by line."""
    return (source << 32) + line
