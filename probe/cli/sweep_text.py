"""The one table of a sweep in words, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from probe.cli.sweep_table import Row, Table
from probe.scenarios.axes import Axes
from reports.compare.runs import Runs, Spread
from reports.show import markdown_text
from reports.show.axes import AXES
from reports.show.compare_text import Figure
from reports.show.page import wrapped
from reports.show.wording import DASH, packages

__all__ = ["as_markdown", "as_terminal"]

_LABEL: Final = 20
_SELDOM: Final = ("reply", "channels", "close_ms")
"""Axes that need no mention while they stand where they do by default."""


# --- What both say -------------------------------------------------------------------------------


def _head(table: Table) -> tuple[str, str]:
    """What was swept, and how."""
    what = f"{table.builds} builds" if table.builds > 1 else ", ".join(packages(table.runtime))
    runs = "1 run" if table.runs_asked == 1 else f"{table.runs_asked} runs"
    jobs = "1 call" if table.jobs == 1 else f"{table.jobs} calls"
    about = f"{len(table.rows)} cells, {runs} each, {jobs} at a time"
    usual = {name: getattr(Axes(), name) for name in _SELDOM}
    fixed = _axes({n: v for n, v in table.fixed.items() if n not in usual or v != usual[n]})
    return f"Sweep of {what}".removesuffix(" of "), (
        f"{about}; unless said: {fixed}" if fixed else about
    )


def _foot(table: Table) -> Iterator[str]:
    analyses = [made.analysis for row in table.rows for made in row.made]
    balanced = sum(analysis is not None and analysis.balanced is True for analysis in analyses)
    told = [f"{table.made} calls", f"{balanced} balance to the sample"]
    if table.set_apart:
        told.append(f"{table.set_apart} set apart")
    if table.failed:
        told.append(f"{table.failed} without a result")
    if table.made < table.planned:
        told.append(f"broken off, {table.planned - table.made} not made")
    yield ", ".join(told) + "."
    yield f"Traces: {table.folder}"
    yield from (f"Left out: {one.reason}" for one in table.left_out)


def _axes(values: Mapping[str, Any]) -> str:
    return ", ".join(AXES[name].format(value) for name, value in values.items())


def _name(table: Table, row: Row) -> str:
    """The scenario, with the axes it has of its own, and its build where there are several."""
    here = {name: getattr(row.cell.axes, name) for name in table.fixed}
    own = _axes({name: value for name, value in here.items() if value != table.fixed[name]})
    name = f"{row.cell.scenario.name} ({own})" if own else row.cell.scenario.name
    return name if table.builds < 2 else f"{row.cell.build.label} {name}"


def _figure(spread: Spread | None) -> Figure:
    if spread is None:
        return Figure(DASH, "")
    median, least, most = (
        f"{value:.1f}".removesuffix(".0")
        for value in (spread.median_ms, spread.least_ms, spread.most_ms)
    )
    return Figure(median, "" if spread.least_ms == spread.most_ms else f"{least}–{most}")


def _unaccounted(runs: Runs) -> str:
    """Of all runs, those that are set apart for it included."""
    apart = [one.unaccounted_samples for one in runs.set_apart]
    if runs.unaccounted_samples is None and (runs.count or not apart):
        return DASH
    return str(sum(samples or 0 for samples in (runs.unaccounted_samples, *apart)))


def _tally(counts: Mapping[str, int], of: int) -> str:
    return ", ".join(f"{name}{_share(count, of)}" for name, count in counts.items())


def _share(count: int, of: int) -> str:
    """Nothing to say where there was one run."""
    return "" if of == 1 else f" {count}/{of}"


# --- Terminal ------------------------------------------------------------------------------------


def as_terminal(table: Table, width: int = 80) -> str:
    """The table in lines of at most ``width`` columns (80 or more), newline at its end."""
    width = max(width, 80)
    what, about = _head(table)
    pad = " " * _LABEL
    lines = [
        what,
        *wrapped(about, width, 2),
        "",
        f"{pad}{'leaked at sent, ms':>20}{'swallowed, ms':>19}{'unac-':>8}",
        f"{pad}{'median':>8}{'range':>12}{'median':>8}{'range':>11}{'counted':>8}  outcome",
        "─" * width,
    ]
    previous = None
    for row in table.rows:
        name = _name(table, row)
        label = _axes({axis: getattr(row.cell.axes, axis) for axis in table.varied})
        if label and name != previous:
            lines.append(name)
        previous = name
        lines += _figures(f"  {label}" if label else name, row.runs, width)
        for remark in _remarks(row, table.runs_asked):
            lines += wrapped(remark, width, 4)
    lines.append("")
    for text in _foot(table):
        lines += wrapped(text, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _figures(label: str, runs: Runs, width: int) -> Iterator[str]:
    outcome = next(iter(runs.outcomes), DASH) if len(runs.outcomes) < 2 else "differs"
    leaked, swallowed = _figure(runs.leaked), _figure(runs.swallowed)
    if len(label) >= _LABEL:
        yield label
        label = ""
    line = (
        f"{label:<{_LABEL}}{leaked.typical:>8}{leaked.spread:>12}"
        f"{swallowed.typical:>8}{swallowed.spread:>11}{_unaccounted(runs):>8}  "
    )
    if len(line) + len(outcome) <= width:
        yield line + outcome
    else:
        yield line
        yield from wrapped(f"outcome: {outcome}", width, 4)


def _remarks(row: Row, asked: int) -> Iterator[str]:
    runs, of = row.runs, len(row.made)
    if of != asked:
        yield f"{of} of {asked} runs"
    if len(runs.outcomes) > 1:
        yield f"outcomes: {_tally(runs.outcomes, runs.count)}"
    if runs.findings:
        yield _tally(runs.findings, runs.count)
    if runs.controls_lost:
        yield f"control not whole{_share(runs.controls_lost, runs.count)}"
    if row.unmet:
        judged = sum(made.analysis is not None for made in row.made)
        yield f"not as on a healthy build: {_tally(row.unmet, judged)}"
    for apart in runs.set_apart:
        yield f"set apart{_share(1, of)}: {apart.reason} ({apart.trace})"
    for reason, count in row.failed.items():
        yield f"no result{_share(count, of)}: {reason}"


# --- Markdown ------------------------------------------------------------------------------------


def as_markdown(table: Table) -> str:
    """A table for a page or a pull request, newline at its end."""
    names = [name.removesuffix("_ms").removesuffix("_hz") for name in table.varied]
    heads = [
        "scenario", *names, "runs", "leaked at sent, ms", "swallowed, ms", "unaccounted",
        "outcome", "findings",
    ]  # fmt: skip
    rows = [_cells(table, row) for row in table.rows]
    told = markdown_text.table(heads, rows, right=len(heads))
    lines = [*_head(table), "", *told, "", *_foot(table)]
    return "\n".join(line.strip() for line in lines) + "\n"


def _cells(table: Table, row: Row) -> Sequence[str]:
    runs = row.runs
    remarks = [_tally(runs.findings, runs.count)] if runs.findings else []
    if runs.set_apart:
        remarks.append(f"{len(runs.set_apart)} set apart")
    remarks += [f"no result: {reason}" for reason in row.failed]
    return [
        markdown_text.plain(_name(table, row)),
        *(str(getattr(row.cell.axes, name)) for name in table.varied),
        str(runs.count),
        str(_figure(runs.leaked)),
        str(_figure(runs.swallowed)),
        _unaccounted(runs),
        _tally(runs.outcomes, runs.count) or DASH,
        markdown_text.plain("; ".join(remarks)) or DASH,
    ]
