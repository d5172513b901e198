"""A comparison as one HTML page: what differs first, then a table for each call.

In every cell a small plot: each run of the build a dot, their median a line, on one scale for all
builds of a row, so that what the test says can be seen. The plots are drawn here; the page has no
script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reports.compare import Against, Column, Comparison, Table
from reports.compare.measures import MEASURES, Measure
from reports.show import compare_text as words
from reports.show.web import fill

__all__ = ["render"]

WIDTH: Final = 180
"""Of a plot, in its own units; the dots at the ends keep clear of its edge."""

EDGE: Final = 6
APART: Final = 6
"""Dots nearer to each other than this are put on top of each other."""

MOST: Final = 5
"""So many dots high is a plot; more at one place lie on the uppermost."""


def render(comparison: Comparison) -> str:
    """The comparison as a page that is whole in itself."""
    names = words.letters(comparison)
    varied = words.varied(comparison)
    return fill(
        "comparison.html.j2",
        title=f"{len(comparison.builds)} builds compared",
        builds=[
            {
                "letter": names[facts.build],
                "name": facts.build,
                "ran": words.installed(facts) or words.DASH,
            }
            for facts in comparison.builds
        ],
        conclusions=[
            {
                "call": words.title(table.call, varied),
                "who": f"{names[against.build]} against {names[against.first]}",
                "told": words.conclusion(table, against),
                "differs": any(d.verdict == "differs" for d in against.differences.values()),
            }
            for table in comparison.tables
            for against in table.against
        ],
        complete=comparison.complete,
        conditions=words.conditions(comparison),
        notes=comparison.notes,
        tables=[
            {
                "title": words.title(table.call, varied),
                "sizes": words.sizes(table, names),
                "heads": [
                    {"letter": names[column.build], "name": column.build}
                    for column in table.columns
                ],
                "rows": [_row(table, measure) for measure in MEASURES],
                "counted": [
                    {
                        "name": head,
                        "cells": [
                            words.kinds(
                                counts(column),
                                len(column.runs),
                                words.most_shown(head, counts(column)),
                            )
                            for column in table.columns
                        ],
                    }
                    for head, counts in words.COUNTED.items()
                ],
                "remarks": words.remarks(table, names),
            }
            for table in comparison.tables
        ],
        legend=words.legend(comparison),
        width=WIDTH,
    )


def _row(table: Table, measure: Measure) -> dict[str, Any]:
    """One figure of every build, and how far each is from the first."""
    values = {column.build: _values(column, measure) for column in table.columns}
    known = [value for one in values.values() for value in one]
    low, high = min([0.0, *known]), max([0.0, *known])
    against = {one.build: one for one in table.against}
    return {
        "name": words.heading(measure),
        "meaning": measure.meaning,
        "scale": f"{words.number(low)} to {words.number(high)} {measure.unit}"
        if known and measure.unit != "runs" and high > low
        else "",
        "cells": [
            {
                "typical": words.typical(column, measure),
                "range": words.range_of(column, measure),
                "plot": _plot(values[column.build], low, high, measure),
                "change": _change(against.get(column.build), measure, first=nth == 0),
            }
            for nth, column in enumerate(table.columns)
        ],
    }


def _values(column: Column, measure: Measure) -> list[float]:
    values = (run.figures[measure.name] for run in column.runs)
    return sorted(value for value in values if value is not None)


def _plot(
    values: Sequence[float], low: float, high: float, measure: Measure
) -> dict[str, Any] | None:
    """Where the dots and the line lie; ``None``: there is nothing to be seen in them."""
    if not values or measure.unit == "runs" or high <= low:
        return None

    def place(value: float) -> float:
        return round(EDGE + (value - low) / (high - low) * (WIDTH - 2 * EDGE), 1)

    dots: list[tuple[float, int]] = []
    for value in values:
        x = place(value)
        level = sum(abs(x - other) < APART for other, _ in dots)
        dots.append((x, min(level, MOST - 1)))
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    told = ", ".join(words.number(value) for value in values)
    return {
        "dots": dots,
        "median": place(median),
        "height": 11 + APART * max(level for _, level in dots),
        "told": f"runs, {measure.unit}: {told}; median {words.number(median)}",
    }


def _change(against: Against | None, measure: Measure, *, first: bool) -> Mapping[str, Any]:
    if first:
        return {"text": "", "look": "", "detail": ""}
    if against is None:
        return {"text": words.DASH, "look": "", "detail": ""}
    difference = against.differences[measure.name]
    look = {True: "better", False: "worse", None: ""}[difference.better]
    p = words.probability(difference)
    return {
        "text": words.change(difference, measure),
        "look": look,
        "detail": ", ".join(filter(None, [words.interval(difference), p and f"p {p}"])),
    }
