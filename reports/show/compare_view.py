"""A comparison as every form shows it: titles, rows, and cells with their text, made once.

Milliseconds are whole where they are ten or more: no figure of a call is exact to less than that,
and the document for scripts has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.compare import (
    Against,
    BuildFacts,
    Call,
    Column,
    Comparison,
    Difference,
    Measured,
    Table,
)
from reports.compare.measures import MEASURES, Measure
from reports.show.axes import AXES
from reports.show.page import printable
from reports.show.wording import DASH, PACKAGES, packages

__all__ = [
    "ALIKE",
    "BROKEN_OFF",
    "MINUS",
    "Build",
    "Cell",
    "Change",
    "Conclusion",
    "Counted",
    "Figure",
    "Row",
    "Sheet",
    "View",
    "change",
    "conditions",
    "failures",
    "figure",
    "installed",
    "kinds",
    "number",
    "title",
    "varied",
    "view",
]

MINUS: Final = "−"  # noqa: RUF001 - what it is
ALIKE: Final = "~"
BROKEN_OFF: Final = "Broken off: these are the runs up to there."

SHOWN: Final = 3
"""Of outcomes and orders of one build; what real calls did may be of many kinds."""

_USUAL: Final[Mapping[str, Any]] = {"reply": "generated", "channels": 1, "close_ms": 0}
"""Axes that need no mention while they stand where they do by default."""


# --- What there is to show -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Build:
    """A build with the letter it has in tables."""

    letter: str
    name: str
    ran: str
    """What ran; empty: not known."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What one build does otherwise than the first, in one call."""

    call: str
    who: str
    told: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """A median over runs, and from the least to the most where they differ."""

    typical: str
    spread: str

    def __str__(self) -> str:
        return f"{self.typical} ({self.spread})" if self.spread else self.typical


@dataclass(frozen=True, slots=True)
class Change:
    """How far a build is from the first; what can't be said is empty."""

    text: str
    interval: str
    p: str
    better: bool | None
    """``None``: the builds can't be told apart by it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one build."""

    letter: str
    figure: Figure
    frames: Figure | None
    """The same audio in frames; ``None``: it is no audio."""
    change: Change | None
    """``None``: it is the first build, or there is nothing to compare."""
    values: tuple[float, ...]
    """Of its runs, in order of size."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of every build."""

    measure: Measure
    heading: str
    cells: tuple[Cell, ...]
    common: str
    """The figure that every run of every build has; empty: they differ."""

    @property
    def is_known(self) -> bool:
        """Whether the first build has it."""
        return bool(self.cells[0].values)


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted in runs and not tested: for every build its kinds, most frequent first."""

    head: str
    kinds: tuple[tuple[str, ...], ...]
    joint: str
    """What stands between two kinds in one line."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One call on all builds."""

    title: str
    sizes: str
    """How many runs count."""
    builds: tuple[Build, ...]
    has_runs: tuple[bool, ...]
    """Of each build."""
    is_compared: bool
    rows: tuple[Row, ...]
    counted: tuple[Counted, ...]
    remarks: tuple[str, ...]
    """What a reader has to know before believing the figures."""


@dataclass(frozen=True, slots=True)
class View:
    """A whole comparison."""

    builds: tuple[Build, ...]
    conclusions: tuple[Conclusion, ...]
    complete: bool
    conditions: str
    """What all scripted calls have in common; empty: nothing was scripted."""
    notes: tuple[str, ...]
    sheets: tuple[Sheet, ...]
    legend: tuple[str, ...]
    """What the signs mean, for below the tables; only what is needed."""


def view(comparison: Comparison) -> View:
    """Everything that is to be shown, in words. Names of builds and notes are as they were given:
    each form makes them harmless in its own way."""
    builds = {
        facts.build: Build(_letter(place), facts.build, installed(facts))
        for place, facts in enumerate(comparison.builds)
    }
    named = varied(comparison)
    told = conditions(comparison)
    return View(
        builds=tuple(builds.values()),
        conclusions=tuple(
            Conclusion(
                title(table.call, named),
                f"{builds[against.build].letter} against {builds[against.first].letter}",
                _conclusion(table, against),
                any(d.verdict == "differs" for d in against.differences.values()),
            )
            for table in comparison.tables
            for against in table.against
        ),
        complete=comparison.complete,
        conditions=f"All calls: {told}" if told else "",
        notes=comparison.notes,
        sheets=tuple(_sheet(table, builds, named) for table in comparison.tables),
        legend=tuple(_legend(comparison)),
    )


