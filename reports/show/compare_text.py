"""Words and numbers of a comparison, as the terminal and the page print them.

Milliseconds are whole where they are ten or more: no figure of a call is exact to less than that,
and the document for scripts has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

__all__ = [
    "ALIKE",
    "COUNTED",
    "DASH",
    "MINUS",
    "change",
    "common",
    "conclusion",
    "conditions",
    "heading",
    "installed",
    "interval",
    "is_same",
    "kinds",
    "legend",
    "letters",
    "median_of",
    "most_shown",
    "number",
    "probability",
    "range_of",
    "remarks",
    "sizes",
    "spread_of",
    "title",
    "typical",
    "varied",
]

DASH: Final = "–"
MINUS: Final = "−"  # noqa: RUF001 - what it is
ALIKE: Final = "~"
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "python": {"livekit_agents": "livekit-agents", "livekit": "livekit"},
    "node": {"livekit_agents": "@livekit/agents", "livekit": "@livekit/rtc-node"},
}
"""By language, what a trace's runtime calls the packages people know by another name."""

_USUAL: Final[Mapping[str, Any]] = {"reply": "generated", "channels": 1, "close_ms": 0}
"""Axes that need no mention while they stand where they do by default."""

SHOWN: Final = 3
"""Of outcomes and orders of one build; what real calls did may be of many kinds."""


def letters(comparison: Comparison) -> Mapping[str, str]:
    """A short name for each build, in their order: A to Z, then numbers."""
    return {
        facts.build: chr(ord("A") + place) if place < 26 else str(place + 1)
        for place, facts in enumerate(comparison.builds)
    }


def installed(facts: BuildFacts) -> str:
    """What ran, in a line; empty where that is not known."""
    if facts.unavailable:
        return f"not available: {printable(facts.unavailable)}"
    named = _NAMES.get(facts.runtime.get("language", ""), _NAMES["python"])
    told = [f"{named[key]} {facts.runtime[key]}" for key in named if key in facts.runtime]
    if not told:
        packages = [name for names in _NAMES.values() for name in names.values()]
        told = [f"{name} {facts.installed[name]}" for name in packages if name in facts.installed]
    if "language" in facts.runtime:
        version = facts.runtime.get("language_version", "")
        told.append(f"{facts.runtime['language']} {version}".strip())
    if facts.as_of:
        told.append(f"dependencies as of {facts.as_of[:10]}")
    if facts.source:
        told.append(facts.source)
    return printable(", ".join(told))


def title(call: Call, varied: Sequence[str]) -> str:
    """Name of a call, with its pacing and the axes along which the tables differ."""
    if call.scenario is None:
        return "calls that were not scripted"
    told = [_axis(name, value) for name, value in call.axes.items() if name in varied]
    return printable(", ".join([call.scenario, *told]))


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


def heading(measure: Measure) -> str:
    """What a row is called."""
    return measure.title if measure.unit == "runs" else f"{measure.title}, {measure.unit}"


def number(value: float) -> str:
    """One decimal for what is less than ten and not whole, none for the rest."""
    text = f"{abs(value):.0f}" if abs(value) >= 9.95 else f"{abs(value):.1f}".removesuffix(".0")
    return MINUS + text if value < 0 and float(text) else text


def typical(column: Column, measure: Measure) -> str:
    """The median over the runs, or how many of them it holds in."""
    figure = column.figures.get(measure.name)
    if figure is None:
        return DASH
    if measure.unit == "runs":
        held = sum(run.figures[measure.name] == 1 for run in column.runs)
        return f"{held}/{figure.count}"
    return median_of(figure)


def common(column: Column, measure: Measure) -> str:
    """The figure, where all runs of all builds have the same."""
    figure = column.figures.get(measure.name)
    if figure is None or measure.unit != "runs":
        return typical(column, measure)
    return "always" if figure.median else "never"


def range_of(column: Column, measure: Measure) -> str:
    """From the least to the most, where they differ."""
    return "" if measure.unit == "runs" else spread_of(column.figures.get(measure.name))


def median_of(figure: Measured | None) -> str:
    return DASH if figure is None else number(figure.median)


def spread_of(figure: Measured | None) -> str:
    if figure is None or figure.least == figure.most:
        return ""
    return f"{number(figure.least)}–{number(figure.most)}"


def is_same(table: Table, measure: Measure) -> bool:
    """Whether every run of every build has the same figure."""
    found = {run.figures[measure.name] for column in table.columns for run in column.runs}
    return len(found) == 1 and all(column.runs for column in table.columns)


def change(difference: Difference, measure: Measure) -> str:
    """How far apart, where the builds can be told apart; else why not."""
    if difference.verdict == "no-figure":
        return DASH
    if difference.verdict == "too-few-runs":
        return "too few"
    if difference.verdict != "differs" or difference.change is None:
        return ALIKE
    return _signed(difference.change, measure)


