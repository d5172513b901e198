"""Words for a realtime model's conversation that every report for people writes in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.results import Amount, ConversationItem, RealtimeMessage, Sound
from reports.units import ns_text

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
    if message.truncated_to_ns is None:
        return ""
    sent = None if message.sent_position is None else message.sent_position.ms
    told = "what was sent of it is not known" if sent is None else f"{sent:.1f} ms sent"
    return f"truncated at {ns_text(message.truncated_to_ns, 0)}, {told}"


def fate(message: RealtimeMessage) -> str:
    """How far a message came that is not in the history."""
    created = (
        "created" if message.created_ns is None else f"created at {ns_text(message.created_ns)}"
    )
    if message.pulled_ns is None and message.opened_ns is None:
        return f"{created}, never pulled"
    if message.opened_ns is None:
        return f"{created}, pulled, its audio never asked for"
    if message.sent is None:
        return f"{created}, opened; what was sent of it is not known"
    return f"{created}, opened, {'nothing' if not message.sent.samples else 'a part'} of it sent"
