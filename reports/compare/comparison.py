"""Builds side by side: the same calls, the figures of each, and whether they can be told apart.

    runs = {name: [read(path) for path in Path(name).glob("*.jsonl")] for name in ("old", "new")}
    comparison = compare(runs)
    comparison.tables[0].against[0].differences["leaked-sent"].verdict

One table holds the runs of one scripted call, all builds beside each other; calls that were not
scripted form one table. Each build is compared with the first. Every figure is one number a run,
so a run counts once, however many barge-ins it holds. Pure: analyses in, a `Comparison` out; its
fields are the keys of the JSON document, in its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, median
from typing import Any, Final, Literal

from reports.account.boundary import LEAKING
from reports.account.source import Source, ledger_of
from reports.analysis import analyze
from reports.compare import statistics
from reports.compare.measures import MEASURES, Measure, order_of
from reports.compare.runs import Runs, gather, why_set_apart
from reports.compare.statistics import ALPHA, Interval
from reports.findings import Settings
from reports.results import Analysis, Severity
from reports.units import time_ms

__all__ = [
    "SCHEMA",
    "Against",
    "BuildFacts",
    "Call",
    "Column",
    "Comparison",
    "Difference",
    "Fired",
    "Measured",
    "RunFigures",
    "RunResult",
    "Table",
    "Verdict",
    "compare",
    "read",
]

SCHEMA: Final = 1
"""Number of the JSON document of a comparison."""

Verdict = Literal["differs", "alike", "within-resolution", "all-equal", "too-few-runs", "no-figure"]
"""``differs``: told apart. ``alike``: can't be told apart. ``within-resolution``: told apart, but
by no more than the figure is exact to, or not at the median. ``all-equal``: no run differs from any
other. ``too-few-runs``: with so few no values whatever could be told apart. ``no-figure``: one of
the builds has none."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was scripted: what runs must have in common to be compared."""

    scenario: str | None
    """``None``: calls that were not scripted."""
    axes: Mapping[str, Any]
    """Pacing, length of frames and what else the run's header says."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A call that was made on a build, or was tried."""

    call: Mapping[str, Any] | None
    """What was scripted, as the trace's header has it; ``None``: nothing was."""
    analysis: Analysis | None
    """``None``: it left nothing to read."""
    error: str = ""
    """Why."""
    started_unix_s: float | None = None
    """When it was recorded; ``None``: not known."""


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """A build as it was named, and what it is."""

    build: str
    runtime: Mapping[str, str] = field(default_factory=dict)
    """What its traces say ran, by name; where they differ, all that they say."""
    installed: Mapping[str, str] = field(default_factory=dict)
    """Package to version; empty where nobody looked."""
    as_of: str | None = None
    """UTC. None of its dependencies is newer; ``None``: they are whatever was there."""
    source: str | None = None
    """Of sources: their commit, or a digest of files under no version control."""
    unavailable: str = ""
    """Why nothing could be run on it; empty: it could."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure over the runs that have it."""

    count: int
    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that fired in a run, by its worst finding."""

    value: float
    """In the unit of the rule's figure."""
    samples: int | None
    """Audio it is about; ``None``: it is not about an amount of audio."""
    severity: Severity


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run and its figures, as they went into the test."""

    trace: str
    figures: Mapping[str, float | None]
    """By the name of the measure; ``None``: this run has none."""
    fired: Mapping[str, Fired]
    """By rule."""
    not_judged: Mapping[str, str]
    """Rules that could not be judged, and why."""


@dataclass(frozen=True, slots=True)
class Column:
    """One build in one table."""

    build: str
    asked: int
    """Runs that were made or tried, set apart and failed ones included."""
    summary: Runs
    """Outcomes, findings and what was set apart, over the runs that count."""
    figures: Mapping[str, Measured | None]
    """By the name of the measure; ``None``: no run has it."""
    frames: Mapping[str, Measured | None]
    """The same audio in frames, by the name of the measure. Builds that cut frames differently
    can't be compared by these."""
    orders: Mapping[str, int]
    """Runs by the order of the marks around their barge-ins, most frequent first."""
    failed: Mapping[str, int]
    """Runs that left nothing to read, by the reason."""
    runs: tuple[RunFigures, ...]
    """Those that count."""
    resolution_ms: Mapping[str, float | None]
    """By boundary, what times there are exact to, in the run where they are least so; ``None``:
    not known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of a build against the first build."""

    verdict: Verdict
    change: float | None = None
    """Median of all differences between a run of this build and one of the first, this less first;
    of a measure in runs, the difference of the shares. ``None``: no figure."""
    better: bool | None = None
    """Whether the change is for the better; ``None`` where the verdict is not ``differs``."""
    interval: Interval | None = None
    """Of the change, at the level of its corrected test, so that it holds 0 where the builds can't
    be told apart; ``None``: not tested, too few runs for such an interval, or a share."""
    p: float | None = None
    """Of the test; ``None``: not tested, for want of a figure or of values that differ."""
    p_corrected: float | None = None
    """After Holm, over the figures of this build that were tested."""
    runs_to_decide: int | None = None
    """With ``too-few-runs``: how many of each build would decide, if they lie wholly apart."""
    resolution: float | None = None
    """What it is exact to, in its unit; ``None``: not known, or no figure."""


