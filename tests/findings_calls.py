"""Calls written by hand for the rules: one sound call, one sound barge-in, and what bends them.

24 kHz, blocks of 240 samples. Times are milliseconds since the trace began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    Bookmarked,
    CallEnd,
    CancelSent,
    ContextSeen,
    Event,
    FalseInterruption,
    FrameCaptured,
    FramePushed,
    GenerationCounted,
    Header,
    InterruptCalled,
    ItemCommitted,
    LoopStalled,
    MarkName,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    MessagePulled,
    OptionsChanged,
    OverlapJudged,
    PlaybackReported,
    QueueCleared,
    RealtimeTapped,
    ResponseCreated,
    ResponseEnded,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
    TranscriptReceived,
    TruncateSent,
)
from reports import Analysis, Finding, analyze
from reports.units import time_ms
from tests.report_traces import MS, taps, write

PER_MS = 24


def at(ms: float) -> int:
    return round(ms * MS)


@dataclass
class HandCall:
    """Events in any order; positions follow on from each other unless told to skip."""

    events: list[Event] = field(default_factory=taps)
    frames: int = 0
    captured: int = 0
    pushes: int = 0
    pushed: int = 0
    forwarded: int = 0
    sent: int = 0
    end_ms: float = 3000

    def add(self, *events: Event) -> HandCall:
        self.events += events
        return self

    # audio

    def capture(
        self,
        at_ms: float,
        ms: float,
        speech: str | None = "s1",
        *,
        end: CallEnd | None = "returned",
        ended_ms: float | None = None,
        **fields: Any,
    ) -> HandCall:
        samples = round(ms * PER_MS)
        self.frames += 1
        ended = None if end is None else at(at_ms + 0.001 if ended_ms is None else ended_ms)
        shape = {"rate_hz": 24_000, "channels": 1, **fields}
        self.events.append(
            FrameCaptured(
                at(at_ms), self.frames, self.captured, samples, speech=speech, end=end,
                ended_ns=ended, **shape,
            )
        )  # fmt: skip
        self.captured += samples
        return self

    def push(self, at_ms: float, ms: float, *, accepted: bool = True) -> HandCall:
        """Pushes what was captured next."""
        samples = round(ms * PER_MS)
        self.pushes += 1
        self.events.append(
            FramePushed(
                at(at_ms), self.pushes, 1, self.pushed, samples, 24_000, 1, accepted,
                captured=[(self.forwarded, samples)],
                end="returned" if accepted else "raised", ended_ns=at(at_ms + 0.001),
            )
        )  # fmt: skip
        self.forwarded += samples
        self.pushed += samples if accepted else 0
        return self

    def drop(self, ms: float) -> HandCall:
        """What was captured next is never pushed."""
        self.forwarded += round(ms * PER_MS)
        return self

    def send(self, at_ms: float, ms: float, *, offset: int = 0) -> HandCall:
        """Sends what was pushed next, in runs of 200 ms; ``ms`` need not be whole blocks."""
        left = round(ms * PER_MS)
        while left > 0:
            samples = min(left, 20 * 240 - offset)
            blocks = -(-(offset + samples) // 240)
            begin, until = at(at_ms), at(at_ms + 10 * blocks)
            self.events.append(RunSent(begin, until, 1, self.sent, samples, offset))
            self.sent += samples
            left -= samples
            at_ms, offset = at_ms + 10 * blocks, 0
        return self

    def lose(self, ms: float) -> HandCall:
        """What was pushed next is never sent."""
        self.sent += round(ms * PER_MS)
        return self

    def silence(self, at_ms: float, ms: float) -> HandCall:
        return self.add(SilenceInserted(at(at_ms), at(at_ms + ms), 1, round(ms * PER_MS)))

    # marks and reports

    def mark(self, at_ms: float, name: MarkName, speech: str | None = "s1") -> HandCall:
        return self.add(SinkMarked(at(at_ms), name, speech, ended_ns=at(at_ms + 0.001)))

    def cleared(self, at_ms: float) -> HandCall:
        return self.add(QueueCleared(at(at_ms), 1, ended_ns=at(at_ms + 0.001)))

    def started(self, at_ms: float, speech: str = "s1") -> HandCall:
        return self.add(PlaybackReported(at(at_ms), "started", speech))

    def finished(
        self, at_ms: float, position_ms: float, speech: str = "s1", *, interrupted: bool = False
    ) -> HandCall:
        position = position_ms / 1000
        return self.add(
            PlaybackReported(
                at(at_ms), "finished", speech, position_s=position, interrupted=interrupted
            )
        )

    def progressed(self, at_ms: float, offset_ms: float, ms: float, speech: str = "s1") -> HandCall:
        return self.add(
            PlaybackReported(
                at(at_ms), "progressed", speech, position_s=offset_ms / 1000, duration_s=ms / 1000
            )
        )

    # the session

    def created(self, at_ms: float, speech: str = "s1", *, allowed: bool = True) -> HandCall:
        return self.add(SpeechCreated(at(at_ms), speech, "say", True, allowed))

    def commit(self, at_ms: float, speech: str = "s1", by: Any = "transcript") -> HandCall:
        return self.add(
            InterruptCalled(at(at_ms), speech, by), SpeechCommitted(at(at_ms) + 100, speech)
        )

    def done(self, at_ms: float, speech: str = "s1", *, interrupted: bool = False) -> HandCall:
        return self.add(SpeechDone(at(at_ms), speech, interrupted))

    def item(self, at_ms: float, speech: str = "s1", *, interrupted: bool = False) -> HandCall:
        return self.add(
            ItemCommitted(at(at_ms), f"item_{at_ms}", "assistant", 17, interrupted, speech)
        )

    def user(self, at_ms: float, speaking: bool) -> HandCall:
        return self.add(
            StateChanged(at(at_ms), "user", "", "speaking" if speaking else "listening")
        )

    def agent(self, at_ms: float, state: str) -> HandCall:
        return self.add(StateChanged(at(at_ms), "agent", "", state))

    def overlap(self, at_ms: float, speech: str = "s1", **fields: Any) -> HandCall:
        verdict = {"is_interruption": True, **fields}
        return self.add(OverlapJudged(at(at_ms), speech=speech, **verdict))

    def transcript(self, at_ms: float, words: int = 3) -> HandCall:
        return self.add(TranscriptReceived(at(at_ms), True, 4 * words, words))

    def options(self, at_ms: float = 0, **options: Any) -> HandCall:
        return self.add(OptionsChanged(at(at_ms), options))

    def stalled(self, at_ms: float, ms: float) -> HandCall:
        return self.add(LoopStalled(at(at_ms), at(at_ms + ms)))

    def false_alarm(self, at_ms: float) -> HandCall:
        return self.add(FalseInterruption(at(at_ms), True))

    def retap(self, boundary: str, **fields: Any) -> HandCall:
        """Changes what the tap at a boundary says of itself."""
        self.events = [
            replace(event, **fields)
            if isinstance(event, Tapped) and event.boundary == boundary
            else event
            for event in self.events
        ]
        return self

    def without(self, *names: str) -> HandCall:
        """Takes events of these kinds away."""
        self.events = [event for event in self.events if event.NAME not in names]
        return self

    # the trace

    def analysis(
        self, folder: Path, *, head: Header | None = None, settings: Any = None
    ) -> Analysis:
        ordered = sorted(
            [*self.events, Bookmarked(at(self.end_ms), "end")],
            key=lambda event: event.at_ns,  # type: ignore[union-attr]
        )
        path = write(folder / f"call-{len(list(folder.iterdir()))}.jsonl", ordered, head=head)
        return analyze(path, settings=settings)


def reply(call: HandCall, begin: float = 0, speech: str = "s1", *, ms: float = 500) -> HandCall:
    """A sound reply: captured and pushed at once, sent from 10 ms on, reported and committed."""
    end = begin + 10 + ms
    call.created(begin, speech).agent(begin + 0.5, "thinking")
    call.capture(begin + 1, ms, speech).started(begin + 1.5, speech)
    call.agent(begin + 1.6, "speaking")
    call.push(begin + 2, ms).mark(begin + 3, "flush", speech).send(begin + 10, ms)
    call.finished(end + 1, ms, speech).item(end + 2, speech).agent(end + 3, "listening")
    return call.done(end + 4, speech)


def clean_call() -> HandCall:
    """Two sound replies with the caller in between."""
    call = reply(HandCall())
    call.user(600, True).user(900, False).silence(510, 490)
    return reply(call, 990, "s2").silence(1500, 1000)


def barge_in(call: HandCall | None = None, *, plays_on: float = 0, speech: str = "s1") -> HandCall:
    """A sound barge-in at 200 ms: paused and emptied at once, committed, cleared, resumed.

    ``plays_on``: how long the queue plays on after the pause, which is the verdict.
    """
    call = call or HandCall()
    sent = 190 + plays_on
    call.created(0, speech).agent(0.5, "thinking").capture(1, 500, speech)
    call.started(1.5, speech).agent(1.6, "speaking").push(2, 500).mark(3, "flush", speech)
    call.send(10, sent).user(150, True).mark(200, "pause", speech).cleared(200 + plays_on + 0.1)
    call.lose(500 - sent).agent(200.2, "listening")
    call.transcript(300).commit(301, speech).mark(302, "clear", speech).cleared(302.5)
    call.finished(303, sent, speech, interrupted=True).item(304, speech, interrupted=True)
    call.mark(305, "resume", speech).done(306, speech, interrupted=True).user(400, False)
    return call.silence(10 + sent, 600)


@dataclass
class RealtimeCall(HandCall):
    """The same with a realtime model: one session, whose both sides are looked at."""

    held: dict[str, list[str]] = field(default_factory=lambda: {"server": [], "local": []})

    def __post_init__(self) -> None:
        self.add(RealtimeTapped(0, 1, "hand", can_truncate=True, can_edit_context=True))

    def response(self, at_ms: float, number: int = 1, speech: str | None = "s1") -> RealtimeCall:
        self.add(ResponseCreated(at(at_ms), number, 1, f"resp_{number}", speech))
        return self

    def ended(self, at_ms: float, number: int = 1, **fields: Any) -> RealtimeCall:
        self.add(ResponseEnded(at(at_ms), number, **{"by": "stream", **fields}))
        return self

    def message(
        self,
        at_ms: float,
        name: str = "m1",
        number: int | None = 1,
        *,
        pulled: bool = True,
        opened: bool = True,
        read_ms: float = 0,
    ) -> RealtimeCall:
        """Created, and pulled, opened and read at once as far as told."""
        self.add(MessageCreated(at(at_ms), name, number))
        if pulled:
            self.add(MessagePulled(at(at_ms + 0.1), name, number or 1))
        if opened:
            self.add(MessageOpened(at(at_ms + 0.2), name))
        if read_ms:
            self.read(at_ms + 0.3, name, read_ms)
        return self

    def read(self, at_ms: float, name: str, ms: float, *, ended: bool = False) -> RealtimeCall:
        until = at(at_ms + 0.1)
        samples = round(ms * PER_MS)
        self.add(MessageAudio(at(at_ms), until, name, 1, samples, 24_000, ended=ended))
        return self

    def counted(
        self,
        at_ms: float,
        read_ms: float,
        unread_ms: float | None,
        name: str = "m1",
        number: int = 1,
        why: Any = "ended",
    ) -> RealtimeCall:
        unread = None if unread_ms is None else round(unread_ms * PER_MS)
        read = round(read_ms * PER_MS)
        self.add(GenerationCounted(at(at_ms), number, name, read, unread, 24_000, why))
        return self

    def cancel(self, at_ms: float, *hits: int, speech: str | None = "s1") -> RealtimeCall:
        self.add(CancelSent(at(at_ms), 1, speech, list(hits)))
        return self

    def truncated(self, at_ms: float, to_ms: int, name: str = "m1") -> RealtimeCall:
        self.add(TruncateSent(at(at_ms), 1, name, to_ms))
        return self

    def look(
        self,
        at_ms: float,
        server: list[str] | None = None,
        local: list[str] | None = None,
        speech: str | None = None,
    ) -> RealtimeCall:
        """A look at the sides that are given, with all that they hold."""
        for side, items in (("server", server), ("local", local)):
            if items is None:
                continue
            before = self.held[side]
            self.add(
                ContextSeen(
                    at(at_ms),
                    "server" if side == "server" else "local",
                    [(item, "assistant") for item in items if item not in before],
                    [item for item in before if item not in items],
                    1 if side == "server" else None,
                    speech,
                )
            )
            self.held[side] = items
        return self


# --- Proofs of rules ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proof:
    """A call with one defect, the same call mended, and what has to be found."""

    defect: Callable[[], HandCall]
    mended: Callable[[], HandCall]
    samples: int | None = None
    figure: float | None = None
    says: str = ""
    """Part of the sentence or of a part's cause."""
    segment: int | None = 1
    severity: str | None = None
    beside: tuple[str, ...] = ()
    """Rules that rightly fire on the same defect."""


