"""A comparison as every form shows it: titles, rows, and cells with their text, made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.compare import Column, Comparison, Difference, Table
from reports.compare.measures import MEASURES, Measure
from reports.show import compare_text as words
from reports.show.wording import DASH

__all__ = [
    "BROKEN_OFF",
    "Build",
    "Cell",
    "Change",
    "Conclusion",
    "Counted",
    "Row",
    "Sheet",
    "View",
    "view",
]

BROKEN_OFF: Final = "Broken off: these are the runs up to there."

SHOWN: Final = 3
"""Of outcomes and orders of one build; what real calls did may be of many kinds."""


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
    figure: words.Figure
    frames: words.Figure | None
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
        facts.build: Build(_letter(place), facts.build, words.installed(facts))
        for place, facts in enumerate(comparison.builds)
    }
    named = words.varied(comparison)
    told = words.conditions(comparison)
    return View(
        builds=tuple(builds.values()),
        conclusions=tuple(
            Conclusion(
                words.title(table.call, named),
                f"{builds[against.build].letter} against {builds[against.first].letter}",
                words.conclusion(table, against),
                any(d.verdict == "differs" for d in against.differences.values()),
            )
            for table in comparison.tables
            for against in table.against
        ),
        complete=comparison.complete,
        conditions=f"All calls: {told}" if told else "",
        notes=comparison.notes,
        sheets=tuple(_sheet(table, builds, named) for table in comparison.tables),
        legend=tuple(words.legend(comparison)),
    )


def _letter(place: int) -> str:
    """A short name of a build: A to Z, then numbers."""
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def _sheet(table: Table, builds: Mapping[str, Build], named: Sequence[str]) -> Sheet:
    letters = {build: told.letter for build, told in builds.items()}
    return Sheet(
        title=words.title(table.call, named),
        sizes=words.sizes(table, letters),
        builds=tuple(builds[column.build] for column in table.columns),
        has_runs=tuple(bool(column.runs) for column in table.columns),
        is_compared=bool(table.against),
        rows=tuple(_row(table, measure, letters) for measure in MEASURES),
        counted=tuple(
            Counted(head, tuple(_counted(counts, most, c) for c in table.columns), joint)
            for head, counts, most, joint in _COUNTED
        ),
        remarks=tuple(words.remarks(table, letters)),
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
                words.figure(column, measure),
                words.frames(column, measure),
                _change(against[column.build], measure) if column.build in against else None,
                _values(column, measure),
            )
            for column in table.columns
        ),
        common=words.common(first, measure) if same else "",
    )


def _values(column: Column, measure: Measure) -> tuple[float, ...]:
    values = (run.figures[measure.name] for run in column.runs)
    return tuple(sorted(value for value in values if value is not None))


def _change(difference: Difference, measure: Measure) -> Change:
    return Change(
        text=words.change(difference, measure),
        interval=words.interval(difference),
        p=words.probability(difference),
        better=difference.better,
    )


def _counted(
    counts: Callable[[Column], Mapping[str, int]], most: int | None, column: Column
) -> tuple[str, ...]:
    return tuple(words.kinds(counts(column), len(column.runs), most)) or (DASH,)


_COUNTED: Final[tuple[tuple[str, Callable[[Column], Mapping[str, int]], int | None, str], ...]] = (
    ("outcome", lambda column: column.summary.outcomes, SHOWN, ", "),
    ("order", lambda column: column.orders, SHOWN, "; "),
    ("findings", lambda column: column.summary.findings, None, ", "),
)
"""Name of the row, what is counted, how many kinds are named (``None``: all), what parts them."""