@dataclass(frozen=True, slots=True)
class Against:
    """A build against the first."""

    build: str
    first: str
    differences: Mapping[str, Difference]
    """By the name of the measure, in the order of `MEASURES`."""
    tested: int
    """Figures that were tested and are corrected together."""
    appeared: tuple[str, ...]
    """Rules that fired in a run of this build and in none of the first, as warning or error.
    Counted, not tested."""
    gone: tuple[str, ...]
    """The other way round."""


@dataclass(frozen=True, slots=True)
class Table:
    """One call on all builds."""

    call: Call
    columns: tuple[Column, ...]
    """In the order of the builds, without those that are not available."""
    against: tuple[Against, ...]
    """Every build but the first that has a run to compare, in their order."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything, ready to be rendered."""

    schema: int
    alpha: float
    """Chance of a false difference over the figures of one build against the first in a table."""
    builds: tuple[BuildFacts, ...]
    tables: tuple[Table, ...]
    complete: bool = True
    """False: it was broken off, and holds the runs up to there."""
    notes: tuple[str, ...] = ()
    """What has to be known about how the runs came about."""


def read(trace: Source, *, settings: Settings | None = None) -> RunResult:
    """The run that a trace is of.

    Args:
        trace: the file, what was read of it, or its ledger.
        settings: thresholds of rules, as `reports.analyze` takes them.

    Raises:
        SettingError, TraceError: as `reports.analyze` does.
    """
    ledger = ledger_of(trace)
    header = ledger.trace.header
    analysis = analyze(ledger, settings=settings)
    return RunResult(header.run, analysis, started_unix_s=header.started_unix_s)


def compare(
    runs: Mapping[str, Sequence[RunResult]],
    *,
    with_barge_in: Collection[str] = (),
    facts: Collection[BuildFacts] = (),
    complete: bool = True,
    notes: Sequence[str] = (),
) -> Comparison:
    """Put runs side by side, the first build that is available being what the others are compared
    with.

    Args:
        runs: by build, in the order they are to stand.
        with_barge_in: scenarios that can't do without a barge-in; a run of them that has none is
            set apart.
        facts: of builds of which more is known than their traces say.
        complete: whether all runs that were to be made are in here.
        notes: passed on.
    """
    calls: dict[str, Call] = {}
    cells: dict[tuple[str, str], list[RunResult]] = {}
    for build, results in runs.items():
        for result in results:
            call = _call(result.call)
            key = repr((call.scenario, sorted(call.axes.items())))
            calls.setdefault(key, call)
            cells.setdefault((key, build), []).append(result)
    known = {one.build: one for one in facts}
    out = {one.build for one in facts if one.unavailable}
    tables = []
    for key, call in calls.items():
        columns = tuple(
            _column(build, cells.get((key, build), ()), call, with_barge_in)
            for build in runs
            if build not in out
        )
        against = tuple(
            _against(columns[0], column)
            for column in columns[1:]
            if columns[0].runs and column.runs
        )
        tables.append(Table(call, columns, against))
    return Comparison(
        schema=SCHEMA,
        alpha=ALPHA,
        builds=tuple(
            replace(known.get(build) or BuildFacts(build), runtime=_runtime(results))
            for build, results in runs.items()
        ),
        tables=tuple(tables),
        complete=complete,
        notes=tuple(notes),
    )


def _call(header: Mapping[str, Any] | None) -> Call:
    told = dict(header or {})
    scenario = told.pop("scenario", None)
    # One runtime writes 20.0 where the other writes 20.
    axes = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in told.items()
    }
    return Call(None if scenario is None else str(scenario), axes)


def _runtime(results: Sequence[RunResult]) -> Mapping[str, str]:
    versions: dict[str, dict[str, None]] = {}
    for result in results:
        if result.analysis is not None:
            for name, version in result.analysis.trace.runtime.items():
                versions.setdefault(name, {})[version] = None
    return {name: ", ".join(found) for name, found in versions.items()}


# --- One build -----------------------------------------------------------------------------------


