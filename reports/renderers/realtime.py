"""The second ledger at a terminal: the conversation as server and agent hold it, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.explanations import amount_text, explain_stop
from reports.renderers.page import Page, printable, shortened
from reports.results import (
    Amount,
    Analysis,
    ConversationItem,
    Realtime,
    RealtimeMessage,
    Sound,
)

__all__ = ["show"]

DASH: Final = "–"
SHOWN_ROWS: Final = 24
SHOWN_LINES: Final = 6
FIGURES: Final = ("generated", "captured", "sent")
FIGURE_WIDTH: Final = 10
ID_CHARACTERS: Final = 32
SHORTEST_ID: Final = 3

_KINDS: Final = {"function_call": "tool call", "function_call_output": "tool result"}


def show(page: Page, analysis: Analysis) -> None:
    """The conversation and how generation was stopped; nothing without a realtime model."""
    realtime = analysis.realtime
    if realtime is None:
        return
    _conversation(page, realtime)
    _stops(page, realtime)


def _conversation(page: Page, realtime: Realtime) -> None:
    page.title("The conversation as either side holds it (ms of audio)")
    rows = _shown(realtime.conversation)
    if not rows:
        page.paragraph("nothing of it was seen")
        return
    room = (page.width - 5 - FIGURE_WIDTH * len(FIGURES)) // 2
    heads = "".join(f"{name:>{FIGURE_WIDTH}}" for name in FIGURES)
    page.line(f"  {'server':<{room}}   {'local':<{room}}{heads}", "dim")
    for row in rows:
        server = _cell(row, row.server, room, last=row.difference == "neither")
        local = _cell(row, row.local, room)
        mark = "≠" if row.difference in ("server only", "history only") else " "
        page.line(
            f"  {server:<{room}} {mark} {local:<{room}}{_figures(row)}",
            "yellow" if row.difference else "",
        )
    left_out = len(realtime.conversation) - len(rows)
    if left_out:
        page.paragraph(f"and {left_out} more (--format json)")
    if any(row.difference in ("server only", "history only") for row in rows):
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


def _shown(rows: Sequence[ConversationItem]) -> list[ConversationItem]:
    """All of a short conversation; of a long one the differences, the last first to be kept, and
    the end."""
    if len(rows) <= SHOWN_ROWS:
        return list(rows)
    differ = [nth for nth, row in enumerate(rows) if row.difference]
    kept = set(differ[-SHOWN_ROWS:])
    for nth in range(len(rows) - 1, -1, -1):
        if len(kept) >= SHOWN_ROWS:
            break
        kept.add(nth)
    return [rows[nth] for nth in sorted(kept)]


def _cell(row: ConversationItem, held: bool | None, room: int, *, last: bool = False) -> str:
    """Who and what, blank where the side does not hold it, a dash where nobody knows."""
    if held is None:
        return DASH
    if not held and not last:
        return ""
    room -= 2 if last else 0
    kind, name = printable(_KINDS.get(row.role, row.role)), printable(row.id)
    left = room - len(kind) - 1
    if len(name) > left > SHORTEST_ID:
        # The end of an id tells it from its neighbours.
        name = "…" + name[1 - left :]
    text = shortened(f"{kind} {name}" if len(name) <= left else name, room)
    return f"({text})" if last else text


def _figures(row: ConversationItem) -> str:
    message = row.message
    if message is None:
        return f"{DASH:>{FIGURE_WIDTH}}" * len(FIGURES) if row.role == "assistant" else ""
    amounts: tuple[Sound | Amount | None, ...] = (message.generated, message.captured, message.sent)
    return "".join(
        f"{DASH if a is None or a.ms is None else format(a.ms, '.1f'):>{FIGURE_WIDTH}}"
        for a in amounts
    )


def _notes(message: RealtimeMessage, difference: str) -> list[str]:
    name = shortened(message.id, ID_CHARACTERS)
    notes = []
    if message.truncated_to_ms is not None:
        sent = message.sent_position_ms
        text = f"{name}: truncated at {message.truncated_to_ms:.0f} ms, "
        text += f"{DASH} sent" if sent is None else f"{sent:.1f} ms sent"
        notes.append(text)
    if difference in ("server only", "neither"):
        notes.append(f"{name}: {_fate(message)}")
    return notes


def _fate(message: RealtimeMessage) -> str:
    """How far a message came that is not in the history."""
    created = "created" if message.created_ms is None else f"created at {message.created_ms:.1f} ms"
    if message.pulled_ms is None and message.opened_ms is None:
        return f"{created}, never pulled"
    if message.opened_ms is None:
        return f"{created}, pulled, its audio never asked for"
    if message.sent is None:
        return f"{created}, opened; what was sent of it is not known"
    return f"{created}, opened, {'nothing' if not message.sent.samples else 'a part'} of it sent"


def _stops(page: Page, realtime: Realtime) -> None:
    if not realtime.stops:
        return
    page.title("How the generation of interrupted speeches was stopped")
    for stop in realtime.stops[:SHOWN_LINES]:
        page.paragraph(printable(explain_stop(stop, realtime)))
        page.fact("generated after it", amount_text(stop.generated_after), "audio")
        page.fact(
            "generation went on",
            DASH if stop.generating_ms is None else f"{stop.generating_ms:.1f} ms",
            "interrupt to response's end",
        )
    if len(realtime.stops) > SHOWN_LINES:
        page.paragraph(f"and {len(realtime.stops) - SHOWN_LINES} more (--format json)")
