"""Captured to pushed: finding what a sink handed on again in what it was given."""

from __future__ import annotations

from collections.abc import Hashable

from probe.follow.jumps import Part, candidates, choose, place
from probe.follow.matches import Decision, Match
from probe.follow.placement import Placement
from probe.follow.store import VALUE_BYTES, is_constant, trailing_run
from probe.follow.upstream import TELLING_VALUES, Chunk, Held, Upstream

__all__ = ["FlowMatcher", "Match"]


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

    def push(self, key: Hashable, data: bytes, *, entering: bool = False) -> list[Match]:
        """Match the next chunk; return what is decided now, oldest first (this chunk or not).

        Args:
            key: given back with the match.
            data: the chunk.
            entering: whether the last captured frame was just entering the sink.
        """
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
        frame = upstream.newest if entering else None
        held.add(Chunk(key, values, self._store.end, frame), data)
        if self._floating:
            return self._resolve(last=False)
        exact = self._store.matches(self.expected, data)
        habit = self._placement.habit
        if habit is not None:
            # What is scaled goes on scaled; what was changed may be anything, and as it was again.
            if constant or not (exact or habit == "changed"):
                return self._settle_in_pieces()
            if exact:
                self._placement.habit = None
        if exact:
            undecided = self._fits_elsewhere(data, frame, constant=constant)
            held.fixed += values
            if not undecided:
                return self._settle(Decision([(self._start, held.fixed)]))
            return [] if held.fixed < self._patience else self._settle_by_time()
        ahead = self._store.common_ahead(self.expected, data)
        held.fixed += ahead
        self._floating = True
        self._flat = is_constant(data[ahead * VALUE_BYTES :])
        return self._resolve(last=False)

    def _fits_elsewhere(self, data: bytes, frame: int | None, *, constant: bool) -> bool:
        """Whether a chunk that continues could as well be another stretch of what was captured."""
        store, fence = self._store, self._upstream.fence
        if fence is not None and store.matches(fence + self._held.fixed, data):
            return True  # what the clear dropped, or the same captured again after it
        if frame is not None and frame > self.expected and store.matches(frame, data):
            return True  # what was captured earlier, or the same that is entering just now
        # Silence up to the end of all that was captured can be nowhere else.
        return constant and self.expected + len(data) // VALUE_BYTES < store.end

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
        parts: list[Part] = [(self._start, held.fixed)]
        if fence is not None:
            split = held.split_by_time(self._store, fence)
            behind = held.data[split * VALUE_BYTES :]
            if self._start + split < fence and self._store.matches(fence, behind):
                parts = [(self._start, split), (fence, held.fixed - split)]
        return self._settle(Decision(parts, [(0, held.fixed)]))

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
        self._placement.habit = None
        position, split, reach = choose(self._upstream, held, self._start, found)
        landing = position - (held.fixed - split)
        parts: list[Part] = [(self._start, split), (landing, held.values - split)]
        if split or landing != self._upstream.fence:
            reach = max(reach, held.idle_values(self._store, self.expected))
        else:
            reach = 0  # From the clear on all follows that was captured from the clear on.
        since, to = held.fixed - reach, held.fixed
        if not telling:
            since = min(since, held.fixed - trailing_run(held.before))
        if len(found) > 1 or not telling:
            to = held.values
        if landing not in (self._start + split, self._upstream.fence):
            to = max(to, split + held.leading_silence(self._store, split, landing))
        return self._settle(Decision(parts, [(since, to)]))

    def _settle_in_pieces(self) -> list[Match]:
        """Settle what contradicts and is held nowhere whole, each chunk by itself."""
        held = self._held
        self._distrust_chance()
        floor = self.expected
        idle = held.idle_values(self._store, floor)
        decision = Decision([(self._start, held.fixed)], [(held.fixed - idle, held.fixed)])
        count = held.fixed
        for piece in held.contradicting():
            placed = self._placement.of(piece, floor)
            stop = count + len(piece) // VALUE_BYTES
            since, to = decision.doubts[-1]
            # Where silence is in doubt, so is which of it the sink put in.
            if placed.doubtful or (placed.added and since < to == count):
                decision.doubts.append((count, stop))
            if placed.added:
                decision.added.append((stop - placed.added, stop))
            if placed.habit is not None:
                decision.habits.append((count, placed.habit))
            decision.parts += placed.parts
            count = stop
            reached = Decision(placed.parts).reached
            floor = floor if reached is None else reached
        return self._settle(decision)

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

    def _settle(self, decision: Decision) -> list[Match]:
        """Hand out what was decided and go on behind the last place found."""
        matches = decision.matches(self._held.chunks, self._upstream, self._start)
        reached = decision.reached
        if reached is not None:
            if self._floating:
                self._upstream.refill(whole=True)
            self._start = reached
        self._floating = self._flat = False
        self._held.clear()
        self._upstream.tidy(self._start)
        return matches
