"""A history as lines of a terminal, as a Markdown table, and as a JSON document."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from reports.compare import Call, Column, Difference
from reports.compare.history import SCHEMA, History, Row, Step
from reports.compare.measures import MEASURES, Measure
from reports.show import compare_text as words
from reports.show.axes import AXES
from reports.show.markdown_text import plain, table
from reports.show.page import printable

__all__ = ["as_json", "as_markdown", "foot", "head", "lines"]

_SHOWN: Final = tuple(m for m in MEASURES if m.name in ("leaked-sent", "stop", "swallowed"))
"""What a line has room for."""
_NAME: Final = 26
_FIGURE: Final = 14
_ALWAYS: Final = ("pacing",)
"""Axes that are named even where they are the same everywhere."""


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
    return "\n".join([*_wrapped(about, width, 0), "", f"{'':<{_NAME}}{titles}  outcome"]) + "\n"


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
        told += _wrapped(words.installed(step.build), width, 2)
    for one in step.rows:
        told += _line(one, name if alone else f"  {_title(one.call, varied)}", width)
    return "\n".join(line.rstrip() for line in told) + "\n"


def foot(history: History, width: int) -> str:
    """What stands below the lines, newline at its end."""
    told = [] if history.complete else ["Broken off; the same command goes on from here."]
    few = {
        difference.runs_to_decide
        for step in history.steps
        for one in step.rows
        if one.against is not None
        for difference in one.against.differences.values()
        if difference.runs_to_decide is not None
    }
    if few:
        told.append(
            "Too few runs to tell figures of two releases apart; "
            f"{max(few)} of each call would decide, if they lie wholly apart."
        )
    told.append(f"Traces: {printable(history.folder)}")
    return "\n".join(["", *(line for text in told for line in _wrapped(text, width, 0))]) + "\n"


def _title(call: Call, varied: Sequence[str]) -> str:
    told = [
        AXES.get(name, name + " {}").format(value)
        for name, value in call.axes.items()
        if name in varied or name in _ALWAYS
    ]
    return printable(" ".join([call.scenario or "", *told]))


def _line(one: Row, title: str, width: int) -> list[str]:
    column = one.column
    outcomes = column.summary.outcomes
    outcome = next(iter(outcomes), words.DASH) if len(outcomes) < 2 else "differs"
    figures = "".join(f"{_figure(column, measure):>{_FIGURE}}" for measure in _SHOWN)
    told = [] if len(title) < _NAME else [title]
    row = f"{title if len(title) < _NAME else '':<{_NAME}}{figures}"
    told.append(f"{row}  {printable(outcome)}" if len(row) + 2 + len(outcome) <= width else row)
    if told[-1] == row:
        told += _wrapped(f"outcome: {printable(outcome)}", width, 4)
    for remark in _remarks(one):
        told += _wrapped(remark, width, 4)
    return told


def _figure(column: Column, measure: Measure) -> str:
    spread = words.range_of(column, measure)
    return f"{words.typical(column, measure)}{f' ({spread})' if spread else ''}"


def _remarks(one: Row) -> list[str]:
    """What appeared, what went away, and what is wrong with the runs."""
    column, against = one.column, one.against
    count, outcomes = len(column.runs), column.summary.outcomes
    told = []
    if len(outcomes) > 1:
        told.append("outcomes: " + ", ".join(words.kinds(outcomes, count, len(outcomes))))
    if against is None and column.summary.findings:
        found = words.kinds(column.summary.findings, count, len(column.summary.findings))
        told.append("findings: " + ", ".join(found))
    if against is not None:
        told += _changes(one)
    told += [
        f"set apart: {printable(apart.reason)} ({printable(apart.trace)})"
        for apart in column.summary.set_apart
    ]
    told += [
        f"no result {failed}/{column.asked}: {printable(reason)}"
        for reason, failed in column.failed.items()
    ]
    return told


def _changes(one: Row) -> list[str]:
    against, column = one.against, one.column
    if against is None:
        return []
    told = []
    if against.appeared:
        fired = {rule: column.summary.findings[rule] for rule in against.appeared}
        told.append("appeared: " + ", ".join(words.kinds(fired, len(column.runs), len(fired))))
    if against.gone:
        told.append("gone: " + ", ".join(against.gone))
    moved = [
        f"{measure.title} {words.change(difference, measure)}{_unit(measure)} {_side(difference)}"
        for measure in MEASURES
        if (difference := against.differences[measure.name]).verdict == "differs"
    ]
    if moved:
        told.append("changed: " + ", ".join(moved))
    if told and against.first:
        told[-1] += f" (against {against.first.rpartition(' ')[2]})"
    return told


def _unit(measure: Measure) -> str:
    return " ms" if measure.unit == "ms" else ""


def _side(difference: Difference) -> str:
    return "(better)" if difference.better else "(worse)"


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(
        text, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False
    )


def as_markdown(history: History, varied: Sequence[str]) -> str:
    """One table for a page, newline at its end."""
    heads = ["release", "uploaded", "call", "runs", *(f"{m.title}, ms" for m in _SHOWN)]
    rows = []
    for step in history.steps:
        when = step.uploaded or words.DASH
        if step.build.unavailable:
            reason = plain(words.installed(step.build))
            blank = [words.DASH] * (len(heads) - 1)
            rows.append([step.version, when, *blank, reason])
        for one in step.rows:
            count, outcomes = len(one.column.runs), one.column.summary.outcomes
            rows.append(
                [
                    step.version,
                    when,
                    plain(_title(one.call, varied)),
                    str(count),
                    *(plain(_figure(one.column, measure)) for measure in _SHOWN),
                    plain(", ".join(words.kinds(outcomes, count, len(outcomes)))),
                    plain("; ".join(r for r in _remarks(one) if not r.startswith("outcomes")))
                    or words.DASH,
                ]
            )
    told = table([*heads, "outcome", "what changed"], rows, right=len(heads) + 2)
    below = [plain(line) for line in foot(history, 10_000).split("\n")]
    return "\n".join([*told, *below]).rstrip("\n") + "\n"


def as_json(history: History) -> str:
    """One document, newline at its end. Missing figures are null."""
    steps = [_document(step) for step in history.steps]
    document = {
        "schema": SCHEMA,
        "package": history.package,
        "runs_asked": history.asked,
        "complete": history.complete,
        "folder": history.folder,
        "releases": steps,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _document(step: Step) -> dict[str, Any]:
    return {
        "version": step.version,
        "uploaded": step.uploaded,
        "build": asdict(step.build),
        "calls": [asdict(one) for one in step.rows],
    }