def _letter(place: int) -> str:
    """A short name of a build: A to Z, then numbers."""
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def _sheet(table: Table, builds: Mapping[str, Build], named: Sequence[str]) -> Sheet:
    letters = {build: told.letter for build, told in builds.items()}
    return Sheet(
        title=title(table.call, named),
        sizes=_sizes(table, letters),
        builds=tuple(builds[column.build] for column in table.columns),
        has_runs=tuple(bool(column.runs) for column in table.columns),
        is_compared=bool(table.against),
        rows=tuple(_row(table, measure, letters) for measure in MEASURES),
        counted=tuple(
            Counted(head, tuple(_counted(counts, most, c) for c in table.columns), joint)
            for head, counts, most, joint in _COUNTED
        ),
        remarks=tuple(_remarks(table, letters)),
    )


def _row(table: Table, measure: Measure, letters: Mapping[str, str]) -> Row:
    against = {one.build: one.differences[measure.name] for one in table.against}
    found = {run.figures[measure.name] for column in table.columns for run in column.runs}
    same = len(found) == 1 and all(column.runs for column in table.columns)
    first = table.columns[0]
    return Row(
        measure=measure,
        heading=measure.title if measure.unit == "runs" else f"{measure.title}, {measure.unit}",
        cells=tuple(
            Cell(
                letters[column.build],
                figure(column, measure),
                _measured(column.frames.get(measure.name)) if measure.frames_of else None,
                _change(against[column.build], measure) if column.build in against else None,
                _values(column, measure),
            )
            for column in table.columns
        ),
        common=_common(first, measure) if same else "",
    )


def _values(column: Column, measure: Measure) -> tuple[float, ...]:
    values = (run.figures[measure.name] for run in column.runs)
    return tuple(sorted(value for value in values if value is not None))


def _change(difference: Difference, measure: Measure) -> Change:
    within = difference.interval
    return Change(
        text=change(difference, measure),
        interval="" if within is None else f"{number(within.low)}…{number(within.high)}",
        p=_probability(difference),
        better=difference.better,
    )


def _counted(
    counts: Callable[[Column], Mapping[str, int]], most: int | None, column: Column
) -> tuple[str, ...]:
    return tuple(kinds(counts(column), len(column.runs), most)) or (DASH,)


_COUNTED: Final[tuple[tuple[str, Callable[[Column], Mapping[str, int]], int | None, str], ...]] = (
    ("outcome", lambda column: column.summary.outcomes, SHOWN, ", "),
    ("order", lambda column: column.orders, SHOWN, "; "),
    ("findings", lambda column: column.summary.findings, None, ", "),
)
"""Name of the row, what is counted, how many kinds are named (``None``: all), what parts them."""


# --- Calls and builds ----------------------------------------------------------------------------


def installed(facts: BuildFacts) -> str:
    """What ran, in a line; empty where that is not known."""
    if facts.unavailable:
        return f"not available: {printable(facts.unavailable)}"
    told = packages(facts.runtime) or [
        f"{name} {facts.installed[name]}"
        for names in PACKAGES.values()
        for name in names.values()
        if name in facts.installed
    ]
    if "language" in facts.runtime:
        version = facts.runtime.get("language_version", "")
        told.append(f"{facts.runtime['language']} {version}".strip())
    if facts.as_of:
        told.append(f"dependencies as of {facts.as_of[:10]}")
    if facts.source:
        told.append(facts.source)
    return printable(", ".join(told))


def title(call: Call, varied: Sequence[str], joint: str = ", ") -> str:
    """Name of a call, with its pacing and the axes along which the tables differ."""
    if call.scenario is None:
        return "calls that were not scripted"
    told = [_axis(name, value) for name, value in call.axes.items() if name in varied]
    return printable(joint.join([call.scenario, *told]))


