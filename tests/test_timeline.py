"""The lanes of a picture: what they hold adds up with the ledger, near and from afar."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.cli.main import main
from probe.trace.events import (
    CallerLeft,
    Event,
    FrameCaptured,
    FramePushed,
    HandedOver,
    PlaybackReported,
    QueueCleared,
    RunSent,
    SessionClosed,
    SinkMarked,
)
from probe.trace.reader import read_trace
from reports import analyze
from reports.account.ledger import balance
from reports.account.source import ledger_of
from reports.timeline import FATES, Depth, Frames, Timeline, lay_out
from tests.html_calls import clean, leaking, read, swallowing
from tests.report_traces import MS, TICK, header, taps, write, write_hour
from tests.test_terminal_report import came_late


def lanes(folder: Path, events: list[Event], **fields: Any) -> Timeline:
    return lay_out(write(folder / "call.jsonl", events, head=header(**fields)))


def total(frames: Frames) -> int:
    return int(frames.samples.sum())


@pytest.mark.parametrize("make", [leaking, swallowing, clean])
def test_the_lanes_hold_what_the_ledger_counts(tmp_path: Path, make: Any) -> None:
    analysis, timeline = read(write(tmp_path / "call.jsonl", make()))
    totals = analysis.totals
    assert total(timeline.captured) == totals.captured_samples
    assert total(timeline.pushed) == totals.pushed_samples
    assert total(timeline.sent) == totals.sent_samples
    assert total(timeline.inserted) == totals.inserted_samples
    assert int(timeline.captured.lost.sum()) == totals.dropped_samples
    assert int(timeline.pushed.lost.sum()) == totals.cleared_samples
    lost = sum(stretch.samples or 0 for stretch in timeline.lost)
    assert lost == (totals.dropped_samples or 0) + (totals.cleared_samples or 0)
    (depth,) = timeline.depth
    assert depth.samples[-1] == totals.queued_samples


def test_a_page_balances_a_trace_once(tmp_path: Path) -> None:
    path = write(tmp_path / "call.jsonl", leaking())
    balanced = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal balanced
        balanced += event == "call" and frame.f_code is balance.__code__

    sys.setprofile(profile)
    try:
        code = main(["report", str(path), "-o", str(tmp_path / "call.html")])
    finally:
        sys.setprofile(None)
    assert (code, balanced) == (0, 1)


@pytest.mark.parametrize("make", [str, read_trace, ledger_of])
def test_a_timeline_is_the_same_whatever_it_is_laid_out_from(tmp_path: Path, make: Any) -> None:
    path = write(tmp_path / "call.jsonl", leaking())
    timeline, same = lay_out(path), lay_out(make(path))
    assert timeline.marks == same.marks
    assert np.array_equal(timeline.sent.at_ns, same.sent.at_ns)
    assert analyze(path) == analyze(make(path))


def test_who_left_and_who_took_over_are_marks(tmp_path: Path) -> None:
    events = [
        *taps(), HandedOver(10 * MS, 1, 2), CallerLeft(20 * MS, "client_initiated"),
        SessionClosed(30 * MS, "participant_disconnected"),
    ]  # fmt: skip
    told = [(mark.what, mark.detail) for mark in lanes(tmp_path, events).marks]
    assert told == [
        ("handed over", "agent 1 to 2"), ("caller left", "client_initiated"),
        ("session closed", "participant_disconnected"),
    ]  # fmt: skip


def test_what_was_lost_is_marked_where_it_was_pushed(tmp_path: Path) -> None:
    timeline = lanes(tmp_path, swallowing())
    gone = timeline.pushed.taken(np.flatnonzero(timeline.pushed.lost))
    assert int(gone.samples.sum()) == 4800
    assert {FATES[fate] for fate in gone.fate.tolist()} == {"lost"}
    (lost,) = timeline.lost
    assert (lost.what, lost.detail, lost.samples) == ("cleared", "clear", 4800)
    assert lost.stop_ns - lost.start_ns == 200 * MS


def test_the_queue_fills_runs_out_and_is_cleared(tmp_path: Path) -> None:
    """Two pushes at once, 50 ms each; 30 ms are sent, then a clear takes the rest."""
    push = [
        FramePushed(at, n, 1, start, 1200, 24_000, 1, captured=[(start, 1200)], end="returned",
                    ended_ns=at + 1000)
        for n, start, at in ((1, 0, 10 * MS), (2, 1200, 11 * MS))
    ]  # fmt: skip
    timeline = lanes(
        tmp_path,
        [
            *taps(),
            FrameCaptured(9 * MS, 1, 0, 2400, 24_000, 1, "s1", "returned", 9 * MS + 1000),
            *push,
            RunSent(20 * MS, 50 * MS, 1, 0, 720),
            QueueCleared(55 * MS, 1, ended_ns=55 * MS + 1000),
        ],
    )
    (depth,) = timeline.depth
    points = list(zip((depth.at_ns / MS).tolist(), depth.samples.tolist(), strict=True))
    assert points == [
        (10.001, 0), (10.001, 1200), (11.001, 1200), (11.001, 2400),
        (20, 2400), (50, 1680), (55, 1680), (55, 0),
    ]  # fmt: skip
    assert depth.rate_hz == 24_000


def test_the_gate_is_open_or_closed_from_the_first_frame_on(tmp_path: Path) -> None:
    timeline = lanes(tmp_path, leaking())
    assert [stretch.what for stretch in timeline.gate] == ["open", "closed", "open"]
    ends = [s.stop_ns for s in timeline.gate[:-1]]
    assert ends == [s.start_ns for s in timeline.gate[1:]]
    assert timeline.gate[0].start_ns == timeline.captured.at_ns[0]
    assert timeline.gate[-1].stop_ns == timeline.duration_ns


def test_the_same_mark_again_and_again_is_one(tmp_path: Path) -> None:
    marks: list[Event] = [
        SinkMarked(at * MS, name, "s1", ended_ns=at * MS + 1)
        for at, name in ((10, "pause"), (20, "pause"), (30, "pause"), (40, "clear"), (50, "pause"))
    ]
    timeline = lanes(tmp_path, [*taps(), *marks])
    told = [(m.what, m.count, m.until_ns) for m in timeline.marks]
    assert told == [("pause", 3, 30 * MS), ("clear", 1, None), ("pause", 1, None)]


def test_claims_are_where_the_framework_puts_them(tmp_path: Path) -> None:
    """Stretches are stamped by the wall clock; those that follow each other are one."""
    begun = 1_700_000_000.0
    reports: list[Event] = [
        PlaybackReported(
            90 * MS, "progressed", "s1", position_s=at, duration_s=0.05, event_unix_s=begun + 1 + at
        )
        for at in (0.0, 0.05, 0.2)
    ]
    timeline = lanes(tmp_path, [*taps(), *reports, SinkMarked(2000 * MS, "flush", "s1")])
    told = [(round(s.start_ns / MS), round(s.stop_ns / MS)) for s in timeline.claimed]
    assert told == [(1000, 1100), (1200, 1250)]


def test_without_progress_a_claim_is_as_long_as_its_finish_says(tmp_path: Path) -> None:
    timeline = lanes(tmp_path, leaking())
    (claim,) = timeline.claimed
    assert claim.segment == 1
    assert claim.stop_ns - claim.start_ns == 600 * MS


@pytest.mark.parametrize("clock_s", [0.0, 1e308, -1e308])
@pytest.mark.parametrize("told_s", [1e308, -1e308, 5e-324])
def test_absurd_claims_stay_inside_the_call(tmp_path: Path, clock_s: float, told_s: float) -> None:
    reports: list[Event] = [
        PlaybackReported(
            90 * MS, "progressed", "s1", position_s=0.0, duration_s=told_s, event_unix_s=told_s
        ),
        PlaybackReported(95 * MS, "finished", "s1", position_s=told_s),
    ]
    timeline = lanes(tmp_path, [*clean(), *reports], started_unix_s=clock_s)
    for claim in timeline.claimed:
        assert 0 <= claim.start_ns < claim.stop_ns <= timeline.duration_ns


def test_what_was_inside_when_the_probe_came_is_inherited(tmp_path: Path) -> None:
    timeline = lanes(tmp_path, came_late())
    assert [FATES[fate] for fate in timeline.sent.fate.tolist()] == ["inherited"] * 2 + ["whole"]
    assert timeline.sent.samples.tolist()[0] == 960


def test_a_boundary_that_was_not_tapped_has_an_empty_lane(tmp_path: Path) -> None:
    events = [e for e in leaking() if not isinstance(e, RunSent)]
    events = [e for e in events if getattr(e, "boundary", "") != "sent"]
    timeline = lanes(tmp_path, [e for e in events if e.NAME != "inserted"])
    assert timeline.boundaries == ("captured", "pushed")
    assert len(timeline.sent) == 0
    assert timeline.depth == ()


def test_a_trace_of_nothing_has_no_lanes(tmp_path: Path) -> None:
    timeline = lanes(tmp_path, [])
    assert len(timeline.captured) == len(timeline.sent) == 0
    assert timeline.marks == timeline.gate == timeline.depth == ()


@st.composite
def rows(draw: st.DrawFn) -> Frames:
    count = draw(st.integers(1, 40))
    ints = st.integers
    steps = draw(st.lists(ints(0, 60), min_size=count, max_size=count))
    lengths = draw(st.lists(ints(0, 50), min_size=count, max_size=count))
    samples = draw(st.lists(ints(1, 1200), min_size=count, max_size=count))
    segment = np.sort(draw(st.lists(ints(1, 3), min_size=count, max_size=count)))
    fate = draw(st.lists(ints(0, 2), min_size=count, max_size=count))
    at = np.cumsum(steps) * MS
    amounts = np.array(samples, np.int64)
    one = np.ones(count, np.int64)
    return Frames(
        at_ns=at,
        until_ns=at + np.array(lengths, np.int64) * MS,
        start_sample=np.cumsum(amounts) - amounts,
        samples=amounts,
        count=one,
        rate_hz=one * 24_000,
        segment=segment.astype(np.int64),
        source=one,
        fate=np.array(fate, np.int64),
        lost=np.where(np.array(fate) > 0, amounts, 0),
    )


@given(rows(), st.integers(0, 200))
def test_from_afar_nothing_is_lost_and_nothing_added(frames: Frames, within_ms: int) -> None:
    coarse = frames.merged(within_ms * MS)
    assert len(coarse) <= len(frames)
    for name in ("samples", "count", "lost"):
        assert getattr(coarse, name).sum() == getattr(frames, name).sum()
    assert (np.diff(coarse.at_ns) >= 0).all()
    # Every frame lies in the row it went into, and rows are apart by more than was asked for
    # unless they are of two kinds.
    row = np.repeat(np.arange(len(coarse)), coarse.count)
    assert (frames.at_ns >= coarse.at_ns[row]).all()
    assert (frames.until_ns <= coarse.until_ns[row]).all()
    for name in ("segment", "fate", "source"):
        assert (getattr(frames, name) == getattr(coarse, name)[row]).all()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4800)), min_size=3, max_size=80))
def test_from_afar_the_queue_keeps_its_highs_and_lows(points: list[tuple[int, int]]) -> None:
    at = np.cumsum([step for step, _ in points]) * MS
    depth = Depth(1, 24_000, 200, at, np.array([samples for _, samples in points], np.int64))
    coarse = depth.merged(100 * MS)
    assert coarse.samples.max() == depth.samples.max()
    assert coarse.samples.min() == depth.samples.min()
    assert coarse.samples[-1] == depth.samples[-1]
    assert (np.diff(coarse.at_ns) >= 0).all()
    assert len(coarse.at_ns) <= 2 * (int(at[-1]) // (100 * MS) + 1) + 1


def test_a_long_call_is_a_few_rows_from_afar(tmp_path: Path) -> None:
    timeline = lay_out(write_hour(tmp_path / "long.jsonl", minutes=5))
    assert len(timeline.captured) == 15_000
    assert len(timeline.captured.merged(100 * MS)) == 5
    gap = replace(timeline.captured, at_ns=timeline.captured.at_ns + TICK)
    assert total(gap.merged(100 * MS)) == total(timeline.captured)
