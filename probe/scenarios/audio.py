"""Speech of known content: sample ``k`` of a call has a value that says ``k``.

The values 1 to 65,535 of 16 bits come in a pseudo-random order, all of them before the first comes
again, and in another order every time: no sample is zero, and ten milliseconds at any place of the
call occur there and nowhere else. So lost, repeated and late audio is told by comparing integers,
and none of it can pass for the silence a source inserts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

PERIOD: Final = 65_535
"""Samples after which a new order begins."""


@lru_cache(maxsize=4)
def _order(number: int) -> NDArray[np.int16]:
    values = np.arange(1, PERIOD + 1, dtype=np.uint16)
    return np.random.Generator(np.random.PCG64(number)).permutation(values).view(np.int16)


def known_samples(start: int, count: int) -> NDArray[np.int16]:
    """Samples ``start`` to ``start + count`` of the call: int16, exact, shape ``(count,)``."""
    parts: list[NDArray[np.int16]] = []
    while count > 0:
        number, offset = divmod(start, PERIOD)
        part = _order(number)[offset : offset + count]
        parts.append(part)
        start += len(part)
        count -= len(part)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int16)


def frame_bounds(total: int, frame_ms: float, rate_hz: int) -> Iterator[tuple[int, int]]:
    """Start and stop sample of each frame of a reply ``total`` samples long, the last one shorter.

    Where a frame is no whole number of samples the rounding does not add up: frames differ by one.
    """
    start = number = 0
    while start < total:
        number += 1
        stop = min(max(round(number * frame_ms * rate_hz / 1000), start + 1), total)
        yield start, stop
        start = stop
