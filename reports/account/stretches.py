"""Arithmetic on stretches of an axis and on instants: whole columns of integers at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probe.trace.reader import NONE
from reports.account.boundary import FOREVER

__all__ = [
    "Bools",
    "Cover",
    "Ints",
    "column",
    "columns_of",
    "counted",
    "edges",
    "first_from",
    "grouped",
    "last_before",
    "rank",
    "split",
    "steps_back",
    "summed",
]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def column(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of a data class that has nothing else, by name."""
    return {field.name: getattr(table, field.name) for field in fields(table)}


def edges(*positions: Ints) -> Ints:
    """All of them, ascending, each once. Fast where they are ascending for the most part."""
    every = np.sort(np.concatenate(positions), kind="stable")
    different: Ints = every[np.append(True, every[1:] != every[:-1])[: len(every)]]
    return different


def split(start: Ints, stop: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut stretches at ``cuts`` (sorted): the parent row, start and stop of each piece."""
    low = np.searchsorted(cuts, start, "right")
    high = np.searchsorted(cuts, stop, "left")
    inner = np.maximum(high - low, 0)
    count = inner + 1
    parent = np.repeat(np.arange(len(start)), count)
    nth = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    at = low[parent] + nth
    padded = np.append(cuts, 0)
    begin = np.where(nth == 0, start[parent], padded[np.maximum(at - 1, 0)])
    end = np.where(nth == inner[parent], stop[parent], padded[np.minimum(at, len(cuts))])
    return parent, begin, end


@dataclass(frozen=True, slots=True)
class Cover:
    """The union of stretches: sorted, without overlap, none of them empty."""

    start: Ints
    stop: Ints

    @classmethod
    def of(cls, start: Ints, stop: Ints) -> Cover:
        order = np.argsort(start, kind="stable")
        order = order[stop[order] > start[order]]
        start, reach = start[order], np.maximum.accumulate(stop[order])
        new = np.append(True, start[1:] > reach[:-1])[: len(start)]
        return cls(start[new], reach[np.append(new[1:], True)[: len(start)]])

    def holds(self, position: Ints) -> Bools:
        """Whether it has each position."""
        if not len(self.start):
            return np.zeros(len(position), np.bool_)
        row = np.searchsorted(self.start, position, "right") - 1
        held: Bools = (row >= 0) & (position < self.stop[np.maximum(row, 0)])
        return held

    def within(self, start: Ints, stop: Ints) -> Ints:
        """How many positions of each stretch it has."""
        return self._below(stop) - self._below(start)

    def joined(self, other: Cover) -> Cover:
        return Cover.of(np.append(self.start, other.start), np.append(self.stop, other.stop))

    @property
    def total(self) -> int:
        return int((self.stop - self.start).sum())

    def _below(self, position: Ints) -> Ints:
        if not len(self.start):
            return np.zeros(len(position), np.int64)
        upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.stop - self.start)))
        row = np.searchsorted(self.start, position, "right")
        beyond = np.maximum(self.stop[np.maximum(row - 1, 0)] - position, 0)
        below: Ints = upto[row] - np.where(row > 0, beyond, 0)
        return below


def steps_back(start: Ints, stop: Ints) -> Ints:
    """Of stretches in order of time: how much of each lies at or before what came earlier."""
    if not len(start):
        return start
    reached = np.concatenate((start[:1], np.maximum.accumulate(stop)[:-1]))
    back: Ints = np.maximum(np.minimum(stop, reached) - start, 0)
    return back


def summed(index: Ints, values: Ints | Bools, length: int) -> Ints:
    """Sum of ``values`` by ``index``; rows of index -1 are left out."""
    keep = index >= 0
    total = np.zeros(length, np.int64)
    np.add.at(total, index[keep], values[keep].astype(np.int64))
    return total


def counted(index: Ints, of: Ints, length: int) -> Ints:
    """Number of different ``of`` by ``index``; rows of index -1 are left out."""
    keep = index >= 0
    pairs = edges(of[keep] * np.int64(max(length, 1)) + index[keep])
    return np.bincount(pairs % max(length, 1), minlength=length).astype(np.int64)


def first_from(times: Ints, since: Ints) -> Ints:
    """First of ``times`` (sorted) at or after ``since``, `FOREVER` where there is none."""
    found: Ints = np.append(times, FOREVER)[np.searchsorted(times, since, "left")]
    return found


def last_before(times: Ints, at: Ints, values: Ints | None = None) -> Ints:
    """Last of ``times`` (sorted) before ``at``, or its value; `NONE` where there is none."""
    given = times if values is None else values
    found: Ints = np.append(NONE, given)[np.searchsorted(times, at, "left")]
    return found


def grouped(values: Ints) -> Iterator[tuple[int, Ints]]:
    """Each different value, ascending, with the rows that have it, in their order."""
    order = np.argsort(values, kind="stable")
    names, first = np.unique(values[order], return_index=True)
    return zip(names.tolist(), np.split(order, first[1:]), strict=bool(len(names)))


def rank(times: Ints, lines: Ints, at: Ints, line: Ints) -> Ints:
    """How many of the first came before each of the second; line order decides between equals."""
    every_at, every_line = np.concatenate((times, at)), np.concatenate((lines, line))
    order = np.lexsort((every_line, every_at))
    passed = np.cumsum(order < len(times))
    ranked = np.empty(len(order), np.int64)
    ranked[order] = passed
    return ranked[len(times) :]
