"""Words and numbers of a comparison and of a history.

Milliseconds are whole where they are ten or more: no figure of a call is exact to less than that,
and the document for scripts has them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    "MINUS",
    "Figure",
    "change",
    "common",
    "conclusion",
    "conditions",
    "failures",
    "figure",
    "frames",
    "installed",
    "interval",
    "kinds",
    "legend",
    "number",
    "probability",
    "remarks",
    "sizes",
    "title",
    "varied",
]

MINUS: Final = "−"  # noqa: RUF001 - what it is
ALIKE: Final = "~"

_USUAL: Final[Mapping[str, Any]] = {"reply": "generated", "channels": 1, "close_ms": 0}
"""Axes that need no mention while they stand where they do by default."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A median over runs, and from the least to the most where they differ."""

    typical: str
    spread: str

    def __str__(self) -> str:
        return f"{self.typical} ({self.spread})" if self.spread else self.typical


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


def frames(column: Column, measure: Measure) -> Figure | None:
    """The same audio in frames; ``None``: the measure is no audio."""
    return _measured(column.frames.get(measure.name)) if measure.frames_of else None


def common(column: Column, measure: Measure) -> str:
    """The figure, where all runs of all builds have the same."""
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


def interval(difference: Difference) -> str:
    """Where the change lies; empty where it can't be said, or no run differs from another."""
    within = difference.interval
    return "" if within is None else f"{number(within.low)}…{number(within.high)}"


def probability(difference: Difference) -> str:
    """The corrected p; empty where there was no test."""
    p = difference.p_corrected
    if p is None or difference.verdict == "too-few-runs":
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


# --- In words ------------------------------------------------------------------------------------


def conclusion(table: Table, against: Against) -> str:
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


def sizes(table: Table, letters: Mapping[str, str]) -> str:
    """How many runs count, by build, or for all where they are as many."""
    counts = {len(column.runs) for column in table.columns}
    if len(counts) == 1:
        (count,) = counts
        return f"{count} run{'s' if count != 1 else ''} of each"
    return "runs: " + ", ".join(f"{letters[c.build]} {len(c.runs)}" for c in table.columns)


def remarks(table: Table, letters: Mapping[str, str]) -> Iterator[str]:
    """What a reader has to know before believing the figures, a line each."""
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
            yield f"{measure.title} is {by} (p {probability(difference)}), but {limit}"


def legend(comparison: Comparison) -> Iterator[str]:
    """What the signs mean, for below the tables; only what is needed."""
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
