"""Samples that do not add up, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.account.stretches import Bools, Ints

__all__ = ["Issue", "told"]


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
