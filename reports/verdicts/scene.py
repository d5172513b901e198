"""What a trace says that bears on barge-ins, indexed once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property

import numpy as np

from probe.trace.events import FalseInterruption, LoopStalled, TranscriptReceived
from reports.account.boundary import SENT
from reports.account.crossings import Audio
from reports.account.estimates import Estimates
from reports.verdicts.turns import Turn, turns_of

__all__ = ["Scene"]


class Scene:
    """One trace and the audio of its speeches. Never changed."""

    def __init__(self, audio: Audio) -> None:
        self.audio = audio
        self.estimates = Estimates(audio)
        self.ledger = audio.ledger
        self.trace = audio.trace
        self.events = self.trace.events
        self.segment_speech = audio.segment_speech
        self.first_ns: list[int] = self.ledger.sums.first_ns.tolist()
        self.turns = turns_of(self.events)
        self.turn_ns = [turn.start_ns for turn in self.turns]
        self.resolution = self.ledger.resolution_ns.get(SENT.name) or SENT.resolution_ns

    @cached_property
    def finals(self) -> list[int]:
        """When final transcripts came."""
        return [e.at_ns for e in self.events if isinstance(e, TranscriptReceived) and e.final]

    @cached_property
    def afterthoughts(self) -> list[FalseInterruption | TranscriptReceived]:
        """What the session reports of a barge-in a moment after it has acted on it."""
        return [
            e
            for e in self.events
            if isinstance(e, FalseInterruption) or (isinstance(e, TranscriptReceived) and e.final)
        ]

    @cached_property
    def stalls(self) -> list[tuple[int, int]]:
        """When the session's loop stood still."""
        return [(e.at_ns, e.until_ns) for e in self.events if isinstance(e, LoopStalled)]

    @cached_property
    def clear_ns(self) -> list[int]:
        """When clears of sources began."""
        return [began for _, began, _ in self.ledger.clears]

    @cached_property
    def taken_until(self) -> dict[int, int]:
        """Position up to which each clear of a source took audio, by its time."""
        taken: dict[int, int] = {}
        for lost in self.ledger.losses:
            if lost.what == "cleared":
                taken[lost.at_ns] = max(taken.get(lost.at_ns, 0), lost.stop)
        return taken

    def turn_before(self, at_ns: int) -> Turn | None:
        """The caller's turn that began last by an instant."""
        nth = bisect_right(self.turn_ns, at_ns)
        return self.turns[nth - 1] if nth else None

    def another_began(self, speech: str, since_ns: int, at_ns: int) -> bool:
        """Whether another speech's audio came between two instants."""
        low = bisect_right(self.first_ns, since_ns)
        high = bisect_right(self.first_ns, at_ns)
        return any(other != speech for other in self.segment_speech[low:high])

    def clears(self, since_ns: int, until_ns: int) -> list[tuple[int, int, int]]:
        """Clears of sources from one instant (inclusive) to another: source, begin, end."""
        low, high = bisect_left(self.clear_ns, since_ns), bisect_left(self.clear_ns, until_ns)
        return self.ledger.clears[low:high]

    @cached_property
    def sources_pushed(self) -> set[int]:
        """Sources that anything was pushed to."""
        return set(np.unique(self.trace.pushed.source).tolist())

    def sources(self, speech: str) -> set[int]:
        """Sources that audio of a speech was pushed to."""
        rows = self.audio.parts(speech)
        found: list[int] = self.trace.pushed.source[self.ledger.parts.push[rows]].tolist()
        return set(found)

    def segment_of(self, speech: str, at_ns: int) -> int | None:
        """Number of a speech's segment under way at an instant, else of its first; ``None``: it
        has none."""
        mine = self.audio.segments_of.get(speech, [])
        begun = [row for row in mine if self.first_ns[row] <= at_ns]
        return (begun[-1] if begun else mine[0]) + 1 if mine else None