def varied(comparison: Comparison) -> tuple[str, ...]:
    """Axes to name in every title: the pacing, and those in which tables differ."""
    values = _by_axis(comparison)
    return tuple(name for name, found in values.items() if name == "pacing" or len(found) > 1)


def conditions(comparison: Comparison) -> str:
    """What all scripted calls have in common beside that; empty where nothing was scripted."""
    told = [
        _axis(name, *found.values())
        for name, found in _by_axis(comparison).items()
        if name != "pacing" and len(found) == 1 and _USUAL.get(name) not in found.values()
    ]
    return printable(", ".join(told))


def _by_axis(comparison: Comparison) -> Mapping[str, Mapping[str, Any]]:
    """By axis every value that it has in a table, a table that lacks it included."""
    calls = [table.call for table in comparison.tables if table.call.scenario is not None]
    names = dict.fromkeys(name for call in calls for name in call.axes)
    return {
        name: {repr(value): value for call in calls for value in [call.axes.get(name)]}
        for name in names
    }


def _axis(name: str, value: Any) -> str:
    try:
        return AXES.get(name, name + " {}").format(value)
    except (ValueError, TypeError):
        # A header may say anything.
        return f"{name} {value}"


# --- Figures -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """One decimal for what is less than ten and not whole, none for the rest."""
    text = f"{abs(value):.0f}" if abs(value) >= 9.95 else f"{abs(value):.1f}".removesuffix(".0")
    return MINUS + text if value < 0 and float(text) else text


def figure(column: Column, measure: Measure) -> Figure:
    """The median over the runs and their range, or how many of them it holds in."""
    measured = column.figures.get(measure.name)
    if measured is None or measure.unit != "runs":
        return _measured(measured)
    held = sum(run.figures[measure.name] == 1 for run in column.runs)
    return Figure(f"{held}/{measured.count}", "")


def _measured(measured: Measured | None) -> Figure:
    if measured is None:
        return Figure(DASH, "")
    differ = measured.least != measured.most
    spread = f"{number(measured.least)}–{number(measured.most)}" if differ else ""
    return Figure(number(measured.median), spread)


def _common(column: Column, measure: Measure) -> str:
    measured = column.figures.get(measure.name)
    if measured is None or measure.unit != "runs":
        return figure(column, measure).typical
    return "always" if measured.median else "never"


def change(difference: Difference, measure: Measure) -> str:
    """How far apart, where the builds can be told apart; else why not."""
    if difference.verdict == "no-figure":
        return DASH
    if difference.verdict == "too-few-runs":
        return "too few"
    if difference.verdict != "differs" or difference.change is None:
        return ALIKE
    share = measure.unit == "runs"
    shown = number(difference.change * 100) + " %" if share else number(difference.change)
    return shown if shown.startswith((MINUS, "0")) else f"+{shown}"


def _probability(difference: Difference) -> str:
    """The corrected p; empty where there was no test."""
    p = difference.p_corrected
    if p is None or difference.verdict == "too-few-runs":
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


# --- In words ------------------------------------------------------------------------------------


def _conclusion(table: Table, against: Against) -> str:
    """What one build does otherwise than the first, as a sentence without its subject."""
    apart, few, missing = [], [], []
    for measure in MEASURES:
        difference = against.differences[measure.name]
        if difference.verdict == "differs" and difference.change is not None:
            side = "better" if difference.better else "worse"
            apart.append(f"{measure.title} {_by(difference.change, measure)} ({side})")
        elif difference.verdict == "too-few-runs":
            few.append(measure.title)
        elif difference.verdict == "no-figure" and any(
            column.figures[measure.name] for column in table.columns
        ):
            missing.append(measure.title)
    told = [", ".join(apart)] if apart else []
    if few:
        told.append(f"too few runs to tell: {', '.join(few)}")
    if not told:
        told.append(f"{ALIKE}, can't be told apart")
    if missing:
        told.append(f"not in both: {', '.join(missing)}")
    return "; ".join(told)


