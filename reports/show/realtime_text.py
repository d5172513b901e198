"""Words for a realtime model's conversation that every report for people writes in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.results import Amount, ConversationItem, RealtimeMessage, Sound

__all__ = ["FIGURES", "HELD_BY_ONE", "chosen", "fate", "figures", "role", "truncation"]

FIGURES: Final = ("generated", "captured", "sent")
"""What is counted of a message, in flow order."""

HELD_BY_ONE: Final = ("server only", "history only")
"""Differences of an item that one side holds and the other does not."""

_KINDS: Final = {"function_call": "tool call", "function_call_output": "tool result"}


def chosen(rows: Sequence[ConversationItem], most: int) -> list[ConversationItem]:
    """All of a short conversation; of a long one the differences, the last first to be kept, and
    the end."""
    if len(rows) <= most:
        return list(rows)
    differ = [nth for nth, row in enumerate(rows) if row.difference]
    kept = set(differ[-most:])
    for nth in range(len(rows) - 1, -1, -1):
        if len(kept) >= most:
            break
        kept.add(nth)
    return [rows[nth] for nth in sorted(kept)]


def role(row: ConversationItem) -> str:
    """``user``, ``assistant``, ``tool call`` …"""
    return _KINDS.get(row.role, row.role)


def figures(row: ConversationItem) -> tuple[Sound | Amount | None, ...] | None:
    """Audio of a message, as `FIGURES` names it; ``None``: it is of nobody who speaks."""
    if row.message is not None:
        return row.message.generated, row.message.captured, row.message.sent
    return (None,) * len(FIGURES) if row.role == "assistant" else None


def truncation(message: RealtimeMessage) -> str:
    """Where a message was truncated, and where it should have been; empty: it was not."""
    if message.truncated_to_ms is None:
        return ""
    sent = message.sent_position_ms
    told = "what was sent of it is not known" if sent is None else f"{sent:.1f} ms sent"
    return f"truncated at {message.truncated_to_ms:.0f} ms, {told}"


def fate(message: RealtimeMessage) -> str:
    """How far a message came that is not in the history."""
    created = "created" if message.created_ms is None else f"created at {message.created_ms:.1f} ms"
    if message.pulled_ms is None and message.opened_ms is None:
        return f"{created}, never pulled"
    if message.opened_ms is None:
        return f"{created}, pulled, its audio never asked for"
    if message.sent is None:
        return f"{created}, opened; what was sent of it is not known"
    return f"{created}, opened, {'nothing' if not message.sent.samples else 'a part'} of it sent"
