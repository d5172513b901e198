"""Amounts of audio and lengths of time as they are printed."""

from __future__ import annotations

from dataclasses import dataclass

from reports.results import Measured
from reports.show.wording import DASH
from reports.units import time_ms
from reports.verdicts.explanations import amount_text

__all__ = ["Quantity", "audio", "time"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is not known is a dash."""

    text: str = DASH
    """Whole, ``40.0 ms (960 samples)``; samples alone where rates mix."""
    ms: str = DASH
    samples: str = DASH
    """Empty for a time."""
    is_some: bool = False
    """Whether it is known to be more than nothing."""

    @property
    def length(self) -> str:
        """``40.0 ms``."""
        return self.ms if self.ms == DASH else f"{self.ms} ms"

    def __str__(self) -> str:
        return self.text


def audio(amount: Measured | None) -> Quantity:
    """An amount of audio; ``None``: not known."""
    if amount is None:
        return Quantity()
    ms = DASH if amount.ms is None else f"{amount.ms:.1f}"
    return Quantity(amount_text(amount), ms, str(amount.samples), amount.samples > 0)


def time(ns: int | None) -> Quantity:
    """A length of time, or an instant; ``None``: not known."""
    if ns is None:
        return Quantity(samples="")
    ms = f"{time_ms(ns):.1f}"
    return Quantity(f"{ms} ms", ms, "", ns > 0)
