"""Several barge-ins, of one trace or many, in a few figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.account.boundary import LEAKING
from reports.results import Analysis, BargeIn, Length
from reports.units import one_rate

__all__ = ["Spread", "Summary", "badness", "leak_at", "summarize", "worst_first"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a length of time or audio over all barge-ins that have it."""

    count: int
    median_ns: int
    """Of an even number of them the middle of the two in the middle, rounded down."""
    p95_ns: int
    """The least value that 95 % of them do not exceed; with fewer than 20 this is the worst."""
    worst_ns: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Over all analyses together."""

    traces: int
    incomplete_traces: int
    unbalanced_traces: int
    barge_ins: int
    """Those on a speech that had audio to stop."""
    outcomes: Mapping[str, int]
    """Barge-ins by outcome; ``undecided`` where the trace ended before."""
    leaked: Mapping[str, Spread | None]
    """By boundary, ``pushed`` and ``sent``; ``None``: no barge-in has a verdict there."""
    stop: Spread | None
    swallowed_samples: int | None
    """``None``: not known in one of the traces."""
    swallowed: Length | None
    """The same as a length; ``None``: not known in one of the traces."""
    unaccounted_samples: int | None
    """``None``: not known in one of the traces."""
    findings: Mapping[str, int]
    """Findings by rule, most first."""
    left_out: Mapping[str, int]
    """What is in none of the figures: ``without audio``, attempts on a speech of which nothing was
    ever captured, and by outcome what interrupted nobody (``closed``, ``hung-up``,
    ``handed-over``). Empty: nothing."""


def leak_at(barge_in: BargeIn, boundary: str) -> int | None:
    """Leak in nanoseconds; ``None``: no verdict, not tapped, or of several rates."""
    leak = (barge_in.leaked or {}).get(boundary)
    return None if leak is None else leak.ns


def summarize(analyses: Sequence[Analysis]) -> Summary:
    """Counts, and median, 95th percentile and worst of leaks and stop times. Exact."""
    barge_ins: list[BargeIn] = []
    outcomes: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for barge_in in (b for analysis in analyses for b in analysis.barge_ins):
        name = barge_in.outcome or "undecided"
        if barge_in.counts and barge_in.has_audio:
            barge_ins.append(barge_in)
            outcomes[name] += 1
        else:
            left_out["without audio" if barge_in.counts else name] += 1
    swallowed = _sum([a.totals.swallowed_samples for a in analyses])
    rates = {
        g.rate_hz
        for a in analyses
        for s in a.segments
        if s.swallowed_samples
        for g in s.geometry["captured"]
    }
    return Summary(
        traces=len(analyses),
        incomplete_traces=sum(not analysis.trace.complete for analysis in analyses),
        unbalanced_traces=sum(analysis.balanced is False for analysis in analyses),
        barge_ins=len(barge_ins),
        outcomes=dict(sorted(outcomes.items())),
        leaked={
            boundary: _spread([leak_at(b, boundary) for b in barge_ins]) for boundary in LEAKING
        },
        stop=_spread([b.stop_ns for b in barge_ins]),
        swallowed_samples=swallowed,
        swallowed=None if swallowed is None else Length(swallowed, one_rate(rates)),
        unaccounted_samples=_sum([a.unaccounted_samples for a in analyses]),
        findings=dict(Counter(f.rule for a in analyses for f in a.findings).most_common()),
        left_out=dict(sorted(left_out.items())),
    )


def worst_first(analyses: Sequence[Analysis]) -> list[tuple[Analysis, BargeIn]]:
    """Barge-ins by what they sent after the verdict, most first, then by the errors found in their
    trace; those without a verdict come last, and behind them what is no barge-in."""
    errors = {
        id(analysis): sum(finding.severity == "error" for finding in analysis.findings)
        for analysis in analyses
    }
    pairs = [(analysis, b) for analysis in analyses for b in analysis.barge_ins]
    return sorted(pairs, key=lambda pair: badness(pair[1], errors[id(pair[0])]))


def badness(barge_in: BargeIn, errors: int) -> tuple[bool, float, float, float]:
    """What `worst_first` sorts by, the least first; ``errors``: findings of them in its trace."""
    leak = leak_at(barge_in, "sent")
    over = (barge_in.over_caller or {}).get("sent")
    return (
        not barge_in.counts,
        math.inf if leak is None else -leak,
        -errors,
        0.0 if over is None or over.ns is None else -over.ns,
    )


def _spread(values: Sequence[int | None]) -> Spread | None:
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    middle = len(known) // 2
    median = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) // 2
    nth = max(math.ceil(len(known) * 0.95), 1) - 1
    return Spread(len(known), median, known[nth], known[-1])


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
