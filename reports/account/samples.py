"""Amounts of audio that know their geometry: what can't be compared can't be subtracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reports.account.stretches import Ints

__all__ = ["CHANNEL_ROOM", "GeometryError", "Samples", "encoded"]

CHANNEL_ROOM = 2048
"""More channels than any frame has."""


class GeometryError(ArithmeticError):
    """Audio of one rate or number of channels was taken from audio of another."""


def encoded(rate_hz: Ints, channels: Ints) -> Ints:
    """Rate and channels in one number, the same for the same geometry only."""
    return rate_hz * CHANNEL_ROOM + channels


@dataclass(frozen=True, slots=True)
class Samples:
    """How many samples per channel of each geometry (rate in Hz, channels). Exact.

    Sums keep geometries apart. Of a difference every geometry of the second has to be in the
    first, or there would be less than nothing of it.
    """

    of: Mapping[tuple[int, int], int]

    @classmethod
    def counted(cls, samples: Ints, geometry: Ints) -> Samples:
        """Of rows with so many samples in an `encoded` geometry each."""
        codes, where = np.unique(geometry[samples > 0], return_inverse=True)
        sums = np.zeros(len(codes), np.int64)
        np.add.at(sums, where, samples[samples > 0])
        return cls(
            {
                divmod(code, CHANNEL_ROOM): count
                for code, count in zip(codes.tolist(), sums.tolist(), strict=True)
            }
        )

    @property
    def count(self) -> int:
        """All of them, whatever their geometry."""
        return sum(self.of.values())

    @property
    def rates(self) -> set[int]:
        return {rate for rate, _ in self.of}

    @property
    def ns(self) -> int:
        """How long they last, in nanoseconds, each at its own rate."""
        return sum(count * 1_000_000_000 // rate for (rate, _), count in self.of.items())

    def __bool__(self) -> bool:
        return self.count > 0

    def __add__(self, other: Samples) -> Samples:
        return Samples({g: self.of.get(g, 0) + other.of.get(g, 0) for g in {**self.of, **other.of}})

    def __sub__(self, other: Samples) -> Samples:
        """What is left.

        Raises:
            GeometryError: the other has audio of a geometry that is not in this one.
        """
        alien = {g for g, count in other.of.items() if count} - self.of.keys()
        if alien:
            raise GeometryError(f"expected audio of {set(self.of)}, found {alien}")
        return Samples({g: count - other.of.get(g, 0) for g, count in self.of.items()})
