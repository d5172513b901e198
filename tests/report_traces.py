"""Traces for the tests of the reports: by hand, by a small simulated sink and source, and large."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe.trace.events import (
    AudioSkipped,
    ControlStarted,
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    InterruptCalled,
    OverlapJudged,
    PlaybackReported,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkHabit,
    SinkMarked,
    SourceClosed,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
    Trailer,
    TranscriptReceived,
    Untapped,
)
from probe.trace.writer import encode

MS = 1_000_000
TICK = 10 * MS


def header(**fields: Any) -> Header:
    defaults: dict[str, Any] = {
        "schema": 1,
        "started_monotonic_ns": 5_000_000_000,
        "started_unix_s": 1_700_000_000.0,
        "boundaries": ["captured", "pushed", "sent"],
        "runtime": {"language": "python", "livekit": "1.1.21", "livekit_agents": "1.8.9"},
    }
    return Header(**{**defaults, **fields})


def taps(
    rate_hz: int = 24_000,
    source: int = 1,
    *,
    channels: int = 1,
    at_ns: int = 0,
    sink: int | None = None,
    **fields: Any,
) -> list[Event]:
    source_is: dict[str, Any] = {
        "source": source,
        "rate_hz": rate_hz,
        "channels": channels,
        **fields,
    }
    blocks: dict[str, Any] = {"block_samples": rate_hz // 100, "resolution_ns": TICK}
    return [
        Tapped(at_ns, "captured", resolution_ns=0, **fields),
        Tapped(at_ns, "pushed", resolution_ns=0, sink=sink, **source_is),
        Tapped(at_ns, "sent", **source_is, **blocks),
    ]


def write(
    path: Path, events: Sequence[Event], *, head: Header | None = None, trailer: bool = True
) -> Path:
    """A trace of these events; a trailer that counts rightly unless told otherwise."""
    lines = [encode(head or header())] + [encode(event) for event in events]
    if trailer:
        last = max((getattr(event, "at_ns", 0) for event in events), default=0)
        lines.append(encode(Trailer(at_ns=last, events=len(lines))))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@dataclass
class Truth:
    """What the simulation knows of one segment, in samples."""

    captured: int = 0
    pushed: int = 0
    sent: int = 0
    dropped: int = 0
    held: int = 0
    cleared: int = 0
    queued: int = 0
    added: int = 0
    """Put in by the sink itself; part of what was pushed."""


@dataclass
class Source:
    """A source of the simulation: a queue, and what leaves it block by block."""

    number: int
    rate_hz: int
    channels: int
    queue_ms: int
    read: bool = True
    """Whether its wire is read."""
    refuses: bool = False
    keeps_room: bool = False
    """Whether a push is found to be refused only after the next one was numbered."""
    last_owner: int | None = None
    queue: list[int] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    run_at: int = 0
    silent: int = 0
    silent_at: int = 0
    clear_due: int | None = None

    @property
    def block(self) -> int:
        return self.rate_hz // 100

    @property
    def room(self) -> int:
        return self.rate_hz * self.queue_ms // 1000 - len(self.queue)


@dataclass
class Sink:
    """A sink of the simulation: what waits in it, its gate, and what it does to the audio."""

    number: int
    source: Source
    habit: SinkHabit | None = None
    """Written on every push."""
    follows: bool = True
    """Whether the probe can follow the content through it."""
    ratio: int = 1
    """Samples it makes of each that it gets; its dropped and held samples are counted in those."""
    rest: list[int] = field(default_factory=list)
    waiting: list[list[int]] = field(default_factory=list)
    open: bool = True
    at_gate: bool = False

    @property
    def chunk(self) -> int:
        return self.source.rate_hz // 20

    @property
    def inside(self) -> list[int]:
        return [p for chunk in self.waiting for p in chunk] + self.rest


ADDED = -1
"""In place of a captured position: silence of the sink's own."""


