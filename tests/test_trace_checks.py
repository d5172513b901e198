"""Values of a trace that contradict each other are problems, and what real calls show is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    Event,
    FrameCaptured,
    FramePushed,
    LoopStalled,
    PlaybackReported,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    Tapped,
    Untapped,
)
from probe.trace.reader import Trace, read_trace
from reports import analyze
from tests.report_traces import MS, write

BLOCK = 240


def tap(*, grouped: bool, **fields: Any) -> Tapped:
    shape: dict[str, Any] = {
        "source": 1,
        "rate_hz": 24_000,
        "channels": 1,
        "block_samples": BLOCK,
        "grouped": grouped,
        "resolution_ns": 10 * MS if grouped else 20 * MS,
        **fields,
    }
    at_ns = shape.pop("at_ns", 95 * MS)
    return Tapped(at_ns, "sent", **shape)


def fed(source: int = 1, *, push: int = 1, start: int = 0) -> FramePushed:
    """Two seconds of audio, all there is to send."""
    length = 200 * BLOCK
    return FramePushed(MS, push, source, start, length, 24_000, 1, captured=[(None, length)])


def wire(*, late_ms: float = 0) -> list[Event]:
    """Three seconds of a source: silence, 500.5 ms of audio, silence, all of it on its beat.

    The first stretch is stamped ``late_ms`` too late, as while a process starts.
    """
    return [
        fed(),
        SilenceInserted(round((100 + late_ms) * MS), 400 * MS, 1, 30 * BLOCK),
        RunSent(400 * MS, 600 * MS, 1, 0, 20 * BLOCK),
        RunSent(600 * MS, 800 * MS, 1, 20 * BLOCK, 20 * BLOCK),
        RunSent(800 * MS, 910 * MS, 1, 40 * BLOCK, 10 * BLOCK + 12),
        RunSent(900 * MS, 910 * MS, 1, 60 * BLOCK, BLOCK - 12, 12),
        SilenceInserted(910 * MS, 1910 * MS, 1, 100 * BLOCK),
        SilenceInserted(1910 * MS, 2910 * MS, 1, 100 * BLOCK),
        RunSent(2910 * MS, 3110 * MS, 1, 61 * BLOCK, 20 * BLOCK),
        SilenceInserted(3110 * MS, 3210 * MS, 1, 10 * BLOCK),
    ]


Read = Callable[..., Trace]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def written(*events: Event) -> Trace:
        return read_trace(write(tmp_path / "call.jsonl", events))

    return written


def texts(trace: Trace) -> list[str]:
    return [f"{problem.kind}: {problem.text}" for problem in trace.problems]


def changed(events: list[Event], row: int, **by: float) -> list[Event]:
    event: Any = events[row]
    fields = {name: getattr(event, name) + round(value) for name, value in by.items()}
    return [*events[:row], dataclasses.replace(event, **fields), *events[row + 1 :]]


@pytest.mark.parametrize("grouped", [True, False])
def test_a_wire_on_its_beat_is_sound(read: Read, grouped: bool) -> None:
    assert texts(read(tap(grouped=grouped), *wire())) == []


def test_first_stamps_are_late_until_others_correct_them(read: Read) -> None:
    assert texts(read(tap(grouped=True), *wire(late_ms=290))) == []


@pytest.mark.parametrize("by_ms", [-0.3, 0.3])
@pytest.mark.parametrize("row", range(1, 10))
@pytest.mark.parametrize("name", ["at_ns", "until_ns"])
def test_stamps_may_be_off_by_a_little(read: Read, row: int, name: str, by_ms: float) -> None:
    events = changed(wire(), row, **{name: by_ms * MS})
    assert texts(read(tap(grouped=True), *events)) == []


@pytest.mark.parametrize("by_ms", [-500, -100, -30, -15, 30, 100, 500])
@pytest.mark.parametrize("name", ["at_ns", "until_ns"])
@pytest.mark.parametrize("row", [2, 3, 6, 8])
def test_a_stamp_off_the_beat_is_put_right_or_refused(
    read: Read, row: int, name: str, by_ms: float
) -> None:
    sound = read(tap(grouped=True), *wire())
    trace = read(tap(grouped=True), *changed(wire(), row, **{name: by_ms * MS}))
    if by_ms > 0:
        # Late, as those after it say.
        assert [problem.kind for problem in trace.problems] == ["late"]
        assert f"up to {by_ms:.1f} ms late" in trace.problems[0].text
        assert trace.complete
        for left, right in ((trace.sent, sound.sent), (trace.inserted, sound.inserted)):
            assert left.at_ns.tolist() == right.at_ns.tolist()
            assert left.until_ns.tolist() == right.until_ns.tolist()
    else:
        assert not trace.complete


@pytest.mark.parametrize(
    ("row", "by"),
    [(3, -BLOCK), (3, -7), (3, 1), (3, 20 * BLOCK), (7, -BLOCK), (7, 1), (9, 1)],
)
def test_samples_that_do_not_fit_their_time_are_a_problem(read: Read, row: int, by: int) -> None:
    assert not read(tap(grouped=True), *changed(wire(), row, samples=by)).complete


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("by", [BLOCK, 4800])
def test_a_run_begins_inside_its_first_block(read: Read, grouped: bool, by: int) -> None:
    trace = read(tap(grouped=grouped), *changed(wire(), 8, block_offset_samples=by))
    assert "inconsistent: sent: it begins beyond its first block" in texts(trace)


def test_a_run_begins_in_its_block_where_the_one_before_stopped(read: Read) -> None:
    trace = read(tap(grouped=True), *changed(wire(), 8, block_offset_samples=100))
    assert any("does not begin in its block" in text for text in texts(trace))


@pytest.mark.parametrize("row", [2, 6])
def test_a_stretch_has_samples(read: Read, row: int) -> None:
    samples = 20 * BLOCK if row == 2 else 100 * BLOCK
    trace = read(tap(grouped=False), *changed(wire(), row, samples=-samples))
    assert "inconsistent: a stretch without samples" in texts(trace)


def test_blocks_read_one_by_one_may_come_late_and_leave_gaps(read: Read) -> None:
    events: list[Event] = [
        fed(),
        RunSent(100 * MS, 265 * MS, 1, 0, 16 * BLOCK),
        RunSent(265 * MS, 463 * MS, 1, 16 * BLOCK, 24 * BLOCK),
        RunSent(458 * MS, 500 * MS, 1, 40 * BLOCK, 4 * BLOCK),
        RunSent(590 * MS, 600 * MS, 1, 44 * BLOCK, BLOCK),
    ]
    assert texts(read(tap(grouped=False), *events)) == []


@pytest.mark.parametrize(
    ("row", "by", "text"),
    [
        (2, {"until_ns": 500 * MS}, "a stretch lasts longer than its samples"),
        (2, {"until_ns": 500 * MS}, "sent: expected runs of at most 200 ms, found a longer one"),
        (3, {"at_ns": -160 * MS}, "two stretches left one source at the same time"),
        (2, {"until_ns": -160 * MS}, "a stretch is too short for its samples"),
        (7, {"samples": 4800}, "a stretch is too short for its samples"),
    ],
)
def test_a_lie_beyond_the_jitter_of_arrivals_is_a_problem(
    read: Read, row: int, by: dict[str, float], text: str
) -> None:
    trace = read(tap(grouped=False), *changed(wire(), row, **by))
    assert f"inconsistent: {text}" in texts(trace)


def test_two_sources_may_be_heard_at_once(read: Read) -> None:
    other = [SilenceInserted(99 * MS, 1099 * MS, 2, 100 * BLOCK)]
    assert texts(read(tap(grouped=True), tap(grouped=True, source=2), *wire(), *other)) == []


def test_a_reading_opened_anew_has_a_beat_of_its_own(read: Read) -> None:
    again = [
        Untapped(3210 * MS, "sent", 1, "stopped"),
        dataclasses.replace(tap(grouped=True), at_ns=3300 * MS),
        SilenceInserted(3333 * MS, 3433 * MS, 1, 10 * BLOCK),
    ]
    assert texts(read(tap(grouped=True), *wire(), *again)) == []
    without = [again[2]]
    assert not read(tap(grouped=True), *wire(), *without).complete


def frame(at_ns: int, number: int) -> FrameCaptured:
    return FrameCaptured(at_ns, number, (number - 1) * 10, 10, 8000, 1)


def push(at_ns: int, number: int) -> FramePushed:
    return FramePushed(at_ns, number, 1, (number - 1) * 10, 10, 8000, 1, captured=[(None, 10)])


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([frame(5, 1), frame(4, 2)], "time"),
        ([push(5, 1), push(4, 2)], "time"),
        ([SinkMarked(5, "pause"), SinkMarked(4, "resume")], "time"),
        ([QueueCleared(5, 1), QueueCleared(4, 1)], "time"),
        ([PlaybackReported(5, "finished"), PlaybackReported(4, "started")], "time"),
        ([SinkMarked(5, "clear", ended_ns=4)], "time"),
        ([QueueCleared(5, 1, ended_ns=4)], "time"),
        ([LoopStalled(5, 4)], "time"),
        ([SpeechCreated(5, "s"), SpeechCommitted(4, "s")], "time"),
        ([SpeechCreated(5, "s"), SpeechDone(4, "s")], "time"),
        ([tap(grouped=True, block_samples=480)], "inconsistent"),
        ([tap(grouped=True, rate_hz=48_000)], "inconsistent"),
    ],
)
def test_events_of_one_thread_are_in_order(read: Read, events: list[Event], kind: str) -> None:
    assert [problem.kind for problem in read(*events).problems] == [kind]


def test_events_that_only_look_out_of_order_are_sound(read: Read) -> None:
    trace = read(
        SpeechCreated(5, "s"),
        SpeechCommitted(5, "s"),
        frame(9, 1),
        frame(9, 2),
        SinkMarked(8, "clear", ended_ns=8),
        QueueCleared(9, 1, ended_ns=9),
        QueueCleared(7, 2),
        tap(grouped=True, rate_hz=22_050, block_samples=220),
    )
    assert texts(trace) == []


def test_a_trace_that_contradicts_itself_is_never_balanced(tmp_path: Path) -> None:
    path = write(tmp_path / "call.jsonl", [tap(grouped=True), *changed(wire(), 3, at_ns=-30 * MS)])
    analysis = analyze(path)
    assert analysis.balanced is None
    assert not analysis.trace.complete
