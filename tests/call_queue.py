"""A source's native queue in a simulated call, and the records made of what happens to it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.call_audio import Row, Span
from tests.conformance.run import Record

TICK_US = 10_000
READ_US = 300
"""After what time a block is read at the earliest."""


class Journal:
    """The records of a call and its clock, in microseconds; no two moments are the same."""

    def __init__(self) -> None:
        self.now_us = 0
        self.late_us = 0
        """By how much what is read now arrives late."""
        self.records: list[Record] = []
        self.calls = 0
        self._arriving: list[tuple[int, Record]] = []

    def moment_ms(self) -> float:
        self.now_us += 7
        return self.now_us / 1000

    def begin(self, record: Record) -> str:
        """A call begins; returns its name."""
        self.calls += 1
        name = f"c{self.calls}"
        self.records.append({**record, "at": self.moment_ms(), "call": name})
        return name

    def end(self, name: str, more: Record | None = None) -> None:
        self.records.append({"end": name, "at": self.moment_ms(), **(more or {})})

    def note(self, record: Record) -> None:
        """A call that returns at once."""
        self.records.append({**record, "at": self.moment_ms(), "ended": self.moment_ms()})

    def tapped(self, event: Record) -> None:
        at_ms = self.moment_ms()
        told = {"event": "tapped", "at_ns": round(at_ms * 1e6), **event}
        self.records.append({"event": told, "at": at_ms})

    def arrives(self, at_us: int, record: Record) -> None:
        """What is read arrives at a time to come."""
        self._arriving.append((at_us, {**record, "at": at_us / 1000}))

    def arrive(self, until_us: int) -> None:
        """Note what has arrived, in the order of time, whatever was noted meanwhile."""
        due = sorted((one for one in self._arriving if one[0] <= until_us), key=lambda one: one[0])
        self._arriving = [one for one in self._arriving if one[0] > until_us]
        for _, record in due:
            index = len(self.records)
            while index and self.records[index - 1]["at"] > record["at"]:
                index -= 1
            self.records.insert(index, record)


@dataclass
class _Push:
    name: str
    pieces: list[list[Span]]
    """What is not inside the source yet, cut up as the source does."""


class QueueModel:
    """A queue: pieces in, blocks out by its own clock, emptied by a clear.

    Args:
        journal: takes the records.
        number: of the source.
        block: values handed on per tick.
        capacity: values it holds before a push has to wait.
        every_tick: whether a tick yields silence where there is no block; if not, nothing comes of
            the first nine such ticks.
        about: what each record of it says besides.
    """

    def __init__(
        self,
        journal: Journal,
        number: int,
        *,
        block: int,
        capacity: int,
        every_tick: bool,
        about: Record,
    ) -> None:
        self.number = number
        self.inside = Row()
        self.waiting: list[_Push] = []
        self.sent: list[tuple[str, Span]] = []
        """What left, in order: `sent` or `inserted`."""
        self._journal = journal
        self._block = block
        self._capacity = capacity
        self._every_tick = every_tick
        self._about = {"source": number, **about}
        self._next_tick_us = journal.now_us + 3_217 + 1_113 * number
        self._dry = 100
        self._unread: list[Span] = []
        self._unread_blocks = 0
        self._arrival_us = 0

    def push(self, spans: list[Span]) -> None:
        """A frame is handed over, its values at their positions among all that was pushed."""
        name = self._journal.begin({"push": [span.piece for span in spans], **self._about})
        row = Row()
        row.spans += spans
        pieces = []
        while row.values:
            pieces.append(row.take(min(self._capacity, row.values)))
        self.waiting.append(_Push(name, pieces))
        self.take_in()

    def take_in(self) -> None:
        """Let in what there is room for, and end the calls that have nothing left."""
        while self.waiting:
            first = self.waiting[0]
            while first.pieces and self.inside.values <= self._capacity:
                self.inside.spans += first.pieces.pop(0)
            if first.pieces or self.inside.values > self._capacity:
                return
            self.waiting.pop(0)
            self._journal.end(first.name)

    def clear(self) -> None:
        self._journal.note({"clear": self.number})
        self.inside.spans.clear()

    def run(self, until_us: int) -> None:
        """Let ticks pass."""
        while self._next_tick_us <= until_us:
            self._journal.now_us = max(self._journal.now_us, self._next_tick_us)
            self._tick()
            self._next_tick_us += TICK_US

    def _tick(self) -> None:
        if self.inside.values >= self._block:
            self._dry = 0
            left = [("sent", span) for span in self.inside.take(self._block)]
        else:
            self._dry += 1
            if not self._every_tick and self._dry < 10:
                return
            left = [("inserted", Span(["silence", self._block]))]
        self.sent += left
        self._unread += [span for _, span in left]
        self._unread_blocks += 1
        if self._unread_blocks == (5 if self._every_tick else 1):
            self.read()

    def read(self) -> None:
        """What left is read back, and arrives when it does."""
        if not self._unread:
            return
        journal = self._journal
        on_time_us = journal.now_us + READ_US + journal.late_us
        self._arrival_us = max(self._arrival_us + 1, on_time_us)
        blocks = [span.piece for span in self._unread]
        journal.arrives(self._arrival_us, {"blocks": blocks, **self._about})
        self._unread, self._unread_blocks = [], 0
