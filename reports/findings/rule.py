"""What a rule is, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reports.findings.case import Case
from reports.results import Part, Range, Severity, Unit

__all__ = ["Found", "Limits", "Need", "Rule", "Threshold", "Unjudged", "plain"]

Limits = Mapping[str, float]
"""The thresholds of one rule as they are in force, by name: nanoseconds where their unit is ``ms``,
else in their unit."""

Need = Literal[
    "captured",
    "pushed",
    "sent",
    "all sent",
    "balance",
    "every event",
    "session",
    "pause",
    "playback_started",
    "overlapping_speech",
    "realtime",
]
"""What a rule can't do without: a boundary; all that was sent of the segment it judges, and not
only what left the sources whose wire was read; a balance that adds up; a trace in which nothing is
missing before its end (for rules that conclude from a frame, a mark or a report that is not there);
the session's events (who speaks, who interrupts whom); or a signal that older releases lack. A rule
that needs ``realtime`` says nothing of a call without a realtime model, not even that it could not
be judged: there is nothing to judge."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value from which on a rule fires, or which it allows for."""

    name: str
    default: float
    unit: Unit
    about: str
    """What it does, one line."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something a rule came upon; times in nanoseconds since the trace began."""

    message: str
    """One plain sentence."""
    figure: float
    """Nanoseconds where the unit of the rule's figure is ``ms``, else in that unit."""
    segment: int | None = None
    """From 1."""
    beside: tuple[int, ...] = ()
    """Numbers of other segments whose audio it rests on too."""
    samples: int | None = None
    parts: tuple[Part, ...] = ()
    ranges: tuple[Range, ...] = ()
    moments: tuple[tuple[int, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity | None = None
    """Where it is not the rule's own."""
    cause: str = ""
    """Where it is known better than what usually brings the rule's findings about."""
    remedy: str = ""
    """The same of the remedy."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A part of the trace that gives a rule no ground to judge by; the rest it judges."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One way the audio goes wrong."""

    name: str
    severity: str
    """As it is listed: a severity or, where findings differ, which of them has which; then every
    finding names its own."""
    looks_for: str
    cause: str
    """What usually brings it about."""
    remedy: str
    """What to do, and where to look in the framework."""
    needs: tuple[Need, ...]
    figure: str
    """What the figure of its findings is."""
    unit: Unit
    """Unit of that figure."""
    judge: Callable[[Case, Limits], Iterable[Found | Unjudged]]
    """Pure; findings in time order."""
    thresholds: tuple[Threshold, ...] = ()
    from_absence: bool = False
    """Whether it concludes from something that is not in the trace. At the end of a trace that was
    cut what is missing may just not have been written, so findings from there are left out."""
    counts_audio: bool = False
    """Whether its findings carry an amount of audio, so that a limit may be given in samples."""


def plain(docstring: str | None) -> str:
    """A docstring as one paragraph; empty where the interpreter dropped it."""
    return " ".join((docstring or "").split())
