"""The one table of a sweep, for a terminal, for a page, and for a script. Pure: rows in, text out.

Figures are medians and ranges over the runs of a cell that balance. What did not balance or did not
come to an end stands below its row with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import mode
from typing import Any, Final

from probe.cli.matrix import Made
from probe.scenarios.axes import Axes
from probe.sweep import Cell, LeftOut
from reports.assertions import check, parse
from reports.compare.runs import Runs, Spread, gather, leaked_ms, outcome_of
from reports.show import markdown_text
from reports.show.axes import AXES
from reports.show.compare_text import Figure
from reports.show.page import wrapped
from reports.show.wording import DASH, packages

__all__ = [
    "SCHEMA",
    "Row",
    "Table",
    "as_json",
    "as_markdown",
    "as_terminal",
    "render",
    "tabulate",
]

SCHEMA: Final = 1
"""Number of the JSON document of a sweep."""

_LABEL: Final = 20
_SELDOM: Final = ("reply", "channels", "close_ms")
"""Axes that need no mention while they stand where they do by default."""


@dataclass(frozen=True, slots=True)
class Row:
    """A cell with its runs."""

    cell: Cell
    made: tuple[Made, ...]
    runs: Runs
    failed: Mapping[str, int]
    """Runs that left nothing to read, by the reason."""
    unmet: Mapping[str, int]
    """Runs in which something that holds on a healthy build does not, by the assertion."""


@dataclass(frozen=True, slots=True)
class Table:
    """A sweep, as far as it came."""

    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    varied: tuple[str, ...]
    """Axes along which cells of one scenario differ."""
    fixed: Mapping[str, Any]
    """The others, with the value all cells have, or most of them: scenarios have their own."""
    runtime: Mapping[str, str]
    """Of the first trace: what was installed."""
    runs_asked: int
    jobs: int
    folder: str
    """Where the traces are."""
    planned: int
    """Calls that were to be made."""

    @property
    def made(self) -> int:
        return sum(len(row.made) for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(sum(row.failed.values()) for row in self.rows)

    @property
    def set_apart(self) -> int:
        return sum(len(row.runs.set_apart) for row in self.rows)


def tabulate(
    cells: Sequence[Cell],
    made: Sequence[Made],
    *,
    expected: Mapping[Cell, Sequence[str]],
    left_out: Sequence[LeftOut],
    runs: int,
    jobs: int,
    folder: str,
) -> Table:
    """Put the calls that were made under their cells; a cell of which none was made has no row."""
    rows = []
    for cell in cells:
        mine = tuple(sorted((m for m in made if m.call.cell == cell), key=lambda m: m.call.run))
        if mine:
            rows.append(_row(cell, mine, expected.get(cell, ())))
    names = [field.name for field in fields(Axes)]
    varied = tuple(name for name in names if _varies(cells, name))
    analyses = [m.analysis for m in made if m.analysis is not None]
    return Table(
        rows=tuple(rows),
        left_out=tuple(left_out),
        varied=varied,
        fixed={
            name: mode(getattr(cell.axes, name) for cell in cells)
            for name in names
            if name not in varied
        },
        runtime=analyses[0].trace.runtime if analyses else {},
        runs_asked=runs,
        jobs=jobs,
        folder=folder,
        planned=len(cells) * runs,
    )


def _varies(cells: Sequence[Cell], axis: str) -> bool:
    """Whether an axis has several values in one scenario."""
    values: dict[str, set[Any]] = {}
    for cell in cells:
        values.setdefault(cell.scenario.name, set()).add(getattr(cell.axes, axis))
    return any(len(of_one) > 1 for of_one in values.values())


def render(table: Table, output_format: str, width: int) -> str:
    """The table in a format; ``width`` is that of a terminal."""
    if output_format == "json":
        return as_json(table)
    return as_markdown(table) if output_format == "markdown" else as_terminal(table, width)


def _row(cell: Cell, made: tuple[Made, ...], expected: Sequence[str]) -> Row:
    analyses = [m.analysis for m in made if m.analysis is not None]
    failed: dict[str, int] = {}
    for one in made:
        if one.analysis is None:
            failed[one.error] = failed.get(one.error, 0) + 1
    unmet: dict[str, int] = {}
    for assertion in map(parse, expected):
        count = sum(check(analysis, assertion).holds is not True for analysis in analyses)
        if count:
            unmet[assertion.text] = count
    return Row(cell, made, gather(analyses), failed, unmet)


# --- Terminal ------------------------------------------------------------------------------------


def as_terminal(table: Table, width: int = 80) -> str:
    """The table in lines of at most ``width`` columns (80 or more), newline at its end."""
    width = max(width, 80)
    lines = [*_head(table, width), "", *_columns(width)]
    previous = None
    for row in table.rows:
        name = _name(table, row)
        label = _label(table, row)
        if label and name != previous:
            lines.append(name)
        previous = name
        lines += _figures(f"  {label}" if label else name, row, width)
        lines += _remarks(row, table.runs_asked, width)
    lines += ["", *_foot(table, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _head(table: Table, width: int) -> Iterator[str]:
    builds = {row.cell.build.label for row in table.rows}
    what = ", ".join(packages(table.runtime)) if len(builds) < 2 else f"{len(builds)} builds"
    runs = "1 run" if table.runs_asked == 1 else f"{table.runs_asked} runs"
    jobs = "1 call" if table.jobs == 1 else f"{table.jobs} calls"
    yield f"Sweep of {what}" if what else "Sweep"
    defaults = Axes()
    told = (
        AXES[name].format(value)
        for name, value in table.fixed.items()
        if name not in _SELDOM or value != getattr(defaults, name)
    )
    fixed = ", ".join(told)
    about = f"{len(table.rows)} cells, {runs} each, {jobs} at a time"
    yield from wrapped(f"{about}; unless said: {fixed}" if fixed else about, width, 2)


def _columns(width: int) -> Iterator[str]:
    pad = " " * _LABEL
    yield f"{pad}{'leaked at sent, ms':>20}{'swallowed, ms':>19}{'unac-':>8}"
    yield (f"{pad}{'median':>8}{'range':>12}{'median':>8}{'range':>11}{'counted':>8}  outcome")
    yield "─" * width


def _name(table: Table, row: Row) -> str:
    builds = {one.cell.build.label for one in table.rows}
    name = row.cell.scenario.name
    own = ", ".join(
        AXES[axis].format(value)
        for axis, common in table.fixed.items()
        if (value := getattr(row.cell.axes, axis)) != common
    )
    name = f"{name} ({own})" if own else name
    return name if len(builds) < 2 else f"{row.cell.build.label} {name}"


def _label(table: Table, row: Row) -> str:
    values = ((name, getattr(row.cell.axes, name)) for name in table.varied)
    return ", ".join(AXES[name].format(value) for name, value in values)


def _figures(label: str, row: Row, width: int) -> Iterator[str]:
    runs = row.runs
    outcome = next(iter(runs.outcomes), DASH)
    if len(runs.outcomes) > 1:
        outcome = "differs"
    leaked, swallowed = _figure(runs.leaked), _figure(runs.swallowed)
    figures = (
        f"{leaked.typical:>8}{leaked.spread:>12}"
        f"{swallowed.typical:>8}{swallowed.spread:>11}{_count(runs):>8}  "
    )
    room = width - _LABEL - len(figures)
    beside = len(outcome) <= room
    if len(label) >= _LABEL:
        yield label
        label = ""
    yield f"{label:<{_LABEL}}{figures}{outcome if beside else ''}"
    if not beside:
        yield from wrapped(f"outcome: {outcome}", width, 4)


def _remarks(row: Row, asked: int, width: int) -> Iterator[str]:
    runs, of = row.runs, len(row.made)
    remarks = [] if of == asked else [f"{of} of {asked} runs"]
    if len(runs.outcomes) > 1:
        remarks.append(f"outcomes: {_tally(runs.outcomes, runs.count)}")
    if runs.findings:
        remarks.append(_tally(runs.findings, runs.count))
    if runs.controls_lost:
        remarks.append(f"control not whole{_share(runs.controls_lost, runs.count)}")
    if row.unmet:
        count = sum(m.analysis is not None for m in row.made)
        remarks.append(f"not as on a healthy build: {_tally(row.unmet, count)}")
    remarks += [
        f"set apart{_share(1, of)}: {apart.reason} ({apart.trace})" for apart in runs.set_apart
    ]
    remarks += [f"no result{_share(count, of)}: {reason}" for reason, count in row.failed.items()]
    for remark in remarks:
        yield from wrapped(remark, width, 4)


def _foot(table: Table, width: int) -> Iterator[str]:
    balanced = sum(
        made.analysis is not None and made.analysis.balanced is True
        for row in table.rows
        for made in row.made
    )
    told = [f"{table.made} calls", f"{balanced} balance to the sample"]
    if table.set_apart:
        told.append(f"{table.set_apart} set apart")
    if table.failed:
        told.append(f"{table.failed} without a result")
    if table.made < table.planned:
        told.append(f"broken off, {table.planned - table.made} not made")
    yield from wrapped(", ".join(told) + ".", width)
    yield from wrapped(f"Traces: {table.folder}", width)
    for one in table.left_out:
        yield from wrapped(f"Left out: {one.reason}", width)


def _figure(spread: Spread | None) -> Figure:
    if spread is None:
        return Figure(DASH, "")
    differ = spread.least_ms != spread.most_ms
    between = f"{_ms(spread.least_ms)}–{_ms(spread.most_ms)}" if differ else ""
    return Figure(_ms(spread.median_ms), between)


def _ms(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _count(runs: Runs) -> str:
    known = [a.unaccounted_samples for a in runs.set_apart]
    total = None if runs.unaccounted_samples is None and runs.count else 0
    for samples in (runs.unaccounted_samples, *known):
        if samples is not None and total is not None:
            total += samples
    return DASH if total is None or not (runs.count or known) else str(total)


def _tally(counts: Mapping[str, int], of: int) -> str:
    return ", ".join(f"{name}{_share(count, of)}" for name, count in counts.items())


def _share(count: int, of: int) -> str:
    """Nothing to say where there was one run."""
    return "" if of == 1 else f" {count}/{of}"


# --- Markdown ------------------------------------------------------------------------------------


def as_markdown(table: Table) -> str:
    """A table for a page or a pull request, newline at its end."""
    names = [name.removesuffix("_ms").removesuffix("_hz") for name in table.varied]
    heads = [
        "scenario", *names, "runs", "leaked at sent, ms", "swallowed, ms", "unaccounted",
        "outcome", "findings",
    ]  # fmt: skip
    rows = []
    for row in table.rows:
        runs = row.runs
        axes = [str(getattr(row.cell.axes, name)) for name in table.varied]
        remarks = [_tally(runs.findings, runs.count)] if runs.findings else []
        if runs.set_apart:
            remarks.append(f"{len(runs.set_apart)} set apart")
        remarks += [f"no result: {reason}" for reason in row.failed]
        rows.append(
            [
                markdown_text.plain(_name(table, row)),
                *axes,
                str(runs.count),
                str(_figure(runs.leaked)),
                str(_figure(runs.swallowed)),
                _count(runs),
                _tally(runs.outcomes, runs.count) or DASH,
                markdown_text.plain("; ".join(remarks)) or DASH,
            ]
        )
    table_lines = markdown_text.table(heads, rows, right=len(heads))
    lines = [*_head(table, 10_000), "", *table_lines, "", *_foot(table, 10_000)]
    return "\n".join(line.strip() for line in lines) + "\n"


# --- JSON ----------------------------------------------------------------------------------------


def as_json(table: Table) -> str:
    """One JSON document, newline at its end. Milliseconds; missing figures are null."""
    document = {
        "schema": SCHEMA,
        "runtime": dict(table.runtime),
        "runs_asked": table.runs_asked,
        "jobs": table.jobs,
        "folder": table.folder,
        "planned": table.planned,
        "made": table.made,
        "complete": table.made == table.planned,
        "cells": [_document(row) for row in table.rows],
        "left_out": [asdict(one) for one in table.left_out],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _document(row: Row) -> dict[str, Any]:
    return {
        "scenario": row.cell.scenario.name,
        "build": row.cell.build.label,
        "axes": asdict(row.cell.axes),
        **asdict(row.runs),
        "failed": dict(row.failed),
        "unmet": dict(row.unmet),
        "calls": [_call(made) for made in row.made],
    }


def _call(made: Made) -> dict[str, Any]:
    analysis = made.analysis
    told: dict[str, Any] = {
        "run": made.call.run,
        "error": made.error or None,
        "seconds": round(made.seconds, 3),
        "trace": None,
        "balanced": None,
        "leaked_ms": None,
        "outcome": None,
        "findings": [],
    }
    if analysis is not None:
        told["trace"] = analysis.trace.path
        told["balanced"] = analysis.balanced
        told["leaked_ms"] = leaked_ms(analysis)
        told["outcome"] = outcome_of(analysis)
        told["findings"] = [finding.rule for finding in analysis.findings]
    return told
