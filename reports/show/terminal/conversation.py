"""The second ledger at a terminal: the conversation as server and agent hold it, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.show.page import Page, printable, shortened
from reports.show.view import Call
from reports.show.view.conversation import FIGURES, Item, chosen
from reports.show.wording import DASH

__all__ = ["show"]

SHOWN_ITEMS: Final = 24
SHOWN_LINES: Final = 6
FIGURE_WIDTH: Final = 10
ID_CHARACTERS: Final = 32
SHORTEST_ID: Final = 3


def show(page: Page, call: Call) -> None:
    """The second ledger, and how generation was stopped; nothing without a realtime model."""
    told = call.conversation
    if told is None:
        return
    page.title("The conversation as either side holds it (ms of audio)")
    items = chosen(told.items, SHOWN_ITEMS)
    if items:
        _items(page, items, len(told.items) - len(items))
    else:
        page.paragraph("nothing of it was seen")
    if not told.stops:
        return
    page.title("How the generation of interrupted speeches was stopped")
    for stop in page.first(told.stops, SHOWN_LINES):
        page.paragraph(printable(stop.explanation))
        page.fact("generated after it", stop.generated_after.text, "audio")
        page.fact("generation went on", stop.went_on.text, "interrupt to response's end")


def _items(page: Page, items: Sequence[Item], left_out: int) -> None:
    room = (page.width - 5 - FIGURE_WIDTH * len(FIGURES)) // 2
    heads = "".join(f"{name:>{FIGURE_WIDTH}}" for name in FIGURES)
    page.line(f"  {'server':<{room}}   {'local':<{room}}{heads}", "dim")
    for item in items:
        server = _held(item, item.row.server, room, last=item.is_gone)
        local = _held(item, item.row.local, room)
        figures = "".join(f"{amount.ms:>{FIGURE_WIDTH}}" for amount in item.amounts)
        mark = "≠" if item.held_by_one else " "
        style = "yellow" if item.row.difference else ""
        page.line(f"  {server:<{room}} {mark} {local:<{room}}{figures}", style)
    page.left_out(left_out)
    if any(item.held_by_one for item in items):
        page.paragraph("≠  held by one side only", style="dim")
    if any(item.is_gone for item in items):
        page.paragraph("( )  existed, and neither side holds it any more", style="dim")
    notes = [
        f"{shortened(item.row.id, ID_CHARACTERS)}: {note}" for item in items for note in item.notes
    ]
    for note in page.first(notes, SHOWN_LINES):
        page.paragraph(note)


def _held(item: Item, held: bool | None, room: int, *, last: bool = False) -> str:
    """Who and what, blank where the side does not hold it, a dash where nobody knows."""
    if held is None:
        return DASH
    if not held and not last:
        return ""
    room -= 2 if last else 0
    kind, name = printable(item.role), printable(item.row.id)
    left = room - len(kind) - 1
    if len(name) > left > SHORTEST_ID:
        # The end of an id tells it from its neighbours.
        name = "…" + name[1 - left :]
    text = shortened(f"{kind} {name}" if len(name) <= left else name, room)
    return f"({text})" if last else text
