"""Readings of what happened in a source's native queue, and what tells them apart.

Where several readings of the blocks fit, all are kept; content ends most of them. Readings of the
same content differ in when they say things happened; one that disagrees with the clock by more
than the slack compared with another is given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from probe.follow.queue import Queue
from probe.follow.store import VALUE_BYTES, SampleStore

__all__ = ["Kind", "Label", "Part", "Path", "Readings"]

Kind = Literal["sent", "inserted", "unknown"]

Part = tuple[Kind, "int | None", int]
"""Kind, position and number of some values of a block."""

Label = tuple[tuple[Part, ...], bool, "int | None"]
"""Parts of one block, whether their place is in doubt, and when it had left at the latest."""


@dataclass(slots=True)
class Path:
    """One reading of what happened in the native queue."""

    position: int
    clears: int
    low: int
    """From where on the next block may come, wherever the source cuts up what is pushed: before
    ``position`` where a clear may have left the rest of a frame."""
    cost_ns: int = 0
    emptied_ns: int = 0
    """When the last clear this reading has behind it was called."""
    spoke_ns: int = 0
    """When the last block of the queue left."""
    sent: int = 0
    """A sum over the positions of all blocks it says were sent, whatever their order."""
    labels: list[Label] = field(default_factory=list)


class Readings:
    """All readings that fit the blocks seen so far.

    Args:
        queue: what was pushed and cleared.
        store: the audio that was.
        block_values: values the source hands on per tick.
        slack_ns: how far the given times of blocks may be wrong.
        quiet_ns: for how long a source that runs dry puts out nothing before it inserts silence.
    """

    _PATHS: Final = 48
    _HELD_BLOCKS: Final = 400

    def __init__(
        self, queue: Queue, store: SampleStore, block_values: int, slack_ns: int, quiet_ns: int
    ) -> None:
        self._queue = queue
        self._store = store
        self._block = block_values
        self._slack = slack_ns
        self._quiet = quiet_ns
        self._zeros = bytes(block_values * VALUE_BYTES)
        self.paths = [Path(store.end, 0, store.end)]

    def step(self, block: bytes, at_ns: int) -> bool:
        """Let every reading explain one more block; False: none can, and nothing has changed."""
        successors: dict[tuple[int, int], Path] = {}
        for path in self.paths:
            for position, clears, low, cost, emptied_ns in self._continuations(path, at_ns):
                for reached, price, label in self._options(
                    path, block, position, clears, emptied_ns, at_ns
                ):
                    speaks = reached > position
                    successor = Path(
                        reached,
                        clears,
                        reached if speaks else low,
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
            return False
        self.paths = list(successors.values())
        if len(self.paths) > 1:
            self._prune()
        return True

    def _options(
        self, path: Path, block: bytes, position: int, clears: int, emptied_ns: int, at_ns: int
    ) -> Iterator[tuple[int, int, Label]]:
        """What a block can be there: the position it leads to, its cost, its label."""
        size = self._block
        if self._store.matches(position, block):
            early = self._queue.pushed_ns(position + size) - at_ns
            latest = self._queue.cleared_ns(position, clears)
            yield position + size, early, ((("sent", position, size),), False, latest)
        if block == self._zeros:
            late = self._queue.overdue_ns(position + size, emptied_ns, at_ns)
            hasty = path.spoke_ns + self._quiet - at_ns if path.spoke_ns else 0
            yield position, max(late, hasty), ((("inserted", None, size),), False, None)

    def _continuations(self, path: Path, at_ns: int) -> list[tuple[int, int, int, int, int]]:
        """Where the next block may come from: position, clears behind it, the lowest position it
        may have, cost, emptied when."""
        pending = self._queue.pending(path.clears)
        if not pending:
            return [(path.position, path.clears, path.low, path.cost_ns, path.emptied_ns)]
        late = at_ns - pending[0].ended_ns
        cost = max(path.cost_ns, late)
        result = [(path.position, path.clears, path.low, cost, path.emptied_ns)]
        for index, clear in enumerate(pending):
            cost = max(path.cost_ns, clear.at_ns - at_ns)
            if index + 1 < len(pending):
                cost = max(cost, at_ns - pending[index + 1].ended_ns)
            behind = path.clears + index + 1
            low = self._queue.survivors_from(clear, path.low)
            result += [
                (start, behind, min(low, start), cost, clear.at_ns)
                for start in self._queue.survivors(clear, path.position)
            ]
        return result

    def _prune(self) -> None:
        """Give up readings the clock contradicts."""
        self.paths.sort(key=lambda path: path.cost_ns)
        limit = self.paths[0].cost_ns + self._slack
        kept = [path for path in self.paths[: self._PATHS] if path.cost_ns <= limit]
        for gone in self.paths[len(kept) :]:
            for path in kept:
                # Two readings that differ in a clear only: which samples are gone was decided by
                # the clock. That silence was sent when it was due is confirmed by what follows.
                if path.clears != gone.clears:
                    _doubt(path, gone)
        self.paths = kept
        if len(kept[0].labels) > self._HELD_BLOCKS:
            self.collapse()

    def collapse(self) -> Path:
        """Keep the reading that fits the clock best; where others differ is in doubt."""
        best = min(self.paths, key=lambda path: path.cost_ns)
        for other in self.paths:
            if other is not best:
                _doubt(best, other)
        self.paths = [best]
        return best

    def found_from(self, at_ns: int) -> int:
        """From where on a block may come that no reading explains: behind what the clears that were
        certainly over by then took for certain."""
        return min(
            max(
                (
                    self._queue.survivors_from(clear, path.low)
                    for clear in self._queue.pending(path.clears)
                    if clear.ended_ns + self._slack <= at_ns
                ),
                default=path.low,
            )
            for path in self.paths
        )

    def behind(self, position: int, at_ns: int) -> int:
        """How many clears the only reading has behind it where a block that left at ``at_ns`` is
        found at a position: those begun by then that can have left it there."""
        (path,) = self.paths
        clears, low = path.clears, path.low
        for clear in self._queue.pending(path.clears):
            low = self._queue.survivors_from(clear, low)
            if clear.at_ns - self._slack > at_ns or low > position:
                break
            clears += 1
        return clears

    def agreed(self) -> int:
        """How many blocks from the front all readings explain alike."""
        labels = self.paths[0].labels
        for index in range(len(labels)):
            if any(other.labels[index][0] != labels[index][0] for other in self.paths[1:]):
                return index
        return len(labels)

    def take(self, count: int) -> list[Label]:
        """The first labels, which all readings agree on, taken off them."""
        handed = self.paths[0].labels[:count]
        for path in self.paths[1:]:
            for index, (parts, doubt, latest) in enumerate(path.labels[:count]):
                _, doubted, known = handed[index]
                sure = latest if latest == known else None
                handed[index] = (parts, doubt or doubted, sure)
        for path in self.paths:
            del path.labels[:count]
        return handed


def _better(one: Path, other: Path) -> Path:
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


def _doubt(path: Path, other: Path) -> None:
    """Mark where two readings of the same blocks differ."""
    for index, (label, against) in enumerate(zip(path.labels, other.labels, strict=True)):
        if label[0] != against[0]:
            path.labels[index] = (label[0], True, label[2])
