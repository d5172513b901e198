"""Following audio from one boundary to the next by what it sounds like, sample for sample.

Two places need it. A sink hands on what it captured with stretches left out, cut up anew
(`FlowMatcher`: captured to pushed). A source hands on what was pushed in blocks of 10 ms, with
what a clear discarded left out and blocks of silence put in where it had nothing (`WireMatcher`:
pushed to sent). Both compare content; knowledge of the calls only narrows what content is
compared with, and decides where content cannot.

Values and positions
    Everything here counts *values*: int16 numbers as they lie interleaved in a frame. A sink that
    hands stereo frames to a mono source without converting them (LiveKit's room output does not
    look at a frame's geometry) is then followed like any other. Who calls turns values into
    samples. Positions count from 0 over everything ever appended and are never reused.

What is decided how
    Continuing where the last match ended is believed until content contradicts it. Where content
    fits several places (digital silence, a constant tone, a repeat), the decision is held until a
    value comes that tells them apart, and the held values are then placed backwards from it. Where
    none comes in time, flow order and time decide, and the values are counted as ambiguous. A clear
    of the sink ends what is held, and announces a jump: what is handed on after it was captured
    after it, if content allows that, or else goes on where it was.

Effort
    Following costs one comparison per chunk. Only a contradiction starts a search; how many bytes
    searches may read is bounded by a budget that refills slowly, so that a sink that resamples
    (nothing ever matches) stays cheap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

VALUE_BYTES: Final = 2

_ALIGNMENT_TRIES: Final = 512
"""Hits of a search at odd bytes that are passed over before it gives up."""


class SampleStore:
    """Values appended in order, of which the newest are kept.

    ``base`` is the position of the oldest value still held, ``end`` that of the next to come.
    """

    __slots__ = ("_base", "_data", "_limit")

    def __init__(self, limit_bytes: int, base: int = 0) -> None:
        self._data = bytearray()
        self._base = base
        self._limit = limit_bytes

    @property
    def base(self) -> int:
        return self._base

    @property
    def end(self) -> int:
        return self._base + len(self._data) // VALUE_BYTES

    def append(self, data: bytes) -> int:
        """Add int16 data and return how many old values had to be forgotten for it."""
        self._data += data
        excess = len(self._data) - self._limit
        if excess <= 0:
            return 0
        # A quarter more than needed: forgetting a little with every append would move the rest
        # of the buffer each time.
        forgotten = (excess + self._limit // 4) // VALUE_BYTES
        forgotten = min(forgotten, len(self._data) // VALUE_BYTES)
        self.forget_before(self._base + forgotten)
        return forgotten

    def forget_before(self, position: int) -> None:
        """Let go of the values in front of ``position``."""
        count = min(position, self.end) - self._base
        if count > 0:
            del self._data[: count * VALUE_BYTES]
            self._base += count

    def truncate(self, position: int) -> None:
        """Take back the values from ``position`` on; their positions will be given out again."""
        if position >= self._base:
            del self._data[(position - self._base) * VALUE_BYTES :]

    def matches(self, position: int, data: bytes) -> bool:
        """Whether ``data`` is held, whole, at ``position``."""
        offset = (position - self._base) * VALUE_BYTES
        return offset >= 0 and self._data.startswith(data, offset)

    def common_ahead(self, position: int, data: bytes) -> int:
        """How many values from the front of ``data`` equal those from ``position`` on."""
        offset = (position - self._base) * VALUE_BYTES
        if offset < 0:
            return 0
        return _equal_values(bytes(self._data[offset : offset + len(data)]), data)

    def common_behind(self, position: int, data: bytes) -> int:
        """How many values from the back of ``data`` equal those in front of ``position``."""
        stop = (position - self._base) * VALUE_BYTES
        start = max(stop - len(data), 0)
        if stop <= 0:
            return 0
        held = np.frombuffer(bytes(self._data[start:stop]), np.int16)[::-1]
        given = np.frombuffer(data, np.int16)[::-1][: len(held)]
        differing = np.flatnonzero(held != given)
        return int(differing[0]) if len(differing) else len(held)

    def find(self, data: bytes, start: int) -> int | None:
        """Lowest position from ``start`` on where ``data`` is held whole; None if there is none."""
        offset = max(start - self._base, 0) * VALUE_BYTES
        for _ in range(_ALIGNMENT_TRIES):
            offset = self._data.find(data, offset)
            if offset < 0:
                return None
            if offset % VALUE_BYTES == 0:
                return self._base + offset // VALUE_BYTES
            offset += 1
        return None

    def head(self, position: int, values: int) -> bytes:
        """Up to ``values`` values from ``position`` on."""
        offset = max(position - self._base, 0) * VALUE_BYTES
        return bytes(self._data[offset : offset + values * VALUE_BYTES])


def _equal_values(one: bytes, other: bytes) -> int:
    count = min(len(one), len(other)) // VALUE_BYTES
    left = np.frombuffer(one, np.int16, count)
    right = np.frombuffer(other, np.int16, count)
    differing = np.flatnonzero(left != right)
    return int(differing[0]) if len(differing) else count


def _trailing_run(data: bytes) -> int:
    """How many values at the back equal the last."""
    values = np.frombuffer(data, np.int16)
    differing = np.flatnonzero(values != values[-1:])
    return len(values) - 1 - int(differing[-1]) if len(differing) else len(values)


def _is_constant(data: bytes) -> bool:
    return data[VALUE_BYTES:] == data[:-VALUE_BYTES]


# --- captured to pushed -----------------------------------------------------------------------

Part = tuple["int | None", int]
"""``(position, values)``; a position of None is content never seen upstream."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where the values of one chunk came from, in order."""

    key: Hashable
    parts: list[Part]
    ambiguous_values: int


