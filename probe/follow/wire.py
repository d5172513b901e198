"""Pushed to sent: finding the blocks that left a source again in what was pushed to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from probe.follow.queue import Clear, Queue
from probe.follow.readings import Kind, Part, Path, Readings
from probe.follow.store import VALUE_BYTES, SampleStore, is_constant

__all__ = ["Kind", "Stretch", "WireMatcher"]


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


class WireMatcher:
    """Finds the blocks that left a source again in what was pushed to it.

    The native queue is a pipe: what leaves is what was put in, in order, unless a clear emptied
    it. A block is a whole block of the queue, or silence where less than a block was inside. What
    survives a clear begins at the front of a push that was still under way, or of a piece of it.

    Args:
        block_values: values the source hands on per tick.
        piece_values: how the source cuts up frames longer than its queue; None if unknown.
        slack_ns: how far the given times of blocks may be wrong.
        block_ns: time between two ticks of the source.
        quiet_ns: for how long a source that runs dry puts out nothing before it inserts silence.
        limit_bytes: how much pushed audio is kept while it is not sent.
        start: position of the first value that will be pushed.
    """

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
        self._slack = slack_ns
        self._block_ns = block_ns
        self._store = SampleStore(limit_bytes, start)
        self._queue = Queue(piece_values, block_ns)
        self._readings = Readings(self._queue, self._store, block_values, slack_ns, quiet_ns)
        self._held_from = 0  # number of the block the readings' labels begin with
        self._stray: bytes | None = None  # the last block if nobody knows it
        self._began = self._sent_to = start  # behind all that is known to have been sent
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
        return len(self._readings.paths[0].labels)

    @property
    def needed_from(self) -> int:
        """Positions in front of this one will not be reported any more."""
        return self._store.base

    def push(self, key: Hashable, data: bytes, at_ns: int) -> int:
        """Add an accepted push; return how many values had to be forgotten unsent."""
        start = self._store.end
        self._queue.push(key, start, start + len(data) // VALUE_BYTES, at_ns)
        self._store.append(data)
        base = self._store.base
        lost = 0
        for path in self._readings.paths:
            if path.position < base:
                lost = max(lost, base - path.position)
                path.position = base
            path.low = max(path.low, base)
        return lost

    def push_ended(self, key: Hashable, ended_ns: int, *, returned: bool) -> None:
        """The call of a push ended: all of it was inside the queue by then (if it returned)."""
        self._queue.push_ended(key, ended_ns, returned=returned)

    def retract(self, key: Hashable) -> bool:
        """Take back the last push, which was refused; False if it is not last, or was seen sent."""
        start = self._queue.last_push(key)
        if start is None or self.was_sent(start):
            return False
        self._queue.retract(key)
        self._store.truncate(start)
        return True

    def was_sent(self, start: int) -> bool:
        """Whether anything from position ``start`` on is known to have been sent."""
        return any(path.position > start for path in self._readings.paths)

    def clear(self, at_ns: int, ended_ns: int | None = None) -> None:
        """The queue is being emptied; what was pushed so far may be gone."""
        self._queue.clears.append(Clear(at_ns, ended_ns or at_ns, self._store.end))

    def blocks(self, first: int, data: bytes, at_ns: int) -> list[Stretch]:
        """Match whole blocks that left one tick after the other, the first at ``at_ns``.

        Returns what is decided now, oldest first.
        """
        size = self._block * VALUE_BYTES
        count = len(data) // size
        self._budget = min(self._budget + count * self._REFILL_BYTES, self._BUDGET_BYTES)
        paths = self._readings.paths
        if not paths[0].labels:
            self._held_from = first
            if len(paths) == 1 and not self._queue.clears:
                quick = self._match_quickly(paths[0], first, data, at_ns, count)
                if quick is not None:
                    return [quick]
        for index in range(count):
            block = data[index * size : (index + 1) * size]
            block_ns = at_ns + index * self._block_ns
            if self._readings.step(block, block_ns):
                self._stray = None
            else:
                self._find(block, block_ns)
        return self._decide()

    def finish(self) -> list[Stretch]:
        """Decide what is held by time and flow order: nothing more will come."""
        self._readings.collapse()
        self._stray = None
        return self._hand_out(self.undecided_blocks)

    def give_up_stray(self) -> list[Stretch]:
        """Hand out a block nobody knows without waiting for the next one to explain it."""
        self._stray = None
        return self._decide()

    def _match_quickly(
        self, path: Path, first: int, data: bytes, at_ns: int, count: int
    ) -> Stretch | None:
        values = count * self._block
        if data.startswith(self._zeros) and data == self._zeros * count:
            if self._store.end - path.position < self._block:
                return Stretch(first, 0, "inserted", None, values)
            stop_ns = self._queue.inside_ns(path.position + values)
            if stop_ns is None or at_ns - stop_ns <= self._slack:
                return None
        if not self._store.matches(path.position, data):
            return None
        stretch = Stretch(first, 0, "sent", path.position, values)
        path.position = path.low = path.position + values
        self._sent_to = path.position
        self._tidy()
        return stretch

    def _find(self, block: bytes, at_ns: int) -> None:
        """No reading explains the block: look for it everywhere it may have come from."""
        since = self._readings.found_from(at_ns)
        path = self._readings.collapse()
        found = self._search(block, since)
        if found is None and self._sent_to < since:
            # Content tells more than the clock: it left before the clear, and was read late.
            since = self._sent_to
            found = self._search(block, since)
        if found is None:
            self._leave_open(path, block, since)
            return
        repeated = self._search(block, found + 1) is not None
        if self._stray is not None and path.labels:
            # A block that began before the probe came, or before the jump, and ended with this.
            reach = min(self._store.common_behind(found, self._stray), found - since)
            if reach:
                front: tuple[Part, ...] = (
                    (("unknown", None, self._block - reach),) if reach < self._block else ()
                )
                path.labels[-1] = ((*front, ("sent", found - reach, reach)), False, None)
        self._stray = None
        path.labels.append(((("sent", found, self._block),), repeated, None))
        path.clears = self._readings.behind(found, at_ns)
        path.position = path.low = found + self._block
        path.cost_ns = 0

    def _leave_open(self, path: Path, block: bytes, since: int) -> None:
        """Nobody knows the block. What a source held before the probe came ends inside one: behind
        it lies the head of what was pushed first."""
        reach = self._block - 1 if self._sent_to == self._began else 0
        while reach and not self._store.matches(since, block[-reach * VALUE_BYTES :]):
            reach -= 1
        strange: Part = ("unknown", None, self._block - reach)
        if reach:
            doubtful = is_constant(block[-reach * VALUE_BYTES :])
            path.labels.append(((strange, ("sent", since, reach)), doubtful, None))
            path.position = path.low = since + reach
        else:
            path.labels.append(((strange,), False, None))
            self._stray = block

    def _search(self, block: bytes, start: int) -> int | None:
        if self._budget <= 0:
            return None
        found = self._store.find(block, start)
        stop = self._store.end if found is None else found
        self._budget -= max(stop - start, 0) * VALUE_BYTES
        return found

    def _decide(self) -> list[Stretch]:
        """Hand out what all readings agree on."""
        paths = self._readings.paths
        agreed = self._readings.agreed()
        if len(paths) == 1:
            paths[0].cost_ns = 0
            agreed -= self._stray is not None
        self._forget_clears(paths)
        return self._hand_out(agreed)

    def _forget_clears(self, paths: list[Path]) -> None:
        queue = self._queue
        done = min(path.clears for path in paths) - queue.gone
        if len(paths) == 1 and queue.clears[done:]:
            # A reading that sits behind a clear's end has that clear behind it.
            while done < len(queue.clears) and queue.clears[done].high < paths[0].position:
                done += 1
                paths[0].clears = queue.gone + done
        if done > 0:
            queue.forget_clears(done)

    def _hand_out(self, count: int) -> list[Stretch]:
        if not count:
            return []
        stretches: list[Stretch] = []
        for index, (parts, doubtful, latest) in enumerate(self._readings.take(count)):
            offset = 0
            for kind, position, values in parts:
                block = self._held_from + index
                doubt = values if doubtful else 0
                stretches.append(Stretch(block, offset, kind, position, values, doubt, latest))
                offset += values
                if position is not None:
                    self._sent_to = position + values
        self._held_from += count
        self._tidy()
        return stretches

    def _tidy(self) -> None:
        position = min(path.low for path in self._readings.paths)
        self._queue.forget_before(position)
        if position - self._store.base > 2 * self._HISTORY_VALUES:
            self._store.forget_before(position - self._HISTORY_VALUES)
