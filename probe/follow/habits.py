"""What sinks do to audio on its way: a volume, a fade, dither. Recognised only where it is certain.

A stretch is taken for scaled audio where one smooth gain explains every value of it to within the
rounding of a sample. A few dozen values of speech or noise can't be explained so by anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probe.follow.store import VALUE_BYTES
from probe.follow.upstream import TELLING_VALUES, Upstream
from probe.trace.events import SinkHabit

__all__ = ["Scaling", "find_scaled", "scaling", "too_quiet"]

Values = NDArray[np.float64]

_PIECE_VALUES: Final = 240
"""Over how many values a gain is taken to be a parabola: 10 ms at 24 kHz."""

_QUIET: Final = 16.0
"""Root mean square under which rounding hides what was done."""

_ROUNDED: Final = 2.0
"""How far a value may be off where it was rounded or cut off, in units of a sample."""

_LOUD: Final = 200.0
"""Root mean square from which scaled audio is looked for elsewhere: quieter, it resembles itself a
sample later."""

_DITHERED: Final = 4.0
"""The same where the sink adds noise of its last bits."""

_SAME_GAIN: Final = 0.002
"""How far from 1 a gain may be that is none."""

_NEEDLE_VALUES: Final = 2048
_WINDOW_VALUES: Final = 1 << 19
"""How far ahead scaled audio is looked for, 11 s at 48 kHz."""

_FULL: Final = 32767


@dataclass(frozen=True, slots=True)
class Scaling:
    """How one stretch follows from another."""

    habit: SinkHabit
    gain: float
    """At its end."""


def scaling(heard: bytes, given: bytes) -> Scaling | None:
    """How ``heard`` follows from ``given``, of equal length; ``None``: not by a gain or dither, or
    too quiet to say."""
    y, x = _values(heard), _values(given)
    if len(x) != len(y) or len(x) < TELLING_VALUES:
        return None
    if _loudness(x) < _QUIET or _loudness(y) < _QUIET:
        return None
    rounded = dithered = True
    plain = True
    gain = 1.0
    pieces = max(len(x) // _PIECE_VALUES, 1)
    for part in np.array_split(np.arange(len(x)), pieces):
        fitted = _fit(x[part], y[part])
        if fitted is None:
            # Too quiet a piece between louder ones: rounding is all that can be held against it.
            fitted = gain * x[part], gain
        expected, gain = fitted
        off = np.abs(y[part] - np.clip(expected, -_FULL - 1, _FULL))
        rounded = rounded and bool((off <= _ROUNDED).all())
        dithered = dithered and bool((off <= _DITHERED).all())
        plain = plain and abs(gain - 1) <= _SAME_GAIN
        if not dithered:
            return None
    if plain:
        return Scaling("noise", 1.0)
    return Scaling("gain", gain) if rounded else None


def _fit(x: Values, y: Values) -> tuple[Values, float] | None:
    """The smooth gain that explains one piece best: what it makes of it, and its end value."""
    if _loudness(x) < _QUIET:
        return None
    t = np.linspace(-1.0, 1.0, len(x))
    clipped = np.abs(y) >= _FULL
    if clipped.mean() > 0.5:
        return None
    terms = np.stack((x, t * x, t * t * x), axis=1)
    solved, *_ = np.linalg.lstsq(terms[~clipped], y[~clipped], rcond=None)
    return terms @ solved, float(solved.sum())


def find_scaled(upstream: Upstream, piece: bytes, floor: int) -> tuple[int, Scaling] | None:
    """Where a piece lies at or ahead of a position if it is scaled, and how; the first place is
    tried first, then where the sink was last cleared, then where it correlates best."""
    store = upstream.store
    values = len(piece) // VALUE_BYTES
    places = [floor] if upstream.fence is None else [floor, upstream.fence]
    for position in places:
        found = scaling(piece, store.head(position, values))
        if found is not None:
            return position, found
    needle = _values(piece)[:_NEEDLE_VALUES]
    window = store.head(floor, _WINDOW_VALUES)
    length = len(window) // VALUE_BYTES
    if length < values or _loudness(needle) < _LOUD or not upstream.spend(floor, floor + length):
        return None
    offset = _best_match(needle, _values(window))
    found = scaling(piece, store.head(floor + offset, values))
    return None if found is None else (floor + offset, found)


def _best_match(needle: Values, window: Values) -> int:
    """Offset at which the needle resembles the window most, whatever its gain."""
    size = len(needle)
    count = len(window) - size + 1
    shape = 1 << int(np.ceil(np.log2(len(window) + size)))
    product = np.fft.irfft(np.fft.rfft(window, shape) * np.conj(np.fft.rfft(needle, shape)), shape)[
        :count
    ]
    energy = np.concatenate(([0.0], np.cumsum(window**2)))
    around = np.sqrt(np.maximum(energy[size:] - energy[:-size], 1.0))
    return int(np.argmax(np.abs(product) / around))


def too_quiet(piece: bytes) -> bool:
    """Whether a piece is too quiet for its gain to be told."""
    return _loudness(_values(piece)) < _QUIET


def _values(data: bytes) -> Values:
    return np.frombuffer(data, np.int16).astype(np.float64)


def _loudness(values: Values) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
