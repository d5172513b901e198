"""When the caller spoke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probe.trace.events import Event, StateChanged
from reports.account.boundary import FOREVER

__all__ = ["Turn", "turns_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The caller spoke."""

    start_ns: int
    stop_ns: int


def turns_of(events: Sequence[Event]) -> list[Turn]:
    """When the caller spoke, as the session's user state says it."""
    turns: list[Turn] = []
    start: int | None = None
    for event in events:
        if not isinstance(event, StateChanged) or event.who != "user":
            continue
        if event.new == "speaking" and start is None:
            start = event.at_ns
        elif event.new != "speaking" and start is not None:
            turns.append(Turn(start, event.at_ns))
            start = None
    if start is not None:
        turns.append(Turn(start, FOREVER))
    return turns