@dataclass
class Simulation:
    """Sinks in front of sources, all of them as LiveKit's room output behaves, in virtual time.

    A sink cuts what it gets into frames of 50 ms and keeps a rest; a closed gate discards the
    source's queue when the next frame arrives at it. A source hands on a block every 10 ms and
    silence when it has less. There is one sink with one source to begin with; `swap` brings
    another. What takes a sink takes the one in use where none is given.
    """

    rate_hz: int = 24_000
    channels: int = 1
    queue_ms: int = 200
    discards_behind_gate: bool = False
    """Whether the sink forgets the frames that wait when the gate is opened (a sink may)."""
    step_ns: int = 1000
    """Time from one event to the next where no block passes; no multiple of 1000: off the grid."""
    grid_ns: int = 0
    """Blocks leave at multiples of 10 ms and this much."""
    numbered: bool = False
    """Whether taps and marks carry the number of their sink, as newer traces do."""
    events: list[Event] = field(default_factory=list)
    truth: list[Truth] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0
        self.sources: list[Source] = []
        self.sinks: list[Sink] = []
        self.sink = self.swap(rate_hz=self.rate_hz, channels=self.channels)
        self.captured = self.pushed = self.frames = self.pushes = 0
        self.owner: list[int] = []
        """Segment of each captured position."""
        self.pushed_owner: list[int | None] = []
        """Segment of each pushed position; of those a refused push kept, ``None``."""
        self.new_segment = True
        self.speech: str | None = None

    # What there is

    def swap(
        self,
        *,
        rate_hz: int | None = None,
        channels: int | None = None,
        source: Source | None = None,
        read: bool = True,
        **habits: Any,
    ) -> Sink:
        """Puts another sink in use, over another source unless one is given.

        ``read``: whether anybody reads that source's wire. ``habits``: of `Sink`.
        """
        if source is None:
            source = Source(
                len(self.sources) + 1,
                rate_hz or self.rate_hz,
                channels or self.channels,
                self.queue_ms,
                read=read,
            )
            self.sources.append(source)
            number = len(self.sinks) + 1 if self.numbered else None
            self.now += self.step_ns if self.sinks else 0
            captured, pushed, sent = taps(
                source.rate_hz, source.number, channels=source.channels, at_ns=self.now, sink=number
            )
            self.events += [captured] if not self.sinks else []
            self.events += [pushed, sent] if read else [pushed]
        self.sink = Sink(len(self.sinks) + 1, source, **habits)
        self.sinks.append(self.sink)
        return self.sink

    def leave(self, source: Source, reason: str = "the source was swapped") -> None:
        """Nobody reads the source's wire from here on."""
        self._end_run(source)
        self._end_silence(source)
        source.read = False
        self.happens(Untapped, "sent", source.number, reason)

    def close(self, source: Source) -> None:
        """Closes a source: what was inside is gone, what comes later is refused."""
        self.happens(SourceClosed, source.number)
        self._empty(source)
        source.refuses = True

    # The caller's side of a sink

    def capture(
        self,
        samples: int,
        speech: str | None = "s1",
        *,
        rate_hz: int | None = None,
        channels: int | None = None,
        sink: Sink | None = None,
    ) -> None:
        """A frame; it is handed on sample by sample, whatever its rate and channels."""
        sink = sink or self.sink
        if self.new_segment or speech != self.speech:
            self.truth.append(Truth())
            self.new_segment, self.speech = False, speech
        self.now += self.step_ns
        self.frames += 1
        segment = len(self.truth) - 1
        self.events.append(
            FrameCaptured(
                self.now,
                self.frames,
                self.captured,
                samples,
                rate_hz or sink.source.rate_hz,
                channels or sink.source.channels,
                speech=speech,
                end="returned",
                ended_ns=self.now + self.step_ns // 2,
            )
        )
        self.truth[segment].captured += samples
        self.owner += [segment] * samples
        new = range(self.captured, self.captured + samples)
        sink.rest += [position for position in new for _ in range(sink.ratio)]
        self.captured += samples
        self._cut(sink)

    def _cut(self, sink: Sink) -> None:
        while len(sink.rest) >= sink.chunk:
            sink.waiting.append(sink.rest[: sink.chunk])
            del sink.rest[: sink.chunk]
        self._forward()

    def _mark(self, name: Any, sink: Sink) -> None:
        self.now += self.step_ns
        self.events.append(
            SinkMarked(
                self.now,
                name,
                speech=self.speech,
                ended_ns=self.now + self.step_ns // 2,
                sink=sink.number if self.numbered else None,
            )
        )

    def flush(self, sink: Sink | None = None) -> None:
        sink = sink or self.sink
        self._mark("flush", sink)
        if sink.rest:
            sink.waiting.append(sink.rest)
            sink.rest = []
        self.new_segment = True
        self._forward()

    def clear(self, delay_ticks: int = 0, sink: Sink | None = None) -> None:
        sink = sink or self.sink
        self._mark("clear", sink)
        self._drop(sink.inside)
        sink.waiting, sink.rest = [], []
        sink.at_gate = False
        self.new_segment = True
        if delay_ticks:
            sink.source.clear_due = self.now + delay_ticks * TICK
        else:
            self._clear_source(sink.source)

    def pause(self, sink: Sink | None = None) -> None:
        sink = sink or self.sink
        self._mark("pause", sink)
        sink.open = False
        self._forward()

    def resume(self, sink: Sink | None = None) -> None:
        sink = sink or self.sink
        self._mark("resume", sink)
        sink.open = True
        # Only where a later frame follows at once: a loss that nothing comes after leaves no mark
        # in a trace, and can't be told from audio still held.
        if self.discards_behind_gate and sink.at_gate and len(sink.waiting) > 1:
            self._drop(sink.waiting.pop(0))
        sink.at_gate = False
        self._forward()

    def add(self, samples: int, sink: Sink | None = None) -> None:
        """The sink puts in silence of its own, behind what was captured so far."""
        sink = sink or self.sink
        sink.rest += [ADDED] * samples
        self._cut(sink)

    def skip(self, samples: int, *, silent: bool = True, sink: Sink | None = None) -> None:
        """The sink passes over the first samples of its rest."""
        sink = sink or self.sink
        gone, sink.rest = sink.rest[:samples], sink.rest[samples:]
        self._drop(gone)
        self.happens(AudioSkipped, gone[0], len(gone), silent)

    def _drop(self, positions: Iterable[int]) -> None:
        for position in positions:
            if position != ADDED:
                self.truth[self.owner[position]].dropped += 1

    # Between sink and source

    def _forward(self) -> None:
        for sink in self.sinks:
            while sink.waiting:
                if not sink.open:
                    if not sink.at_gate:
                        sink.at_gate = True
                        self._clear_source(sink.source)
                    break
                if sink.source.room <= 0:
                    break
                self._push(sink, sink.waiting.pop(0))

    def _push(self, sink: Sink, positions: list[int]) -> None:
        source = sink.source
        self.now += self.step_ns
        self.pushes += 1
        self.events.append(
            FramePushed(
                self.now,
                self.pushes,
                source.number,
                self.pushed,
                len(positions),
                source.rate_hz,
                source.channels,
                accepted=not source.refuses,
                captured=ranges_of(positions) if sink.follows else [(None, len(positions))],
                end="raised" if source.refuses else "returned",
                ended_ns=self.now + self.step_ns // 2,
                error="RtcError" if source.refuses else None,
                added_samples=positions.count(ADDED) if sink.follows else 0,
                habit=sink.habit or ("added" if ADDED in positions else None),
            )
        )
        if source.refuses:
            self._drop(positions)
            if source.keeps_room:
                self._number(positions, [None] * len(positions))
            return
        self._number(positions, self._owners(source, positions))
        source.queue += range(self.pushed - len(positions), self.pushed)

    def _number(self, positions: list[int], owners: Sequence[int | None]) -> None:
        self.pushed_owner += owners
        self.pushed += len(positions)
        for position, owner in zip(positions, owners, strict=True):
            if owner is not None:
                self.truth[owner].pushed += 1
                self.truth[owner].added += position == ADDED

    def _owners(self, source: Source, positions: list[int]) -> list[int]:
        """What is added is given to what came before it on its source, at the start to what comes
        after it. (A segment under way may be nearer the truth; sums over segments are the same.)"""
        known = [None if p == ADDED else self.owner[p] for p in positions]
        before = source.last_owner
        if before is None:
            before = next((owner for owner in known if owner is not None), 0)
        owners = []
        for owner in known:
            before = before if owner is None else owner
            owners.append(before)
        source.last_owner = before
        return owners

    def owner_of(self, pushed: int) -> Truth:
        """Segment that owns a pushed position."""
        owner = self.pushed_owner[pushed]
        assert owner is not None, "nothing of a refused push goes anywhere"
        return self.truth[owner]

    def _clear_source(self, source: Source) -> None:
        source.clear_due = None
        self.now += self.step_ns
        self.events.append(
            QueueCleared(self.now, source.number, ended_ns=self.now + self.step_ns // 2)
        )
        self._empty(source)

    def _empty(self, source: Source) -> None:
        for position in source.queue:
            self.owner_of(position).cleared += 1
        source.queue = []

    # The wire

    def tick(self, count: int = 1) -> None:
        """``count`` blocks of time."""
        for _ in range(count):
            tick = self.now = ((self.now - self.grid_ns) // TICK + 1) * TICK + self.grid_ns
            for source in self.sources:
                if source.clear_due is not None and source.clear_due <= tick:
                    self._clear_source(source)
                    self.now = tick
                self._block(source)
            self._forward()

    def _block(self, source: Source) -> None:
        size = source.block
        if len(source.queue) >= size:
            block, source.queue = source.queue[:size], source.queue[size:]
            for position in block:
                self.owner_of(position).sent += 1
            self._end_silence(source)
            # A run ends at a hole in the positions, and where it has lasted 200 ms.
            for position in block:
                full = len(source.run) >= 20 * size
                if source.run and (source.run[-1] + 1 != position or full):
                    self._end_run(source)
                if not source.run:
                    source.run_at = self.now
                source.run.append(position)
        else:
            self._end_run(source)
            if not source.silent:
                source.silent_at = self.now
            source.silent += size

    def _end_run(self, source: Source) -> None:
        if source.run and source.read:
            until = source.run_at + len(source.run) // source.block * TICK
            self.events.append(
                RunSent(source.run_at, until, source.number, source.run[0], len(source.run))
            )
        source.run = []

    def _end_silence(self, source: Source) -> None:
        if source.silent and source.read:
            until = source.silent_at + source.silent // source.block * TICK
            self.events.append(
                SilenceInserted(source.silent_at, until, source.number, source.silent)
            )
        source.silent = 0

    # Around it

    def happens(self, kind: type[Event], *args: Any, **fields: Any) -> None:
        """An event of the session, now."""
        self.now += self.step_ns
        self.events.append(kind(self.now, *args, **fields))

    def user(self, speaking: bool) -> None:
        old, new = ("listening", "speaking") if speaking else ("speaking", "listening")
        self.happens(StateChanged, "user", old, new)

    def end(self) -> list[Event]:
        """All events; what is left inside is held and queued."""
        for source in self.sources:
            self._end_run(source)
            self._end_silence(source)
            for position in source.queue:
                self.owner_of(position).queued += 1
            source.queue = []
        for sink in self.sinks:
            for position in sink.inside:
                if position != ADDED:
                    self.truth[self.owner[position]].held += 1
            sink.waiting, sink.rest = [], []
        return sorted(self.events, key=lambda event: event.at_ns)  # type: ignore[union-attr]


def ranges_of(positions: Sequence[int]) -> list[tuple[int | None, int]]:
    """Captured ranges of a push made of these positions, as `FramePushed` has them."""
    ranges: list[tuple[int | None, int]] = []
    for position in positions:
        start = None if position == ADDED else position
        if ranges:
            first, length = ranges[-1]
            if (first is None and start is None) or (first is not None and first + length == start):
                ranges[-1] = (first, length + 1)
                continue
        ranges.append((start, 1))
    return ranges


def write_hour(path: Path, minutes: int = 60) -> Path:
    """A long call, made quickly: frames of 20 ms in, 50 ms out, a barge-in a minute."""
    rate, block = 24_000, 240
    lines = [encode(header())] + [encode(event) for event in taps(rate)]
    rows: list[tuple[int, str]] = []

    def add(at: int, **fields: Any) -> None:
        rows.append((at, json.dumps(fields, separators=(",", ":")) + "\n"))

    captured = pushed = frames = pushes = 0
    for minute in range(minutes):
        begin = minute * 60_000 * MS
        speech = f"speech_{minute}"
        first = captured
        for i in range(3000):
            frames += 1
            at = begin + i * 20 * MS + 1000
            add(
                at,
                event="captured",
                at_ns=at,
                frame=frames,
                start_sample=captured,
                samples=480,
                rate_hz=rate,
                channels=1,
                speech=speech,
                end="returned",
                ended_ns=at + 20_000,
            )
            captured += 480
        push_first = pushed
        for i in range(1200):
            pushes += 1
            at = begin + i * 50 * MS + 41 * MS
            add(
                at,
                event="pushed",
                at_ns=at,
                push=pushes,
                source=1,
                start_sample=pushed,
                samples=1200,
                rate_hz=rate,
                channels=1,
                captured=[[first + i * 1200, 1200]],
                end="returned",
                ended_ns=at + 50_000,
            )
            pushed += 1200
        stop = 59_880
        for i in range(300):
            at = begin + 100 * MS + i * 200 * MS
            length = min(200, stop - i * 200)
            if length <= 0:
                break
            add(
                at,
                event="sent",
                at_ns=at,
                until_ns=at + length * MS,
                source=1,
                start_sample=push_first + i * 20 * block,
                samples=length * 24,
            )
        verdict = begin + 59_600 * MS
        add(verdict, event="state", at_ns=verdict, who="user", old="listening", new="speaking")
        call = verdict + 5 * MS
        add(call, event="interrupt_called", at_ns=call, speech=speech, by="activity")
        add(call + 1000, event="speech_committed", at_ns=call + 1000, speech=speech)
        after = begin + 59_990 * MS
        add(after, event="mark", at_ns=after, mark="clear", speech=speech)
        add(
            after + MS,
            event="source_cleared",
            at_ns=after + MS,
            source=1,
            ended_ns=after + MS + 1000,
        )
        add(
            after + 2 * MS,
            event="state",
            at_ns=after + 2 * MS,
            who="user",
            old="speaking",
            new="listening",
        )
    rows.sort(key=lambda row: row[0])
    lines += [line for _, line in rows]
    lines.append(encode(Trailer(at_ns=rows[-1][0], events=len(lines))))
    path.write_text("".join(lines), encoding="utf-8")
    return path


__all__ = [
    "MS",
    "TICK",
    "ControlStarted",
    "InterruptCalled",
    "OverlapJudged",
    "PlaybackReported",
    "Simulation",
    "SourceClosed",
    "SpeechCommitted",
    "SpeechCreated",
    "SpeechDone",
    "TranscriptReceived",
    "Truth",
    "header",
    "taps",
    "write",
    "write_hour",
]
