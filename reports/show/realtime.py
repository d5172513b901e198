"""The second ledger at a terminal: the conversation as server and agent hold it, side by side."""

from __future__ import annotations

from typing import Final

from reports.results import Analysis, ConversationItem, Realtime, RealtimeMessage
from reports.show import realtime_text as words
from reports.show.page import Page, printable, shortened
from reports.show.realtime_text import FIGURES, HELD_BY_ONE
from reports.show.wording import DASH
from reports.units import ns_text
from reports.verdicts.explanations import amount_text, explain_stop

__all__ = ["show"]

SHOWN_ROWS: Final = 24
SHOWN_LINES: Final = 6
FIGURE_WIDTH: Final = 10
ID_CHARACTERS: Final = 32
SHORTEST_ID: Final = 3


def show(page: Page, analysis: Analysis) -> None:
    """The conversation and how generation was stopped; nothing without a realtime model."""
    realtime = analysis.realtime
    if realtime is None:
        return
    _conversation(page, realtime)
    _stops(page, realtime)


def _conversation(page: Page, realtime: Realtime) -> None:
    page.title("The conversation as either side holds it (ms of audio)")
    rows = words.chosen(realtime.conversation, SHOWN_ROWS)
    if not rows:
        page.paragraph("nothing of it was seen")
        return
    room = (page.width - 5 - FIGURE_WIDTH * len(FIGURES)) // 2
    heads = "".join(f"{name:>{FIGURE_WIDTH}}" for name in FIGURES)
    page.line(f"  {'server':<{room}}   {'local':<{room}}{heads}", "dim")
    for row in rows:
        server = _cell(row, row.server, room, last=row.difference == "neither")
        local = _cell(row, row.local, room)
        mark = "≠" if row.difference in HELD_BY_ONE else " "
        page.line(
            f"  {server:<{room}} {mark} {local:<{room}}{_figures(row)}",
            "yellow" if row.difference else "",
        )
    left_out = len(realtime.conversation) - len(rows)
    if left_out:
        page.paragraph(f"and {left_out} more (--format json)")
    if any(row.difference in HELD_BY_ONE for row in rows):
        page.paragraph("≠  held by one side only", style="dim")
    if any(row.difference == "neither" for row in rows):
        page.paragraph("( )  existed, and neither side holds it any more", style="dim")
    notes = [
        note
        for row in rows
        if row.message is not None
        for note in _notes(row.message, row.difference)
    ]
    for note in notes[:SHOWN_LINES]:
        page.paragraph(note)
    if len(notes) > SHOWN_LINES:
        page.paragraph(f"and {len(notes) - SHOWN_LINES} more (--format json)")


def _cell(row: ConversationItem, held: bool | None, room: int, *, last: bool = False) -> str:
    """Who and what, blank where the side does not hold it, a dash where nobody knows."""
    if held is None:
        return DASH
    if not held and not last:
        return ""
    room -= 2 if last else 0
    kind, name = printable(words.role(row)), printable(row.id)
    left = room - len(kind) - 1
    if len(name) > left > SHORTEST_ID:
        # The end of an id tells it from its neighbours.
        name = "…" + name[1 - left :]
    text = shortened(f"{kind} {name}" if len(name) <= left else name, room)
    return f"({text})" if last else text


def _figures(row: ConversationItem) -> str:
    return "".join(
        f"{DASH if a is None or a.ms is None else format(a.ms, '.1f'):>{FIGURE_WIDTH}}"
        for a in words.figures(row) or ()
    )


def _notes(message: RealtimeMessage, difference: str) -> list[str]:
    name = shortened(message.id, ID_CHARACTERS)
    notes = [f"{name}: {text}"] if (text := words.truncation(message)) else []
    if difference in ("server only", "neither"):
        notes.append(f"{name}: {words.fate(message)}")
    return notes


def _stops(page: Page, realtime: Realtime) -> None:
    if not realtime.stops:
        return
    page.title("How the generation of interrupted speeches was stopped")
    for stop in realtime.stops[:SHOWN_LINES]:
        page.paragraph(printable(explain_stop(stop, realtime)))
        page.fact("generated after it", amount_text(stop.generated_after), "audio")
        page.fact(
            "generation went on",
            DASH if stop.generating_ns is None else f"{ns_text(stop.generating_ns)}",
            "interrupt to response's end",
        )
    if len(realtime.stops) > SHOWN_LINES:
        page.paragraph(f"and {len(realtime.stops) - SHOWN_LINES} more (--format json)")
