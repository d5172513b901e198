"""A trace that reaches its bound: what is still written, and what is counted instead."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from probe import bound
from probe.recorder import Recorder
from probe.trace.events import (
    AudioSkipped,
    CaptureEnded,
    Event,
    FramePushed,
    PlaybackReported,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SizeBounded,
    SumsKept,
)
from probe.trace.reader import Trace, read_trace
from tests.recording import PassOn, bookmark, faults, frame, header, names, wait_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "call.jsonl"


def bounded(path: Path, events: Iterable[Event], max_mb: float = 0.001) -> Trace:
    recorder = Recorder(path, header(), PassOn(), max_mb=max_mb)
    for event in events:
        recorder.put(event)
    recorder.close()
    return read_trace(recorder.path)


def test_bounded_file_keeps_marks_session_events_and_sums(path: Path) -> None:
    at_ns = time.monotonic_ns()
    filling = [bookmark(number) for number in range(30)]
    trace = bounded(
        path,
        [
            frame(1),
            *filling,
            frame(2),
            frame(3, 100),
            CaptureEnded(at_ns, 2, "returned"),
            FramePushed(at_ns, 1, 1, 0, 50, 8000, 1, end="returned"),
            FramePushed(at_ns, 2, 1, 50, 60, 8000, 1),
            FramePushed(at_ns, 3, 1, 110, 70, 8000, 1),
            FramePushed(at_ns, 4, 1, 180, 80, 8000, 1, accepted=False, end="raised"),
            FramePushed(at_ns, 5, 1, 180, 90, 8000, 1),
            PushEnded(at_ns, 2, "returned"),
            PushEnded(at_ns, 3, "raised", accepted=False),
            PushMatched(at_ns, 1, [(0, 50)]),
            RunSent(at_ns, at_ns, 1, 0, 30),
            SilenceInserted(at_ns, at_ns, 1, 40),
            PlaybackReported(at_ns, "progressed"),
            PlaybackReported(at_ns, "finished"),
            SinkMarked(at_ns, "clear"),
            bookmark("after"),
        ],
    )

    assert trace.complete
    assert len(trace.captured) == 1
    assert len(trace.pushed) == len(trace.sent) == len(trace.inserted) == 0
    kinds = [type(event) for event in trace.events]
    assert kinds.count(SizeBounded) == kinds.count(SinkMarked) == 1
    assert kinds.count(PlaybackReported) == 1
    assert "after" in names(trace)
    (sums,) = [event for event in trace.events if isinstance(event, SumsKept)]
    assert sums.captured_frames == 2
    assert sums.captured_samples == 580
    assert (sums.pushed_frames, sums.pushed_samples) == (3, 50 + 60 + 90)
    assert (sums.sent_samples, sums.inserted_samples) == (30, 40)


def test_calls_written_before_the_bound_still_get_their_end(path: Path) -> None:
    first = frame(1)
    at_ns = time.monotonic_ns()
    trace = bounded(
        path,
        [
            first,
            FramePushed(at_ns, 1, 1, 0, 480, 24000, 1),
            *[bookmark(number) for number in range(30)],
            CaptureEnded(at_ns, 1, "cancelled"),
            PushEnded(at_ns, 1, "returned"),
            PushMatched(at_ns, 1, [(0, 480)]),
        ],
    )

    assert trace.complete
    assert trace.captured.end.tolist() == [1]
    assert trace.pushed.end.tolist() == [0]
    assert trace.pushed.matched.tolist() == [True]


def test_what_a_sink_skipped_is_not_told_of_frames_that_are_only_counted(path: Path) -> None:
    skipped = [AudioSkipped(time.monotonic_ns(), 0, 480) for _ in range(3)]
    trace = bounded(path, [*[bookmark(number) for number in range(30)], *skipped])

    assert not [event for event in trace.events if isinstance(event, AudioSkipped)]
    assert trace.complete


def test_bound_without_end_is_none(path: Path) -> None:
    trace = bounded(path, [frame(number) for number in range(1, 100)], max_mb=float("inf"))

    assert trace.complete
    assert len(trace.captured) == 99


def test_bounded_file_stays_near_its_bound(path: Path) -> None:
    # Made one by one: stamped all at once, the last would be told long after their time.
    frames = (frame(number) for number in range(1, 20_001))
    bookmarks = (bookmark(number) for number in range(20_000))
    trace = bounded(path, chain[Event](frames, bookmarks), max_mb=0.1)

    assert path.stat().st_size < 100_000 * 1.25 + 70_000
    assert faults(trace)["events_lost"] > 10_000
    assert trace.complete


def test_sums_are_written_while_the_call_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound, "SUMS_NS", 1)
    recorder = Recorder(path, header(), PassOn(), max_mb=0.000001)
    recorder.start()
    recorder.put(frame(1))
    wait_for(
        lambda: (
            path.stat().st_size
            and any(isinstance(event, SumsKept) for event in read_trace(path).events)
        )
    )
    recorder.close()

    assert read_trace(path).complete
