"""Milliseconds for display. Samples and nanoseconds stay integers until they come through here."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["instant_ms", "samples_ms", "time_ms"]


def time_ms(ns: int) -> float:
    """Nanoseconds as milliseconds, to the microsecond."""
    return round(ns / 1e6, 3)


def instant_ms(at_ns: int | None) -> float | None:
    """The same where there may be nothing: ``None`` stays ``None``."""
    return None if at_ns is None else time_ms(at_ns)


def samples_ms(samples: int, rates_hz: Iterable[int]) -> float | None:
    """Length of ``samples`` in milliseconds; 0.0 for none, ``None`` where the rates differ."""
    if samples == 0:
        return 0.0
    rates = set(rates_hz)
    if len(rates) != 1:
        return None
    return round(samples * 1000 / rates.pop(), 3)
