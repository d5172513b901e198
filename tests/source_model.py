"""Models of a source and of a sink that know the truth about every value they let through."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from probe.follow import FlowMatcher, Stretch, WireMatcher

BLOCK = 24
TICK_NS = 10_000_000
MS = 1_000_000

Label = tuple[str, int | None]
"""Kind and position of one value."""

TONE_VALUE = 1234

NOISE, ZEROS, TONE, REPEAT = "noise", "zeros", "tone", "repeat"


@dataclass
class Content:
    """Makes int16 content of a kind; what was made before may be repeated."""

    rng: np.random.Generator
    made: list[bytes] = field(default_factory=list)

    def of(self, kind: str, values: int) -> bytes:
        if kind == ZEROS:
            return bytes(2 * values)
        if kind == TONE:
            return np.full(values, TONE_VALUE, np.int16).tobytes()
        if kind == REPEAT and self.made:
            again = self.made[int(self.rng.integers(len(self.made)))]
            return (again * (2 * values // max(len(again), 1) + 1))[: 2 * values]
        data = self.rng.integers(-32768, 32767, values, dtype=np.int16).tobytes()
        self.made.append(data)
        return data


@dataclass
class _Waiting:
    key: int
    pieces: list[tuple[int, bytes]]
    due_ns: int


class SourceModel:
    """A native queue: pieces in, blocks out by its own clock, emptied by a clear.

    ``every_tick`` models the newer library: silence with every tick that finds less than a block.
    The older one says nothing for the first nine such ticks.
    """

    def __init__(self, matcher: WireMatcher, *, queue: int, group: int, every_tick: bool) -> None:
        self.matcher = matcher
        self.queue_values = queue
        self.group = group
        self.every_tick = every_tick
        self.now_ns = 0
        self.truth: list[Label] = []
        self.told: list[Stretch] = []
        self._inside: list[tuple[int, bytes]] = []  # position of its first value, content
        self._waiting: list[_Waiting] = []
        self._missed = 100
        self._unread: list[bytes] = []
        self._unread_ns = 0
        self._blocks = 0
        self._keys = 0

    @property
    def fill(self) -> int:
        return sum(len(data) // 2 for _, data in self._inside)

    def push(self, data: bytes, delay_ns: int = 0) -> None:
        start = self.matcher.end
        self._keys += 1
        self.matcher.push(self._keys, data, self.now_ns)
        step = 2 * self.queue_values
        pieces = [
            (start + offset // 2, data[offset : offset + step])
            for offset in range(0, len(data), step)
        ]
        self._waiting.append(_Waiting(self._keys, pieces, self.now_ns + delay_ns))
        self._take_in()

    def _take_in(self) -> None:
        while self._waiting and self._waiting[0].due_ns <= self.now_ns:
            first = self._waiting[0]
            while first.pieces and self.fill <= self.queue_values:
                self._inside.append(first.pieces.pop(0))
            if first.pieces or self.fill > self.queue_values:
                return
            self._waiting.pop(0)
            self.matcher.push_ended(first.key, self.now_ns, returned=True)

    @property
    def waits(self) -> bool:
        """Whether a push is under way."""
        return bool(self._waiting)

    def clear(self) -> None:
        self.matcher.clear(self.now_ns, self.now_ns)
        self._inside.clear()

    def run(self, ms: int) -> None:
        """Let time pass by milliseconds."""
        for _ in range(ms):
            self.now_ns += MS
            self._take_in()
            if self.now_ns % TICK_NS == 0:
                self._tick()
                self._take_in()

    def _tick(self) -> None:
        if self.fill >= BLOCK:
            self._missed = 0
            taken = b""
            while len(taken) < 2 * BLOCK:
                position, data = self._inside.pop(0)
                count = min(len(data), 2 * BLOCK - len(taken))
                taken += data[:count]
                self.truth += [("sent", position + k) for k in range(count // 2)]
                if count < len(data):
                    self._inside.insert(0, (position + count // 2, data[count:]))
            self._read(taken)
            return
        self._missed += 1
        if self.every_tick or self._missed >= 10:
            self.truth += [("inserted", None)] * BLOCK
            self._read(bytes(2 * BLOCK))

    def _read(self, block: bytes) -> None:
        if not self._unread:
            self._unread_ns = self.now_ns
        self._unread.append(block)
        if len(self._unread) == self.group:
            self.read_rest()

    def read_rest(self) -> None:
        if self._unread:
            data = b"".join(self._unread)
            self.told += self.matcher.blocks(self._blocks, data, self._unread_ns)
            self._blocks += len(self._unread)
            self._unread.clear()

    def finish(self) -> None:
        self.read_rest()
        self.told += self.matcher.finish()

    def labels(self) -> list[Label]:
        """What the matcher said of every value; fails if its stretches leave holes or overlap."""
        labels: list[Label] = []
        for stretch in self.told:
            assert stretch.block * BLOCK + stretch.offset == len(labels)
            for k in range(stretch.values):
                position = None if stretch.position is None else stretch.position + k
                labels.append((stretch.kind, position))
        return labels

    @property
    def ambiguous(self) -> int:
        return sum(stretch.ambiguous_values for stretch in self.told)


def source_actions(kinds: list[str]) -> st.SearchStrategy[list[Any]]:
    """Random pushes, waits and clears."""
    return st.lists(
        st.one_of(
            st.tuples(
                st.just("push"),
                st.sampled_from(kinds),
                st.integers(1, 9 * BLOCK),
                st.integers(0, 3),
            ),
            st.tuples(st.just("wait"), st.integers(1, 150)),
            st.tuples(st.just("clear")),
        ),
        max_size=25,
    )


def play(model: SourceModel, content: Content, actions: list[Any]) -> None:
    for action in actions:
        if action[0] == "push":
            # One push at a time, as a sink that awaits its calls does.
            for _ in range(200):
                if not model.waits:
                    break
                model.run(5)
            model.push(content.of(action[1], action[2]), action[3] * MS)
        elif action[0] == "wait":
            model.run(action[1])
        else:
            model.clear()
    model.run(300)
    model.finish()


class SinkModel:
    """A sink that cuts what it captures into chunks, keeps a rest, and drops what it is told."""

    def __init__(self, matcher: FlowMatcher, chunk: int) -> None:
        self.matcher = matcher
        self.chunk = chunk
        self.truth: list[int | None] = []
        self.told: dict[int, list[int | None]] = {}
        self.ambiguous = 0
        self.clears: list[int] = []
        self._silence: list[bool] = []
        self._buffer: list[tuple[int | None, bytes]] = []  # per value
        self._ready: list[list[tuple[int | None, bytes]]] = []
        self._keys = 0

    def capture(self, data: bytes) -> None:
        start = self.matcher.end
        self.matcher.capture(data)
        values = np.frombuffer(data, np.int16)
        self._silence += [bool(value) for value in np.isin(values, (0, TONE_VALUE))]
        self._buffer += [(start + k, data[2 * k : 2 * k + 2]) for k in range(len(data) // 2)]
        self._cut()

    def foreign(self, data: bytes) -> None:
        """Audio of the sink's own."""
        self.flush()
        self._buffer += [(None, data[2 * k : 2 * k + 2]) for k in range(len(data) // 2)]
        self.flush()

    def _cut(self) -> None:
        while len(self._buffer) >= self.chunk:
            self._ready.append(self._buffer[: self.chunk])
            del self._buffer[: self.chunk]

    def flush(self) -> None:
        if self._buffer:
            self._ready.append(self._buffer[:])
            self._buffer.clear()

    def push(self, count: int) -> None:
        for _ in range(min(count, len(self._ready))):
            values = self._ready.pop(0)
            self._keys += 1
            self.truth += [position for position, _ in values]
            self._note(self.matcher.push(self._keys, b"".join(data for _, data in values)))

    def drop(self, count: int) -> None:
        """A gate that discards chunks."""
        del self._ready[:count]

    def clear(self, leaked: int = 0) -> None:
        """Drop everything but the first ``leaked`` chunks, which can still be pushed."""
        self._note(self.matcher.clear())
        self.clears.append(self.matcher.end)
        del self._ready[leaked:]
        self._buffer.clear()

    def finish(self) -> None:
        self._note(self.matcher.finish())

    def _note(self, matches: list[Any]) -> None:
        for match in matches:
            assert match.key not in self.told
            labels: list[int | None] = []
            for position, values in match.parts:
                labels += [None if position is None else position + k for k in range(values)]
            self.told[match.key] = labels
            self.ambiguous += match.ambiguous_values

    def owners(self, labels: list[int | None]) -> list[int | None]:
        """How many clears lie in front of what each value was captured as."""
        return [None if label is None else bisect_right(self.clears, label) for label in labels]

    def is_silence(self, position: int) -> bool:
        """Whether what was captured there could be of any silence (or tone)."""
        return self._silence[position]

    def labels(self) -> list[int | None]:
        assert sorted(self.told) == list(range(1, self._keys + 1))
        return [label for key in sorted(self.told) for label in self.told[key]]


def sink_actions(
    kinds: list[str], *, foreign: bool, drops: bool = True
) -> st.SearchStrategy[list[Any]]:
    """Random captures and pushes, and clears that let up to three chunks through."""
    options: list[st.SearchStrategy[Any]] = [
        st.tuples(st.just("capture"), st.sampled_from(kinds), st.integers(1, 400)),
        st.tuples(st.just("push"), st.integers(1, 8)),
        st.tuples(st.just("clear"), st.integers(0, 3)),
        st.tuples(st.just("flush")),
    ]
    if drops:
        options.append(st.tuples(st.just("drop"), st.integers(1, 4)))
    if foreign:
        options.append(st.tuples(st.just("foreign"), st.integers(40, 300)))
    return st.lists(st.one_of(options), max_size=30)


def operate(model: SinkModel, content: Content, actions: list[Any]) -> None:
    verbs: dict[str, Callable[..., None]] = {
        "capture": lambda kind, values: model.capture(content.of(kind, values)),
        "foreign": lambda values: model.foreign(content.of(NOISE, values)),
        "push": model.push,
        "drop": model.drop,
        "clear": model.clear,
        "flush": model.flush,
    }
    for verb, *arguments in actions:
        verbs[verb](*arguments)
    model.finish()
