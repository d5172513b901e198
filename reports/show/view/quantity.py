"""Amounts of audio and lengths of time as they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reports.results import Estimate, Measured
from reports.show.wording import DASH
from reports.units import ns_text, time_ms
from reports.verdicts.explanations import amount_text

__all__ = ["ABOUT", "Quantity", "audio", "estimate", "time"]

ABOUT: Final = "~"
"""Marks an estimate."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is not known is a dash."""

    text: str = DASH
    """Whole, ``40.0 ms (960 samples)``; samples alone where rates mix."""
    ms: str = DASH
    samples: str = DASH
    """Empty for a time."""
    is_some: bool = False
    """Whether it is known to be more than nothing; of an estimate it is not."""

    @property
    def length(self) -> str:
        """``40.0 ms``."""
        return self.ms if self.ms == DASH else f"{self.ms} ms"

    def __str__(self) -> str:
        return self.text


def audio(amount: Measured | None, *, by_time: bool = False) -> Quantity:
    """An amount of audio; ``None``: not known.

    Args:
        amount: the audio.
        by_time: whether it is whose it is said to be by its time only, and so an estimate.
    """
    if amount is None:
        return Quantity()
    ms = DASH if amount.ms is None else f"{amount.ms:.1f}"
    if by_time and amount.samples:
        ms = ms if ms == DASH else f"{ABOUT}{ms}"
        return Quantity(f"{ABOUT}{amount_text(amount)}", ms, f"{ABOUT}{amount.samples}")
    return Quantity(amount_text(amount), ms, str(amount.samples), amount.samples > 0)


def estimate(about: Estimate | None) -> Quantity:
    """What only the time tells, with its error; ``None``: not even that."""
    if about is None:
        return Quantity()
    text = f"{ABOUT} {ns_text(about.ns)} (± {ns_text(about.error_ns)})"
    return Quantity(text, f"{ABOUT}{time_ms(about.ns):.1f}")


def time(ns: int | None) -> Quantity:
    """A length of time, or an instant; ``None``: not known."""
    if ns is None:
        return Quantity(samples="")
    ms = f"{time_ms(ns):.1f}"
    return Quantity(f"{ms} ms", ms, "", ns > 0)