def found(call: HandCall, folder: Path, head: Header | None = None) -> list[Finding]:
    """What is found in a call of which everything is known."""
    analysis = call.analysis(folder, head=head)
    assert analysis.balanced is True, analysis.unaccounted_because
    assert analysis.not_judged == ()
    return list(analysis.findings)


def assert_fires(rule: str, proof: Proof, folder: Path) -> None:
    """The rule alone finds the defect, and what it says of it is right."""
    findings = found(proof.defect(), folder)
    mine = [finding for finding in findings if finding.rule == rule]
    assert len(mine) == 1, findings
    assert {f.rule for f in findings} - {rule} <= set(proof.beside)
    finding = mine[0]
    told = [finding.message, *(part.cause for part in finding.evidence.parts)]
    assert any(proof.says in text for text in told), told
    assert finding.segment == proof.segment
    assert finding.evidence.samples == proof.samples or proof.samples is None
    if proof.figure is not None:
        assert finding.evidence.figure.value == pytest.approx(proof.figure, abs=1.1)
    assert finding.severity == (proof.severity or finding.severity)
    assert finding.evidence.moments == tuple(
        sorted(finding.evidence.moments, key=lambda moment: time_ms(moment.at_ns))
    )
    if finding.evidence.parts:
        assert sum(p.samples for p in finding.evidence.parts) == finding.evidence.samples


def assert_silent(rule: str, proof: Proof, folder: Path) -> None:
    """Nothing is found where it is mended, beside what has nothing to do with it."""
    findings = found(proof.mended(), folder)
    assert [f.rule for f in findings if f.rule == rule] == []
    assert [(f.rule, f.message) for f in findings if f.rule not in proof.beside] == []
