"""From positions of values to positions of samples."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

__all__ = ["PositionMap"]


class PositionMap:
    """Positions of values to positions of samples, piece by piece."""

    __slots__ = ("_channels", "_samples", "_values")

    def __init__(self) -> None:
        self._values: list[int] = []
        self._samples: list[int] = []
        self._channels: list[int] = []

    def add(self, value: int, sample: int, channels: int) -> None:
        if (
            self._values
            and self._channels[-1] == channels
            and value - self._values[-1] == (sample - self._samples[-1]) * channels
        ):
            return
        if self._values and self._values[-1] == value:
            self._samples[-1] = sample
            self._channels[-1] = channels
            return
        self._values.append(value)
        self._samples.append(sample)
        self._channels.append(channels)

    def cut(self, value: int) -> None:
        """Forget what was added at ``value`` or behind it."""
        while self._values and self._values[-1] >= value:
            self._values.pop()
            self._samples.pop()
            self._channels.pop()

    def translate(self, value: int, count: int) -> Iterator[tuple[int | None, int]]:
        """``(sample, values)`` for each piece of the range."""
        while count:
            index = bisect_right(self._values, value) - 1
            following = self._values[index + 1] if index + 1 < len(self._values) else None
            step = count if following is None else min(count, following - value)
            if index < 0:
                yield None, step
            else:
                offset = (value - self._values[index]) // self._channels[index]
                yield self._samples[index] + offset, step
            value += step
            count -= step

    def forget_before(self, value: int) -> None:
        index = bisect_right(self._values, value) - 1
        if index > 256:
            del self._values[:index]
            del self._samples[:index]
            del self._channels[:index]
