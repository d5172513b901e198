"""Whether two groups of runs can be told apart, and how far: exact, and made for ties.

Figures of calls come in blocks of 10 ms and often repeat, there are few runs, and now and then one
is far off. So everything here goes by ranks, the same ones throughout, and the three answers agree:

- The test is the permutation test of the rank sum (Wilcoxon, Mann and Whitney), with middle ranks
  where values are equal. Its p is counted over all ways the runs could have been dealt to the two
  builds, given the values that were measured; no distribution is assumed, and ties cost power and
  never correctness. It sees that one build's figures tend to be larger. It does not see a build
  that is only more erratic; for that the ranges are printed.
- The difference is the median of all differences between a run of one and a run of the other
  (Hodges and Lehmann).
- The interval holds the shifts between the builds that this test, turned around, does not rule out.
  For values with ties its level is at least what it says (Noether, 1967).

Several figures of one comparison are corrected after Holm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, median
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALPHA",
    "COUNTED_TO",
    "TIES_COUNTED_TO",
    "Corrected",
    "Interval",
    "difference",
    "holm",
    "interval",
    "least_p",
    "p_value",
    "runs_to_decide",
]

ALPHA: Final = 0.05
"""Chance of calling builds different that are not, over all figures of one comparison."""

COUNTED_TO: Final = 120
"""Values in both groups together up to which p is counted out whatever they are."""

TIES_COUNTED_TO: Final = 1000
"""The same for values of which most are alike, or that are of few kinds. For what is left p is the
normal approximation with its corrections for ties and for steps; of values that seldom differ it
would call a third a fiftieth."""

_MOST_WAYS: Final = 1 << 20
"""Different sums that are followed at a time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Shifts that the measured values allow for, both ends included."""

    low: float
    high: float
    level: float
    """Between 0 and 1; exact without ties and at least this with them."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A p among several."""

    p: float
    """At most 1."""
    times: float
    """What the plain p was multiplied with. An interval at the level 1 - alpha / times holds 0
    where the corrected p is above alpha; and only there, but for ties, with which it can be wider
    than its level asks for."""


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of the rank sum: twice the smaller tail, at most 1. Exact up to `COUNTED_TO`,
    and up to `TIES_COUNTED_TO` where ties are many.

    Raises:
        ValueError: one of the groups is empty.
    """
    if not first or not second:
        raise ValueError("expected values in both groups, found an empty one")
    pooled = np.concatenate([np.asarray(first, float), np.asarray(second, float)])
    ranks = _doubled_ranks(pooled)
    observed = int(ranks[: len(first)].sum())
    if len(pooled) > COUNTED_TO:
        counted = _tied(ranks, len(first), observed)
        return _approximate(ranks, len(first), observed) if counted is None else counted
    ways = _ways(tuple(sorted(ranks.tolist())), len(first))
    return _two_sided(ways, np.arange(len(ways)), observed)


def difference(first: Sequence[float], second: Sequence[float]) -> float:
    """How far the second group lies above the first: the median of all differences."""
    return float(median(_differences(first, second).tolist()))


def interval(
    first: Sequence[float], second: Sequence[float], level: float = 1 - ALPHA
) -> Interval | None:
    """The shortest interval by ranks whose level is not below ``level``.

    Returns:
        ``None`` where there are too few values for that level.
    """
    apart = np.sort(_differences(first, second))
    left_out, tail = _left_out(len(first), len(second), (1 - level) / 2)
    if left_out == 0:
        return None
    low, high = apart[left_out - 1], apart[len(apart) - left_out]
    return Interval(float(low), float(high), 1 - 2 * tail)


def holm(p_values: Sequence[float]) -> list[Corrected]:
    """Each p corrected for there being several, in the order given (Holm's step-down)."""
    corrected: dict[int, Corrected] = {}
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        p, left = p_values[place], len(p_values) - rank
        largest = max(largest, left * p)
        corrected[place] = Corrected(min(1.0, largest), largest / p if p > 0 else float(left))
    return [corrected[place] for place in range(len(p_values))]


def least_p(first: int, second: int) -> float:
    """The smallest p that groups of these sizes can come to: every value of one above the other."""
    return min(1.0, 2 / math.comb(first + second, first))


def runs_to_decide(tests: int, alpha: float = ALPHA) -> int:
    """Runs each of two builds needs before a figure that lies wholly apart counts as different.

    Args:
        tests: figures that are corrected together; at least 1.
        alpha: what the corrected p must not exceed.
    """
    runs = 1
    while tests * least_p(runs, runs) > alpha:
        runs += 1
    return runs


def _differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    # Of milliseconds to the microsecond: what is further behind is the arithmetic's.
    apart: Floats = np.subtract.outer(np.asarray(second, float), np.asarray(first, float))
    rounded: Floats = apart.ravel().round(6)
    return rounded


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    """Middle ranks from 1, times two so that they are whole."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    doubled: NDArray[np.int64] = (2 * last - sizes + 1)[group]
    return doubled


@lru_cache(maxsize=64)
def _ways(ranks: tuple[int, ...], chosen: int) -> Floats:
    """In how many ways so many of the ranks add up to each sum, by the sum."""
    most = sum(ranks[-chosen:])
    ways = np.zeros((chosen + 1, most + 1))
    ways[0, 0] = 1
    for taken, rank in enumerate(ranks, 1):
        upto = min(taken, chosen)
        ways[1 : upto + 1, rank:] += ways[:upto, : most + 1 - rank].copy()
    counted: Floats = ways[chosen]
    return counted


def _two_sided(ways: Floats, sums: NDArray[np.int64], observed: int) -> float:
    tail = min(float(ways[sums <= observed].sum()), float(ways[sums >= observed].sum()))
    return min(1.0, 2 * tail / float(ways.sum()))


def _tied(ranks: NDArray[np.int64], chosen: int, observed: int) -> float | None:
    """p counted kind by kind instead of value by value; ``None``: there are too many ways."""
    if len(ranks) > TIES_COUNTED_TO:
        return None
    kinds, sizes = np.unique(ranks, return_counts=True)
    *others, last = np.argsort(sizes, kind="stable").tolist()
    # How many were chosen and their sum, as one number; sums as against the most frequent kind.
    taken_at, zero = 1 << 40, 1 << 39
    keys: NDArray[np.int64] = np.array([zero])
    ways: Floats = np.ones(1)
    for kind in others:
        if len(keys) * (sizes[kind] + 1) > _MOST_WAYS:
            return None
        more = np.arange(sizes[kind] + 1)
        keys = (keys[:, None] + more * (taken_at + kinds[kind] - kinds[last])).ravel()
        ways = (ways[:, None] * _choices(int(sizes[kind]), more)).ravel()
        fits = keys // taken_at <= chosen
        keys, which = np.unique(keys[fits], return_inverse=True)
        ways = np.bincount(which.ravel(), ways[fits]).astype(float)
    ways = ways * _choices(int(sizes[last]), chosen - keys // taken_at)
    return _two_sided(ways, keys % taken_at - zero, observed - chosen * int(kinds[last]))


def _choices(size: int, taken: NDArray[np.int64]) -> Floats:
    """In how many ways each number can be taken of so many alike."""
    return np.array([float(math.comb(size, int(number))) for number in taken])


def _left_out(first: int, second: int, tail: float) -> tuple[int, float]:
    """How many of the sorted differences lie outside the interval at each end, plus one; and the
    chance of each end. 0: not even the outermost differences bound it."""
    if first + second > COUNTED_TO:
        spread = math.sqrt(first * second * (first + second + 1) / 12)
        upto = math.floor(first * second / 2 + NormalDist().inv_cdf(tail) * spread - 0.5)
        return max(upto + 1, 0), tail
    ranks = tuple(range(1, first + second + 1))
    ways = _ways(ranks, first)[first * (first + 1) // 2 :]
    chances = np.cumsum(ways) / ways.sum()
    # A chance that equals the tail counts, whatever the last digit of either says.
    count = int(np.searchsorted(chances, tail * (1 + 1e-9), side="right"))
    return count, float(chances[count - 1]) if count else 0.0


def _approximate(ranks: NDArray[np.int64], first: int, observed: int) -> float:
    total = len(ranks)
    second = total - first
    ties = np.unique(ranks, return_counts=True)[1].astype(float)
    spread = first * second / 12 * (total + 1 - (ties**3 - ties).sum() / (total * (total - 1)))
    if spread == 0:
        return 1.0
    off = abs(observed / 2 - first * (total + 1) / 2) - 0.5
    return min(1.0, math.erfc(off / math.sqrt(2 * spread)))
