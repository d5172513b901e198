"""What a sweep came to: its cells with their runs, as data and as one document for scripts.

Figures are medians and ranges over the runs of a cell that balance. What did not balance or did not
come to an end stands beside them with the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import mode
from typing import Any, Final

from probe.cli.matrix import Made
from probe.scenarios.axes import Axes
from probe.sweep import Cell, LeftOut
from reports.assertions import check, parse
from reports.compare.runs import Runs, gather, leaked_ms, outcome_of

__all__ = ["SCHEMA", "Row", "Table", "as_json", "tabulate"]

SCHEMA: Final = 1
"""Number of the JSON document of a sweep."""


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

    @property
    def builds(self) -> int:
        return len({row.cell.build.label for row in self.rows})


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
    by_cell: dict[Cell, list[Made]] = {cell: [] for cell in cells}
    for one in sorted(made, key=lambda one: one.call.run):
        by_cell[one.call.cell].append(one)
    axes = {
        field.name: [getattr(cell.axes, field.name) for cell in cells] for field in fields(Axes)
    }
    varied = tuple(name for name in axes if _varies(cells, name))
    analyses = [one.analysis for one in made if one.analysis is not None]
    return Table(
        rows=tuple(
            _row(cell, mine, expected.get(cell, ())) for cell, mine in by_cell.items() if mine
        ),
        left_out=tuple(left_out),
        varied=varied,
        fixed={name: mode(values) for name, values in axes.items() if name not in varied},
        runtime=analyses[0].trace.runtime if analyses else {},
        runs_asked=runs,
        jobs=jobs,
        folder=folder,
        planned=len(cells) * runs,
    )


def _varies(cells: Sequence[Cell], axis: str) -> bool:
    """Whether an axis has several values in one scenario."""
    values = {(cell.scenario.name, getattr(cell.axes, axis)) for cell in cells}
    return len(values) > len({name for name, _ in values})


def _row(cell: Cell, made: Sequence[Made], expected: Sequence[str]) -> Row:
    analyses = [one.analysis for one in made if one.analysis is not None]
    unmet = Counter(
        assertion.text
        for assertion in map(parse, expected)
        for analysis in analyses
        if check(analysis, assertion).holds is not True
    )
    failed = Counter(one.error for one in made if one.analysis is None)
    return Row(cell, tuple(made), gather(analyses), failed, unmet)


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
        "failed": row.failed,
        "unmet": row.unmet,
        "calls": [_call(made) for made in row.made],
    }


def _call(made: Made) -> dict[str, Any]:
    analysis = made.analysis
    return {
        "run": made.call.run,
        "error": made.error or None,
        "seconds": round(made.seconds, 3),
        "trace": analysis and analysis.trace.path,
        "balanced": analysis and analysis.balanced,
        "leaked_ms": analysis and leaked_ms(analysis),
        "outcome": analysis and outcome_of(analysis),
        "findings": [finding.rule for finding in analysis.findings] if analysis else [],
    }
