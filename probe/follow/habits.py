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

_DITHERED: Final = 4.0
"""The same where the sink adds noise of its last bits."""

_SAME_GAIN: Final = 0.002
"""How far from 1 a gain may be that is none."""

_LOUD: Final = 200.0
"""Root mean square from which scaled audio is looked for elsewhere: quieter, it resembles itself a
sample later."""

_NEEDLE_VALUES: Final = 64
"""A part of it is looked for, the loudest."""

_ALIKE: Final = 0.8
"""Correlation with it of a place worth to be looked at."""

_TRIES: Final = 64
"""The most alike of such places that are."""

_WINDOW_VALUES: Final = 1 << 17
"""How far ahead, 5 s at 24 kHz."""

_EFFORT: Final = 8
"""What comparing costs, in values that an exact search reads."""

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
    tried first, then where the sink was last cleared, then where it correlates."""
    store = upstream.store
    values = len(piece) // VALUE_BYTES
    places = [floor] if upstream.fence is None else [floor, upstream.fence]
    for position in places:
        found = scaling(piece, store.head(position, values))
        if found is not None:
            return position, found
    begun = _loudest_part(_values(piece))
    needle = _values(piece)[begun : begun + _NEEDLE_VALUES]
    window = _values(store.head(floor + begun, _WINDOW_VALUES - begun))
    if len(window) < len(needle) or _loudness(needle) < _LOUD:
        return None
    if not upstream.spend(floor, floor + _EFFORT * len(window)):
        return None
    for offset in _resembling(needle, window):
        found = scaling(piece, store.head(floor + offset, values))
        if found is not None:
            return floor + offset, found
    return None


def _loudest_part(piece: Values) -> int:
    """Where the part of a piece begins that tells most."""
    parts = piece[: len(piece) // _NEEDLE_VALUES * _NEEDLE_VALUES].reshape(-1, _NEEDLE_VALUES)
    return int(np.argmax((parts**2).sum(axis=1))) * _NEEDLE_VALUES if len(parts) else 0


def _resembling(needle: Values, window: Values) -> list[int]:
    """Offsets at which the window is like the needle, whatever the gain; the most alike first."""
    energy = np.concatenate(([0.0], np.cumsum(window**2)))
    around = np.maximum(energy[len(needle) :] - energy[: -len(needle)], 1.0)
    alike = np.correlate(window, needle) ** 2 / around
    found = np.flatnonzero(alike >= _ALIKE**2 * np.sum(needle**2))
    order = np.argsort(-alike[found], kind="stable")
    return [int(offset) for offset in found[order][:_TRIES]]


def too_quiet(piece: bytes) -> bool:
    """Whether a piece is too quiet for its gain to be told."""
    return _loudness(_values(piece)) < _QUIET


def _values(data: bytes) -> Values:
    return np.frombuffer(data, np.int16).astype(np.float64)


def _loudness(values: Values) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
