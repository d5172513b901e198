"""What was captured and can be found again, and what was handed on and is not decided yet."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from probe.follow.store import VALUE_BYTES, SampleStore, is_constant, leading_run, trailing_run

TELLING_VALUES: Final = 32
"""Fewer values than this are not searched for: they would be found anywhere."""

TELLING_BYTES: Final = TELLING_VALUES * VALUE_BYTES


class Upstream:
    """Captured values by their position, searched with a bounded effort.

    Args:
        limit_bytes: how much of it is kept.
    """

    _HISTORY_VALUES: Final = 1 << 17
    """Kept behind the last match, for a refused frame that is handed over again."""
    _BUDGET_BYTES: Final = 64 << 20
    _REFILL_BYTES: Final = 256 << 10

    def __init__(self, limit_bytes: int) -> None:
        self.store = SampleStore(limit_bytes)
        self.fence: int | None = None
        """What was captured when the sink was last cleared, while that may still matter."""
        self._borders: list[int] = []  # where captured frames begin, ascending
        self._budget = self._BUDGET_BYTES

    def capture(self, data: bytes) -> None:
        """Add a frame."""
        self._borders.append(self.store.end)
        self.store.append(data)

    def search(self, needle: bytes, start: int) -> int | None:
        """`SampleStore.find` within the budget."""
        if self._budget <= 0:
            return None
        start = max(start, self.store.base)
        position = self.store.find(needle, start)
        self.spend(start, self.store.end if position is None else position)
        return position

    def spend(self, start: int, stop: int) -> bool:
        """Take what reading from one position to another costs; whether it can be afforded."""
        affordable = self._budget > 0
        self._budget -= max(stop - start, 0) * VALUE_BYTES
        return affordable

    def refill(self, *, whole: bool = False) -> None:
        """Let searches read on: a little with every chunk, all of it once one was found."""
        more = self._BUDGET_BYTES if whole else self._budget + self._REFILL_BYTES
        self._budget = min(more, self._BUDGET_BYTES)

    @property
    def newest(self) -> int:
        """Where the last captured frame begins."""
        return self._borders[-1] if self._borders else 0

    def is_border(self, position: int) -> bool:
        """Whether a captured frame begins there."""
        index = bisect_left(self._borders, position)
        return index < len(self._borders) and self._borders[index] == position

    def borders(self, start: int, stop: int) -> Sequence[int]:
        """Where captured frames begin, both ends included."""
        low = bisect_left(self._borders, start)
        return self._borders[low : bisect_right(self._borders, stop)]

    def is_skipped(self, start: int, stop: int) -> bool:
        """Whether what is passed over from one position to another is silence, and no clear had it
        dropped."""
        if not self.store.base <= start < stop or (self.fence is not None and stop >= self.fence):
            return False
        return self.store.is_silent(start, stop)

    def tidy(self, reached: int) -> None:
        """Let go of what lies far behind. In large steps: every removal moves what stays."""
        if reached - self.store.base > 2 * self._HISTORY_VALUES:
            self.store.forget_before(reached - self._HISTORY_VALUES)
        unneeded = bisect_left(self._borders, self.store.base)
        if unneeded > 4096:
            del self._borders[:unneeded]


@dataclass(slots=True)
class Chunk:
    """One push that is held."""

    key: Hashable
    values: int
    captured: int
    """Position of the next value to be captured when it was handed on: it lies in front of it."""
    entering: int | None = None
    """Where the frame begins that was entering the sink just then: in a sink that holds nothing
    back it is that one."""


class Held:
    """Chunks handed on that are not decided, one behind the other.

    The first ``fixed`` of their values continue where the last match ended; the rest contradicts.
    """

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.fixed = 0
        self._data = bytearray()

    def __bool__(self) -> bool:
        return bool(self.chunks)

    @property
    def values(self) -> int:
        return len(self._data) // VALUE_BYTES

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    @property
    def rest(self) -> bytes:
        """What contradicts."""
        return bytes(self._data[self.fixed * VALUE_BYTES :])

    @property
    def before(self) -> bytes:
        """What continues."""
        return bytes(self._data[: self.fixed * VALUE_BYTES])

    def ends_with(self, value: bytes) -> bool:
        return self._data[-VALUE_BYTES:] == value

    def add(self, chunk: Chunk, data: bytes) -> None:
        self.chunks.append(chunk)
        self._data += data

    def clear(self) -> None:
        self.fixed = 0
        self.chunks.clear()
        self._data.clear()

    def starts(self) -> list[int]:
        """Where each chunk begins among the held values."""
        begun = 0
        found = []
        for chunk in self.chunks:
            found.append(begun)
            begun += chunk.values
        return found

    def strays(self, shift: int) -> list[int]:
        """Of the chunks from each one on, how many would be no frame that was just entering.

        Args:
            shift: what would be the position of the first held value.
        """
        counts = [0]
        for begun, chunk in zip(reversed(self.starts()), reversed(self.chunks), strict=True):
            counts.append(counts[-1] + (chunk.entering != begun + shift))
        return counts[::-1]

    def contradicting(self) -> Iterator[bytes]:
        """What contradicts, cut up as it was handed over."""
        begun = 0
        for chunk in self.chunks:
            stop = begun + chunk.values
            if stop > self.fixed:
                yield bytes(self._data[max(begun, self.fixed) * VALUE_BYTES : stop * VALUE_BYTES])
            begun = stop

    def in_time_from(self, shift: int) -> int:
        """From where on held values had been captured when they were handed on.

        Args:
            shift: what would be the position of the first held value.
        """
        stop = self.values
        for chunk in reversed(self.chunks):
            if stop + shift > chunk.captured:
                return stop
            stop -= chunk.values
        return 0

    def idle_values(self, store: SampleStore, expected: int) -> int:
        """How many values in front of the contradiction could be others of the same silence.

        Upstream the silence (or any constant) goes on where downstream it ended in a jump: which
        of it was handed on cannot be seen.
        """
        before = self.before
        if not before or store.head(expected, 1) != before[-VALUE_BYTES:]:
            return 0
        return trailing_run(before)

    def leading_silence(self, store: SampleStore, split: int, landing: int) -> int:
        """How many values from a jump on could be others of the same silence: what lies upstream in
        front of where the jump leads is that too.

        Args:
            store: what was captured.
            split: where in the held data the jump is.
            landing: where it leads.
        """
        moved = self.data[split * VALUE_BYTES :]
        if store.head(landing - 1, 1) != moved[:VALUE_BYTES]:
            return 0
        return leading_run(moved)

    def split_by_time(self, store: SampleStore, fence: int) -> int:
        """Where what was captured after a clear may begin among the held values, when content
        does not tell: with a whole chunk, from the first on that allows for all behind it to have
        been captured when they were handed on."""
        data = self.data
        least = self.fixed - store.common_ahead(fence, data) if is_constant(data) else 0
        split = begun = self.fixed
        for chunk in reversed(self.chunks):
            least = max(least, begun + fence - chunk.captured)
            begun -= chunk.values
            if begun < least:
                break
            split = begun
        return split