def _column(
    build: str, results: Sequence[RunResult], call: Call, with_barge_in: Collection[str]
) -> Column:
    needed = call.scenario in with_barge_in
    analyses = [result.analysis for result in results if result.analysis is not None]
    sound = [a for a in analyses if why_set_apart(a, barge_in=needed) is None]
    return Column(
        build=build,
        asked=len(results),
        summary=gather(analyses, barge_in=needed),
        figures={m.name: _measured([m.of(a) for a in sound]) for m in MEASURES},
        frames={
            m.name: _measured([m.frames_of(a) for a in sound]) for m in MEASURES if m.frames_of
        },
        orders=dict(Counter(order for a in sound if (order := order_of(a))).most_common()),
        failed=dict(Counter(r.error for r in results if r.analysis is None).most_common()),
        runs=tuple(_run(a) for a in sound),
        resolution_ms={
            boundary: _coarsest([time_ms(a.trace.resolution_ns.get(boundary)) for a in sound])
            for boundary in LEAKING
        },
    )


def _run(analysis: Analysis) -> RunFigures:
    fired: dict[str, Fired] = {}
    for finding in analysis.findings:
        evidence = finding.evidence
        one = Fired(evidence.figure.value, evidence.samples, finding.severity)
        known = fired.setdefault(finding.rule, one)
        if (one.value, one.samples or 0) > (known.value, known.samples or 0):
            fired[finding.rule] = one
    return RunFigures(
        trace=analysis.trace.path,
        figures={measure.name: measure.of(analysis) for measure in MEASURES},
        fired=fired,
        not_judged={one.rule: one.reason for one in analysis.not_judged},
    )


def _measured(values: Sequence[float | None]) -> Measured | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Measured(len(known), round(median(known), 3), min(known), max(known))


def _coarsest(resolutions: Sequence[float | None]) -> float | None:
    known = [value for value in resolutions if value is not None]
    return max(known) if known and len(known) == len(resolutions) else None


# --- Against the first ---------------------------------------------------------------------------


def _against(first: Column, other: Column) -> Against:
    pairs = {m: (_values(first, m), _values(other, m)) for m in MEASURES}
    # However runs that are all alike were dealt, their p is 1: they take nothing from the others.
    tested = [m for m, (a, b) in pairs.items() if a and b and len({*a, *b}) > 1]
    p_values = [statistics.p_value(*pairs[m]) for m in tested]
    plain = dict(zip(tested, p_values, strict=True))
    corrected = dict(zip(tested, statistics.holm(p_values), strict=True))
    # What the corrected p would be if every tested figure of the one lay above those of the other.
    sizes = [statistics.least_p(len(pairs[m][0]), len(pairs[m][1])) for m in tested]
    attainable = dict(zip(tested, statistics.holm(sizes), strict=True))
    differences: dict[str, Difference] = {}
    for measure, (a, b) in pairs.items():
        if not a or not b:
            differences[measure.name] = Difference("no-figure")
            continue
        resolution = _resolution(measure, first, other)
        if measure not in corrected:
            differences[measure.name] = Difference("all-equal", 0.0, resolution=resolution)
            continue
        told = corrected[measure]
        shares = measure.unit == "runs"
        change = mean(b) - mean(a) if shares else statistics.difference(a, b)
        verdict: Verdict = "alike"
        if attainable[measure].p > ALPHA:
            verdict = "too-few-runs"
        elif told.p <= ALPHA:
            near = change == 0 or (resolution is not None and abs(change) <= resolution)
            verdict = "within-resolution" if near else "differs"
        few = verdict == "too-few-runs"
        differences[measure.name] = Difference(
            verdict=verdict,
            change=change,
            better=(change > 0) == measure.more_is_better if verdict == "differs" else None,
            interval=None if shares else statistics.interval(a, b, 1 - ALPHA / told.times),
            p=plain[measure],
            p_corrected=told.p,
            runs_to_decide=statistics.runs_to_decide(len(tested)) if few else None,
            resolution=resolution,
        )
    before, after = set(first.summary.findings), set(other.summary.findings)
    return Against(
        build=other.build,
        first=first.build,
        differences=differences,
        tested=len(tested),
        appeared=tuple(sorted(after - before)),
        gone=tuple(sorted(before - after)),
    )


def _values(column: Column, measure: Measure) -> list[float]:
    values = (run.figures[measure.name] for run in column.runs)
    return [value for value in values if value is not None]


def _resolution(measure: Measure, first: Column, other: Column) -> float | None:
    """What a figure is exact to, on the build where it is less so; ``None``: not known."""
    if measure.boundary is None:
        return 0.0
    return _coarsest([c.resolution_ms.get(measure.boundary) for c in (first, other)])
