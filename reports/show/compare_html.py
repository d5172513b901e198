"""A comparison as one HTML page: what differs first, then a table for each call.

In every cell a small plot: each run of the build a dot, their median a line, on one scale for all
builds of a row, so that what the test says can be seen. The plots are drawn here; the page has no
script.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from reports.compare import Comparison
from reports.show.compare_text import number
from reports.show.compare_view import Row, view
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
    return fill(
        "comparison.html.j2",
        title=f"{len(comparison.builds)} builds compared",
        view=view(comparison),
        plots=_plots,
        width=WIDTH,
    )


def _plots(row: Row) -> dict[str, Any]:
    """What the scale of a row reads, and a plot for each of its cells."""
    known = [value for cell in row.cells for value in cell.values]
    low, high = min([0.0, *known]), max([0.0, *known])
    unit = row.measure.unit
    if unit == "runs" or high <= low:
        return {"scale": "", "cells": [None] * len(row.cells)}
    return {
        "scale": f"{number(low)} to {number(high)} {unit}",
        "cells": [_plot(cell.values, low, high, unit) for cell in row.cells],
    }


def _plot(values: Sequence[float], low: float, high: float, unit: str) -> dict[str, Any] | None:
    """Where the dots and the line lie; ``None``: there are none."""
    if not values:
        return None

    def place(value: float) -> float:
        return round(EDGE + (value - low) / (high - low) * (WIDTH - 2 * EDGE), 1)

    dots: list[tuple[float, int]] = []
    for value in values:
        x = place(value)
        level = sum(abs(x - other) < APART for other, _ in dots)
        dots.append((x, min(level, MOST - 1)))
    middle = median(values)
    told = ", ".join(number(value) for value in values)
    return {
        "dots": dots,
        "median": place(middle),
        "height": 11 + APART * max(level for _, level in dots),
        "told": f"runs, {unit}: {told}; median {number(middle)}",
    }
