"""What is summed or compared is so per source: sinks get swapped in the middle of a speech."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.trace.events import (
    Event,
    FramePushed,
    InterruptCalled,
    QueueCleared,
    SilenceInserted,
    SpeechCommitted,
    SpeechCreated,
)
from reports import Analysis, analyze
from tests.report_traces import TICK, Simulation, taps, write
from tests.test_ledger_conservation import QUICK, analysis_of


def speech_over_two_sources(*, read: bool, numbered: bool = False) -> Simulation:
    """50 ms of a speech into one source, 200 ms into another; then the caller barges in."""
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=numbered)
    call.happens(SpeechCreated, "s1")
    call.capture(1200)
    call.tick(10)
    call.swap(read=read)
    call.capture(4800)
    call.tick(2)
    call.user(True)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    call.tick(4)
    call.clear()
    call.tick(20)
    return call


def test_a_speech_that_went_where_nobody_read_has_no_leak_at_sent(tmp_path: Path) -> None:
    call = speech_over_two_sources(read=False)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (barge_in,) = analysis.barge_ins
    assert call.truth[0].sent == 1200 + 6 * 240, "it did leak, where nobody looked"
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is None
    assert barge_in.leaked["pushed"] is not None
    assert (barge_in.unseen, barge_in.remaining, barge_in.stop_ns) == ("source-unread", None, None)
    assert barge_in.outcome == "committed"
    assert "a source whose wire nobody read" in barge_in.explanation
    assert analysis.balanced is None
    assert analysis.segments[0].balanced is None
    assert analysis.totals.unknown_samples == 4800


def test_the_same_speech_is_judged_where_both_are_read(tmp_path: Path) -> None:
    call = speech_over_two_sources(read=True)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (barge_in,) = analysis.barge_ins
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is not None
    assert barge_in.leaked["sent"].samples == 4 * 240
    assert barge_in.unseen is None
    assert analysis.balanced is True


def test_a_head_that_nobody_read_is_out_when_what_came_behind_it_is_seen_to_leave(
    tmp_path: Path,
) -> None:
    # The wire is opened after the first push: its samples can't be told from silence, but they
    # were out long before the verdict.
    call = Simulation()
    call.happens(SpeechCreated, "s1")
    source = call.sink.source
    source.read = False
    call.events = [e for e in call.events if getattr(e, "boundary", "") != "sent"]
    call.capture(1200)
    call.tick(2)
    call.events.append(taps(at_ns=call.now)[2])
    call.tick(10)
    source.silent, source.read = 0, True
    call.capture(9600)
    call.tick(10)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    call.tick(2)
    call.clear()
    call.tick(20)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (barge_in,) = analysis.barge_ins
    assert analysis.segments[0].unknown_samples == 1200
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is not None
    assert barge_in.leaked["sent"].samples == 480


def test_silence_of_a_source_is_inserted_only_where_its_own_audio_frames_it(
    tmp_path: Path,
) -> None:
    # The old source goes on putting out silence while the new one sends, without a gap.
    call = Simulation()
    call.capture(2400)
    call.tick(10)
    call.swap()
    for _ in range(40):
        call.capture(480)
        call.tick(2)
    call.flush()
    call.tick(20)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (segment,) = analysis.segments
    assert segment.inserted_samples == 0
    assert analysis.balanced is True


def test_audio_of_another_source_in_between_is_no_gap(tmp_path: Path) -> None:
    # A long run on one source, a short one on the other that ends before it.
    call = Simulation(queue_ms=1000)
    call.capture(6000)
    call.swap()
    call.capture(480)
    call.flush()
    call.tick(40)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (segment,) = analysis.segments
    assert segment.gaps == ()


def test_the_gap_of_a_segment_begins_where_the_last_of_it_had_left(tmp_path: Path) -> None:
    call = Simulation(queue_ms=1000)
    call.capture(6000)
    call.swap()
    call.capture(1200)
    call.tick(40)
    call.capture(1200)
    call.tick(10)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    assert [(g.at_ns, g.ns) for g in analysis.segments[0].gaps] == [(26 * TICK, 15 * TICK)]


# --- Refused pushes ------------------------------------------------------------------------------


@pytest.mark.parametrize("keeps_room", [False, True])
def test_a_refused_push_may_keep_its_positions(tmp_path: Path, keeps_room: bool) -> None:
    call = Simulation()
    source = call.sink.source
    call.capture(1200)
    source.refuses, source.keeps_room = True, keeps_room
    call.capture(1200)
    source.refuses = False
    call.capture(1200)
    call.tick(20)
    events = call.end()
    assert [e.start_sample for e in events if isinstance(e, FramePushed)] == [
        0,
        1200,
        2400 if keeps_room else 1200,
    ]
    analysis = analyze(write(tmp_path / "call.jsonl", events))
    assert analysis.trace.problems == ()
    assert analysis.unaccounted_because == ()
    assert analysis.balanced is True
    (loss,) = analysis.segments[0].losses
    assert (loss.cause, loss.start_sample, loss.samples) == ("refused", 1200, 1200)


# --- Causes --------------------------------------------------------------------------------------


def test_a_clear_of_another_source_takes_nothing(tmp_path: Path) -> None:
    call = speech_over_two_sources(read=True)
    events = [
        dataclasses.replace(e, source=1) if isinstance(e, QueueCleared) else e for e in call.end()
    ]
    analysis = analyze(write(tmp_path / "call.jsonl", events))
    assert analysis.balanced is False
    assert analysis.segments[0].cleared_samples == 0


def paused_at(sink: int, folder: Path) -> Analysis:
    """Frames vanish from the second of two sinks while the gate of one of them is shut."""
    call = Simulation(numbered=True, discards_behind_gate=True)
    first = call.sink
    second = call.swap()
    call.capture(1200, sink=first)
    call.capture(1200, sink=second)
    call.tick(10)
    call.pause(sink=second)
    call.capture(2400, sink=second)
    call.tick(5)
    call.resume(sink=second)
    call.tick(20)
    numbers = {second.number: sink}
    events: list[Event] = [
        dataclasses.replace(e, sink=numbers.get(e.sink, e.sink)) if e.NAME == "mark" else e  # type: ignore[union-attr,call-arg]
        for e in call.end()
    ]
    return analyze(write(folder / "call.jsonl", events))


def test_a_pause_drops_what_waited_in_its_own_sink(tmp_path: Path) -> None:
    analysis = paused_at(2, tmp_path)
    assert analysis.balanced is True
    assert [loss.cause for loss in analysis.segments[0].losses] == ["pause"]


def test_a_pause_of_another_sink_drops_nothing(tmp_path: Path) -> None:
    analysis = paused_at(1, tmp_path)
    assert [loss.cause for loss in analysis.segments[0].losses] == ["source-cleared"]


MARKS = st.sampled_from(["pause", "resume", "clear", "flush"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("capture"), st.integers(1, 2500), st.integers(0, 1)),
        st.tuples(st.just("tick"), st.integers(1, 30), st.just(0)),
        st.tuples(MARKS, st.just(0), st.integers(0, 1)),
    ),
    max_size=40,
)


def take(call: Simulation, steps: list[tuple[str, int, int]]) -> None:
    for step, amount, nth in steps:
        sink = call.sinks[nth % len(call.sinks)]
        if step == "capture":
            call.capture(amount, sink=sink)
        elif step == "tick":
            call.tick(amount)
        else:
            getattr(call, step)(sink=sink)


@QUICK
@given(STEPS, st.booleans())
def test_what_two_sources_were_given_is_counted_on_each(
    steps: list[tuple[str, int, int]], numbered: bool
) -> None:
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=numbered)
    call.swap(rate_hz=48_000)
    take(call, steps)
    events = call.end()
    analysis = analysis_of(events)
    assert analysis.trace.problems == ()
    silence = sum(event.samples for event in events if isinstance(event, SilenceInserted))
    for segment, truth in zip(analysis.segments, call.truth, strict=True):
        assert segment.pushed is not None
        assert segment.sent is not None
        assert (segment.pushed.samples, segment.sent.samples) == (truth.pushed, truth.sent)
        assert (segment.cleared_samples, segment.queued_samples) == (truth.cleared, truth.queued)
        assert (segment.inserted_samples or 0) <= silence
    assert analysis.totals.sent_samples == sum(truth.sent for truth in call.truth)


@QUICK
@given(STEPS, STEPS, st.booleans())
def test_a_call_whose_sink_is_swapped_balances(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], numbered: bool
) -> None:
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=numbered)
    take(call, before)
    call.swap(rate_hz=48_000)
    take(call, [(step, amount, nth if step != "capture" else 1) for step, amount, nth in after])
    analysis = analysis_of(call.end())
    assert analysis.unaccounted_because == ()
    assert analysis.balanced is True
