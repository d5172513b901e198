"""The law of conservation: whatever a call does, every sample has its place, and no false one."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe.trace.events import Event, FramePushed, QueueCleared, RunSent
from reports import Analysis, analyze
from tests.report_traces import Simulation, write

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("capture"), st.integers(1, 2500)),
        st.tuples(st.just("tick"), st.integers(1, 30)),
        st.tuples(st.just("pause"), st.just(0)),
        st.tuples(st.just("resume"), st.just(0)),
        st.tuples(st.just("clear"), st.integers(0, 2)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("speech"), st.integers(1, 3)),
    ),
    max_size=40,
)
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def simulate(steps: list[tuple[str, int]], **settings: Any) -> tuple[Simulation, list[Event]]:
    call = Simulation(**settings)
    speech = "s1"
    for step, amount in steps:
        if step == "capture":
            call.capture(amount, speech)
        elif step == "tick":
            call.tick(amount)
        elif step == "clear":
            call.clear(amount)
        elif step == "speech":
            speech = f"s{amount}"
        else:
            getattr(call, step)()
    return call, call.end()


def analysis_of(events: Sequence[Event]) -> Analysis:
    with tempfile.TemporaryDirectory() as folder:
        return analyze(write(Path(folder) / "call.jsonl", events))


@QUICK
@given(STEPS, st.sampled_from([8_000, 22_050, 24_000, 48_000]), st.booleans())
def test_random_captures_pauses_clears_and_resumes_always_balance(
    steps: list[tuple[str, int]], rate_hz: int, discards: bool
) -> None:
    call, events = simulate(steps, rate_hz=rate_hz, discards_behind_gate=discards)
    analysis = analysis_of(events)
    assert analysis.unaccounted_because == ()
    assert analysis.balanced is True
    assert len(analysis.segments) == len(call.truth)
    for segment, truth in zip(analysis.segments, call.truth, strict=True):
        assert segment.captured is not None
        assert segment.pushed is not None
        assert segment.sent is not None
        assert {
            "captured": segment.captured.samples,
            "pushed": segment.pushed.samples,
            "sent": segment.sent.samples,
            "dropped": segment.dropped_samples,
            "held": segment.held_samples,
            "cleared": segment.cleared_samples,
            "queued": segment.queued_samples,
            "added": 0,
        } == dataclasses.asdict(truth)
        assert segment.captured.samples == (
            segment.pushed.samples + (segment.dropped_samples or 0) + (segment.held_samples or 0)
        )
        assert segment.pushed.samples == (
            segment.sent.samples + (segment.cleared_samples or 0) + (segment.queued_samples or 0)
        )
        assert sum(loss.samples for loss in segment.losses) == (truth.dropped + truth.cleared), (
            "every lost sample has a cause and a position"
        )


@QUICK
@given(STEPS)
def test_totals_are_the_sums_of_the_segments(steps: list[tuple[str, int]]) -> None:
    _, events = simulate(steps)
    analysis = analysis_of(events)
    for name in ("captured", "pushed", "sent"):
        amounts = [getattr(segment, name).samples for segment in analysis.segments]
        assert getattr(analysis.totals, f"{name}_samples") == sum(amounts)
    for name in ("dropped", "held", "cleared", "queued", "swallowed"):
        figures = [getattr(segment, f"{name}_samples") for segment in analysis.segments]
        assert getattr(analysis.totals, f"{name}_samples") == sum(figures)


def whole_call() -> list[Event]:
    """Two replies, the first interrupted, and silence after them that proves the queue empty."""
    call = Simulation()
    for _ in range(50):
        call.capture(480, "s1")
    call.tick(20)
    call.pause()
    call.tick(5)
    call.clear()
    call.resume()
    for _ in range(20):
        call.capture(480, "s2")
    call.flush()
    call.tick(80)
    return call.end()


def without(events: list[Event], nth: int, kind: type[Event]) -> list[Event]:
    victims = [event for event in events if isinstance(event, kind)]
    return [event for event in events if event is not victims[nth]]


def changed(events: list[Event], nth: int, kind: type[Event], **fields: Any) -> list[Event]:
    victim = [event for event in events if isinstance(event, kind)][nth]
    return [dataclasses.replace(event, **fields) if event is victim else event for event in events]


def test_the_uncorrupted_call_balances() -> None:
    assert analysis_of(whole_call()).balanced is True


@pytest.mark.parametrize("nth", [0, 3, -1])
def test_a_lost_push_line_never_balances(nth: int) -> None:
    analysis = analysis_of(without(whole_call(), nth, FramePushed))
    assert analysis.balanced is not True


@pytest.mark.parametrize("nth", [0, 3, -1])
def test_a_push_that_was_left_out_and_numbered_over_is_unaccounted(nth: int) -> None:
    # No gap in the numbers shows it: positions do, or the balance.
    events: list[Event] = []
    number = 0
    for event in without(whole_call(), nth, FramePushed):
        if isinstance(event, FramePushed):
            number += 1
            event = dataclasses.replace(event, push=number)
        events.append(event)
    analysis = analysis_of(events)
    assert analysis.balanced is not True
    assert analysis.unaccounted_because or analysis.trace.incomplete_because


@pytest.mark.parametrize("nth", [0, 1, -1])
def test_a_lost_sent_run_is_unaccounted(nth: int) -> None:
    analysis = analysis_of(without(whole_call(), nth, RunSent))
    assert analysis.balanced is False
    assert analysis.unaccounted_samples


@pytest.mark.parametrize("nth", [0, 1, -1])
def test_a_run_sent_twice_is_unaccounted(nth: int) -> None:
    events = whole_call()
    run = [event for event in events if isinstance(event, RunSent)][nth]
    length = run.until_ns - run.at_ns
    again = dataclasses.replace(run, at_ns=run.until_ns, until_ns=run.until_ns + length)
    analysis = analysis_of([*events, again])
    assert analysis.balanced is not True
    assert any("twice" in text for text in analysis.trace.incomplete_because)


@pytest.mark.parametrize("by", [-37, 41])
def test_a_shifted_run_is_unaccounted(by: int) -> None:
    events = whole_call()
    run = [event for event in events if isinstance(event, RunSent)][1]
    assert run.start_sample is not None
    analysis = analysis_of(changed(events, 1, RunSent, start_sample=run.start_sample + by))
    assert analysis.balanced is not True
    assert analysis.unaccounted_because


@pytest.mark.parametrize("by", [-37, 41])
def test_a_push_made_of_other_samples_is_unaccounted(by: int) -> None:
    events = whole_call()
    push = [event for event in events if isinstance(event, FramePushed)][3]
    assert push.captured is not None
    start, samples = push.captured[0]
    assert start is not None
    analysis = analysis_of(changed(events, 3, FramePushed, captured=[(start + by, samples)]))
    assert analysis.balanced is False


def test_a_push_twice_from_the_same_samples_is_unaccounted() -> None:
    events = whole_call()
    push = [event for event in events if isinstance(event, FramePushed)][2]
    analysis = analysis_of(changed(events, 3, FramePushed, captured=push.captured))
    assert analysis.balanced is False


def test_a_queue_emptied_without_a_clear_is_unaccounted() -> None:
    events = [event for event in whole_call() if not isinstance(event, QueueCleared)]
    analysis = analysis_of(events)
    assert analysis.balanced is False
    assert any("no clear" in text for text in analysis.unaccounted_because)


def test_a_clear_that_failed_accounts_for_nothing() -> None:
    events = [
        dataclasses.replace(event, error="RuntimeError")
        if isinstance(event, QueueCleared)
        else event
        for event in whole_call()
    ]
    assert analysis_of(events).balanced is False
