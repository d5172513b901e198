"""A realtime model's conversation as either side holds it, and how its generation was stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reports.results import ConversationItem, GenerationStop, Realtime, RealtimeMessage
from reports.show.view.quantity import Quantity, audio, time
from reports.units import ns_text
from reports.verdicts.explanations import explain_stop

__all__ = ["FIGURES", "Conversation", "Item", "Stop", "chosen", "told"]

FIGURES: Final = ("generated", "captured", "sent")
"""What is counted of a message, in flow order."""

_KINDS: Final = {"function_call": "tool call", "function_call_output": "tool result"}


@dataclass(frozen=True, slots=True)
class Item:
    """One row of the conversation."""

    row: ConversationItem
    role: str
    """``user``, ``assistant``, ``tool call`` …"""
    amounts: tuple[Quantity, ...]
    """As `FIGURES` names them; none of somebody who does not speak."""
    notes: tuple[str, ...]
    """Where it was truncated, and how far it came that is not in the history."""

    @property
    def held_by_one(self) -> bool:
        """Whether one side holds it and the other does not."""
        return self.row.difference in ("server only", "history only")

    @property
    def is_gone(self) -> bool:
        """Whether it existed, and neither side holds it any more."""
        return self.row.difference == "neither"


@dataclass(frozen=True, slots=True)
class Stop:
    """How the generation of an interrupted speech was stopped."""

    stop: GenerationStop
    explanation: str
    generated_after: Quantity
    went_on: Quantity


@dataclass(frozen=True, slots=True)
class Conversation:
    """The second ledger in words."""

    model: str
    items: tuple[Item, ...]
    stops: tuple[Stop, ...]


def told(realtime: Realtime) -> Conversation:
    """What the provider holds as against what was played."""
    return Conversation(
        realtime.model,
        tuple(
            Item(row, _KINDS.get(row.role, row.role), _amounts(row), tuple(_notes(row)))
            for row in realtime.conversation
        ),
        tuple(
            Stop(
                stop,
                explain_stop(stop, realtime),
                audio(stop.generated_after),
                time(stop.generating_ns),
            )
            for stop in realtime.stops
        ),
    )


def chosen(items: Sequence[Item], most: int) -> list[Item]:
    """All of a short conversation; of a long one the differences, the last first to be kept, and
    the end."""
    if len(items) <= most:
        return list(items)
    differ = [nth for nth, item in enumerate(items) if item.row.difference]
    kept = set(differ[-most:])
    for nth in range(len(items) - 1, -1, -1):
        if len(kept) >= most:
            break
        kept.add(nth)
    return [items[nth] for nth in sorted(kept)]


def _amounts(row: ConversationItem) -> tuple[Quantity, ...]:
    if row.message is not None:
        return tuple(audio(getattr(row.message, name)) for name in FIGURES)
    return tuple(audio(None) for _ in FIGURES) if row.role == "assistant" else ()


def _notes(row: ConversationItem) -> Iterator[str]:
    message = row.message
    if message is None:
        return
    if message.truncated_to_ns is not None:
        sent = audio(message.sent_position)
        told = "what was sent of it is not known"
        if message.sent_position is not None:
            told = f"{sent.length} sent"
        yield f"truncated at {ns_text(message.truncated_to_ns, 0)}, {told}"
    if row.difference in ("server only", "neither"):
        yield _fate(message)


def _fate(message: RealtimeMessage) -> str:
    """How far a message came that is not in the history."""
    created = "created"
    if message.created_ns is not None:
        created += f" at {ns_text(message.created_ns)}"
    if message.pulled_ns is None and message.opened_ns is None:
        return f"{created}, never pulled"
    if message.opened_ns is None:
        return f"{created}, pulled, its audio never asked for"
    if message.sent is None:
        return f"{created}, opened; what was sent of it is not known"
    return f"{created}, opened, {'nothing' if not message.sent.samples else 'a part'} of it sent"
