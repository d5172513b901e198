"""Audio that was kept to be found again, as values: int16 numbers as they lie in a frame."""

from __future__ import annotations

from typing import Final

import numpy as np

VALUE_BYTES: Final = 2

_ALIGNMENT_TRIES: Final = 512
"""Hits of a search at odd bytes that are passed over before it gives up."""


class SampleStore:
    """Values appended in order, of which the newest are kept.

    ``base`` is the position of the oldest value still held, ``end`` that of the next to come.
    """

    __slots__ = ("_base", "_data", "_limit")

    def __init__(self, limit_bytes: int, base: int = 0) -> None:
        self._data = bytearray()
        self._base = base
        self._limit = limit_bytes

    @property
    def base(self) -> int:
        return self._base

    @property
    def end(self) -> int:
        return self._base + len(self._data) // VALUE_BYTES

    def append(self, data: bytes) -> int:
        """Add int16 data and return how many old values had to be forgotten for it."""
        self._data += data
        excess = len(self._data) - self._limit
        if excess <= 0:
            return 0
        # A quarter more than needed: forgetting a little with every append would move the rest
        # of the buffer each time.
        forgotten = (excess + self._limit // 4) // VALUE_BYTES
        forgotten = min(forgotten, len(self._data) // VALUE_BYTES)
        self.forget_before(self._base + forgotten)
        return forgotten

    def forget_before(self, position: int) -> None:
        """Let go of the values in front of ``position``."""
        count = min(position, self.end) - self._base
        if count > 0:
            del self._data[: count * VALUE_BYTES]
            self._base += count

    def truncate(self, position: int) -> None:
        """Take back the values from ``position`` on; their positions will be given out again."""
        if position >= self._base:
            del self._data[(position - self._base) * VALUE_BYTES :]

    def matches(self, position: int, data: bytes) -> bool:
        """Whether ``data`` is held, whole, at ``position``."""
        offset = (position - self._base) * VALUE_BYTES
        return offset >= 0 and self._data.startswith(data, offset)

    def common_ahead(self, position: int, data: bytes) -> int:
        """How many values from the front of ``data`` equal those from ``position`` on."""
        offset = (position - self._base) * VALUE_BYTES
        if offset < 0:
            return 0
        return equal_values(bytes(self._data[offset : offset + len(data)]), data)

    def common_behind(self, position: int, data: bytes) -> int:
        """How many values from the back of ``data`` equal those in front of ``position``."""
        stop = (position - self._base) * VALUE_BYTES
        start = max(stop - len(data), 0)
        if stop <= 0:
            return 0
        held = np.frombuffer(bytes(self._data[start:stop]), np.int16)[::-1]
        given = np.frombuffer(data, np.int16)[::-1][: len(held)]
        differing = np.flatnonzero(held != given)
        return int(differing[0]) if len(differing) else len(held)

    def find(self, data: bytes, start: int) -> int | None:
        """Lowest position from ``start`` on where ``data`` is held whole; None if there is none."""
        offset = max(start - self._base, 0) * VALUE_BYTES
        for _ in range(_ALIGNMENT_TRIES):
            offset = self._data.find(data, offset)
            if offset < 0:
                return None
            if offset % VALUE_BYTES == 0:
                return self._base + offset // VALUE_BYTES
            offset += 1
        return None

    def is_silent(self, start: int, stop: int) -> bool:
        """Whether all values from one position to another are zero."""
        return not any(self.head(start, stop - start))

    def head(self, position: int, values: int) -> bytes:
        """Up to ``values`` values from ``position`` on."""
        offset = max(position - self._base, 0) * VALUE_BYTES
        return bytes(self._data[offset : offset + values * VALUE_BYTES])


def equal_values(one: bytes, other: bytes) -> int:
    count = min(len(one), len(other)) // VALUE_BYTES
    left = np.frombuffer(one, np.int16, count)
    right = np.frombuffer(other, np.int16, count)
    differing = np.flatnonzero(left != right)
    return int(differing[0]) if len(differing) else count


def trailing_run(data: bytes) -> int:
    """How many values at the back equal the last."""
    values = np.frombuffer(data, np.int16)
    differing = np.flatnonzero(values != values[-1:])
    return len(values) - 1 - int(differing[-1]) if len(differing) else len(values)


def leading_run(data: bytes) -> int:
    """How many values at the front equal the first."""
    values = np.frombuffer(data, np.int16)
    differing = np.flatnonzero(values != values[:1])
    return int(differing[0]) if len(differing) else len(values)


def is_constant(data: bytes) -> bool:
    return data[VALUE_BYTES:] == data[:-VALUE_BYTES]
