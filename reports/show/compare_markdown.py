"""A comparison for a pull request: what differs first, then a table for each call."""

from __future__ import annotations

from collections.abc import Mapping

from reports.compare import Against, Column, Comparison, Measured, Table
from reports.compare.measures import MEASURES, Measure
from reports.show import compare_text as words
from reports.show import markdown_text
from reports.show.markdown_text import plain

__all__ = ["render"]


def render(comparison: Comparison) -> str:
    """The comparison as GitHub shows it, newline at its end."""
    names = words.letters(comparison)
    varied = words.varied(comparison)
    lines = []
    for table in comparison.tables:
        for against in table.against:
            who = f"{names[against.build]} against {names[against.first]}"
            title = words.title(table.call, varied)
            lines.append(f"- **{plain(title)}, {who}:** {plain(words.conclusion(table, against))}")
    if not comparison.complete:
        lines.append("- Broken off: these are the runs up to there.")
    builds = [
        [names[facts.build], plain(facts.build), plain(words.installed(facts) or words.DASH)]
        for facts in comparison.builds
    ]
    lines += ["", *markdown_text.table(["", "build", "what ran"], builds, right=3)]
    told = [f"All calls: {text}"] if (text := words.conditions(comparison)) else []
    for note in [*told, *comparison.notes]:
        lines += ["", plain(note)]
    for table in comparison.tables:
        title = f"{words.title(table.call, varied)} ({words.sizes(table, names)})"
        lines += ["", f"#### {plain(title)}", "", *_table(table, names), ""]
        lines += [f"- {plain(remark)}" for remark in words.remarks(table, names)]
    lines += ["", *(f"<sub>{plain(text)}</sub>" for text in words.legend(comparison))]
    return "\n".join(lines).strip("\n") + "\n"


def _table(table: Table, names: Mapping[str, str]) -> list[str]:
    first, *others = table.columns
    heads = ["", names[first.build]]
    for column in others:
        heads += [names[column.build], f"{names[column.build]} {words.MINUS} {names[first.build]}"]
    rows = []
    against = {one.build: one for one in table.against}
    for measure in MEASURES:
        cells = [words.heading(measure), _figure(first, measure)]
        for column in others:
            cells += [_figure(column, measure), _apart(against.get(column.build), measure)]
        rows.append(cells)
        if measure.frames_of is not None:
            cells = ["in frames", _spread(first.frames.get(measure.name))]
            for column in others:
                cells += [_spread(column.frames.get(measure.name)), ""]
            rows.append(cells)
    for head, counts in words.COUNTED.items():
        kinds = [_kinds(head, counts(column), len(column.runs)) for column in table.columns]
        cells = [head, kinds[0]]
        for text in kinds[1:]:
            cells += [text, ""]
        rows.append(cells)
    return markdown_text.table(heads, rows)


def _figure(column: Column, measure: Measure) -> str:
    spread = words.range_of(column, measure)
    return f"{words.typical(column, measure)} {f'({spread})' if spread else ''}"


def _spread(figure: Measured | None) -> str:
    spread = words.spread_of(figure)
    return f"{words.median_of(figure)} {f'({spread})' if spread else ''}"


def _apart(against: Against | None, measure: Measure) -> str:
    if against is None:
        return words.DASH
    difference = against.differences[measure.name]
    change = words.change(difference, measure)
    if difference.verdict == "differs":
        change = f"**{change}**"
    within = words.interval(difference)
    p = words.probability(difference)
    return ", ".join(
        filter(None, [f"{change} {f'({within})' if within else ''}".strip(), p and f"p {p}"])
    )


def _kinds(head: str, counts: Mapping[str, int], of: int) -> str:
    return "<br>".join(words.kinds(counts, of, words.most_shown(head, counts)))
