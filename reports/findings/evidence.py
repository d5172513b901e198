"""Amounts and stretches of audio, as a finding shows them."""

from __future__ import annotations

from collections.abc import Iterable

from reports.account.boundary import CAPTURED, Boundary
from reports.account.crossings import Crossed
from reports.results import Leak, Length, Range
from reports.units import one_rate

__all__ = ["captured_range", "crossed_ranges", "leak_ranges", "length_of", "longest_ns"]


def length_of(samples: int, rates_hz: Iterable[int]) -> Length:
    """Samples of these rates; how long they are is not known where rates mix."""
    return Length(samples, one_rate(rates_hz))


def longest_ns(crossed: Crossed) -> int:
    """Length of what crossed, taken at the lowest rate in it, to hold against a threshold."""
    lowest = int(crossed.rate_hz.min()) if crossed.samples else None
    return Length(crossed.samples, lowest).ns or 0


def crossed_ranges(crossed: Crossed, boundary: Boundary) -> tuple[Range, ...]:
    """What crossed a boundary; neighbours in one."""
    return tuple(
        Range(boundary.name, s.start_sample, s.stop_sample, s.start_ns, s.stop_ns)
        for s in crossed.leak(boundary.gap_ns).spans
    )


def leak_ranges(leak: Leak) -> tuple[Range, ...]:
    """Where audio that was sent lies among the pushed."""
    return tuple(
        Range("pushed", s.start_sample, s.stop_sample, s.start_ns, s.stop_ns) for s in leak.spans
    )


def captured_range(start: int, stop: int, at_ns: int | None = None) -> Range:
    """A stretch of the captured axis; ``at_ns``: when it was captured, where that is meant."""
    return Range(CAPTURED.name, start, stop, at_ns, None)
