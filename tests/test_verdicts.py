"""Whose pause it was, and what was no barge-in at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probe.trace.events import (
    CallerLeft,
    Event,
    FrameCaptured,
    FramePushed,
    HandedOver,
    InterruptCalled,
    OverlapJudged,
    RunSent,
    SessionClosed,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
)
from reports import Analysis, BargeIn, analyze, summarize
from reports.assertions.evaluation import check
from reports.compare.measures import MEASURES
from reports.compare.runs import leaked_ms, outcome_of
from reports.show import terminal
from tests.report_traces import MS, taps, write
from tests.test_barge_ins import cleared, commit, mark, of, only, reply, user

# --- What is no barge-in -----------------------------------------------------------------------


def ended(folder: Path, *events: Event, at_ms: float = 200) -> Analysis:
    return of(
        folder,
        *reply(sent_ms=250),
        *events,
        *commit(at_ms, "programmatic"),
        mark(at_ms + 1, "clear"),
        cleared(259),
    )


@pytest.mark.parametrize(
    ("outcome", "events"),
    [
        ("closed", [SessionClosed(199 * MS, "user_initiated")]),
        ("hung-up", [SessionClosed(199 * MS, "participant_disconnected")]),
        ("hung-up", [CallerLeft(150 * MS), SessionClosed(199 * MS, "error")]),
        ("handed-over", [HandedOver(195 * MS, 1, 2)]),
        ("handed-over", [HandedOver(209 * MS, 1, 2)]),
    ],
)
def test_what_ends_a_speech_without_a_caller_is_no_barge_in(
    tmp_path: Path, outcome: str, events: list[Event]
) -> None:
    analysis = ended(tmp_path, *events)
    barge_in = only(analysis)
    assert barge_in.outcome == outcome
    assert not barge_in.counts
    assert "that is no barge-in" in barge_in.explanation
    assert analysis.counted == ()
    assert [f.rule for f in analysis.findings] == []
    summary = summarize([analysis])
    assert summary.barge_ins == 0
    assert summary.leaked["sent"] is None
    assert leaked_ms(analysis) is None
    assert outcome_of(analysis) == "no barge-in"


@pytest.mark.parametrize(
    "events",
    [
        [],
        [SessionClosed(900 * MS, "user_initiated")],
        [CallerLeft(900 * MS)],
        [HandedOver(800 * MS, 1, 2)],
    ],
)
def test_what_comes_long_after_a_barge_in_does_not_explain_it(
    tmp_path: Path, events: list[Event]
) -> None:
    assert only(ended(tmp_path, *events)).outcome == "committed"


def test_a_caller_who_interrupts_and_leaves_has_interrupted(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=250),
        user(150, True),
        mark(200, "pause"),
        *commit(240),
        mark(241, "clear"),
        cleared(259),
        CallerLeft(230 * MS),
        SessionClosed(239 * MS, "participant_disconnected"),
    )
    assert only(analysis).outcome == "committed"
    assert analysis.counted == analysis.barge_ins


@pytest.mark.parametrize("event", [CallerLeft(199 * MS), CallerLeft(200 * MS + 1)])
def test_a_caller_who_is_gone_interrupts_nothing_though_the_session_stays(
    tmp_path: Path, event: Event
) -> None:
    assert only(ended(tmp_path, event)).outcome == "hung-up"


def test_a_caller_who_spoke_after_one_had_left_is_there(tmp_path: Path) -> None:
    events = [CallerLeft(100 * MS), user(150, True), user(210, False)]
    assert only(ended(tmp_path, *events)).outcome == "committed"


def test_a_pause_on_suspicion_is_no_verdict_where_the_closing_ends_the_speech(
    tmp_path: Path,
) -> None:
    barge_in = only(
        ended(tmp_path, user(90, True), mark(100, "pause"), SessionClosed(199 * MS), at_ms=200)
    )
    assert barge_in.outcome == "closed"
    assert (barge_in.verdict_ns, barge_in.leaked, barge_in.causes) == (None, None, None)
    assert (barge_in.pause_ns, barge_in.onset_ns) == (100 * MS, 90 * MS)
    assert [moment.event for moment in barge_in.story if "closing" in moment.event] == [
        "commit: the closing of the session ends the speech"
    ]


def test_a_verdict_that_came_before_the_closing_stands(tmp_path: Path) -> None:
    barge_in = only(
        ended(
            tmp_path,
            user(90, True),
            OverlapJudged(120 * MS, True, "s1"),
            SessionClosed(199 * MS),
        )
    )
    assert (barge_in.outcome, barge_in.verdict_kind) == ("committed", "overlap")


def test_what_the_new_agent_says_is_not_ended_by_the_handover(tmp_path: Path) -> None:
    for created_ns, outcome in ((100_000, "handed-over"), (100_001, "committed")):
        events = [replace(e, at_ns=created_ns) if isinstance(e, SpeechCreated) else e
                  for e in reply(sent_ms=250)]  # fmt: skip
        events += [HandedOver(100_000, 1, 2), *commit(200, "programmatic")]
        analysis = of(tmp_path, *events, mark(201, "clear"), cleared(259))
        assert only(analysis).outcome == outcome


def test_what_is_no_barge_in_has_to_be_asked_for(tmp_path: Path) -> None:
    analysis = ended(tmp_path, SessionClosed(199 * MS, "user_initiated"))
    assert check(analysis, "barge_ins == 0").holds is True
    assert check(analysis, "leaked.sent < 1ms").holds is False, "there is no barge-in"
    assert check(analysis, "#closed after_commit.sent < 1s").holds is True
    assert check(analysis, "#1 outcome == closed").holds is True


def test_what_is_left_out_of_a_summary_is_counted_apart(tmp_path: Path) -> None:
    silent: list[Event] = [
        SpeechCreated(300 * MS, "s2", "say"),
        InterruptCalled(310 * MS, "s2", "activity"),
        SpeechCommitted(310 * MS + 100, "s2"),
    ]
    analysis = of(
        tmp_path,
        *reply(sent_ms=250),
        *commit(200, "activity"),
        mark(201, "clear"),
        cleared(259),
        *silent,
        SpeechCreated(400 * MS, "s3", "say"),
        SessionClosed(410 * MS),
        *commit(410.1, "programmatic", "s3"),
    )
    assert [b.outcome for b in analysis.barge_ins] == ["committed", "committed", "closed"]
    assert [b.has_audio for b in analysis.barge_ins] == [True, False, False]
    summary = summarize([analysis])
    assert (summary.barge_ins, dict(summary.outcomes)) == (1, {"committed": 1})
    assert dict(summary.left_out) == {"closed": 1, "without audio": 1}
    assert summary.leaked["sent"] is not None
    assert (summary.leaked["sent"].count, summary.leaked["sent"].median_ns) == (1, 60 * MS)
    (leaked,) = [measure for measure in MEASURES if measure.name == "leaked-sent"]
    assert leaked.of(analysis) == 60, "a mean over the one that could leak"
    assert outcome_of(analysis) == "committed, committed"
    text = terminal.render([analysis])
    assert "left out" in text
    assert "1 closed, 1 without audio" in text


# --- Whose pause it was --------------------------------------------------------------------------


def swapped(folder: Path, *, sinks: bool, pushed_later: bool, paused: int = 2) -> BargeIn:
    """A reply on a source under sink 1; another sink is set, and a pause goes to one of them.

    400 ms of audio leave from 10 ms on, pushed before the pause at 200 ms or after it.
    """
    second = FramePushed(
        (210 if pushed_later else 3) * MS, 2, 1, 4800, 4800, 24_000, 1,
        captured=[(4800, 4800)], end="returned", ended_ns=220 * MS,
    )  # fmt: skip
    other = FramePushed(
        500 * MS, 3, 2, 9600, 240, 24_000, 1, captured=[(9600, 240)], end="returned",
        ended_ns=501 * MS,
    )  # fmt: skip
    events: list[Event] = [
        *taps(sink=1 if sinks else None),
        *taps(source=2, sink=2 if sinks else None)[1:],
        SpeechCreated(0, "s1", "say"),
        SpeechCreated(0, "s2", "say"),
        FrameCaptured(MS, 1, 0, 9600, 24_000, 1, "s1", "returned", 2 * MS),
        FramePushed(
            2 * MS, 1, 1, 0, 4800, 24_000, 1, captured=[(0, 4800)], end="returned",
            ended_ns=3 * MS,
        ),
        second,
        RunSent(10 * MS, 210 * MS, 1, 0, 4800),
        RunSent(210 * MS, 410 * MS, 1, 4800, 4800),
        SinkMarked(
            200 * MS, "pause", "s1", ended_ns=200 * MS, sink=paused if sinks else None
        ),
        *commit(390),
        SpeechDone(480 * MS, "s1", interrupted=True),
        FrameCaptured(499 * MS, 2, 9600, 240, 24_000, 1, "s2", "returned", 501 * MS),
        other,
        RunSent(510 * MS, 520 * MS, 2, 9600, 240),
        SpeechDone(600 * MS, "s2"),
    ]  # fmt: skip
    analysis = analyze(write(folder / "call.jsonl", events))
    return next(b for b in analysis.barge_ins if b.speech_id == "s1")


def causes(barge_in: BargeIn) -> dict[str, int]:
    assert barge_in.causes is not None
    return {cause.cause: cause.samples for cause in barge_in.causes}


def test_a_pause_of_another_sink_stops_nothing(tmp_path: Path) -> None:
    barge_in = swapped(tmp_path, sinks=True, pushed_later=False)
    assert causes(barge_in) == {"not-stopped": 5040}


def test_a_pause_of_its_own_sink_lets_the_queue_play_on(tmp_path: Path) -> None:
    barge_in = swapped(tmp_path, sinks=True, pushed_later=False, paused=1)
    assert causes(barge_in) == {"queue-played-on": 5040}


def test_what_was_pushed_after_a_pause_was_not_stopped_by_it(tmp_path: Path) -> None:
    barge_in = swapped(tmp_path, sinks=True, pushed_later=True, paused=1)
    assert causes(barge_in) == {"queue-played-on": 240, "not-stopped": 4800}


def test_where_marks_do_not_say_whose_they_are_the_cause_is_not_known(tmp_path: Path) -> None:
    """Of a trace from before sinks had numbers, with two of them: no fault, and no guess."""
    barge_in = swapped(tmp_path, sinks=False, pushed_later=False)
    assert causes(barge_in) == {"not-known": 5040}
    assert "can't be told whether their sink had been stopped" in barge_in.explanation


def test_even_then_what_was_pushed_after_a_pause_was_not_stopped_by_it(tmp_path: Path) -> None:
    barge_in = swapped(tmp_path, sinks=False, pushed_later=True)
    assert causes(barge_in) == {"not-known": 240, "not-stopped": 4800}
