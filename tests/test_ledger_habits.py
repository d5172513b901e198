"""What a sink does to the audio it hands on: it adds, passes over, changes, reuses a buffer."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.trace.events import Event, FramePushed, SinkHabit
from reports import Analysis, analyze
from tests.ledger_lines import captured, of, only, pushed, sent
from tests.report_traces import Simulation, write
from tests.test_ledger_conservation import QUICK, analysis_of


def analysed(folder: Path, call: Simulation) -> Analysis:
    return analyze(write(folder / "call.jsonl", call.end()))


# --- Added ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_silence_of_the_sinks_own_is_added_and_balances(tmp_path: Path, before: bool) -> None:
    call = Simulation()
    for amount in (0, 960) if before else (960, 0):
        if amount:
            call.capture(amount)
        else:
            call.add(240)
    call.flush()
    call.tick(20)
    analysis = analysed(tmp_path, call)
    segment = only(analysis)
    assert analysis.balanced is True
    assert segment.captured is not None
    assert segment.pushed is not None
    assert segment.sent is not None
    assert (segment.captured.samples, segment.added_samples) == (960, 240)
    assert (segment.pushed.samples, segment.sent.samples) == (1200, 1200)
    assert (segment.dropped_samples, segment.swallowed_samples) == (0, 0)
    assert analysis.totals.added_samples == 240


def test_what_is_added_in_front_of_a_segment_is_of_that_segment(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240, speech="s1"),
        pushed(2, 1, 0, 240),
        captured(50, 2, 240, 240, speech="s2"),
        pushed(51, 2, 240, 480, captured=[(None, 240), (240, 240)], added_samples=240),
        sent(10, 0, 240),
        sent(60, 240, 480),
    )
    assert [segment.added_samples for segment in analysis.segments] == [0, 240]


def test_what_is_added_before_older_audio_is_of_that(tmp_path: Path) -> None:
    # The next segment has begun, but what comes behind the silence is still of the one before.
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480, speech="s1"),
        pushed(2, 1, 0, 240),
        captured(3, 2, 480, 240, speech="s2"),
        pushed(4, 2, 240, 480, captured=[(None, 240), (240, 240)], added_samples=240),
        pushed(5, 3, 720, 240, captured=[(480, 240)]),
        sent(10, 0, 960),
    )
    assert [segment.added_samples for segment in analysis.segments] == [240, 0]


def test_what_is_added_behind_a_segment_is_of_that_segment(
    tmp_path: Path,
) -> None:
    call = Simulation()
    call.capture(1200, "s1")
    call.add(1200)
    call.capture(1200, "s2")
    call.tick(30)
    analysis = analysed(tmp_path, call)
    assert [segment.added_samples for segment in analysis.segments] == [1200, 0]


def test_what_is_added_on_another_source_is_of_the_segment_there(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(1200, "s1")
    call.tick(10)
    call.swap()
    call.add(600)
    call.capture(600, "s2")
    call.tick(10)
    analysis = analysed(tmp_path, call)
    assert [segment.added_samples for segment in analysis.segments] == [0, 600]
    assert analysis.balanced is True


def test_only_so_much_of_a_push_is_added_as_it_says(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 480, captured=[(None, 100), (0, 240), (None, 140)], added_samples=160),
        sent(10, 0, 480),
    )
    assert only(analysis).added_samples == 160
    assert analysis.unaccounted_samples == 80


def test_added_silence_that_was_cleared_is_nothing_swallowed(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(1200)
    call.add(1200)
    call.tick(4)
    call.clear()
    call.tick(20)
    analysis = analysed(tmp_path, call)
    segment = only(analysis)
    assert (segment.cleared_samples, segment.swallowed_samples) == (240 + 1200, 240)
    assert analysis.balanced is True


@QUICK
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["capture", "add", "skip", "tick", "clear", "flush", "pause", "resume"]
            ),
            st.integers(1, 1500),
        ),
        max_size=40,
    )
)
def test_captured_and_added_are_pushed_dropped_and_held(steps: list[tuple[str, int]]) -> None:
    call = Simulation(step_ns=1_037, grid_ns=300)
    for step, amount in steps:
        if step == "tick":
            call.tick(amount // 50 + 1)
        elif step == "skip":
            if call.sink.rest and min(call.sink.rest) >= 0:
                call.skip(min(amount, len(call.sink.rest)))
        elif step == "capture" or (step == "add" and call.captured):
            getattr(call, step)(amount)
        elif step == "add":
            continue
        else:
            getattr(call, step)()
    analysis = analysis_of(call.end())
    assert analysis.unaccounted_because == ()
    for segment, truth in zip(analysis.segments, call.truth, strict=True):
        assert segment.captured is not None
        assert segment.pushed is not None
        assert segment.sent is not None
        assert segment.captured.samples + (segment.added_samples or 0) == (
            segment.pushed.samples + (segment.dropped_samples or 0) + (segment.held_samples or 0)
        )
        assert (segment.dropped_samples, segment.held_samples) == (truth.dropped, truth.held)
    assert analysis.totals.added_samples == sum(truth.added for truth in call.truth)
    assert analysis.totals.sent_samples == sum(truth.sent for truth in call.truth)


# --- Skipped -------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [True, False])
def test_what_the_sink_passes_over_is_dropped_with_its_place_and_time(
    tmp_path: Path, silent: bool
) -> None:
    call = Simulation()
    call.capture(1200)
    call.capture(480)
    call.skip(480, silent=silent)
    skipped_ns = call.now
    call.capture(1200)
    call.tick(20)
    analysis = analysed(tmp_path, call)
    (loss,) = only(analysis).losses
    assert (loss.what, loss.cause, loss.samples) == ("dropped", "skipped", 480)
    assert (loss.start_sample, loss.at_ns) == (1200, skipped_ns)
    assert analysis.balanced is True


# --- Changed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("habit", ["changed", "buffer-reused"])
def test_audio_that_can_not_be_followed_leaves_its_own_segment_unjudged(
    tmp_path: Path, habit: SinkHabit
) -> None:
    call = Simulation()
    call.capture(2400, "s1")
    call.flush()
    call.tick(20)
    call.sink.habit, call.sink.follows = habit, False
    call.capture(2400, "s2")
    call.flush()
    call.tick(20)
    call.sink.habit, call.sink.follows = None, True
    call.capture(2400, "s3")
    call.flush()
    call.tick(20)
    analysis = analysed(tmp_path, call)
    assert analysis.unaccounted_because == ()
    assert [(s.unjoined, s.balanced) for s in analysis.segments] == [
        (None, True),
        (habit, None),
        (None, True),
    ]
    second = analysis.segments[1]
    assert second.resampled is False
    assert (second.dropped_samples, second.held_samples, second.swallowed_samples) == (None,) * 3
    assert second.sent is not None
    assert second.sent.samples == 2400
    told = {each.rule: each.reason for each in analysis.not_judged}
    assert told["swallowed-audio"].startswith("segment 2: the sink ")


@pytest.mark.parametrize("habit", ["gain", "noise", "added", "buffer-reused"])
def test_audio_that_was_followed_is_judged_whatever_the_habit(
    tmp_path: Path, habit: SinkHabit
) -> None:
    call = Simulation()
    call.sink.habit = habit
    call.capture(2400)
    call.flush()
    call.tick(20)
    analysis = analysed(tmp_path, call)
    assert (analysis.balanced, only(analysis).unjoined) == (True, None)


def test_an_unknown_push_without_a_habit_is_still_unaccounted(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(2400)
    call.tick(20)
    events: list[Event] = [
        dataclasses.replace(e, captured=[(None, e.samples)]) if isinstance(e, FramePushed) else e
        for e in call.end()
    ]
    analysis = analyze(write(tmp_path / "call.jsonl", events))
    assert analysis.balanced is False
