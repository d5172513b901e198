"""What is known of a source's native queue from the calls: what went in when, and its clears."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass

__all__ = ["Clear", "Queue"]


@dataclass(slots=True)
class _Piece:
    start: int
    stop: int
    at_ns: int
    key: Hashable
    inside_ns: int | None = None
    """When it was surely inside the native queue; None while that is unknown."""
    surely: bool = False
    """Whether ``inside_ns`` is sure: the call returned, it was not cancelled."""


@dataclass(slots=True)
class Clear:
    """The queue was emptied."""

    at_ns: int
    ended_ns: int
    high: int
    """Pushed before the clear was called: everything in front of this position."""


class Queue:
    """Pushes in their order, the pieces the source takes them in, and the clears between them.

    Clears are numbered; a reading of the blocks says how many of them it has behind it.

    Args:
        piece_values: how the source cuts up frames longer than its queue; None if unknown. It only
            says where to look first after a clear.
        block_ns: time between two ticks of the source.
    """

    def __init__(self, piece_values: int | None, block_ns: int) -> None:
        self._piece_values = piece_values
        self._block_ns = block_ns
        self._pieces: list[_Piece] = []
        self.clears: list[Clear] = []
        self.gone = 0
        """Clears that every reading has behind it, no longer in the list."""

    def push(self, key: Hashable, start: int, stop: int, at_ns: int) -> None:
        step = self._piece_values or max(stop - start, 1)
        for begin in range(start, stop, step):
            self._pieces.append(_Piece(begin, min(begin + step, stop), at_ns, key))

    def push_ended(self, key: Hashable, ended_ns: int, *, returned: bool) -> None:
        seen = False
        for piece in reversed(self._pieces):
            if piece.key == key:
                piece.inside_ns = ended_ns
                piece.surely = returned
                seen = True
            elif seen:
                break

    def last_push(self, key: Hashable) -> int | None:
        """Where the last push begins, if it is this one."""
        if not self._pieces or self._pieces[-1].key != key:
            return None
        return min(piece.start for piece in self._pieces if piece.key == key)

    def retract(self, key: Hashable) -> None:
        self._pieces = [piece for piece in self._pieces if piece.key != key]

    def pending(self, clears: int) -> list[Clear]:
        """Clears a reading does not have behind it."""
        return self.clears[clears - self.gone :]

    def forget_clears(self, count: int) -> None:
        del self.clears[:count]
        self.gone += count

    def forget_before(self, position: int) -> None:
        gone = bisect_right(self._pieces, position, key=lambda piece: piece.stop)
        if gone > 64:
            del self._pieces[:gone]

    def cleared_ns(self, position: int, clears: int) -> int | None:
        """When the next clear was over that would have taken what lies at ``position``."""
        pending = self.pending(clears)
        return pending[0].ended_ns if pending and position < pending[0].high else None

    def overdue_ns(self, position: int, emptied_ns: int, at_ns: int) -> int:
        """For how long the source could have sent everything in front of ``position`` already."""
        piece = self._piece_of(position)
        if piece is None:
            return 0
        if piece.inside_ns is None or not piece.surely:
            # With nothing else inside, the next piece is taken in within two ticks.
            return at_ns - max(piece.at_ns, emptied_ns) - 2 * self._block_ns
        return at_ns - piece.inside_ns

    def survivors(self, clear: Clear, position: int) -> list[int]:
        """Where what is sent after the clear may begin, as far as the calls tell."""
        high = max(clear.high, position)
        starts = {high}
        for piece in reversed(self._pieces):
            if piece.start >= high:
                continue
            if piece.start < position or self._was_inside(piece, clear):
                break
            starts.add(piece.start)
        return sorted(starts)

    def survivors_from(self, clear: Clear, position: int) -> int:
        """From where on audio may have survived a clear, wherever the source cut it up."""
        index = bisect_right(self._pieces, position, key=lambda piece: piece.stop)
        for piece in self._pieces[index:]:
            if piece.start >= clear.high:
                break
            if not self._was_inside(piece, clear):
                return max(piece.start, position)
        return max(clear.high, position)

    def _was_inside(self, piece: _Piece, clear: Clear) -> bool:
        """Whether a piece was surely in the queue when the clear was called."""
        return piece.surely and piece.inside_ns is not None and piece.inside_ns < clear.at_ns

    def inside_ns(self, position: int) -> int | None:
        """When everything in front of ``position`` was inside the queue; None if unknown."""
        piece = self._piece_of(position)
        return None if piece is None else piece.inside_ns

    def pushed_ns(self, position: int) -> int:
        """When the push of the value in front of ``position`` began."""
        piece = self._piece_of(position)
        return 0 if piece is None else piece.at_ns

    def _piece_of(self, position: int) -> _Piece | None:
        """The piece that holds the value in front of ``position``."""
        index = bisect_left(self._pieces, position, key=lambda piece: piece.stop)
        return self._pieces[index] if index < len(self._pieces) else None
