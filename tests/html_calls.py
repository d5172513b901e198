"""Calls to make pages of: small simulated ones, one of each kind that a page has to show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probe.trace.events import (
    Bookmarked,
    Event,
    FalseInterruption,
    Faulted,
    InterruptCalled,
    LoopStalled,
    PlaybackReported,
    SpeechCommitted,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
)
from reports import analyze
from reports.account.source import ledger_of
from reports.results import (
    Analysis,
    ConversationItem,
    GenerationStop,
    Realtime,
    RealtimeMessage,
    Sound,
)
from reports.show import html
from reports.timeline import Timeline, lay_out
from tests.report_traces import MS, Simulation, header, write

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'&\x07\u202e\0"
)
"""What a user's label may hold, and what a page must only ever show."""

HOSTILE_SHOWN = (
    HOSTILE.replace("\x07", "\\u0007").replace("\u202e", "\\u202e").replace("\0", "\\u0000")
)


def leaking() -> list[Event]:
    """A pause that leaves 200 ms in the source's queue, all of which go out; then a commit."""
    call = Simulation()
    call.happens(StateChanged, "agent", "initializing", "thinking")
    call.tick(3)
    call.happens(StateChanged, "agent", "thinking", "speaking")
    for _ in range(30):
        call.capture(480)
    call.happens(PlaybackReported, "started", "s1")
    call.tick(40)
    call.user(True)
    call.pause()
    call.tick(35)
    call.happens(TranscriptReceived, True, 23, 5)
    call.happens(InterruptCalled, "s1", by="transcript")
    call.happens(SpeechCommitted, "s1")
    call.clear()
    call.happens(PlaybackReported, "finished", "s1", position_s=0.6, interrupted=True)
    call.happens(SpeechDone, "s1", interrupted=True)
    call.tick(5)
    call.user(False)
    call.resume()
    for _ in range(10):
        call.capture(480, "s2")
    call.flush()
    call.tick(30)
    call.happens(SpeechDone, "s2")
    return call.end()


def swallowing() -> list[Event]:
    """A false interruption: the pause takes what lay in the queue, and the speech goes on."""
    call = Simulation()
    for _ in range(50):
        call.capture(480)
    call.tick(30)
    call.user(True)
    call.pause()
    call.tick(10)
    call.user(False)
    call.resume()
    call.happens(FalseInterruption, True)
    call.flush()
    call.tick(90)
    call.happens(SpeechDone, "s1")
    return call.end()


def clean() -> list[Event]:
    """One reply that arrives whole."""
    call = Simulation()
    for _ in range(30):
        call.capture(480)
    call.flush()
    call.tick(70)
    call.happens(SpeechDone, "s1")
    return call.end()


def hostile() -> list[Event]:
    """The leaking call, with names that would be markup, script or confusion."""
    renamed = []
    for event in leaking():
        if getattr(event, "speech", None) is not None:
            event = replace(event, speech=f"{HOSTILE}{event.speech}")  # type: ignore[call-arg, union-attr]
        renamed.append(event)
    extra: list[Event] = [
        Bookmarked(500 * MS, HOSTILE),
        LoopStalled(310 * MS, 340 * MS),
        Faulted(320 * MS, "write_slow", 1, HOSTILE),
    ]
    return sorted([*renamed, *extra], key=lambda e: e.at_ns)  # type: ignore[union-attr]


def read(path: Path) -> tuple[Analysis, Timeline]:
    """What a page is made of."""
    ledger = ledger_of(path)
    return analyze(ledger), lay_out(ledger)


def hostile_trace(path: Path) -> Path:
    """A trace whose names and labels are all hostile."""
    head = header(labels={HOSTILE: HOSTILE}, options={HOSTILE: HOSTILE})
    return write(path, hostile(), head=head)


def with_a_model(analysis: Analysis) -> Analysis:
    """The same call as if a realtime model had spoken: its second message is on the server only."""
    message = RealtimeMessage(
        id="item_2", response=1, speech_id="s1", created_ns=100_000_000, created_by="event",
        pulled_ns=None, opened_ns=None, first_audio_ns=None, last_audio_ns=None,
        generated=Sound(24_000, 24_000), read=Sound(0, None), segments=(),
        captured=analysis.segments[0].captured, sent=None, truncated_to_ns=None,
        truncated_ns=None, sent_position=None, on_server=True, in_history=False,
    )  # fmt: skip
    rows = (
        ConversationItem("item_1", "user", True, True, None, ""),
        ConversationItem("item_2", "assistant", True, False, message, "server only"),
    )
    stop = GenerationStop(
        speech_id="s1", responses=(1,), interrupt_ns=440_000_000, under_way=True,
        ended_ns=900_000_000, cancel_ns=950_000_000, cancel_after_interrupt_ns=510_000_000,
        cancel_after_end_ns=50_000_000, hit=(2,),
        generated_after=None, generating_ns=460_000_000,
    )  # fmt: skip
    realtime = Realtime("model of a test", (), (message,), (), (stop,), rows)
    return replace(analysis, realtime=realtime)


def page(folder: Path, events: list[Event], name: str = "call") -> Path:
    """A page of one call, written beside its trace."""
    analysis, timeline = read(write(folder / f"{name}.jsonl", events))
    return save(folder / f"{name}.html", html.render([analysis], [timeline]))


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
