"""A comparison for a pull request: what differs first, then a table for each call."""

from __future__ import annotations

from reports.compare import Comparison
from reports.show.compare_text import MINUS
from reports.show.compare_view import BROKEN_OFF, Cell, Sheet, view
from reports.show.markdown_text import plain, table
from reports.show.wording import DASH

__all__ = ["render"]


def render(comparison: Comparison) -> str:
    """The comparison as GitHub shows it, newline at its end."""
    shown = view(comparison)
    lines = [f"- **{plain(one.call)}, {one.who}:** {plain(one.told)}" for one in shown.conclusions]
    if not shown.complete:
        lines.append(f"- {BROKEN_OFF}")
    builds = [[build.letter, plain(build.name), plain(build.ran or DASH)] for build in shown.builds]
    lines += ["", *table(["", "build", "what ran"], builds, right=3)]
    for note in filter(None, [shown.conditions, *shown.notes]):
        lines += ["", plain(note)]
    for sheet in shown.sheets:
        title = plain(f"{sheet.title} ({sheet.sizes})")
        lines += ["", f"#### {title}", "", *_table(sheet), ""]
        lines += [f"- {plain(remark)}" for remark in sheet.remarks]
    lines += ["", *(f"<sub>{plain(text)}</sub>" for text in shown.legend)]
    return "\n".join(lines).strip("\n") + "\n"


def _table(sheet: Sheet) -> list[str]:
    """The first build has a column, every other one a second for how far it is from the first."""
    first, *others = (build.letter for build in sheet.builds)
    heads = ["", first]
    for letter in others:
        heads += [letter, f"{letter} {MINUS} {first}"]
    rows = []
    for row in sheet.rows:
        cells = [row.heading, str(row.cells[0].figure)]
        for cell in row.cells[1:]:
            cells += [str(cell.figure), _apart(cell)]
        rows.append(cells)
        if row.measure.frames_of is not None:
            rows.append(_spaced("in frames", [str(cell.frames) for cell in row.cells]))
    rows += [
        _spaced(counted.head, ["<br>".join(kinds) for kinds in counted.kinds])
        for counted in sheet.counted
    ]
    return table(heads, rows)


def _spaced(head: str, cells: list[str]) -> list[str]:
    """A row that says nothing of how far builds are from the first."""
    spaced = [head, cells[0]]
    for cell in cells[1:]:
        spaced += [cell, ""]
    return spaced


def _apart(cell: Cell) -> str:
    change = cell.change
    if change is None:
        return DASH
    text = change.text if change.better is None else f"**{change.text}**"
    within = f"{text} ({change.interval})" if change.interval else text
    return f"{within}, p {change.p}" if change.p else within
