"""A history as lines of a terminal, as a Markdown table, and as a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from reports.compare import Against, Call, Column
from reports.compare.history import SCHEMA, History, Row, Step
from reports.compare.measures import MEASURES
from reports.show.compare_text import change, failures, figure, installed, kinds, title
from reports.show.markdown_text import plain, table
from reports.show.page import printable, wrapped
from reports.show.wording import DASH

__all__ = ["as_json", "as_markdown", "foot", "head", "lines"]

_SHOWN: Final = tuple(m for m in MEASURES if m.name in ("leaked-sent", "stop", "swallowed"))
"""What a line has room for."""
_NAME: Final = 26
_FIGURE: Final = 14
_ALWAYS: Final = ("pacing",)
"""Axes that are named even where they are the same everywhere."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One call on one release, in words."""

    call: str
    runs: int
    figures: tuple[str, ...]
    """As `_SHOWN` lists them."""
    outcomes: tuple[str, ...]
    """How many runs had each, most frequent first."""
    outcome: str
    """The one that all runs had."""
    remarks: tuple[str, ...]
    """What appeared, what went away, and what is wrong with the runs."""


def _line(one: Row, varied: Sequence[str]) -> _Line:
    column, outcomes = one.column, one.column.summary.outcomes
    count = len(column.runs)
    remarks = []
    if one.against is not None:
        remarks += _changes(column, one.against)
    elif column.summary.findings:
        remarks.append(f"findings: {', '.join(kinds(column.summary.findings, count))}")
    return _Line(
        call=_title(one.call, varied),
        runs=count,
        figures=tuple(str(figure(column, measure)) for measure in _SHOWN),
        outcomes=tuple(kinds(outcomes, count)),
        outcome=printable(next(iter(outcomes), DASH)) if len(outcomes) < 2 else "differs",
        remarks=(*remarks, *failures(column)),
    )


def _title(call: Call, varied: Sequence[str]) -> str:
    return title(call, (*varied, *_ALWAYS), joint=" ")


def _changes(column: Column, against: Against) -> list[str]:
    told = []
    if against.appeared:
        fired = {rule: column.summary.findings[rule] for rule in against.appeared}
        told.append(f"appeared: {', '.join(kinds(fired, len(column.runs)))}")
    if against.gone:
        told.append(f"gone: {', '.join(against.gone)}")
    moved = [
        f"{measure.title} {change(difference, measure)}{' ms' if measure.unit == 'ms' else ''} "
        f"({'better' if difference.better else 'worse'})"
        for measure in MEASURES
        if (difference := against.differences[measure.name]).verdict == "differs"
    ]
    if moved:
        told.append(f"changed: {', '.join(moved)}")
    if told and against.first:
        told[-1] += f" (against {against.first.rpartition(' ')[2]})"
    return told


# --- Terminal ------------------------------------------------------------------------------------


def head(
    package: str,
    releases: int,
    asked: int,
    calls: Sequence[Call],
    varied: Sequence[str],
    width: int,
) -> str:
    """What stands above the lines, newline at its end."""
    runs = "1 run" if asked == 1 else f"{asked} runs"
    many = "1 release" if releases == 1 else f"{releases} releases"
    titles = "".join(f"{measure.title:>{_FIGURE}}" for measure in _SHOWN)
    what = f" of {_title(calls[0], varied)}" if len(calls) == 1 else " of each call"
    about = f"{package}: {many}, {runs}{what}; median (range) in ms"
    return "\n".join([*wrapped(about, width), "", f"{'':<{_NAME}}{titles}  outcome"]) + "\n"


def lines(step: Step, varied: Sequence[str], width: int, *, alone: bool) -> str:
    """One release, as it is done; newline at its end.

    Args:
        step: the release.
        varied: axes that tell its calls apart.
        width: of the terminal.
        alone: whether there is one call only, which then needs no name.
    """
    name = f"{step.version}  {step.uploaded}" if step.uploaded else step.version
    told = [] if alone and step.rows else [name]
    if step.build.unavailable:
        told += wrapped(installed(step.build), width, 2)
    for row in step.rows:
        line = _line(row, varied)
        told += _lines(line, name if alone else f"  {line.call}", width)
    return "\n".join(line.rstrip() for line in told) + "\n"


def _lines(line: _Line, title: str, width: int) -> Iterator[str]:
    if len(title) >= _NAME:
        yield title
        title = ""
    row = f"{title:<{_NAME}}{''.join(f'{text:>{_FIGURE}}' for text in line.figures)}"
    told = list(line.remarks)
    if len(line.outcomes) > 1:
        told.insert(0, f"outcomes: {', '.join(line.outcomes)}")
    if len(row) + 2 + len(line.outcome) <= width:
        row += f"  {line.outcome}"
    else:
        told.insert(0, f"outcome: {line.outcome}")
    yield row
    for text in told:
        yield from wrapped(text, width, 4)


def foot(history: History, width: int) -> str:
    """What stands below the lines, newline at its end."""
    return (
        "\n".join(["", *(line for text in _foot(history) for line in wrapped(text, width))]) + "\n"
    )


def _foot(history: History) -> Iterator[str]:
    if not history.complete:
        yield "Broken off; the same command goes on from here."
    few = {
        difference.runs_to_decide
        for step in history.steps
        for one in step.rows
        if one.against is not None
        for difference in one.against.differences.values()
        if difference.runs_to_decide is not None
    }
    if few:
        yield (
            "Too few runs to tell figures of two releases apart; "
            f"{max(few)} of each call would decide, if they lie wholly apart."
        )
    yield f"Traces: {printable(history.folder)}"


# --- Documents -----------------------------------------------------------------------------------


def as_markdown(history: History, varied: Sequence[str]) -> str:
    """One table for a page, newline at its end."""
    heads = [
        "release", "uploaded", "call", "runs", *(f"{m.title}, ms" for m in _SHOWN), "outcome",
        "what changed",
    ]  # fmt: skip
    rows = []
    for step in history.steps:
        name = [step.version, step.uploaded or DASH]
        if step.build.unavailable:
            blank = [DASH] * (len(heads) - len(name) - 1)
            rows.append([*name, *blank, plain(installed(step.build))])
        for row in step.rows:
            line = _line(row, varied)
            cells = [line.call, str(line.runs), *line.figures, ", ".join(line.outcomes)]
            rows.append([*name, *map(plain, cells), plain("; ".join(line.remarks)) or DASH])
    told = table(heads, rows, right=len(heads))
    return "\n".join([*told, "", *map(plain, _foot(history))]) + "\n"


def as_json(history: History) -> str:
    """One document, newline at its end. Missing figures are null."""
    document = {
        "schema": SCHEMA,
        "package": history.package,
        "runs_asked": history.asked,
        "complete": history.complete,
        "folder": history.folder,
        "releases": [
            {
                "version": step.version,
                "uploaded": step.uploaded,
                "build": asdict(step.build),
                "calls": [asdict(one) for one in step.rows],
            }
            for step in history.steps
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
