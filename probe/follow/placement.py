"""Where one piece belongs that is not simply the next: found ahead, changed, or the sink's own."""

from __future__ import annotations

from dataclasses import dataclass

from probe.follow.habits import find_scaled, too_quiet
from probe.follow.jumps import Part, place
from probe.follow.store import VALUE_BYTES, is_constant
from probe.follow.upstream import TELLING_VALUES, Upstream
from probe.trace.events import SinkHabit

__all__ = ["Placed", "Placement"]


@dataclass(slots=True)
class Placed:
    """Where one piece of what contradicts belongs."""

    parts: list[Part]
    doubtful: bool = False
    added: int = 0
    habit: SinkHabit | None = None


class Placement:
    """Places pieces one after the other, and remembers what the sink does to them."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.habit: SinkHabit | None = None
        """What was done to the last piece that could tell; ``None``: it was as it had been."""

    def of(self, piece: bytes, floor: int) -> Placed:
        """Where a piece belongs: as it is, as what the sink makes of audio, or nowhere."""
        if is_constant(piece):
            return self._constant(piece, floor)
        values = len(piece) // VALUE_BYTES
        if self.habit in ("gain", "noise"):
            scaled = self._scaled(piece, floor)
            if scaled is not None:
                return scaled
        parts = place(self._upstream, piece, floor)
        strange = sum(count for position, count in parts if position is None)
        if not strange:
            self.habit = None
            return Placed(parts)
        if strange == values:
            scaled = self._scaled(piece, floor)
            if scaled is not None:
                return scaled
        if self._is_added(piece, parts, floor):
            self.habit = None
            return Placed(parts, added=strange, habit="added")
        # Before anything was captured nothing can have been changed.
        if strange < values or not self._upstream.store.end:
            return Placed(parts)
        self.habit = "changed"
        return Placed(parts, habit="changed")

    def _constant(self, piece: bytes, floor: int) -> Placed:
        """Silence, or a tone of one value: it goes on, or the sink put it in."""
        values = len(piece) // VALUE_BYTES
        parts = place(self._upstream, piece, floor)
        if self.habit == "changed":
            # It may well be the next: that it looks alike is no evidence either way.
            return Placed([(None, values)], parts[0][0] is not None, habit="changed")
        if parts[0][0] is not None:
            return Placed(parts, doubtful=True)
        silent = not any(piece)
        if silent and self.habit == "gain" and floor + values <= self._upstream.store.end:
            return Placed([(floor, values)], doubtful=True, habit="gain")  # faded out
        if silent and self._upstream.store.end:
            return Placed(parts, added=values, habit="added")
        return Placed(parts)

    def _scaled(self, piece: bytes, floor: int) -> Placed | None:
        values = len(piece) // VALUE_BYTES
        found = find_scaled(self._upstream, piece, floor)
        if found is not None:
            position, how = found
            self.habit = how.habit
            return Placed([(position, values)], habit=how.habit)
        known = self.habit in ("gain", "noise")
        if known and too_quiet(piece) and floor + values <= self._upstream.store.end:
            return Placed([(floor, values)], doubtful=True, habit=self.habit)
        return None

    def _is_added(self, piece: bytes, parts: list[Part], floor: int) -> bool:
        """Whether all that was never captured is silence, or was handed on before."""
        begun = 0
        for position, values in parts:
            data = piece[begun * VALUE_BYTES : (begun + values) * VALUE_BYTES]
            begun += values
            if position is not None or not any(data):
                continue
            again = None
            if values >= TELLING_VALUES and not is_constant(data):
                again = self._upstream.search(data, self._upstream.store.base)
            if again is None or again + values > floor:
                return False
        return bool(self._upstream.store.end)