def _signed(value: float, measure: Measure) -> str:
    shown = number(value * 100) + " %" if measure.unit == "runs" else number(value)
    return shown if shown.startswith((MINUS, "0")) else f"+{shown}"


def interval(difference: Difference) -> str:
    """Where the change lies; empty where it can't be said, or no run differs from another."""
    within = difference.interval
    if within is None:
        return ""
    return f"{number(within.low)}…{number(within.high)}"


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


def kinds(counts: Mapping[str, int], of: int, most: int) -> list[str]:
    """``leak-after-verdict 5/5``, one by one; the most frequent only of more than so many."""
    shown = [f"{printable(name)} {count}/{of}" for name, count in counts.items()]
    if len(shown) > most:
        shown[most - 1 :] = [f"{len(shown) - most + 1} others"]
    return shown or [DASH]


COUNTED: Final[Mapping[str, Callable[[Column], Mapping[str, int]]]] = {
    "outcome": lambda column: column.summary.outcomes,
    "order": lambda column: column.orders,
    "findings": lambda column: column.summary.findings,
}
"""What is counted in runs and not tested, by the name of its row."""


def most_shown(head: str, counts: Mapping[str, int]) -> int:
    """How many kinds a row of `COUNTED` names one by one: findings all."""
    return len(counts) if head == "findings" else SHOWN


def sizes(table: Table, names: Mapping[str, str]) -> str:
    """How many runs count, by build, or for all where they are as many."""
    counts = {len(column.runs) for column in table.columns}
    if len(counts) == 1:
        (count,) = counts
        return f"{count} run{'s' if count != 1 else ''} of each"
    return "runs: " + ", ".join(f"{names[c.build]} {len(c.runs)}" for c in table.columns)


def remarks(table: Table, names: Mapping[str, str]) -> list[str]:
    """What a reader has to know before believing the figures, a line each."""
    told = []
    for column in table.columns:
        name = names[column.build]
        if not column.asked:
            told.append(f"{name}: no run of this call")
        told += [
            f"{name}: no result {count}/{column.asked}: {printable(reason)}"
            for reason, count in column.failed.items()
        ]
        told += [
            f"{name}: set apart: {printable(apart.reason)} ({printable(apart.trace)})"
            for apart in column.summary.set_apart
        ]
        told += [
            f"{name}: {measure.title} is known in {figure.count} of {len(column.runs)} runs"
            for measure in MEASURES
            if (figure := column.figures[measure.name]) and figure.count < len(column.runs)
        ]
    columns = {column.build: column for column in table.columns}
    for against in table.against:
        name = names[against.build]
        few = {d.runs_to_decide for d in against.differences.values() if d.runs_to_decide}
        told += [
            f"{name}: too few runs to tell anything apart; {count} of each build would decide "
            "where they lie wholly apart"
            for count in sorted(few)
        ]
        for measure in MEASURES:
            difference = against.differences[measure.name]
            if difference.verdict == "within-resolution" and difference.change is not None:
                by = f"{name}: {measure.title} is {_by(difference.change, measure)} "
                limit = f"exact to {number(difference.resolution or 0)} ms only"
                if difference.change == 0:
                    by, limit = f"{name}: {measure.title} is another ", "not at the median"
                told.append(f"{by}(p {probability(difference)}), but {limit}")
        before, after = columns[against.first], columns[against.build]
        for one, other, rules in (
            (after, before, against.appeared),
            (before, after, against.gone),
        ):
            if rules:
                counts = {rule: one.summary.findings[rule] for rule in rules}
                shown = ", ".join(kinds(counts, len(one.runs), len(counts)))
                told.append(f"found in {names[one.build]} and not in {names[other.build]}: {shown}")
    return told


def legend(comparison: Comparison) -> list[str]:
    """What the signs mean, for below the tables; only what is needed."""
    alpha = f"{comparison.alpha * 100:g} %"
    differences = [
        difference
        for table in comparison.tables
        for against in table.against
        for difference in against.differences.values()
    ]
    told = []
    if any(d.verdict in ("alike", "all-equal", "within-resolution") for d in differences):
        told.append(f"~: can't be told apart at {alpha}.")
    levels = sorted({d.interval.level for d in differences if d.interval is not None})
    if levels:
        level = "–".join(f"{level * 100:.1f} %" for level in dict.fromkeys([levels[0], levels[-1]]))
        told.append(
            "Change: median of all differences between a run of the build and one of the first; "
            f"its interval is at the level of its test, {level} or more."
        )
    if any(d.p is not None for d in differences):
        told.append(
            "p: exact permutation test of the rank sum, two-sided, corrected after Holm over the "
            "figures in which a build and the first differ in any run."
        )
    asked = sum(len(table.against) for table in comparison.tables)
    if asked > 1:
        told.append(
            f"Each build in each table is a question of its own: {asked} were asked, and of twenty "
            "one may differ by chance."
        )
    return told
