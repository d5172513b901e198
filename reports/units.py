"""Samples and nanoseconds stay integers until they come through here to be shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, overload

__all__ = ["NS_PER_MS", "ns_text", "one_rate", "samples_ms", "samples_ns", "time_ms"]

NS_PER_MS: Final = 1_000_000


@overload
def time_ms(ns: int) -> float: ...


@overload
def time_ms(ns: None) -> None: ...


@overload
def time_ms(ns: int | None) -> float | None: ...


def time_ms(ns: int | None) -> float | None:
    """Nanoseconds as milliseconds, to the microsecond; ``None`` stays ``None``."""
    return None if ns is None else round(ns / 1e6, 3)


def samples_ms(samples: int, rate_hz: int | None) -> float | None:
    """Length of ``samples`` in milliseconds; 0.0 for none, ``None`` where no one rate is theirs."""
    if samples == 0:
        return 0.0
    return None if rate_hz is None else round(samples * 1000 / rate_hz, 3)


def samples_ns(samples: int, rate_hz: int | None) -> int | None:
    """The same in nanoseconds, rounded to the nearest."""
    if samples == 0:
        return 0
    return None if rate_hz is None else (samples * 10**9 + rate_hz // 2) // rate_hz


def one_rate(rates_hz: Iterable[int]) -> int | None:
    """The rate they all are; ``None`` where they differ, or where there is none."""
    rates = set(rates_hz)
    return rates.pop() if len(rates) == 1 else None


def ns_text(ns: int, digits: int = 1) -> str:
    """``12.3 ms``."""
    return f"{time_ms(ns):.{digits}f} ms"
