"""Samples that do not add up, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.account.stretches import Bools, Cover, Ints

__all__ = ["Issue", "misplaced", "told"]


@dataclass(frozen=True, slots=True)
class Issue:
    """Samples that do not add up, and where."""

    samples: int
    segment: int
    """Index from 0, -1: none in particular."""
    text: str


def told(
    where: Bools, samples: Ints, segment: Ints, text: str, **columns: NDArray[Any]
) -> Iterator[Issue]:
    """An issue for every row that is marked and has samples; ``text`` names columns to fill in."""
    for row in np.flatnonzero(where & (samples > 0)).tolist():
        values = {name: column[row] for name, column in columns.items()}
        yield Issue(int(samples[row]), int(segment[row]), text.format(**values))


def misplaced(
    start: Ints, stop: Ints, segment: Ints, axis: str, unit: str, unused: Cover | None = None
) -> list[Issue]:
    """What of an axis stretches in its order leave out, or have twice; positions begin at 0.

    ``unused``: positions that are nobody's for a known reason.
    """
    if not len(start):
        return []
    reached = np.append(0, np.maximum.accumulate(stop)[:-1])
    hole, twice = start - reached, np.minimum(reached, stop) - start
    if unused is not None:
        hole -= unused.within(reached, np.maximum(start, reached))
    every = np.ones(len(start), np.bool_)
    return [
        *told(
            every,
            hole,
            segment,
            axis + " positions {reached} to {start} are in no " + unit,
            reached=reached,
            start=start,
        ),
        *told(every, twice, segment, axis + " position {start} was counted twice", start=start),
    ]
