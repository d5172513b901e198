"""Milliseconds for display. Samples and nanoseconds stay integers until they come through here."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["instant_ms", "samples_ms"]


def instant_ms(at_ns: int | None) -> float | None:
    """Nanoseconds as milliseconds to the microsecond; ``None`` stays ``None``."""
    return None if at_ns is None else round(at_ns / 1e6, 3)


def samples_ms(samples: int, rates_hz: Iterable[int]) -> float | None:
    """Length of ``samples`` in milliseconds; 0.0 for none, ``None`` where the rates differ."""
    if samples == 0:
        return 0.0
    rates = set(rates_hz)
    if len(rates) != 1:
        return None
    return round(samples * 1000 / rates.pop(), 3)
