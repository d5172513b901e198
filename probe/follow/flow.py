"""Captured to pushed: finding what a sink handed on again in what it was given."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from probe.follow.jumps import Part, candidates, choose, place
from probe.follow.placement import Placement
from probe.follow.store import VALUE_BYTES, is_constant, trailing_run
from probe.follow.upstream import TELLING_VALUES, Chunk, Held, Upstream
from probe.trace.events import SinkHabit

__all__ = ["FlowMatcher", "Match"]


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


class FlowMatcher:
    """Finds pushed chunks again in what was captured: stretches may be left out, never reordered.

    Args:
        limit_bytes: how much captured audio is kept while it is not pushed.
        patience_values: how many values may be held undecided before flow order decides.
    """

    def __init__(self, limit_bytes: int = 32 << 20, patience_values: int = 480_000) -> None:
        self._upstream = Upstream(limit_bytes)
        self._store = self._upstream.store
        self._patience = patience_values
        self._start = 0  # where the held chunks begin if they continue
        self._held = Held()
        self._floating = False
        self._flat = False  # whether what contradicts is one value over and over
        self._placement = Placement(self._upstream)

    @property
    def end(self) -> int:
        """Position of the next value to be captured."""
        return self._store.end

    @property
    def expected(self) -> int:
        """Position where the next chunk begins if it continues."""
        return self._start + self._held.fixed

    @property
    def needed_from(self) -> int:
        """Positions in front of this one will not be reported any more."""
        return min(self._start, self._store.base)

    def capture(self, data: bytes) -> int:
        """Add what entered upstream; return how many values had to be forgotten unmatched."""
        kept_from = max(self.expected, self._store.base)
        self._upstream.capture(data)
        base = self._store.base
        if base > self._start and not self._held:
            self._start = base
        return max(base - kept_from, 0)

    def clear(self) -> list[Match]:
        """The sink was told to drop what it holds: the next push may begin at the next capture.

        Returns what was held, decided: what comes after the clear need not lie next to it.
        """
        decided = self.finish()
        self._upstream.fence = self._store.end
        return decided

    def rewind(self, position: int) -> None:
        """The chunk that began at ``position`` was refused and may be handed over again."""
        if not self._held and self._store.base <= position < self._start:
            self._start = position

    def push(self, key: Hashable, data: bytes) -> list[Match]:
        """Match the next chunk; return what is decided now, oldest first (this chunk or not)."""
        if not data:
            return [Match(key, [], 0)]
        upstream, held = self._upstream, self._held
        upstream.refill()
        values = len(data) // VALUE_BYTES
        if self._start < self._store.base and not held:
            self._start = self._store.base
        if upstream.fence is not None and self._start >= upstream.fence:
            upstream.fence = None
        constant = is_constant(data)
        self._flat = self._flat and constant and held.ends_with(data[:VALUE_BYTES])
        held.add(Chunk(key, values, self._store.end), data)
        if self._floating:
            return self._resolve(last=False)
        exact = self._store.matches(self.expected, data)
        if self._placement.habit is not None:
            if constant or not exact:
                return self._settle_in_pieces()
            self._placement.habit = None
        if exact:
            # What the clear dropped, or the same captured again after it.
            undecided = upstream.fence is not None and self._store.matches(
                upstream.fence + held.fixed, data
            )
            held.fixed += values
            # Silence up to the end of all that was captured can be nowhere else.
            undecided = undecided or (constant and self.expected < self._store.end)
            if not undecided:
                return self._settle([(self._start, held.fixed)])
            return [] if held.fixed < self._patience else self._settle_by_time()
        ahead = self._store.common_ahead(self.expected, data)
        held.fixed += ahead
        self._floating = True
        self._flat = is_constant(data[ahead * VALUE_BYTES :])
        return self._resolve(last=False)

    def finish(self) -> list[Match]:
        """Decide what is held by flow order and time: nothing more will come that could tell."""
        if not self._held:
            return []
        if self._floating:
            return self._resolve(last=True)
        return self._settle_by_time()

    def _settle_by_time(self) -> list[Match]:
        """Settle what continues, and could as well have been captured after the clear."""
        held, fence = self._held, self._upstream.fence
        doubts = (0, held.fixed)
        continued: list[Part] = [(self._start, held.fixed)]
        if fence is None:
            return self._settle(continued, doubts)
        split = held.split_by_time(self._store, fence)
        behind = held.data[split * VALUE_BYTES :]
        if self._start + split >= fence or not self._store.matches(fence, behind):
            return self._settle(continued, doubts)
        return self._settle([(self._start, split), (fence, held.fixed - split)], doubts)

    def _resolve(self, *, last: bool) -> list[Match]:
        """Place what contradicts the continuation, if it can be told where it belongs."""
        held = self._held
        values = held.values - held.fixed
        last = last or values >= self._patience
        telling = values >= TELLING_VALUES and not self._flat
        if not telling and not last:
            return []
        found = candidates(self._upstream, held, self.expected)
        if len(found) > 1 and not last and len(held.chunks) < 8:
            return []
        if found:
            return self._land(found, telling=telling)
        return self._settle_in_pieces()

    def _land(self, found: list[int], *, telling: bool) -> list[Match]:
        """Settle what contradicts at one of the places where it is held whole."""
        held = self._held
        position, split, reach = choose(self._upstream, held, found)
        parts: list[Part] = [(self._start, split)] if split else []
        moved = held.fixed - split
        parts.append((position - moved, held.values - held.fixed + moved))
        if split or position - moved != self._upstream.fence:
            reach = max(reach, held.idle_values(self._store, self.expected))
        else:
            reach = 0  # From the clear on all follows that was captured from the clear on.
        since, to = held.fixed - reach, held.fixed
        if not telling:
            since = min(since, held.fixed - trailing_run(held.before))
        if len(found) > 1 or not telling:
            to = held.values
        return self._settle(parts, (since, to))

    def _settle_in_pieces(self) -> list[Match]:
        """Settle what contradicts and is held nowhere whole, each chunk by itself."""
        held = self._held
        self._distrust_chance()
        floor = self.expected
        parts: list[Part] = [(self._start, held.fixed)] if held.fixed else []
        doubts = [(held.fixed - held.idle_values(self._store, self.expected), held.fixed)]
        added: list[tuple[int, int]] = []
        habits: list[tuple[int, SinkHabit]] = []
        for piece in held.contradicting():
            placed = self._placement.of(piece, floor)
            count = sum(values for _, values in parts)
            stop = count + len(piece) // VALUE_BYTES
            if placed.doubtful:
                doubts.append((count, stop))
            if placed.added:
                added.append((stop - placed.added, stop))
            if placed.habit is not None:
                habits.append((count, placed.habit))
            parts += placed.parts
            reached = [start + values for start, values in placed.parts if start is not None]
            floor = reached[-1] if reached else floor
        return self._settle(parts, *doubts, added=added, habits=habits)

    def _distrust_chance(self) -> None:
        """Take back a few values that continue at the front of a chunk whose rest is not found as
        it is: what was changed begins like the original by chance."""
        held = self._held
        begun = max(start for start in held.starts() if start <= held.fixed)
        few = held.fixed - begun
        if 0 < few < TELLING_VALUES:
            piece = next(held.contradicting())
            placed = place(self._upstream, piece, self.expected)
            if all(position is None for position, _ in placed):
                held.fixed = begun

    def _settle(
        self,
        parts: list[Part],
        *doubts: tuple[int, int],
        added: Sequence[tuple[int, int]] = (),
        habits: Sequence[tuple[int, SinkHabit]] = (),
    ) -> list[Match]:
        """Hand out the parts to the held chunks and go on behind the last place found.

        Args:
            parts: of the held values, in order.
            doubts: stretches of the held values whose place is in doubt.
            added: stretches whose parts without a place the sink put in.
            habits: what was done to the held values from one of them on, to the end of its chunk.
        """
        matches = []
        queue = [part for part in parts if part[1]]
        index = taken = begun = 0
        reached = self._start
        for chunk in self._held.chunks:
            own: list[Part] = []
            missing = chunk.values
            skipped: list[tuple[int, int]] = []
            while missing:
                position, values = queue[index]
                count = min(values - taken, missing)
                if position is not None:
                    if not taken and self._is_skipped(reached, position):
                        skipped.append((reached, position - reached))
                    reached = position + taken + count
                own.append((None if position is None else position + taken, count))
                missing -= count
                taken += count
                if taken == values:
                    index, taken = index + 1, 0
            stop = begun + chunk.values
            matches.append(
                Match(
                    chunk.key,
                    own,
                    _within(doubts, begun, stop),
                    min(_within(added, begun, stop), sum(n for at, n in own if at is None)),
                    next((habit for at, habit in habits if begun <= at < stop), None),
                    tuple(skipped),
                )
            )
            begun = stop
        if any(position is not None for position, _ in queue):
            if self._floating:
                self._upstream.refill(whole=True)
            self._start = reached
        self._floating = self._flat = False
        self._held.clear()
        self._upstream.tidy(self._start)
        return matches

    def _is_skipped(self, start: int, stop: int) -> bool:
        """Whether what was passed over is silence, and no clear had it dropped."""
        fence = self._upstream.fence
        if not self._store.base <= start < stop or (fence is not None and stop >= fence):
            return False
        return self._store.is_silent(start, stop)


def _within(stretches: Sequence[tuple[int, int]], start: int, stop: int) -> int:
    return sum(max(min(to, stop) - max(since, start), 0) for since, to in stretches)