def _by(value: float, measure: Measure) -> str:
    if measure.unit == "runs":
        return f"in {number(abs(value) * 100)} of 100 runs {'more' if value > 0 else 'fewer'}"
    return f"{number(abs(value))} ms {'more' if value > 0 else 'less'}"


def kinds(counts: Mapping[str, int], of: int, most: int | None = None) -> list[str]:
    """``leak-after-verdict 5/5``, one by one; the most frequent only of more than so many."""
    shown = [f"{printable(name)} {count}/{of}" for name, count in counts.items()]
    if most is not None and len(shown) > most:
        shown[most - 1 :] = [f"{len(shown) - most + 1} others"]
    return shown


def failures(column: Column) -> list[str]:
    """Runs of a build without a result, and those set apart, each with the reason."""
    told = [
        f"no result {count}/{column.asked}: {printable(reason)}"
        for reason, count in column.failed.items()
    ]
    told += [
        f"set apart: {printable(apart.reason)} ({printable(apart.trace)})"
        for apart in column.summary.set_apart
    ]
    return told


def _sizes(table: Table, letters: Mapping[str, str]) -> str:
    """How many runs count, by build, or for all where they are as many."""
    counts = {len(column.runs) for column in table.columns}
    if len(counts) == 1:
        (count,) = counts
        return f"{count} run{'s' if count != 1 else ''} of each"
    return "runs: " + ", ".join(f"{letters[c.build]} {len(c.runs)}" for c in table.columns)


def _remarks(table: Table, letters: Mapping[str, str]) -> Iterator[str]:
    columns = {column.build: column for column in table.columns}
    for column in table.columns:
        told = [] if column.asked else ["no run of this call"]
        told += failures(column)
        told += [
            f"{measure.title} is known in {known.count} of {len(column.runs)} runs"
            for measure in MEASURES
            if (known := column.figures[measure.name]) and known.count < len(column.runs)
        ]
        yield from (f"{letters[column.build]}: {text}" for text in told)
    for against in table.against:
        name, first = letters[against.build], letters[against.first]
        yield from (f"{name}: {text}" for text in _undecided(against))
        for build, other, rules in (
            (against.build, first, against.appeared),
            (against.first, name, against.gone),
        ):
            if rules:
                found = {rule: columns[build].summary.findings[rule] for rule in rules}
                shown = ", ".join(kinds(found, len(columns[build].runs)))
                yield f"found in {letters[build]} and not in {other}: {shown}"


def _undecided(against: Against) -> Iterator[str]:
    """What more runs would decide, and what is apart by less than it is exact to."""
    few = {d.runs_to_decide for d in against.differences.values() if d.runs_to_decide}
    for count in sorted(few):
        yield (
            f"too few runs to tell anything apart; {count} of each build would decide where they "
            "lie wholly apart"
        )
    for measure in MEASURES:
        difference = against.differences[measure.name]
        if difference.verdict == "within-resolution" and difference.change is not None:
            by = _by(difference.change, measure)
            limit = f"exact to {number(difference.resolution or 0)} ms only"
            if difference.change == 0:
                by, limit = "another", "not at the median"
            yield f"{measure.title} is {by} (p {_probability(difference)}), but {limit}"


def _legend(comparison: Comparison) -> Iterator[str]:
    asked = [against for table in comparison.tables for against in table.against]
    differences = [one for against in asked for one in against.differences.values()]
    if any(d.verdict in ("alike", "all-equal", "within-resolution") for d in differences):
        yield f"~: can't be told apart at {comparison.alpha * 100:g} %."
    levels = sorted({d.interval.level for d in differences if d.interval is not None})
    if levels:
        level = "–".join(f"{level * 100:.1f} %" for level in dict.fromkeys([levels[0], levels[-1]]))
        yield (
            "Change: median of all differences between a run of the build and one of the first; "
            f"its interval is at the level of its test, {level} or more."
        )
    if any(d.p is not None for d in differences):
        yield (
            "p: exact permutation test of the rank sum, two-sided, corrected after Holm over the "
            "figures in which a build and the first differ in any run."
        )
    if len(asked) > 1:
        yield (
            f"Each build in each table is a question of its own: {len(asked)} were asked, and of "
            "twenty one may differ by chance."
        )
