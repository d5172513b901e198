"""What was decided about the chunks that were held, handed out chunk by chunk."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from probe.follow.jumps import Part
from probe.follow.upstream import Chunk, Upstream
from probe.trace.events import SinkHabit

__all__ = ["Decision", "Match"]


@dataclass(frozen=True, slots=True)
class Match:
    """Where the values of one chunk came from, in order."""

    key: Hashable
    parts: list[Part]
    ambiguous_values: int
    added_values: int = 0
    """Of the parts never seen upstream: silence or a repeat that the sink put in."""
    habit: SinkHabit | None = None
    """What the sink does to the audio, where the parts rest on that."""
    skipped: tuple[tuple[int, int], ...] = ()
    """Silence upstream, ``(position, values)``, that was passed over in front of these parts."""


@dataclass(slots=True)
class Decision:
    """Where the held values came from, all of them."""

    parts: list[Part]
    doubts: list[tuple[int, int]] = field(default_factory=list)
    """Stretches of the held values whose place is in doubt."""
    added: list[tuple[int, int]] = field(default_factory=list)
    """Stretches whose parts without a place the sink put in."""
    habits: list[tuple[int, SinkHabit]] = field(default_factory=list)
    """What was done to the held values from one of them on, to the end of its chunk."""

    @property
    def reached(self) -> int | None:
        """Behind the last place found; ``None``: there was none."""
        placed = [at + values for at, values in self.parts if at is not None and values]
        return placed[-1] if placed else None

    def matches(self, chunks: Sequence[Chunk], upstream: Upstream, start: int) -> list[Match]:
        """One for each chunk.

        Args:
            chunks: what is held.
            upstream: what was captured.
            start: where the held values begin if they continue.
        """
        matches = []
        rest = [part for part in self.parts if part[1]]
        begun = 0
        for chunk in chunks:
            stop = begun + chunk.values
            own: list[Part] = []
            skipped: list[tuple[int, int]] = []
            missing = chunk.values
            while missing:
                position, values = rest[0]
                count = min(values, missing)
                own.append((position, count))
                if position is not None:
                    if upstream.is_skipped(start, position):
                        skipped.append((start, position - start))
                    start = position + count
                missing -= count
                rest[0] = (None if position is None else position + count, values - count)
                if count == values:
                    rest.pop(0)
            strange = sum(count for position, count in own if position is None)
            matches.append(
                Match(
                    chunk.key,
                    own,
                    _within(self.doubts, begun, stop),
                    min(_within(self.added, begun, stop), strange),
                    next((habit for at, habit in self.habits if begun <= at < stop), None),
                    tuple(skipped),
                )
            )
            begun = stop
        return matches


def _within(stretches: Sequence[tuple[int, int]], start: int, stop: int) -> int:
    return sum(max(min(to, stop) - max(since, start), 0) for since, to in stretches)
