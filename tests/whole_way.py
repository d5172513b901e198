"""A call seen from outside: sinks and sources in virtual time, as raw records of its taps.

What is captured says which sample it is, so that the truth about each is known: what became of it,
and in which segment it was captured. The records go the whole way, through the assembler and a
trace to the account, which has to come to the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from probe.assemble.assembler import Assembler
from probe.taps import calls
from probe.taps.calls import BLOCKS, CAPTURE, CLEAR, MARK, PUSH, Call
from probe.taps.failures import Failure
from probe.trace.events import (
    Event,
    InterruptCalled,
    SourceClosed,
    SpeechCommitted,
    Tapped,
    Untapped,
)
from tests.report_traces import MS, TICK, write
from tests.test_assembler import frame

RATE = 8_000
BLOCK = RATE // 100
CHUNK = RATE // 20
QUEUE = RATE // 5
LONGEST = 32_000
"""Samples that can be told apart."""
REFUSED = Failure("raised", "RtcError", None)
CANCELLED = Failure("cancelled", "CancelledError")


NUMBERS = np.random.default_rng(0).permutation(np.arange(1, 2 * LONGEST + 1)).astype(np.int16)
"""What a sample is recognised by, each its own, none of them silence; a ramp scaled is a ramp."""


def content(samples: Iterable[int]) -> bytes:
    return NUMBERS[np.fromiter(samples, np.int64)].tobytes()


@dataclass
class _Arriving:
    record: Call
    samples: list[int]
    due_ns: int


@dataclass
class Source:
    """A native queue: frames come in on another thread, blocks go out by a clock of its own."""

    number: int
    inside: list[int] = field(default_factory=list)
    arriving: list[_Arriving] = field(default_factory=list)
    unread: list[bytes] = field(default_factory=list)
    missed: int = 100
    closed: bool = False

    def take_in(self, now_ns: int) -> None:
        """What is under way goes inside as soon as there is room; whoever waits for it goes on."""
        while self.arriving and self.arriving[0].due_ns <= now_ns and len(self.inside) <= QUEUE:
            arrived = self.arriving.pop(0)
            self.inside += arrived.samples
            if arrived.record[calls.ENDED] is None:
                arrived.record[calls.ENDED] = now_ns


@dataclass
class Sink:
    """Cuts what it captures into frames of 50 ms and pushes them one after the other."""

    number: int
    source: Source
    rest: list[int] = field(default_factory=list)
    ready: list[list[int]] = field(default_factory=list)
    pushing: Call | None = None
    open: bool = True
    at_gate: bool = False

    @property
    def idle(self) -> bool:
        return not self.ready and self.pushing is None

    @property
    def waiting(self) -> list[int]:
        return [sample for chunk in self.ready for sample in chunk] + self.rest


class LiveCall:
    """``beat``: every tick of a source yields a block, and blocks are read in groups of five;
    else one by one, and silence only after 90 ms without audio. ``late_ns``: how long after it
    left a block is read."""

    def __init__(self, *, beat: bool = True, delay_ms: int = 1, late_ns: int = 137_000) -> None:
        self.beat = beat
        self.delay_ms = delay_ms
        self.late_ns = late_ns
        self.assembler = Assembler()
        self.events: list[Event] = []
        self.ms = 0
        self.now_ns = 0
        self.owner: list[int] = []
        self.fate: dict[int, str] = {}
        """Of each captured sample: dropped, held, cleared, queued or sent."""
        self.refused: set[int] = set()
        self.segments = 0
        self.begins_segment = True
        self.speech = self.captured_for = "s1"
        self.verdicts: dict[str, int] = {}
        """When each speech was interrupted that was."""
        self.passed: dict[str, dict[int, int]] = {"captured": {}, "pushed": {}, "sent": {}}
        """By boundary, when each sample crossed it."""
        self.of_speech: dict[str, set[int]] = {}
        self.sources: list[Source] = []
        self.sinks: list[Sink] = []
        self.put(Tapped(0, "captured", resolution_ns=0))
        self.swap()

    # Records

    def put(self, record: Call | Event) -> Any:
        self.events += self.assembler.accept(record)
        return record

    def stamp(self) -> int:
        """The next instant: never two calls in one, and none on the grid of microseconds."""
        self.now_ns += 1_037
        return self.now_ns

    # What the caller of the sink does

    @property
    def sink(self) -> Sink:
        return self.sinks[-1]

    def swap(self, *, close: bool = False) -> None:
        """Another sink over another source, once the one in use has pushed what it holds."""
        if self.sinks:
            old = self.sink
            if not old.open or old.rest:
                return
            while not old.idle:
                self.run(1)
            if close:
                self.put(SourceClosed(self.stamp(), old.source.number))
                self._lose(old.source.inside + [s for a in old.source.arriving for s in a.samples])
                old.source.inside, old.source.arriving, old.source.closed = [], [], True
                self._read(old.source)
                self.put(Untapped(self.stamp(), "sent", old.source.number, "it was closed"))
        source = Source(len(self.sources) + 1)
        self.sources.append(source)
        self.sinks.append(Sink(len(self.sinks) + 1, source))
        shape = {"source": source.number, "rate_hz": RATE, "channels": 1}
        self.put(Tapped(self.stamp(), "pushed", queue_ms=200, resolution_ns=0, **shape))
        blocks = {"block_samples": BLOCK, "resolution_ns": TICK, "grouped": self.beat}
        self.put(Tapped(self.stamp(), "sent", **shape, **blocks))

    def speak(self, speech: str) -> None:
        self.speech = speech

    def interrupt(self) -> None:
        """Code interrupts the speech; nothing does so twice."""
        if self.speech not in self.verdicts:
            self.verdicts[self.speech] = self.stamp()
            self.put(InterruptCalled(self.now_ns, self.speech, "programmatic"))
            self.put(SpeechCommitted(self.stamp(), self.speech))

    def capture(self, count: int) -> None:
        samples = range(len(self.owner), min(len(self.owner) + count, LONGEST))
        if not samples:
            return
        self.segments += self.begins_segment or self.speech != self.captured_for
        self.begins_segment, self.captured_for = False, self.speech
        self.owner += [self.segments - 1] * len(samples)
        self.of_speech.setdefault(self.speech, set()).update(samples)
        self._pass("captured", samples, self.stamp())
        at_s, made = self.now_ns / 1e9, frame(content(samples), RATE)
        self.put([CAPTURE, at_s, self.stamp() / 1e9, None, made, self.speech])
        self.sink.rest += samples
        while len(self.sink.rest) >= CHUNK:
            self.sink.ready.append(self.sink.rest[:CHUNK])
            del self.sink.rest[:CHUNK]
        self._work()

    def mark(self, name: str) -> None:
        self.put([MARK, self.stamp(), self.stamp(), None, name, self.speech, self.sink.number])

    def flush(self) -> None:
        self.mark("flush")
        if self.sink.rest:
            self.sink.ready.append(self.sink.rest)
            self.sink.rest = []
        self.begins_segment = True
        self._work()

    def pause(self) -> None:
        self.mark("pause")
        self.sink.open = False

    def resume(self) -> None:
        self.mark("resume")
        self.sink.open, self.sink.at_gate = True, False
        self._work()

    def clear(self, delay_ms: int) -> None:
        """Drops what waits, gives up the push under way, and clears the source a moment later."""
        sink = self.sink
        self.mark("clear")
        self._end("dropped", sink.waiting)
        sink.ready, sink.rest, sink.at_gate = [], [], False
        if sink.pushing is not None and sink.pushing[calls.ENDED] is None:
            # What was handed over goes inside all the same.
            sink.pushing[calls.FAILURE] = CANCELLED
            sink.pushing[calls.ENDED] = self.stamp()
        sink.pushing = None
        self.begins_segment = True
        self.run(delay_ms)
        self._clear_source(sink.source)

    def refuse(self, *, misfit: bool, again: bool) -> None:
        """The sink hands over a frame while another waits, or one of another rate."""
        sink = self.sink
        waits = sink.pushing is not None and sink.pushing[calls.ENDED] is None
        if not sink.ready or not (waits or misfit):
            return
        chunk = sink.ready.pop(0)
        made = frame(content(chunk), RATE * (2 if misfit else 1))
        record = self.put([PUSH, self.stamp(), None, None, made, sink.source.number, True])
        record[calls.FAILURE] = REFUSED
        record[calls.ENDED] = self.stamp()
        if again:
            self.refused.update(chunk)
            sink.ready.insert(0, chunk)
        else:
            self._end("dropped", chunk)

    def run(self, ms: int) -> None:
        """Let time pass by milliseconds."""
        for _ in range(ms):
            self.ms += 1
            self.now_ns = max(self.now_ns, self.ms * MS + 300)
            for source in self.sources:
                source.take_in(self.now_ns)
            if self.ms % 10 == 0:
                for source in self.sources:
                    if not source.closed:
                        self._tick(source)
            if self.ms % 50 == 7:
                self.events += self.assembler.tick(self.stamp())
            self._work()

    def finish(self, folder: Path) -> Path:
        """Let everything play out that can, and write the trace."""
        self.run(600)
        for source in self.sources:
            self._read(source)
            self._end("queued", source.inside)
            self._end("queued", [s for arriving in source.arriving for s in arriving.samples])
        for sink in self.sinks:
            # That it would be handed over again can't be seen.
            self._end("dropped", self.refused.intersection(sink.waiting))
            self._end("held", [s for s in sink.waiting if s not in self.refused])
        self.events += self.assembler.finish(self.stamp())
        return write(folder / "call.jsonl", self.events)

    def truth(self) -> list[Counter[str]]:
        """By segment, how many samples met which fate."""
        counted = [Counter[str]() for _ in range(self.segments)]
        for sample, fate in self.fate.items():
            counted[self.owner[sample]][fate] += 1
        return counted

    def crossed(self, boundary: str, speech: str, since_ns: int) -> int:
        """Samples of a speech that crossed a boundary from an instant on."""
        passed = self.passed[boundary]
        mine = self.of_speech.get(speech, ())
        return sum(passed.get(sample, -1) >= since_ns for sample in mine)

    # Behind it

    def _pass(self, boundary: str, samples: Iterable[int], at_ns: int) -> None:
        self.passed[boundary].update(dict.fromkeys(samples, at_ns))

    def _end(self, fate: str, samples: Iterable[int]) -> None:
        for sample in samples:
            assert sample not in self.fate
            self.fate[sample] = fate

    def _lose(self, samples: Iterable[int]) -> None:
        self._end("cleared", samples)

    def _work(self) -> None:
        """The sink's own task gets to run."""
        for sink in self.sinks:
            while sink.pushing is None or sink.pushing[calls.ENDED] is not None:
                sink.pushing = None
                if not sink.ready:
                    break
                if not sink.open:
                    if not sink.at_gate:
                        sink.at_gate = True
                        self._clear_source(sink.source)
                    break
                chunk = sink.ready.pop(0)
                self._pass("pushed", chunk, self.stamp())
                number, made = sink.source.number, frame(content(chunk), RATE)
                sink.pushing = self.put([PUSH, self.now_ns, None, None, made, number, True])
                due_ns = self.now_ns + self.delay_ms * MS
                sink.source.arriving.append(_Arriving(sink.pushing, chunk, due_ns))

    def _clear_source(self, source: Source) -> None:
        """At once, while what is under way has still to arrive."""
        if not source.closed:
            self.put([CLEAR, self.stamp(), self.stamp(), None, source.number])
            self._lose(source.inside)
            source.inside = []

    def _tick(self, source: Source) -> None:
        if len(source.inside) >= BLOCK:
            block, source.inside = source.inside[:BLOCK], source.inside[BLOCK:]
            self._end("sent", block)
            self._pass("sent", block, self.ms * MS + 300)
            source.unread.append(content(block))
            source.missed = 0
        else:
            source.missed += 1
            if self.beat or source.missed >= 10:
                source.unread.append(bytes(2 * BLOCK))
        if len(source.unread) >= (5 if self.beat else 1):
            self._read(source)
        source.take_in(self.now_ns)

    def _read(self, source: Source) -> None:
        if source.unread:
            at_ns = max(self.now_ns, self.ms // 10 * TICK + 300) + self.late_ns
            self.now_ns = at_ns
            self.put(
                [BLOCKS, at_ns, None, None, frame(b"".join(source.unread), RATE), source.number]
            )
            source.unread = []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("capture"), st.integers(1, 2_500)),
        st.tuples(st.just("run"), st.integers(1, 250)),
        st.tuples(st.just("clear"), st.integers(0, 20)),
        st.tuples(
            st.sampled_from(["pause", "resume", "flush", "swap", "close", "interrupt"]), st.just(0)
        ),
        st.tuples(st.just("speak"), st.integers(1, 3)),
        st.tuples(st.just("refuse"), st.integers(0, 3)),
    ),
    max_size=30,
)


def play(call: LiveCall, steps: Iterable[tuple[str, int]]) -> None:
    for step, amount in steps:
        if step in ("capture", "run", "clear"):
            getattr(call, step)(amount)
        elif step == "speak":
            call.speak(f"s{amount}")
        elif step == "refuse":
            call.capture(3 * CHUNK)
            call.refuse(misfit=amount % 2 == 1, again=amount >= 2)
        elif step in ("swap", "close"):
            call.swap(close=step == "close")
        else:
            getattr(call, step)()
