"""What the rules came upon, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reports.results.amounts import Measured
from reports.results.barge_ins import Moment
from reports.results.trace import Stall
from reports.units import time_ms

Severity = Literal["info", "warning", "error"]


Unit = Literal["ms", "samples", "%", "count"]


@dataclass(frozen=True, slots=True)
class Figure:
    """The number a finding is about; ``--fail-on RULE>VALUE`` compares with it."""

    exact: float
    """Nanoseconds, an integer, where the unit is ``ms``; else in the unit itself."""
    unit: Unit

    @property
    def value(self) -> float:
        """In the unit, for display."""
        return time_ms(int(self.exact)) if self.unit == "ms" else self.exact


@dataclass(frozen=True, slots=True)
class Range:
    """Samples a finding is about, half open, counted over the whole trace at their boundary."""

    boundary: str
    start_sample: int
    stop_sample: int
    start_ns: int | None
    """When its first sample crossed; ``None``: it never did."""
    stop_ns: int | None


@dataclass(frozen=True, slots=True)
class Part(Measured):
    """A part of a finding's samples and what took or sent it; all parts add up to the whole."""

    cause: str
    samples: int
    rate_hz: int | None
    """``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on. Exact in samples; instants as exact as their boundary."""

    figure: Figure
    samples: int | None
    """Audio the finding is about; ``None``: it is not about an amount of audio."""
    parts: tuple[Part, ...]
    """What took or sent the samples, where that can be told apart."""
    ranges: tuple[Range, ...]
    """Where the audio is; empty: it is not about a place."""
    moments: tuple[Moment, ...]
    """Marks, events and instants in their order; repeated marks are one, with a count."""
    stalls: tuple[Stall, ...]
    """Stalls of the session's loop that one of the moments lies in: its time may be late."""
    facts: Mapping[str, Any]
    """What else the rule looked at: its reason, claims, options."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that fired."""

    rule: str
    """Its name, as ``--fail-on`` and ``thresholds`` take it."""
    severity: Severity
    segment: int | None
    """``None``: it is about none in particular."""
    message: str
    """One plain sentence."""
    evidence: Evidence
    cause: str = ""
    """What brought it about, as far as the trace tells; else what usually does."""
    remedy: str = ""
    """What to do about that."""


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A rule the trace gives no ground to judge by."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class InForce:
    """A threshold as it was applied."""

    rule: str
    name: str
    value: float
    unit: Unit
    default: float
