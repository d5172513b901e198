"""Audio as it is described in the corpus: a row of pieces, each made by a generator.

``["noise", seed, start, values]``   values from ``start`` on of an endless noise, none of them zero
``["quiet", seed, start, values]``   the same, 40 dB softer, as speech at its softest
``["silence", values]``              digital silence
``["constant", value, values]``      one value over and over
``["gain", from, to, pieces]``       pieces at a gain that goes evenly from one to the other
``["dither", seed, pieces]``         pieces with -1, 0 or 1 added to each value
``["part", start, values, pieces]``  some of the values of pieces

Values are int16 as they lie in a frame. ``content.mjs`` makes the same of the same description.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Piece = list[Any]
Audio = list[Piece]

_MASK = 0xFFFF_FFFF


def _noise(seed: int, start: int, values: int) -> NDArray[np.int64]:
    mixed = np.arange(start, start + values, dtype=np.uint64) * 0x9E3779B1 + seed * 0x85EBCA77
    mixed &= _MASK
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed ^= mixed >> np.uint64(shift)
        mixed = mixed * factor & _MASK
    mixed ^= mixed >> np.uint64(16)
    made = (mixed & 0xFFFF).astype(np.int64) - 32768
    made[made == 0] = 1
    return made


def _values(piece: Piece) -> NDArray[np.int64]:
    kind, *told = piece
    if kind == "noise":
        return _noise(*told)
    if kind == "quiet":
        return _noise(*told) // 100
    if kind == "silence":
        return np.zeros(told[0], np.int64)
    if kind == "constant":
        return np.full(told[1], told[0], np.int64)
    if kind == "gain":
        first, last, pieces = told
        plain = _joined(pieces)
        gain = first + (last - first) * np.arange(len(plain)) / max(len(plain), 1)
        return np.clip(np.floor(plain * gain + 0.5), -32768, 32767).astype(np.int64)
    if kind == "dither":
        plain = _joined(told[1])
        return np.clip(plain + _noise(told[0], 0, len(plain)) % 3 - 1, -32768, 32767)
    if kind == "part":
        start, values, pieces = told
        return _joined(pieces)[start : start + values]
    raise ValueError(f"expected a generator, found {kind!r}")


def _joined(audio: Audio) -> NDArray[np.int64]:
    return np.concatenate([_values(piece) for piece in audio] or [np.zeros(0, np.int64)])


def data_of(audio: Audio) -> bytes:
    """What a frame with this audio holds."""
    return _joined(audio).astype(np.int16).tobytes()
