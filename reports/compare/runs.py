"""Several runs of one scripted call, in a few figures: medians and ranges, never an average.

A run whose samples don't add up is set apart with its reason; none of its figures gets in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from reports.results import Analysis, BargeIn
from reports.units import one_rate, samples_ms

__all__ = [
    "Runs",
    "SetApart",
    "Spread",
    "gather",
    "leaked_ms",
    "outcome_of",
    "swallowed_ms",
    "why_set_apart",
]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a figure in milliseconds, over the runs that have it."""

    count: int
    median_ms: float
    least_ms: float
    most_ms: float


@dataclass(frozen=True, slots=True)
class SetApart:
    """A run that is no result."""

    trace: str
    reason: str
    unaccounted_samples: int | None


@dataclass(frozen=True, slots=True)
class Runs:
    """What the runs of one call have in common and how far they lie apart."""

    count: int
    """Runs whose figures are in here."""
    set_apart: tuple[SetApart, ...]
    leaked: Spread | None
    """Sent after the verdict, all barge-ins of a run together. ``None``: no run has a verdict
    with *sent* counted."""
    swallowed: Spread | None
    """``None``: not known in any run."""
    unaccounted_samples: int | None
    """Of the runs in here; 0, or ``None`` where a boundary was not tapped or there is no run."""
    outcomes: Mapping[str, int]
    """Runs by what became of their barge-ins, one after the other (``resumed, committed``);
    ``no barge-in`` where there was none. Most frequent first."""
    kinds: Mapping[str, int]
    """Runs by the kinds of their verdicts, in the same way; ``no verdict`` where none came."""
    findings: Mapping[str, int]
    """Runs in which a rule fired as a warning or an error."""
    notes: Mapping[str, int]
    """Runs in which a rule fired as `info` only."""
    controls_lost: int
    """Runs whose control reply did not arrive whole."""


def gather(analyses: Sequence[Analysis], *, barge_in: bool = False) -> Runs:
    """The figures of several runs of one call. Exact in samples, medians of milliseconds.

    Args:
        analyses: of the runs.
        barge_in: whether a run without a barge-in is no result.
    """
    apart: list[SetApart] = []
    sound: list[Analysis] = []
    for analysis in analyses:
        reason = why_set_apart(analysis, barge_in=barge_in)
        if reason is None:
            sound.append(analysis)
        else:
            apart.append(SetApart(analysis.trace.path, reason, analysis.unaccounted_samples))
    unaccounted = [a.unaccounted_samples for a in sound]
    known = [samples for samples in unaccounted if samples is not None]
    whole = bool(sound) and len(known) == len(sound)
    return Runs(
        count=len(sound),
        set_apart=tuple(apart),
        leaked=_spread(leaked_ms(a) for a in sound),
        swallowed=_spread(swallowed_ms(a) for a in sound),
        unaccounted_samples=sum(known) if whole else None,
        outcomes=_counted(outcome_of(a) for a in sound),
        kinds=_counted(_kind_of(a) for a in sound),
        findings=_fired(sound, info=False),
        notes=_fired(sound, info=True),
        controls_lost=sum(
            a.run is not None and a.run.control is not None and a.run.control.whole is False
            for a in sound
        ),
    )


def why_set_apart(analysis: Analysis, *, barge_in: bool = False) -> str | None:
    """Why a run is no result, in one line; ``None``: it is one.

    Args:
        analysis: of the run.
        barge_in: whether it is none without a barge-in.
    """
    if analysis.trace.unanalysed is not None:
        return analysis.trace.unanalysed
    if not analysis.trace.complete:
        return "the trace is incomplete: " + "; ".join(analysis.trace.incomplete_because)
    if analysis.balanced is False:
        first = analysis.unaccounted_because[:1]
        return f"{analysis.unaccounted_samples} samples unaccounted for" + "".join(
            f": {text}" for text in first
        )
    if barge_in and not analysis.counted:
        return "it never came to a barge-in"
    for number, one in enumerate(analysis.barge_ins, 1):
        parts, whole = _parts(one), _leaked_samples(one)
        if parts is not None and whole is not None and parts != whole:
            return f"barge-in {number}: the causes of its leak add up to {parts} of {whole} samples"
    return None


def leaked_ms(analysis: Analysis) -> float | None:
    """Sent after the verdict, all barge-ins together; ``None``: no verdict, or not known."""
    judged = [b for b in analysis.counted if b.verdict_ns is not None]
    amounts = [_leaked_samples(b) for b in judged]
    known = [samples for samples in amounts if samples is not None]
    if not judged or len(known) != len(amounts):
        return None
    return samples_ms(sum(known), one_rate(_rates(analysis)))


def outcome_of(analysis: Analysis) -> str:
    """What became of the barge-ins of a run, in their order."""
    outcomes = [b.outcome or "undecided" for b in analysis.counted]
    return ", ".join(outcomes) or "no barge-in"


def _kind_of(analysis: Analysis) -> str:
    kinds = [b.verdict_kind for b in analysis.counted if b.verdict_kind is not None]
    return ", ".join(kinds) or "no verdict"


def _leaked_samples(barge_in: BargeIn) -> int | None:
    sent = (barge_in.leaked or {}).get("sent")
    return None if sent is None else sent.samples


def _parts(barge_in: BargeIn) -> int | None:
    return None if barge_in.causes is None else sum(cause.samples for cause in barge_in.causes)


def swallowed_ms(analysis: Analysis) -> float | None:
    """Swallowed in the whole trace; ``None``: not known, or of several rates."""
    samples = analysis.totals.swallowed_samples
    if samples is None:
        return None
    rates = {
        g.rate_hz for s in analysis.segments if s.swallowed_samples for g in s.geometry["captured"]
    }
    return samples_ms(samples, one_rate(rates))


def _rates(analysis: Analysis) -> set[int]:
    return {g.rate_hz for s in analysis.segments for g in s.geometry.get("pushed", ())}


def _fired(analyses: Sequence[Analysis], *, info: bool) -> Mapping[str, int]:
    by_run = []
    for analysis in analyses:
        loud = {f.rule for f in analysis.findings if f.severity != "info"}
        by_run.append({f.rule for f in analysis.findings} - loud if info else loud)
    return _counted(rule for rules in by_run for rule in sorted(rules))


def _counted(names: Iterable[str]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return Spread(len(known), round(median(known), 3), known[0], known[-1])
