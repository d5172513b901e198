"""The caller: when they spoke, and which of their turns an instant belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from probe.trace.events import Event, StateChanged, TranscriptReceived
from reports.account.boundary import FOREVER
from reports.results import VerdictKind

__all__ = ["Caller", "Turn", "turns_of"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The caller spoke."""

    start_ns: int
    stop_ns: int
    """`FOREVER`: until the trace ended."""


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


@dataclass(frozen=True, slots=True)
class Caller:
    """Turns and final transcripts of a trace, in order of time."""

    turns: Sequence[Turn]
    finals_ns: Sequence[int]

    @classmethod
    def of(cls, events: Sequence[Event]) -> Caller:
        finals = [e.at_ns for e in events if isinstance(e, TranscriptReceived) and e.final]
        return cls(turns_of(events), finals)

    def turn_before(self, at_ns: int) -> Turn | None:
        """The turn that began last at or before an instant."""
        nth = bisect_right(self.turns, at_ns, key=lambda turn: turn.start_ns)
        return self.turns[nth - 1] if nth else None

    def interrupted_by(self, called_ns: int) -> VerdictKind:
        """Who interrupted at an instant, on a release that does not say."""
        turn = self.turn_before(called_ns)
        if turn is None:
            return "programmatic"
        nth = bisect_left(self.finals_ns, turn.start_ns)
        if any(at_ns <= called_ns for at_ns in self.finals_ns[nth : nth + 1]):
            return "transcript"
        return "activity" if called_ns < turn.stop_ns else "programmatic"
