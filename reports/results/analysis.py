"""All of it together."""

from __future__ import annotations

from dataclasses import dataclass

from reports.results.barge_ins import BargeIn
from reports.results.findings import Finding, InForce, NotJudged
from reports.results.realtime import Realtime
from reports.results.segments import Run, Segment, Totals
from reports.results.trace import Fault, TraceFacts

SCHEMA = 1
"""Number of the JSON report. It grows when a script written for the older one would misread it."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything a trace says, ready to be rendered.

    A notebook shows it as HTML, without the timeline, which needs the trace; ``rich.print`` shows
    the report of the terminal.
    """

    schema: int
    trace: TraceFacts
    run: Run | None
    """``None``: the call was not scripted."""
    balanced: bool | None
    """True: every sample has its place. False: some do not. ``None``: it can't be known, because
    the trace is incomplete or a boundary was not tapped."""
    unaccounted_samples: int | None
    """``None``: the trace is incomplete."""
    unaccounted_because: tuple[str, ...]
    """What did not add up, one line each, with the place."""
    faults: tuple[Fault, ...]
    """What the probe failed at; empty for a sound trace."""
    totals: Totals
    """The balance of the whole trace."""
    segments: tuple[Segment, ...]
    """In the order of their first frames."""
    barge_ins: tuple[BargeIn, ...]
    """In order of time."""
    realtime: Realtime | None
    """``None``: no session of a realtime model was seen."""
    findings: tuple[Finding, ...]
    """Worst first: by severity, then by rule, then in time."""
    not_judged: tuple[NotJudged, ...]
    """Rules that could not be judged, and why."""
    thresholds: tuple[InForce, ...]
    """Every threshold the rules were applied with."""

    @property
    def counted(self) -> tuple[BargeIn, ...]:
        """Barge-ins that are such: what comparisons and assertions are made of."""
        return tuple(barge_in for barge_in in self.barge_ins if barge_in.counts)
