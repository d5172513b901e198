"""Traces for the tests of the reports: by hand, by a small simulated sink and source, and large."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probe.trace.events import (
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
    SinkMarked,
    SourceClosed,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
    Trailer,
    TranscriptReceived,
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


def taps(rate_hz: int = 24_000, source: int = 1, **fields: Any) -> list[Event]:
    return [
        Tapped(0, "captured", resolution_ns=0, **fields),
        Tapped(0, "pushed", source=source, rate_hz=rate_hz, channels=1, resolution_ns=0, **fields),
        Tapped(
            0,
            "sent",
            source=source,
            rate_hz=rate_hz,
            channels=1,
            block_samples=rate_hz // 100,
            resolution_ns=TICK,
            **fields,
        ),
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


@dataclass
class Simulation:
    """A sink in front of a source, both of them as LiveKit's room output behaves, in virtual time.

    The sink cuts what it gets into frames of 50 ms and keeps a rest; a closed gate discards the
    source's queue when the next frame arrives at it. The source hands on a block every 10 ms and
    silence when it has less.
    """

    rate_hz: int = 24_000
    queue_ms: int = 200
    discards_behind_gate: bool = False
    """Whether the sink forgets the frames that wait when the gate is opened (a sink may)."""
    events: list[Event] = field(default_factory=list)
    truth: list[Truth] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.block = self.rate_hz // 100
        self.chunk = self.rate_hz // 20
        self.now = 0
        self.events += taps(self.rate_hz)
        self.captured = self.pushed = self.frames = self.pushes = 0
        self.rest: list[int] = []
        self.waiting: list[list[int]] = []
        self.queue: list[int] = []
        self.open = True
        self.at_gate = False
        self.owner: list[int] = []
        self.origin: list[int] = []
        self.new_segment = True
        self.speech: str | None = None
        self.run: list[int] = []
        self.run_at = 0
        self.silent = 0
        self.silent_at = 0
        self.clear_due: int | None = None

    # The caller's side of the sink

    def capture(self, samples: int, speech: str | None = "s1") -> None:
        if self.new_segment or speech != self.speech:
            self.truth.append(Truth())
            self.new_segment, self.speech = False, speech
        self.now += 1000
        self.frames += 1
        segment = len(self.truth) - 1
        self.events.append(
            FrameCaptured(
                self.now,
                self.frames,
                self.captured,
                samples,
                self.rate_hz,
                1,
                speech=speech,
                end="returned",
                ended_ns=self.now + 500,
            )
        )
        self.truth[segment].captured += samples
        self.owner += [segment] * samples
        self.rest += range(self.captured, self.captured + samples)
        self.captured += samples
        while len(self.rest) >= self.chunk:
            self.waiting.append(self.rest[: self.chunk])
            del self.rest[: self.chunk]
        self._forward()

    def _mark(self, name: Any) -> None:
        self.now += 1000
        self.events.append(SinkMarked(self.now, name, speech=self.speech, ended_ns=self.now + 500))

    def flush(self) -> None:
        self._mark("flush")
        if self.rest:
            self.waiting.append(self.rest)
            self.rest = []
        self.new_segment = True
        self._forward()

    def clear(self, delay_ticks: int = 0) -> None:
        self._mark("clear")
        self._drop([p for chunk in self.waiting for p in chunk] + self.rest)
        self.waiting, self.rest = [], []
        self.at_gate = False
        self.new_segment = True
        if delay_ticks:
            self.clear_due = self.now + delay_ticks * TICK
        else:
            self._clear_source()

    def pause(self) -> None:
        self._mark("pause")
        self.open = False
        self._forward()

    def resume(self) -> None:
        self._mark("resume")
        self.open = True
        # Only where a later frame follows at once: a loss that nothing comes after leaves no mark
        # in a trace, and can't be told from audio still held.
        if self.discards_behind_gate and self.at_gate and len(self.waiting) > 1:
            self._drop(self.waiting.pop(0))
        self.at_gate = False
        self._forward()

    def _drop(self, positions: Iterable[int]) -> None:
        for position in positions:
            self.truth[self.owner[position]].dropped += 1

    # Between sink and source

    def _forward(self) -> None:
        while self.waiting:
            if not self.open:
                if not self.at_gate:
                    self.at_gate = True
                    self._clear_source()
                return
            room = self.rate_hz * self.queue_ms // 1000 - len(self.queue)
            if room <= 0:
                return
            self._push(self.waiting.pop(0))

    def _push(self, positions: list[int]) -> None:
        self.now += 1000
        self.pushes += 1
        ranges: list[tuple[int | None, int]] = []
        for position in positions:
            if ranges and ranges[-1][0] is not None and sum(ranges[-1]) == position:  # type: ignore[arg-type]
                ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
            else:
                ranges.append((position, 1))
        self.events.append(
            FramePushed(
                self.now,
                self.pushes,
                1,
                self.pushed,
                len(positions),
                self.rate_hz,
                1,
                captured=ranges,
                end="returned",
                ended_ns=self.now + 500,
            )
        )
        for position in positions:
            self.truth[self.owner[position]].pushed += 1
            self.origin.append(position)
        self.queue += range(self.pushed, self.pushed + len(positions))
        self.pushed += len(positions)

    def _clear_source(self) -> None:
        self.clear_due = None
        self.now += 1000
        self.events.append(QueueCleared(self.now, 1, ended_ns=self.now + 500))
        for position in self.queue:
            self.truth[self.owner[self.origin[position]]].cleared += 1
        self.queue = []

    # The wire

    def tick(self, count: int = 1) -> None:
        """``count`` blocks of time."""
        for _ in range(count):
            self.now = (self.now // TICK + 1) * TICK
            if self.clear_due is not None and self.clear_due <= self.now:
                self._clear_source()
                self.now = self.now // TICK * TICK
            self._block()
            self._forward()

    def _block(self) -> None:
        if len(self.queue) >= self.block:
            block, self.queue = self.queue[: self.block], self.queue[self.block :]
            for position in block:
                self.truth[self.owner[self.origin[position]]].sent += 1
            self._end_silence()
            # A run ends at a hole in the positions; within a block there is none, for a clear
            # leaves nothing behind.
            if self.run and (self.run[-1] + 1 != block[0] or len(self.run) >= 20 * self.block):
                self._end_run()
            if not self.run:
                self.run_at = self.now
            self.run += block
        else:
            self._end_run()
            if not self.silent:
                self.silent_at = self.now
            self.silent += self.block

    def _end_run(self) -> None:
        if self.run:
            until = self.run_at + len(self.run) // self.block * TICK
            self.events.append(RunSent(self.run_at, until, 1, self.run[0], len(self.run)))
            self.run = []

    def _end_silence(self) -> None:
        if self.silent:
            until = self.silent_at + self.silent // self.block * TICK
            self.events.append(SilenceInserted(self.silent_at, until, 1, self.silent))
            self.silent = 0

    # Around it

    def happens(self, kind: type[Event], *args: Any, **fields: Any) -> None:
        """An event of the session, now."""
        self.now += 1000
        self.events.append(kind(self.now, *args, **fields))

    def user(self, speaking: bool) -> None:
        old, new = ("listening", "speaking") if speaking else ("speaking", "listening")
        self.happens(StateChanged, "user", old, new)

    def end(self) -> list[Event]:
        """All events; what is left inside is held and queued."""
        self._end_run()
        self._end_silence()
        for position in [p for chunk in self.waiting for p in chunk] + self.rest:
            self.truth[self.owner[position]].held += 1
        for position in self.queue:
            self.truth[self.owner[self.origin[position]]].queued += 1
        self.waiting, self.rest, self.queue = [], [], []
        return sorted(self.events, key=lambda event: event.at_ns)  # type: ignore[union-attr]


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
