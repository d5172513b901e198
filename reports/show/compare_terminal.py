"""A comparison for people at a terminal: readable at 80 columns, with two builds or with many.

What differs comes first, in words; then a table for each call. Two builds stand beside each other,
a figure in each row; more of them stand below each other, figure by figure.
"""

from __future__ import annotations

import textwrap
from typing import Final

from reports.compare import Comparison
from reports.show.compare_text import ALIKE, MINUS, Figure
from reports.show.compare_view import BROKEN_OFF, Cell, Counted, Sheet, View, view
from reports.show.page import Page, printable

__all__ = ["render"]

_NAME: Final = 20
_SIDE: Final = 16
_APART: Final = 27
_RULE: Final = "─" * (_NAME + 2 * _SIDE + _APART)
_PAD: Final = " " * _NAME
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
    shown = view(comparison)
    _head(page, shown)
    if shown.conclusions:
        page.title("What differs")
    for one in shown.conclusions:
        page.paragraph(f"{one.call}, {one.who}: {one.told}")
    for sheet in shown.sheets:
        _sheet(page, sheet)
    page.line()
    for text in shown.legend:
        page.paragraph(text, 0, "dim")
    return page.text()


def _head(page: Page, shown: View) -> None:
    page.title(f"Comparison of {len(shown.builds)} builds")
    for build in shown.builds:
        page.paragraph(f"{build.letter}  {printable(build.name)}")
        page.paragraph(build.ran, 5, "dim")
    if not shown.complete:
        page.paragraph(BROKEN_OFF)
    page.paragraph(shown.conditions)
    for note in shown.notes:
        page.paragraph(printable(note))


def _sheet(page: Page, sheet: Sheet) -> None:
    page.title(f"{sheet.title}  ({sheet.sizes})")
    if any(sheet.has_runs):
        if len(sheet.builds) == 2:
            _beside(page, sheet)
        else:
            _below(page, sheet)
        for counted in sheet.counted:
            _counted(page, sheet, counted)
    for remark in sheet.remarks:
        page.paragraph(remark)


def _beside(page: Page, sheet: Sheet) -> None:
    a, b = (build.letter for build in sheet.builds)
    page.line(f"{_PAD}{a:^{_SIDE}}{b:^{_SIDE}}{f'{b} {MINUS} {a}':^{_APART}}")
    page.line(f"{_PAD}{_SIDE_HEAD}{_SIDE_HEAD}{_APART_HEAD}")
    page.line(_RULE)
    for row in sheet.rows:
        first, other = row.cells
        line = f"{row.heading:<{_NAME}}{_side(first.figure)}{_side(other.figure)}"
        _line(page, line, _apart(other))
        if first.frames is not None:
            page.line(f"{'  in frames':<{_NAME}}{_side(first.frames)}{_side(other.frames)}")


def _below(page: Page, sheet: Sheet) -> None:
    if sheet.is_compared:
        against = f"{MINUS} {sheet.builds[0].letter}"
        page.line(f"{_PAD}{'':<{2 * _SIDE}}{against:^{_APART}}")
    page.line(f"{_PAD}{_SIDE_HEAD}{_FRAMES_HEAD}{_APART_HEAD if sheet.is_compared else ''}")
    page.line(_RULE)
    for row in sheet.rows:
        if row.common:
            apart = f"{ALIKE if row.is_known else '':>7} on all builds"
            page.line(
                f"{row.heading:<{_NAME}}{_side(Figure(row.common, ''))}{_side(row.cells[0].frames)}"
                + (apart if sheet.is_compared else "")
            )
            continue
        page.line(row.heading)
        for cell in row.cells:
            line = f"{'  ' + cell.letter:<{_NAME}}{_side(cell.figure)}{_side(cell.frames)}"
            _line(page, line, _apart(cell))


def _line(page: Page, figures: str, apart: str) -> None:
    """One line, or two where figures are so long that one would be cut."""
    if len((figures + apart).rstrip()) <= page.width:
        page.line(figures + apart)
        return
    page.line(figures)
    page.line(f"{apart.strip():>{len(_RULE)}}")


def _side(figure: Figure | None) -> str:
    text = "" if figure is None else f"{figure.typical:>6} {figure.spread}"
    return f"{text:<{_SIDE}}"


def _apart(cell: Cell) -> str:
    change = cell.change
    return "" if change is None else f"{change.text:>7} {change.interval:<12}{change.p:>6}"


def _counted(page: Page, sheet: Sheet, counted: Counted) -> None:
    """What runs did, in words; once for all builds that did the same."""
    builds: dict[tuple[str, ...], list[str]] = {}
    for build, has_runs, kinds in zip(sheet.builds, sheet.has_runs, counted.kinds, strict=True):
        if has_runs:
            builds.setdefault(kinds, []).append(build.letter)
    head = counted.head
    for kinds, letters in builds.items():
        who = "" if len(builds) == 1 else ", ".join(letters)
        for line in textwrap.wrap(
            counted.joint.join(kinds),
            page.width,
            initial_indent=f"{head:<11}{who:<{_NAME - 11}}",
            subsequent_indent=_PAD,
            break_on_hyphens=False,
        ):
            page.line(line)
        head = ""
