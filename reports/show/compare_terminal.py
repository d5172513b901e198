"""A comparison for people at a terminal: readable at 80 columns, with two builds or with many.

What differs comes first, in words; then a table for each call. Two builds stand beside each other,
a figure in each row; more of them stand below each other, figure by figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.compare import Against, Column, Comparison, Table
from reports.compare.measures import MEASURES, Measure
from reports.show import compare_text as words
from reports.show.page import Page, printable

__all__ = ["render"]

_NAME: Final = 20
_SIDE: Final = 16
_APART: Final = 27
_RULE: Final = _NAME + 2 * _SIDE + _APART
_SIDE_HEAD: Final = f"{'median':>6} {'range':<9}"
_FRAMES_HEAD: Final = f"{'frames':>6} {'range':<9}"
_APART_HEAD: Final = f"{'change':>7} {'interval':<12}{'p':>6}"


def render(comparison: Comparison, *, width: int = 80, colour: bool = False) -> str:
    """The comparison as text, newline at its end.

    Args:
        comparison: of one build or more.
        width: columns, 80 or more.
        colour: whether headings are set in bold.
    """
    page = Page(max(width, 80), colour)
    names = words.letters(comparison)
    varied = words.varied(comparison)
    _head(page, comparison, names)
    _conclusions(page, comparison, names, varied)
    for table in comparison.tables:
        _table(page, table, names, varied)
    page.line()
    for text in words.legend(comparison):
        page.paragraph(text, 0, "dim")
    return page.text()


def _head(page: Page, comparison: Comparison, names: Mapping[str, str]) -> None:
    page.title(f"Comparison of {len(comparison.builds)} builds")
    for facts in comparison.builds:
        page.paragraph(f"{names[facts.build]}  {printable(facts.build)}")
        if text := words.installed(facts):
            page.paragraph(text, 5, "dim")
    if not comparison.complete:
        page.paragraph("Broken off: these are the runs up to there.")
    if text := words.conditions(comparison):
        page.paragraph(f"All calls: {text}")
    for note in comparison.notes:
        page.paragraph(printable(note))


def _conclusions(
    page: Page, comparison: Comparison, names: Mapping[str, str], varied: Sequence[str]
) -> None:
    if any(table.against for table in comparison.tables):
        page.title("What differs")
    for table in comparison.tables:
        title = words.title(table.call, varied)
        for against in table.against:
            who = f"{names[against.build]} against {names[against.first]}"
            page.paragraph(f"{title}, {who}: {words.conclusion(table, against)}")


def _table(page: Page, table: Table, names: Mapping[str, str], varied: Sequence[str]) -> None:
    page.title(f"{words.title(table.call, varied)}  ({words.sizes(table, names)})")
    if any(column.runs for column in table.columns):
        if len(table.columns) == 2:
            _beside(page, table, names)
        else:
            _below(page, table, names)
        for head, counts in words.COUNTED.items():
            _told(page, table, names, head, counts)
    for remark in words.remarks(table, names):
        page.paragraph(remark)


def _beside(page: Page, table: Table, names: Mapping[str, str]) -> None:
    first, other = table.columns
    a, b = names[first.build], names[other.build]
    pad = " " * _NAME
    page.line(f"{pad}{a:^{_SIDE}}{b:^{_SIDE}}{f'{b} {words.MINUS} {a}':^{_APART}}")
    page.line(f"{pad}{_SIDE_HEAD}{_SIDE_HEAD}{_APART_HEAD}")
    page.line("─" * _RULE)
    against = table.against[0] if table.against else None
    for measure in MEASURES:
        line = f"{words.heading(measure):<{_NAME}}{_side(first, measure)}{_side(other, measure)}"
        _line(page, line, _apart(against, measure))
        if measure.frames_of is not None:
            page.line(
                f"{'  in frames':<{_NAME}}" + "".join(_frames(c, measure) for c in table.columns)
            )


def _below(page: Page, table: Table, names: Mapping[str, str]) -> None:
    pad = " " * _NAME
    first = table.columns[0]
    alone = not table.against
    if not alone:
        page.line(f"{pad}{'':<{2 * _SIDE}}{f'{words.MINUS} {names[first.build]}':^{_APART}}")
    page.line(f"{pad}{_SIDE_HEAD}{_FRAMES_HEAD}{'' if alone else _APART_HEAD}")
    page.line("─" * _RULE)
    against = {one.build: one for one in table.against}
    for measure in MEASURES:
        if words.is_same(table, measure):
            shown = words.common(first, measure)
            line = f"{words.heading(measure):<{_NAME}}{shown:>6} {'':<9}"
            told = words.ALIKE if first.figures[measure.name] else ""
            apart = "" if alone else f"{told:>7} on all builds"
            page.line(f"{line}{_frames(first, measure)}{apart}".rstrip())
            continue
        page.line(words.heading(measure))
        for column in table.columns:
            line = f"{'  ' + names[column.build]:<{_NAME}}{_side(column, measure)}"
            line += _frames(column, measure)
            _line(page, line, _apart(against.get(column.build), measure))


def _line(page: Page, figures: str, apart: str) -> None:
    """One line, or two where figures are so long that one would be cut."""
    if len((figures + apart).rstrip()) <= page.width:
        page.line(figures + apart)
        return
    page.line(figures)
    page.line(f"{apart.strip():>{_RULE}}")


def _side(column: Column, measure: Measure) -> str:
    text = f"{words.typical(column, measure):>6} {words.range_of(column, measure)}"
    return f"{text:<{_SIDE}}"


def _frames(column: Column, measure: Measure) -> str:
    if measure.frames_of is None:
        return " " * _SIDE
    figure = column.frames.get(measure.name)
    text = f"{words.median_of(figure):>6} {words.spread_of(figure)}"
    return f"{text:<{_SIDE}}"


def _apart(against: Against | None, measure: Measure) -> str:
    if against is None:
        return ""
    difference = against.differences[measure.name]
    return (
        f"{words.change(difference, measure):>7} {words.interval(difference):<12}"
        f"{words.probability(difference):>6}"
    )


def _told(
    page: Page,
    table: Table,
    names: Mapping[str, str],
    head: str,
    of: Callable[[Column], Mapping[str, int]],
) -> None:
    """What runs did, in words; once for all builds that did the same."""
    shown: dict[tuple[str, ...], list[str]] = {}
    for column in table.columns:
        if column.runs:
            counts = of(column)
            most = words.most_shown(head, counts)
            kinds = tuple(words.kinds(counts, len(column.runs), most))
            shown.setdefault(kinds, []).append(names[column.build])
    for kinds, builds in shown.items():
        who = "" if len(shown) == 1 else ", ".join(builds)
        lead = f"{head:<11}{who:<{_NAME - 11}}"
        separator = "; " if head == "order" else ", "
        for line in textwrap.wrap(
            separator.join(kinds),
            page.width,
            initial_indent=lead,
            subsequent_indent=" " * _NAME,
            break_on_hyphens=False,
        ):
            page.line(line)
        head = ""
