"""What a name of the language stands for in one trace or one barge-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from reports.results import Analysis, BargeIn, Measured

__all__ = ["Name", "Reading", "Type", "never", "unknown"]

Type = Literal["instant", "length", "amount", "count", "word", "flag"]
"""``instant``: a point in time. ``length``: a stretch of time. ``amount``: audio, in samples and
their milliseconds. ``count``: a number of things. ``word``: one of a few. ``flag``: yes or no."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a name, or of a sum; all integers.

    Where there is none it says which of two it is: what is named *never came* (then an assertion
    about it fails), or the trace *can't tell* (then the assertion is not judged).
    """

    ns: int | None = None
    """Nanoseconds: of an instant since the trace began, of a length, of an amount."""
    samples: int | None = None
    number: int | None = None
    word: str | None = None
    flag: bool | None = None
    tolerance_ns: int = 0
    """How far it may be off, by the resolution of its boundary."""
    tolerance_samples: int = 0
    less: bool = False
    more: bool = False
    """Whether it may be less or more than that, because the trace is incomplete."""
    never: str = ""
    """Why there is nothing: it did not come about."""
    unknown: str = ""
    """Why there is nothing: the trace can't tell."""

    @property
    def absent(self) -> bool:
        return bool(self.never or self.unknown)


def unknown(why: str) -> Reading:
    """The trace can't tell."""
    return Reading(unknown=why)


def never(analysis: Analysis, what: str) -> Reading:
    """It is not in the trace: it did not happen, or the trace is too damaged to say so."""
    if not analysis.trace.complete:
        return unknown(f"{what}, but the trace is incomplete")
    return Reading(never=what)


@dataclass(frozen=True, slots=True)
class Name:
    """A word of the language."""

    name: str
    type: Type
    meaning: str
    """One line, for the reference."""
    find: Callable[[Analysis, Any], Any]
    """Its value: an integer, audio that was `Measured`, a word or a flag; or a `Reading` that says
    why there is none, which ``None`` says too: it never came. Of a barge-in where it is about
    one."""
    per: Literal["barge-in", "trace"] = "barge-in"
    needs: tuple[str, ...] = ()
    """Boundaries that have to be counted."""
    since: str = ""
    """The instant it counts from, without which it never came."""
    at: str = ""
    """The boundary as whose instants it is exact; empty: it is exact."""

    def read(self, analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        trace = analysis.trace
        for boundary in self.needs:
            if boundary not in trace.boundaries:
                why = trace.missing.get(boundary, "never tapped")
                return unknown(f"nothing was counted at {boundary} ({why})")
        if self.since and getattr(barge_in, f"{self.since}_ns") is None:
            return never(analysis, f"{self.since} never came")
        found = self.find(analysis, barge_in)
        if found is None:
            return never(analysis, f"{self.name} never came")
        if isinstance(found, Reading):
            return found
        if self.type in ("word", "flag"):
            return Reading(**{self.type: found})
        if self.type == "count":
            return Reading(number=found, more=not trace.complete)
        tolerance_ns = trace.resolution_ns.get(self.at) or 0
        if self.type == "amount":
            return _amount(analysis, found, tolerance_ns)
        more = bool(self.at) and not trace.complete
        return Reading(ns=found, tolerance_ns=tolerance_ns, more=more)


def _amount(analysis: Analysis, audio: Measured, tolerance_ns: int) -> Reading:
    """Audio counted from an instant on: exact, but for the samples around the instant."""
    if analysis.balanced is False:
        return unknown("the trace does not balance, so its amounts are no result")
    if not audio.samples or audio.rate_hz is None:
        tolerance_ns = 0
    return Reading(
        ns=audio.ns,
        samples=audio.samples,
        tolerance_ns=tolerance_ns,
        tolerance_samples=round((audio.rate_hz or 0) * tolerance_ns / 1e9),
        more=not analysis.trace.complete,
    )