@dataclass(slots=True)
class _Held:
    key: Hashable
    values: int
    captured: int
    """Position of the next value to be captured when it was handed on: it lies in front of it."""


class FlowMatcher:
    """Finds pushed chunks again in what was captured: stretches may be left out, never reordered.

    Args:
        limit_bytes: how much captured audio is kept while it is not pushed.
        patience_values: how many values may be held undecided before flow order decides.
    """

    _TELLING_VALUES: Final = 32
    """Fewer values than this are not searched for: they would be found anywhere."""
    _TELLING_BYTES: Final = _TELLING_VALUES * VALUE_BYTES
    _HISTORY_VALUES: Final = 1 << 17
    """Kept behind the last match, for a refused frame that is handed over again."""
    _CANDIDATES: Final = 32
    _BUDGET_BYTES: Final = 64 << 20
    _REFILL_BYTES: Final = 256 << 10

    def __init__(self, limit_bytes: int = 32 << 20, patience_values: int = 480_000) -> None:
        self._store = SampleStore(limit_bytes)
        self._patience = patience_values
        self._borders: list[int] = []  # where captured frames begin, ascending
        self._fence: int | None = None  # what was captured when the sink was last cleared
        self._budget = self._BUDGET_BYTES
        self._start = 0  # where the held chunks begin if they continue
        self._held: list[_Held] = []
        self._held_data = bytearray()
        self._fixed = 0  # values of the held data that continue; the rest contradicts
        self._floating = False
        self._flat = False  # whether what contradicts is one value over and over

    @property
    def end(self) -> int:
        """Position of the next value to be captured."""
        return self._store.end

    @property
    def expected(self) -> int:
        """Position where the next chunk begins if it continues."""
        return self._start + self._fixed

    @property
    def needed_from(self) -> int:
        """Positions in front of this one will not be reported any more."""
        return min(self._start, self._store.base)

    def capture(self, data: bytes) -> int:
        """Add what entered upstream; return how many values had to be forgotten unmatched."""
        self._borders.append(self._store.end)
        kept_from = max(self.expected, self._store.base)
        self._store.append(data)
        base = self._store.base
        if base > self._start and not self._held:
            self._start = base
        return max(base - kept_from, 0)

    def clear(self) -> list[Match]:
        """The sink was told to drop what it holds: the next push may begin at the next capture.

        Returns what was held, decided: what comes after the clear need not lie next to it.
        """
        decided = self.finish()
        self._fence = self._store.end
        return decided

    def rewind(self, position: int) -> None:
        """The chunk that began at ``position`` was refused and may be handed over again."""
        if not self._held and self._store.base <= position < self._start:
            self._start = position

    def push(self, key: Hashable, data: bytes) -> list[Match]:
        """Match the next chunk; return what is decided now, oldest first (this chunk or not)."""
        if not data:
            return [Match(key, [], 0)]
        self._budget = min(self._budget + self._REFILL_BYTES, self._BUDGET_BYTES)
        values = len(data) // VALUE_BYTES
        if self._start < self._store.base and not self._held:
            self._start = self._store.base
        if self._fence is not None and self._start >= self._fence:
            self._fence = None
        constant = _is_constant(data)
        self._flat = self._flat and constant and self._held_data[-VALUE_BYTES:] == data[:2]
        self._held.append(_Held(key, values, self._store.end))
        self._held_data += data
        if self._floating:
            return self._resolve(last=False)
        if self._store.matches(self.expected, data):
            # What the clear dropped, or the same captured again after it.
            undecided = self._fence is not None and self._store.matches(
                self._fence + self._fixed, data
            )
            self._fixed += values
            # Silence up to the end of all that was captured can be nowhere else.
            undecided = undecided or (constant and self.expected < self._store.end)
            if not undecided:
                return self._settle([(self._start, self._fixed)])
            return [] if self._fixed < self._patience else self._settle_by_time()
        ahead = self._store.common_ahead(self.expected, data)
        self._fixed += ahead
        self._floating = True
        self._flat = _is_constant(data[ahead * VALUE_BYTES :])
        return self._resolve(last=False)

    def finish(self) -> list[Match]:
        """Decide what is held by flow order and time: nothing more will come that could tell."""
        if not self._held:
            return []
        if self._floating:
            return self._resolve(last=True)
        return self._settle_by_time()

    def _settle_by_time(self) -> list[Match]:
        """Settle what continues, and could as well have been captured after the clear.

        Whole chunks are taken for the latter, from the first on that allows for all of them to
        have been captured when they were handed on.
        """
        doubts = (0, self._fixed)
        continued: list[Part] = [(self._start, self._fixed)]
        fence = self._fence
        if fence is None:
            return self._settle(continued, doubts)
        data = bytes(self._held_data)
        least = self._fixed - self._store.common_ahead(fence, data) if _is_constant(data) else 0
        split = begun = self._fixed
        for held in reversed(self._held):
            least = max(least, begun + fence - held.captured)
            begun -= held.values
            if begun < least:
                break
            split = begun
        if self._start + split >= fence or not self._store.matches(
            fence, data[split * VALUE_BYTES :]
        ):
            return self._settle(continued, doubts)
        return self._settle([(self._start, split), (fence, self._fixed - split)], doubts)

    def _in_time_from(self, shift: int) -> int:
        """From where on held values had been captured when they were handed on.

        Args:
            shift: what would be the position of the first held value.
        """
        stop = len(self._held_data) // VALUE_BYTES
        for held in reversed(self._held):
            if stop + shift > held.captured:
                return stop
            stop -= held.values
        return 0

    def _resolve(self, *, last: bool) -> list[Match]:
        """Place what contradicts the continuation, if it can be told where it belongs."""
        values = len(self._held_data) // VALUE_BYTES - self._fixed
        last = last or values >= self._patience
        telling = values >= self._TELLING_VALUES and not self._flat
        if not telling and not last:
            return []
        data = bytes(self._held_data)
        rest = data[self._fixed * VALUE_BYTES :]
        floor = self.expected
        found = self._candidates(data, rest)
        if len(found) > 1 and not last and len(self._held) < 8:
            return []
        if found:
            position, split, reach = self._choose(data, found)
            parts: list[Part] = [(self._start, split)] if split else []
            moved = self._fixed - split
            parts.append((position - moved, values + moved))
            if split or position - moved != self._fence:
                reach = max(reach, self._idle_values(data))
            else:
                reach = 0  # From the clear on all follows that was captured from the clear on.
            since, to = self._fixed - reach, self._fixed
            if not telling:
                since = min(since, self._fixed - _trailing_run(data[: self._fixed * VALUE_BYTES]))
            if len(found) > 1 or not telling:
                to = len(data) // VALUE_BYTES
            return self._settle(parts, (since, to))
        parts = [(self._start, self._fixed)] if self._fixed else []
        doubts = [(self._fixed - self._idle_values(data), self._fixed)]
        for piece in self._pieces_of(data):
            placed = self._place(piece, floor, 0)
            count = sum(values for _, values in parts)
            if _is_constant(piece) and placed[0][0] is not None:
                doubts.append((count, count + len(piece) // VALUE_BYTES))
            parts += placed
            reached = [start + values for start, values in placed if start is not None]
            floor = reached[-1] if reached else floor
        return self._settle(parts, *doubts)

    def _pieces_of(self, data: bytes) -> Iterator[bytes]:
        """What contradicts the continuation, cut up as it was handed over."""
        begun = 0
        for held in self._held:
            stop = begun + held.values
            if stop > self._fixed:
                yield data[max(begun, self._fixed) * VALUE_BYTES : stop * VALUE_BYTES]
            begun = stop

    def _idle_values(self, data: bytes) -> int:
        """How many values in front of the contradiction could be others of the same silence.

        Upstream the silence (or any constant) goes on where downstream it ended in a jump: which
        of it was handed on cannot be seen.
        """
        before = data[: self._fixed * VALUE_BYTES]
        following = self._store.head(self.expected, 1)
        if not before or following != before[-VALUE_BYTES:]:
            return 0
        return _trailing_run(before)

    def _candidates(self, data: bytes, rest: bytes) -> list[int]:
        """Positions where the rest is held whole, ascending, the first few."""
        fence = self._fence
        if fence is not None:
            # A clear announced this jump; what lies between was dropped by it.
            if self._store.matches(fence, data) and not self._in_time_from(fence):
                return [fence + self._fixed]
            if fence >= self.expected and self._is_candidate(fence, rest):
                return [fence]
        found: list[int] = []
        position: int | None = self.expected
        while position is not None and len(found) < self._CANDIDATES:
            position = self._search(rest, position)
            if position is not None:
                if self._in_time_from(position - self._fixed) > self._fixed:
                    break
                found.append(position)
                position += 1
        return found

    def _is_candidate(self, position: int, rest: bytes) -> bool:
        in_time = self._in_time_from(position - self._fixed) <= self._fixed
        return in_time and self._store.matches(position, rest)

    def _choose(self, data: bytes, found: list[int]) -> tuple[int, int, int]:
        """Which of the places it is, and where in the held data the jump lies.

        Returns the position of the first contradicting value, how many held values lie before the
        jump, and over how many values in front of the contradiction the jump could have been.
        """
        fixed = self._fixed
        before = data[: fixed * VALUE_BYTES]
        starts = []
        total = 0
        for held in self._held:
            starts.append(total)
            total += held.values
        fence = self._fence
        best: tuple[int, int, int, int, int] | None = None
        for position in found:
            reach = min(self._store.common_behind(position, before), fixed)
            reach = min(reach, fixed - self._in_time_from(position - fixed))
            behind = fence is not None and position >= fence
            if fence is not None and behind:
                reach = min(reach, position - fence)
            splits = {fixed}
            splits.update(start for start in starts if fixed - reach <= start <= fixed)
            low = bisect_left(self._borders, position - reach)
            for border in self._borders[low : bisect_right(self._borders, position)][-4:]:
                splits.add(fixed - (position - border))
            if behind:
                splits.add(fixed - reach)
            for split in splits:
                landing = position - (fixed - split)
                rank = 2 * (split not in starts)
                if behind:
                    # As much as can be is what was captured after the clear, which announced
                    # the jump to just there.
                    rank = -1 if landing == fence else rank
                    option = (rank, position, split, split, reach)
                else:
                    rank += not self._is_border(landing)
                    option = (rank, position, -split, split, reach)
                if best is None or option < best:
                    best = option
        assert best is not None
        _, position, _, split, reach = best
        return position, split, reach

    def _is_border(self, position: int) -> bool:
        index = bisect_left(self._borders, position)
        return index < len(self._borders) and self._borders[index] == position

    def _place(self, piece: bytes, floor: int, depth: int) -> list[Part]:
        """Place a piece that may hold jumps of its own, or audio never captured; the effort is
        bounded."""
        values = len(piece) // VALUE_BYTES
        if not values:
            return []
        if self._store.matches(floor, piece):
            return [(floor, values)]
        position = self._fence
        if position is None or position < floor or not self._store.matches(position, piece):
            position = self._search(piece, floor)
        if position is not None:
            return [(position, values)]
        if depth > 3 or _is_constant(piece):
            return [(None, values)]
        expected = self._store.head(floor, self._TELLING_VALUES)
        offset = piece.find(expected) if len(expected) == self._TELLING_BYTES else -1
        if offset > 0 and offset % VALUE_BYTES == 0 and not _is_constant(expected):
            # Audio from before the probe came, and the head of what was captured right behind it.
            ahead = self._store.common_ahead(floor, piece[offset:])
            if offset + ahead * VALUE_BYTES == len(piece):
                return [(None, offset // VALUE_BYTES), (floor, ahead)]
        needle = self._front_needle(piece)
        position = self._search(needle, floor) if needle else None
        if position is not None:
            ahead = self._store.common_ahead(position, piece)
            behind = piece[ahead * VALUE_BYTES :]
            return [(position, ahead), *self._place(behind, position + ahead, depth + 1)]
        needle = piece[-self._TELLING_BYTES :]
        if len(needle) < self._TELLING_BYTES or _is_constant(needle):
            return [(None, values)]
        position = self._search(needle, floor)
        if position is None:
            return [(None, values)]
        stop = position + self._TELLING_VALUES
        reach = min(self._store.common_behind(stop, piece), stop - floor)
        front: list[Part] = [(None, values - reach)] if reach < values else []
        return [*front, (stop - reach, reach)]

    def _front_needle(self, piece: bytes) -> bytes:
        """The front of ``piece``, just long enough to tell."""
        needle = piece[: self._TELLING_BYTES]
        if len(needle) == self._TELLING_BYTES and not _is_constant(needle):
            return needle
        values = np.frombuffer(piece, np.int16)
        differing = int(np.flatnonzero(values != values[0])[0])
        return piece[: (differing + self._TELLING_VALUES) * VALUE_BYTES]

    def _search(self, needle: bytes, start: int) -> int | None:
        """`SampleStore.find` within the budget."""
        if self._budget <= 0:
            return None
        start = max(start, self._store.base)
        position = self._store.find(needle, start)
        stop = self._store.end if position is None else position
        self._budget -= max(stop - start, 0) * VALUE_BYTES
        return position

    def _settle(self, parts: list[Part], *doubts: tuple[int, int]) -> list[Match]:
        """Hand out the parts to the held chunks and go on behind the last place found."""
        matches = []
        queue = [part for part in parts if part[1]]
        index = taken = begun = 0
        for held in self._held:
            own: list[Part] = []
            missing = held.values
            while missing:
                position, values = queue[index]
                count = min(values - taken, missing)
                own.append((None if position is None else position + taken, count))
                missing -= count
                taken += count
                if taken == values:
                    index, taken = index + 1, 0
            stop = begun + held.values
            doubtful = sum(max(min(to, stop) - max(since, begun), 0) for since, to in doubts)
            matches.append(Match(held.key, own, doubtful))
            begun = stop
        reached = [position + values for position, values in queue if position is not None]
        if reached:
            if self._floating:
                self._budget = self._BUDGET_BYTES
            self._start = reached[-1]
        self._fixed = 0
        self._floating = self._flat = False
        self._held.clear()
        self._held_data.clear()
        self._tidy()
        return matches

    def _tidy(self) -> None:
        # In large steps: every removal moves what stays.
        if self._start - self._store.base > 2 * self._HISTORY_VALUES:
            self._store.forget_before(self._start - self._HISTORY_VALUES)
        unneeded = bisect_left(self._borders, self._store.base)
        if unneeded > 4096:
            del self._borders[:unneeded]


# --- pushed to sent ---------------------------------------------------------------------------

Kind = Literal["sent", "inserted", "unknown"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values that left the source one behind the other, of one kind.

    ``block`` is the number of the block it begins in, ``offset`` the value of that block it
    begins with. ``position`` is that of its first value among the pushed, None unless ``sent``.
    ``latest_ns`` is the time of a clear that would have discarded it: it left before.
    """

    block: int
    offset: int
    kind: Kind
    position: int | None
    values: int
    ambiguous_values: int = 0
    latest_ns: int | None = None


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
class _Clear:
    at_ns: int
    ended_ns: int
    high: int
    """Pushed before the clear was called: everything in front of this position."""


_Label = tuple[tuple["tuple[Kind, int | None, int]", ...], bool, "int | None"]
"""Parts of one block, whether their place is in doubt, and when it had left at the latest."""


@dataclass(slots=True)
class _Path:
    """One reading of what happened in the native queue."""

    position: int
    clears: int
    cost_ns: int = 0
    emptied_ns: int = 0
    """When the last clear this reading has behind it was called."""
    spoke_ns: int = 0
    """When the last block of the queue left."""
    sent: int = 0
    """A sum over the positions of all blocks it says were sent, whatever their order."""
    labels: list[_Label] = field(default_factory=list)


class WireMatcher:
    """Finds the blocks that left a source again in what was pushed to it.

    The native queue is a pipe: what leaves is what was put in, in order, unless a clear emptied
    it. A block is a whole block of the queue, or silence where less than a block was inside. What
    survives a clear begins at the front of a push that was still under way, or of a piece of it.

    Where several readings of the blocks fit, all are kept; content ends most of them. Readings of
    the same content differ in when they say things happened; one that disagrees with the clock by
    more than ``slack_ns`` compared with another is given up.

    Args:
        block_values: values the source hands on per tick.
        piece_values: how the source cuts up frames longer than its queue; None if unknown.
        slack_ns: how far the given times of blocks may be wrong.
        block_ns: time between two ticks of the source.
        quiet_ns: for how long a source that runs dry puts out nothing before it inserts silence.
        limit_bytes: how much pushed audio is kept while it is not sent.
        start: position of the first value that will be pushed.
    """

    _PATHS: Final = 48
    _HELD_BLOCKS: Final = 400
    _HISTORY_VALUES: Final = 1 << 14
    _BUDGET_BYTES: Final = 16 << 20
    _REFILL_BYTES: Final = 64 << 10

    def __init__(
        self,
        block_values: int,
        piece_values: int | None = None,
        *,
        slack_ns: int = 60_000_000,
        block_ns: int = 10_000_000,
        quiet_ns: int = 0,
        limit_bytes: int = 16 << 20,
        start: int = 0,
    ) -> None:
        self._block = block_values
        self._piece_values = piece_values
        self._slack = slack_ns
        self._block_ns = block_ns
        self._quiet = quiet_ns
        self._store = SampleStore(limit_bytes, start)
        self._pieces: list[_Piece] = []
        self._clears: list[_Clear] = []
        self._clears_gone = 0  # clears every reading has behind it, no longer in the list
        self._paths = [_Path(start, 0)]
        self._held_from = 0  # number of the block the paths' labels begin with
        self._stray: bytes | None = None  # the last block if nobody knows it
        self._budget = self._BUDGET_BYTES
        self._zeros = bytes(block_values * VALUE_BYTES)

    @property
    def end(self) -> int:
        """Position of the next value to be pushed."""
        return self._store.end

    @property
    def has_stray(self) -> bool:
        """Whether the last block is one nobody knows, held for the next one to explain."""
        return self._stray is not None

    @property
    def undecided_blocks(self) -> int:
        """How many blocks are held because more than one reading fits."""
        return len(self._paths[0].labels)

    @property
    def needed_from(self) -> int:
        """Positions in front of this one will not be reported any more."""
        return self._store.base

    def push(self, key: Hashable, data: bytes, at_ns: int) -> int:
        """Add an accepted push; return how many values had to be forgotten unsent."""
        start = self._store.end
        stop = start + len(data) // VALUE_BYTES
        step = self._piece_values or max(stop - start, 1)
        for begin in range(start, stop, step):
            self._pieces.append(_Piece(begin, min(begin + step, stop), at_ns, key))
        self._store.append(data)
        base = self._store.base
        lost = 0
        for path in self._paths:
            if path.position < base:
                lost = max(lost, base - path.position)
                path.position = base
        return lost

    def push_ended(self, key: Hashable, ended_ns: int, *, returned: bool) -> None:
        """The call of a push ended: all of it was inside the queue by then (if it returned)."""
        seen = False
        for piece in reversed(self._pieces):
            if piece.key == key:
                piece.inside_ns = ended_ns
                piece.surely = returned
                seen = True
            elif seen:
                break

    def retract(self, key: Hashable) -> bool:
        """Take back the last push, which was refused; False if it is not last, or was seen sent."""
        if not self._pieces or self._pieces[-1].key != key:
            return False
        start = min(piece.start for piece in self._pieces if piece.key == key)
        if any(path.position > start for path in self._paths):
            return False
        self._pieces = [piece for piece in self._pieces if piece.key != key]
        self._store.truncate(start)
        return True

    def was_sent(self, start: int) -> bool:
        """Whether anything from position ``start`` on is known to have been sent."""
        return any(path.position > start for path in self._paths)

    def clear(self, at_ns: int, ended_ns: int | None = None) -> None:
        """The queue is being emptied; what was pushed so far may be gone."""
        self._clears.append(_Clear(at_ns, ended_ns or at_ns, self._store.end))

    def blocks(self, first: int, data: bytes, at_ns: int) -> list[Stretch]:
        """Match whole blocks that left one tick after the other, the first at ``at_ns``.

        Returns what is decided now, oldest first.
        """
        size = self._block * VALUE_BYTES
        count = len(data) // size
        self._budget = min(self._budget + count * self._REFILL_BYTES, self._BUDGET_BYTES)
        path = self._paths[0]
        if not path.labels:
            self._held_from = first
        if len(self._paths) == 1 and not self._clears and not path.labels:
            quick = self._match_quickly(path, first, data, at_ns, count)
            if quick is not None:
                return [quick]
        for index in range(count):
            block = data[index * size : (index + 1) * size]
            self._step(block, at_ns + index * self._block_ns)
        return self._decide()

    def finish(self) -> list[Stretch]:
        """Decide what is held by time and flow order: nothing more will come."""
        self._collapse()
        self._stray = None
        return self._hand_out(len(self._paths[0].labels))

    def give_up_stray(self) -> list[Stretch]:
        """Hand out a block nobody knows without waiting for the next one to explain it."""
        self._stray = None
        return self._decide()

    def _match_quickly(
        self, path: _Path, first: int, data: bytes, at_ns: int, count: int
    ) -> Stretch | None:
        values = count * self._block
        if data.startswith(self._zeros) and data == self._zeros * count:
            if self._store.end - path.position < self._block:
                return Stretch(first, 0, "inserted", None, values)
            stop_ns = self._inside_ns(path.position + values)
            if stop_ns is None or at_ns - stop_ns <= self._slack:
                return None
        if not self._store.matches(path.position, data):
            return None
        stretch = Stretch(first, 0, "sent", path.position, values)
        path.position += values
        self._tidy()
        return stretch

    def _step(self, block: bytes, at_ns: int) -> None:
        """Let every reading explain one more block."""
        zero = block == self._zeros
        size = self._block
        successors: dict[tuple[int, int], _Path] = {}
        for path in self._paths:
            for position, clears, cost, emptied_ns in self._continuations(path, at_ns):
                options: list[tuple[int, int, _Label]] = []
                if self._store.matches(position, block):
                    early = self._pushed_ns(position + size) - at_ns
                    latest = self._cleared_ns(position, clears)
                    sent: _Label = ((("sent", position, size),), False, latest)
                    options.append((position + size, early, sent))
                if zero:
                    late = self._overdue_ns(position + size, emptied_ns, at_ns)
                    hasty = path.spoke_ns + self._quiet - at_ns if path.spoke_ns else 0
                    inserted: _Label = ((("inserted", None, size),), False, None)
                    options.append((position, max(late, hasty), inserted))
                for reached, price, label in options:
                    speaks = reached > position
                    successor = _Path(
                        reached,
                        clears,
                        max(cost, price),
                        emptied_ns,
                        at_ns if speaks else path.spoke_ns,
                        path.sent + (_mixed(position) if speaks else 0),
                        [*path.labels, label],
                    )
                    key = (reached, clears)
                    known = successors.get(key)
                    successors[key] = successor if known is None else _better(known, successor)
        if not successors:
            self._lose(block)
            return
        self._stray = None
        self._paths = list(successors.values())
        if len(self._paths) > 1:
            self._prune()

    def _continuations(self, path: _Path, at_ns: int) -> list[tuple[int, int, int, int]]:
        """Where the next block may come from: position, clears behind it, cost, emptied when."""
        pending = self._clears[path.clears - self._clears_gone :]
        if not pending:
            return [(path.position, path.clears, path.cost_ns, path.emptied_ns)]
        late = at_ns - pending[0].ended_ns
        result = [(path.position, path.clears, max(path.cost_ns, late), path.emptied_ns)]
        for index, clear in enumerate(pending):
            cost = max(path.cost_ns, clear.at_ns - at_ns)
            if index + 1 < len(pending):
                cost = max(cost, at_ns - pending[index + 1].ended_ns)
            behind = path.clears + index + 1
            result += [
                (start, behind, cost, clear.at_ns)
                for start in self._survivors(clear, path.position)
            ]
        return result

    def _cleared_ns(self, position: int, clears: int) -> int | None:
        """When the next clear was over that would have taken what lies at ``position``."""
        index = clears - self._clears_gone
        if index >= len(self._clears) or position >= self._clears[index].high:
            return None
        return self._clears[index].ended_ns

    def _overdue_ns(self, position: int, emptied_ns: int, at_ns: int) -> int:
        """For how long the source could have sent everything in front of ``position`` already."""
        piece = self._piece_of(position)
        if piece is None:
            return 0
        if piece.inside_ns is None or not piece.surely:
            # With nothing else inside, the next piece is taken in within two ticks.
            return at_ns - max(piece.at_ns, emptied_ns) - 2 * self._block_ns
        return at_ns - piece.inside_ns

    def _survivors(self, clear: _Clear, position: int) -> list[int]:
        """Where what is sent after the clear may begin."""
        high = max(clear.high, position)
        starts = {high}
        for piece in reversed(self._pieces):
            if piece.start >= high:
                continue
            if piece.start < position:
                break
            if piece.surely and piece.inside_ns is not None and piece.inside_ns < clear.at_ns:
                break
            starts.add(piece.start)
        return sorted(starts)

    def _piece_of(self, position: int) -> _Piece | None:
        """The piece that holds the value in front of ``position``."""
        index = bisect_left(self._pieces, position, key=lambda piece: piece.stop)
        return self._pieces[index] if index < len(self._pieces) else None

    def _inside_ns(self, position: int) -> int | None:
        """When everything in front of ``position`` was inside the queue; None if unknown."""
        piece = self._piece_of(position)
        return None if piece is None else piece.inside_ns

    def _pushed_ns(self, position: int) -> int:
        """When the push of the value in front of ``position`` began."""
        piece = self._piece_of(position)
        return 0 if piece is None else piece.at_ns

    def _prune(self) -> None:
        """Give up readings the clock contradicts."""
        self._paths.sort(key=lambda path: path.cost_ns)
        limit = self._paths[0].cost_ns + self._slack
        kept = [path for path in self._paths[: self._PATHS] if path.cost_ns <= limit]
        for gone in self._paths[len(kept) :]:
            for path in kept:
                # Two readings that differ in a clear only: which samples are gone was decided by
                # the clock. That silence was sent when it was due is confirmed by what follows.
                if path.clears != gone.clears:
                    _doubt(path, gone)
        self._paths = kept
        if len(kept[0].labels) > self._HELD_BLOCKS:
            self._collapse()

    def _collapse(self) -> None:
        """Keep the reading that fits the clock best; where others differ is in doubt."""
        best = min(self._paths, key=lambda path: path.cost_ns)
        for other in self._paths:
            if other is not best:
                _doubt(best, other)
        self._paths = [best]

    def _lose(self, block: bytes) -> None:
        """No reading explains the block: look for it everywhere ahead."""
        self._collapse()
        path = self._paths[0]
        # Behind every clear: what is found now lies behind them too, or cannot be told apart.
        found = self._search(block, path.position)
        if found is None:
            path.labels.append(((("unknown", None, self._block),), False, None))
            self._stray = block
            return
        repeated = self._search(block, found + 1) is not None
        if self._stray is not None and path.labels:
            # A block that began before the probe came, or before the jump, and ended with this.
            reach = min(self._store.common_behind(found, self._stray), found - path.position)
            if reach:
                front: tuple[tuple[Kind, int | None, int], ...] = (
                    (("unknown", None, self._block - reach),) if reach < self._block else ()
                )
                path.labels[-1] = ((*front, ("sent", found - reach, reach)), False, None)
        self._stray = None
        path.labels.append(((("sent", found, self._block),), repeated, None))
        path.position = found + self._block
        path.cost_ns = 0

    def _search(self, block: bytes, start: int) -> int | None:
        if self._budget <= 0:
            return None
        found = self._store.find(block, start)
        stop = self._store.end if found is None else found
        self._budget -= max(stop - start, 0) * VALUE_BYTES
        return found

    def _decide(self) -> list[Stretch]:
        """Hand out what all readings agree on."""
        paths = self._paths
        agreed = len(paths[0].labels)
        if len(paths) > 1:
            labels = paths[0].labels
            for other in paths[1:]:
                for index in range(agreed):
                    if labels[index][0] != other.labels[index][0]:
                        agreed = index
                        break
        else:
            paths[0].cost_ns = 0
            if self._stray is not None:
                agreed -= 1
        self._forget_clears()
        return self._hand_out(agreed)

    def _forget_clears(self) -> None:
        done = min(path.clears for path in self._paths) - self._clears_gone
        if len(self._paths) == 1 and self._clears[done:]:
            # A reading that sits behind a clear's end has that clear behind it.
            position = self._paths[0].position
            while done < len(self._clears) and self._clears[done].high < position:
                done += 1
                self._paths[0].clears = self._clears_gone + done
        if done > 0:
            del self._clears[:done]
            self._clears_gone += done

    def _hand_out(self, count: int) -> list[Stretch]:
        if not count:
            return []
        handed = self._paths[0].labels[:count]
        for path in self._paths[1:]:
            for index, (parts, doubt, latest) in enumerate(path.labels[:count]):
                _, doubted, known = handed[index]
                sure = latest if latest == known else None
                handed[index] = (parts, doubt or doubted, sure)
        for path in self._paths:
            del path.labels[:count]
        stretches: list[Stretch] = []
        for index, (parts, doubt, latest) in enumerate(handed):
            offset = 0
            for kind, position, values in parts:
                block = self._held_from + index
                doubtful = values if doubt else 0
                stretches.append(Stretch(block, offset, kind, position, values, doubtful, latest))
                offset += values
        self._held_from += count
        self._tidy()
        return stretches

    def _tidy(self) -> None:
        position = min(path.position for path in self._paths)
        gone = bisect_right(self._pieces, position, key=lambda piece: piece.stop)
        if gone > 64:
            del self._pieces[:gone]
        if position - self._store.base > 2 * self._HISTORY_VALUES:
            self._store.forget_before(position - self._HISTORY_VALUES)


def _better(one: _Path, other: _Path) -> _Path:
    """Of two readings that come to the same state, the one that fits the clock better.

    Where both sent the same, they differ only in when silence was put in between, and what follows
    confirms either. Where it took a clear to make them meet, the clock decided what was sent.
    """
    best, second = (one, other) if one.cost_ns <= other.cost_ns else (other, one)
    if best.sent != second.sent:
        _doubt(best, second)
    for index, (label, against) in enumerate(zip(best.labels, second.labels, strict=True)):
        if label[2] != against[2]:
            best.labels[index] = (label[0], label[1], None)
    return best


def _mixed(position: int) -> int:
    """A number for a position, such that equal sums of them mean equal positions."""
    return hash((position,))


def _doubt(path: _Path, other: _Path) -> None:
    """Mark where two readings of the same blocks differ."""
    for index, (label, against) in enumerate(zip(path.labels, other.labels, strict=True)):
        if label[0] != against[0]:
            path.labels[index] = (label[0], True, label[2])
