"""Each word about barge-ins, proven on a trace written by hand. 24 kHz, blocks of 240 samples.

The reply of 0.5 s is pushed at once at 1 ms and would be sent from 10 ms to 510 ms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    Event,
    FalseInterruption,
    FrameCaptured,
    FramePushed,
    InterruptCalled,
    LoopStalled,
    MarkName,
    OptionsChanged,
    OverlapJudged,
    QueueCleared,
    RunSent,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
    TranscriptReceived,
)
from reports import Analysis, BargeIn, Leak, analyze
from reports.units import time_ms
from tests.report_traces import MS, Simulation, taps, write


def reply(*, sent_ms: int, speech: str = "s1") -> list[Event]:
    """A reply of 500 ms in one push, of which ``sent_ms`` leave from 10 ms on."""
    return [
        SpeechCreated(0, speech, "say", user_initiated=False, allow_interruptions=True),
        FrameCaptured(MS, 1, 0, 12_000, 24_000, 1, speech, "returned", MS + 1000),
        FramePushed(
            MS + 2000,
            1,
            1,
            0,
            12_000,
            24_000,
            1,
            captured=[(0, 12_000)],
            end="returned",
            ended_ns=MS + 3000,
        ),
        *(
            RunSent((10 + begin) * MS, (10 + end) * MS, 1, begin * 24, (end - begin) * 24)
            for begin in range(0, sent_ms, 200)
            for end in [min(begin + 200, sent_ms)]
        ),
    ]


def mark(at_ms: float, name: MarkName, speech: str | None = "s1") -> SinkMarked:
    return SinkMarked(int(at_ms * MS), name, speech, ended_ns=int(at_ms * MS) + 1000)


def cleared(at_ms: float) -> QueueCleared:
    return QueueCleared(int(at_ms * MS), 1, ended_ns=int(at_ms * MS) + 1000)


def user(at_ms: float, speaking: bool) -> StateChanged:
    new = "speaking" if speaking else "listening"
    return StateChanged(int(at_ms * MS), "user", "", new)


def commit(at_ms: float, by: Any = "transcript", speech: str = "s1") -> list[Event]:
    at = int(at_ms * MS)
    return [InterruptCalled(at, speech, by), SpeechCommitted(at + 100, speech)]


def of(folder: Path, *events: Event, tapped: list[Event] | None = None) -> Analysis:
    return analyze(write(folder / "call.jsonl", [*(taps() if tapped is None else tapped), *events]))


def only(analysis: Analysis) -> BargeIn:
    (barge_in,) = analysis.barge_ins
    return barge_in


def leak(barge_in: BargeIn, boundary: str = "sent") -> Leak:
    assert barge_in.leaked is not None
    found = barge_in.leaked[boundary]
    assert found is not None
    return found


# --- The verdict, by precedence ------------------------------------------------------------------


def test_the_models_verdict_comes_before_all_others(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(100, True),
            mark(150, "pause"),
            OverlapJudged(200 * MS, True, "s1"),
            *commit(240),
            mark(241, "clear"),
            cleared(259),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("overlap", 200.0)
    assert (
        time_ms(barge_in.onset_ns),
        time_ms(barge_in.pause_ns),
        time_ms(barge_in.commit_ns),
    ) == (100.0, 150.0, 240.0)
    assert (time_ms(barge_in.clear_ns), time_ms(barge_in.source_clear_ns)) == (241.0, 259.0)
    assert barge_in.outcome == "committed"
    assert leak(barge_in).ms == 60.0
    assert time_ms(barge_in.stop_ns) == 50.0


def test_a_judgement_that_it_is_no_interruption_is_no_verdict(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=500),
        user(100, True),
        OverlapJudged(200 * MS, False, "s1"),
        user(300, False),
    )
    assert only(analysis).outcome == "ignored"


def test_a_pause_whose_speech_is_committed_later_is_the_verdict(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(100, True),
            mark(150, "pause"),
            TranscriptReceived(240 * MS, True, 10, 2),
            *commit(240.2),
            mark(241, "clear"),
            cleared(259),
            mark(261, "resume"),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("activity", 150.0)
    assert barge_in.outcome == "committed"
    assert time_ms(barge_in.resume_ns) == 261.0
    assert leak(barge_in).ms == 110.0


def test_activity_that_cuts_at_once_is_the_call(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=200),
            user(195, True),
            *commit(200, "activity"),
            mark(200.5, "clear"),
            cleared(201),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("activity", 200.0)
    assert barge_in.pause_ns is None
    assert leak(barge_in).samples == 240


def test_a_transcript_that_commits_an_unpaused_speech_is_the_verdict(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=200),
            user(100, True),
            TranscriptReceived(199 * MS, True, 10, 2),
            *commit(200, "transcript"),
            mark(200.5, "clear"),
            cleared(209),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("transcript", 200.0)


def test_code_that_interrupts_is_programmatic_and_has_no_onset(tmp_path: Path) -> None:
    ignored, barge_in = of(
        tmp_path,
        *reply(sent_ms=200),
        user(20, True),
        user(60, False),
        *commit(200, "programmatic"),
        mark(201, "clear"),
        cleared(209),
    ).barge_ins
    assert ignored.outcome == "ignored", "what the caller said long before is another matter"
    assert (barge_in.verdict_kind, time_ms(barge_in.onset_ns)) == ("programmatic", None)


@pytest.mark.parametrize(
    ("speaking", "final", "kind"),
    [(True, False, "activity"), (True, True, "transcript"), (False, False, "programmatic")],
)
def test_who_interrupted_is_inferred_where_the_release_does_not_say(
    tmp_path: Path, speaking: bool, final: bool, kind: str
) -> None:
    events: list[Event] = [user(100, True)] if speaking else []
    if final:
        events.append(TranscriptReceived(190 * MS, True, 10, 2))
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=200),
            *events,
            *commit(200, None),
            mark(201, "clear"),
            cleared(209),
        )
    )
    assert barge_in.verdict_kind == kind


def test_the_verdict_is_never_later_than_the_commit(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            *commit(200, "activity"),
            OverlapJudged(220 * MS, True, "s1"),
            mark(201, "clear"),
            cleared(259),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("activity", 200.0)


def test_a_call_that_raised_is_no_verdict(tmp_path: Path) -> None:
    analysis = of(
        tmp_path, *reply(sent_ms=500), InterruptCalled(100 * MS, "s1", "programmatic", end="raised")
    )
    assert analysis.barge_ins == ()


def test_a_verdict_without_a_speech_is_no_barge_in(tmp_path: Path) -> None:
    analysis = of(tmp_path, *reply(sent_ms=500), OverlapJudged(700 * MS, True, None))
    assert analysis.barge_ins == ()


# --- Outcomes ------------------------------------------------------------------------------------


def test_a_pause_that_ends_in_a_resume_is_no_verdict(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=500),
            user(95, True),
            mark(100, "pause"),
            user(120, False),
            mark(300, "resume"),
            FalseInterruption(300 * MS + 5000, True),
        )
    )
    assert barge_in.outcome == "resumed"
    assert barge_in.verdict_ns is None
    assert barge_in.verdict_kind is None
    assert barge_in.leaked is None
    assert barge_in.causes is None
    assert barge_in.stop_ns is None
    assert barge_in.after_pause is not None
    assert "no leak" in barge_in.explanation or "nothing is counted" in barge_in.explanation


def test_a_confirmed_verdict_that_is_let_lapse_says_so_and_counts_the_whole_rest(
    tmp_path: Path,
) -> None:
    barge_in = only(
        of(
            tmp_path,
            OptionsChanged(0, {"false_interruption_timeout_s": 0.1}),
            *reply(sent_ms=500),
            user(95, True),
            mark(100, "pause"),
            OverlapJudged(150 * MS, True, "s1"),
            mark(250, "resume"),
            FalseInterruption(250 * MS + 5000, True),
            SpeechDone(520 * MS, "s1"),
        )
    )
    assert (barge_in.verdict_kind, barge_in.outcome) == ("overlap", "resumed")
    assert leak(barge_in).ms == 360.0
    assert barge_in.remaining is not None
    assert barge_in.remaining.ms == 360.0
    assert barge_in.causes is not None
    assert {c.cause: c.ms for c in barge_in.causes} == {"queue-played-on": 100.0, "resumed": 260.0}
    text = barge_in.explanation
    assert "150.0 ms" in text
    assert "250.0 ms" in text
    assert "360.0 ms (8640 samples) of 360.0 ms (8640 samples)" in text
    assert "The model had decided, and no final transcript followed" in text
    assert "confirmed" not in text
    assert "false_interruption_timeout 0.1 s" in text
    assert "no accident of timing" in text


def test_a_resume_that_only_opens_the_gate_after_the_commit_is_none(tmp_path: Path) -> None:
    # The commit is seen on another task, after the gate was opened for the next reply.
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(90, True),
            mark(100, "pause"),
            InterruptCalled(240 * MS, "s1", "transcript"),
            mark(240.1, "resume"),
            SpeechCommitted(240 * MS + 200_000, "s1"),
            mark(241, "clear"),
            cleared(259),
        )
    )
    assert (barge_in.verdict_kind, barge_in.outcome) == ("activity", "committed")
    assert time_ms(barge_in.verdict_ns) == 100.0
    assert time_ms(barge_in.clear_ns) == 241.0


def test_a_resume_long_before_the_commit_is_one(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=400),
        user(90, True),
        mark(100, "pause"),
        user(110, False),
        mark(200, "resume"),
        *commit(400, "programmatic"),
        mark(401, "clear"),
        cleared(409),
    )
    first, second = analysis.barge_ins
    assert (first.outcome, time_ms(first.verdict_ns)) == ("resumed", None)
    assert (second.outcome, second.verdict_kind) == ("committed", "programmatic")


def test_a_verdict_with_nothing_left_to_stop_is_finished(tmp_path: Path) -> None:
    barge_in = only(of(tmp_path, *reply(sent_ms=500), *commit(600, "programmatic")))
    assert barge_in.outcome == "finished"
    assert leak(barge_in).samples == 0
    assert time_ms(barge_in.stop_ns) == 0.0


def test_the_caller_over_the_agent_without_pause_or_verdict_is_ignored(tmp_path: Path) -> None:
    barge_in = only(of(tmp_path, *reply(sent_ms=500), user(100, True), user(200, False)))
    assert barge_in.outcome == "ignored"
    assert barge_in.leaked is None
    assert barge_in.over_caller is not None
    assert barge_in.over_caller["sent"] is not None
    assert barge_in.over_caller["sent"].ms == 100.0
    assert barge_in.after_onset is not None
    assert barge_in.after_onset["sent"] is not None
    assert barge_in.after_onset["sent"].ms == 410.0


def test_a_caller_who_speaks_when_nothing_is_sent_is_no_barge_in(tmp_path: Path) -> None:
    assert of(tmp_path, *reply(sent_ms=500), user(600, True), user(700, False)).barge_ins == ()


def test_an_attempt_the_trace_does_not_finish_has_no_outcome(tmp_path: Path) -> None:
    barge_in = only(of(tmp_path, *reply(sent_ms=500), user(90, True), mark(100, "pause")))
    assert barge_in.outcome is None
    assert barge_in.leaked is None


# --- Leaks ---------------------------------------------------------------------------------------


def test_a_verdict_before_the_first_frame_owns_what_comes_later(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            InterruptCalled(500_000, "s1", "programmatic"),
            SpeechCommitted(500_100, "s1"),
            *reply(sent_ms=100),
            mark(105, "clear"),
            cleared(109),
        )
    )
    assert barge_in.segment == 1, "a speech that has a segment is never without one"
    assert barge_in.speech_id == "s1"
    assert barge_in.outcome == "committed"
    assert "nothing of the speech had been captured yet" in barge_in.explanation
    assert leak(barge_in, "captured").samples == 12_000
    assert leak(barge_in, "pushed").samples == 12_000
    assert leak(barge_in, "sent").samples == 2400


def test_a_leak_is_counted_in_a_later_segment_of_the_speech_too(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=500),
        *commit(600, "programmatic"),
        mark(601, "clear"),
        FrameCaptured(700 * MS, 2, 12_000, 240, 24_000, 1, "s1", "returned"),
        FramePushed(
            701 * MS, 2, 1, 12_000, 240, 24_000, 1, captured=[(12_000, 240)], end="returned"
        ),
        RunSent(710 * MS, 720 * MS, 1, 12_000, 240),
    )
    assert len(analysis.segments) == 2
    barge_in = only(analysis)
    assert barge_in.segment == 1
    assert barge_in.outcome == "committed"
    assert [leak(barge_in, b).samples for b in ("captured", "pushed", "sent")] == [240, 240, 240]
    assert leak(barge_in).spans[0].start_sample == 12_000


def test_a_sample_belongs_to_one_leak_only(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=400),
        user(90, True),
        OverlapJudged(100 * MS, True, "s1"),
        mark(100.1, "pause"),
        mark(200, "resume"),
        OverlapJudged(300 * MS, True, "s1"),
        *commit(390),
        mark(391, "clear"),
        cleared(409),
    )
    first, second = analysis.barge_ins
    assert (first.outcome, second.outcome) == ("resumed", "committed")
    assert leak(first).ms == 200.0
    assert leak(second).ms == 110.0
    assert leak(first).spans[-1].stop_sample == leak(second).spans[0].start_sample


def test_blocks_are_told_apart_at_the_verdict_by_their_ticks(tmp_path: Path) -> None:
    # Blocks leave at 10, 20, … ms; the one at 200 ms leaves at the verdict, so it is leaked.
    barge_in = only(of(tmp_path, *reply(sent_ms=200), *commit(200, "programmatic"), cleared(209)))
    (span,) = leak(barge_in).spans
    assert (time_ms(span.start_ns), time_ms(span.stop_ns)) == (200.0, 210.0)
    assert (span.start_sample, span.stop_sample) == (4560, 4800)
    later = only(of(tmp_path, *reply(sent_ms=200), *commit(200.001, "programmatic"), cleared(209)))
    assert leak(later).samples == 0


def test_a_run_that_begins_inside_a_block_is_cut_at_its_own_blocks(tmp_path: Path) -> None:
    events = reply(sent_ms=10)
    events[-1] = RunSent(10 * MS, 40 * MS, 1, 0, 600, block_offset_samples=100)
    barge_in = only(of(tmp_path, *events, *commit(20, "programmatic"), cleared(39)))
    (span,) = leak(barge_in).spans
    assert (span.start_sample, span.stop_sample) == (140, 600)


def test_spans_end_where_nothing_was_sent(tmp_path: Path) -> None:
    events = [
        *reply(sent_ms=0),
        RunSent(10 * MS, 210 * MS, 1, 0, 4800),
        RunSent(400 * MS, 500 * MS, 1, 4800, 2400),
    ]
    barge_in = only(of(tmp_path, *events, *commit(150, "programmatic"), cleared(500)))
    assert [(time_ms(s.start_ns), time_ms(s.stop_ns)) for s in leak(barge_in).spans] == [
        (150.0, 210.0),
        (400.0, 500.0),
    ]
    assert leak(barge_in).ms == 160.0


def test_a_boundary_that_was_not_tapped_has_no_leak(tmp_path: Path) -> None:
    barge_in = only(
        of(tmp_path, *reply(sent_ms=0), *commit(200, "programmatic"), tapped=taps()[:2])
    )
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is None
    assert barge_in.leaked["pushed"] is not None
    assert barge_in.leaked["pushed"].samples == 0
    assert (time_ms(barge_in.stop_ns), barge_in.causes, barge_in.remaining) == (None, None, None)


# --- Causes --------------------------------------------------------------------------------------


def test_each_leaked_sample_has_the_cause_of_its_moment(tmp_path: Path) -> None:
    # The clear at 289 ms takes 10 ms of audio; what is sent behind that was sent after it.
    events = [
        *reply(sent_ms=0),
        RunSent(10 * MS, 210 * MS, 1, 0, 4800),
        RunSent(210 * MS, 290 * MS, 1, 4800, 1920),
        RunSent(290 * MS, 320 * MS, 1, 6960, 720),
    ]
    barge_in = only(
        of(
            tmp_path,
            *events,
            user(90, True),
            OverlapJudged(100 * MS, True, "s1"),
            mark(150, "pause"),
            *commit(210),
            mark(220, "clear"),
            cleared(289),
            cleared(330),
        )
    )
    assert barge_in.causes is not None
    assert [(c.cause, c.ms) for c in barge_in.causes] == [
        ("not-stopped", 50.0),
        ("queue-played-on", 70.0),
        ("clear-pending", 70.0),
        ("after-clear", 30.0),
    ]
    assert sum(c.samples for c in barge_in.causes) == leak(barge_in).samples


def test_the_causes_add_up_to_the_leak_in_a_simulated_call(tmp_path: Path) -> None:
    call = Simulation()
    for _ in range(100):
        call.capture(480)
    call.tick(30)
    call.user(True)
    call.happens(OverlapJudged, True, speech="s1")
    call.tick(2)
    call.pause()
    call.tick(1)
    call.happens(InterruptCalled, "s1", by="transcript")
    call.happens(SpeechCommitted, "s1")
    call.clear(delay_ticks=3)
    call.tick(20)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    barge_in = only(analysis)
    assert analysis.balanced is True
    assert barge_in.causes is not None
    assert sum(c.samples for c in barge_in.causes) == leak(barge_in).samples > 0


# --- Doubt ---------------------------------------------------------------------------------------


def test_a_stall_around_the_verdict_is_shown(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *reply(sent_ms=250),
        *commit(200, "programmatic"),
        LoopStalled(150 * MS, 199 * MS),
        cleared(259),
    )
    assert time_ms(only(analysis).stalled_ns) == 49.0
    assert [(time_ms(s.at_ns), time_ms(s.ns)) for s in analysis.trace.stalls] == [(150.0, 49.0)]


def test_a_release_that_shows_no_commit_is_read_from_the_end_of_the_speech(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(90, True),
            mark(100, "pause"),
            mark(241, "clear"),
            cleared(259),
            SpeechDone(300 * MS, "s1", interrupted=True),
        )
    )
    assert (barge_in.verdict_kind, time_ms(barge_in.verdict_ns)) == ("activity", 100.0)
    assert barge_in.commit_ns is None
    assert barge_in.outcome == "committed"


def test_two_speeches_have_barge_ins_of_their_own(tmp_path: Path) -> None:
    call = Simulation()
    for name in ("s1", "s2"):
        for _ in range(50):
            call.capture(480, name)
        call.tick(20)
        call.user(True)
        call.happens(InterruptCalled, name, by="activity")
        call.happens(SpeechCommitted, name)
        call.clear()
        call.tick(30)
        call.user(False)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    assert [(b.speech_id, b.segment, b.outcome) for b in analysis.barge_ins] == [
        ("s1", 1, "committed"),
        ("s2", 2, "committed"),
    ]
    assert all(b.onset_ns is not None for b in analysis.barge_ins)


def test_the_story_marks_one_moment_as_the_verdict(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(100, True),
            mark(150, "pause"),
            *commit(240),
            mark(241, "clear"),
            cleared(259),
        )
    )
    assert [m.event for m in barge_in.story if m.verdict] == ["pause: the gate is closed"]
    assert [time_ms(m.at_ns) for m in barge_in.story] == sorted(
        time_ms(m.at_ns) for m in barge_in.story
    )


def test_tapped_events_alone_make_no_barge_in(tmp_path: Path) -> None:
    assert of(tmp_path, tapped=[Tapped(0, "captured")]).barge_ins == ()


def attached_mid_speech(*events: Event) -> list[Event]:
    """Half of a push is the rest of what the sink had captured before the probe came."""
    return [
        FramePushed(
            2 * MS,
            1,
            1,
            0,
            4800,
            24_000,
            1,
            captured=[(None, 4800)],
            end="returned",
            ended_ns=3 * MS,
        ),
        RunSent(10 * MS, 110 * MS, 1, 0, 2400),
        *events,
    ]


def test_inherited_audio_leaks_with_the_speech_that_was_under_way(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *attached_mid_speech(*commit(60, "programmatic"), cleared(109)),
            tapped=taps(mid_speech=True),
        )
    )
    assert (barge_in.segment, barge_in.partial) == (None, True)
    assert leak(barge_in).ms == 50.0
    assert "under way when the probe came" in barge_in.explanation


def test_audio_pushed_before_the_probe_came_makes_the_leak_unknown(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *attached_mid_speech(*commit(60, "programmatic"), cleared(109)),
            RunSent(0, 70 * MS, 1, None, 1680),
            tapped=taps(mid_speech=True),
        )
    )
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is None
    assert (time_ms(barge_in.stop_ns), barge_in.causes) == (None, None)


def test_a_speech_that_came_after_the_probe_inherits_nothing(tmp_path: Path) -> None:
    barge_in = only(
        of(
            tmp_path,
            *attached_mid_speech(),
            SpeechCreated(20 * MS, "s2", "say"),
            *commit(60, "programmatic", "s2"),
            cleared(109),
            tapped=taps(mid_speech=True),
        )
    )
    assert barge_in.partial is False
    assert leak(barge_in).samples == 0


def test_a_finding_agrees_with_the_figure_of_its_barge_in_to_the_nanosecond(tmp_path: Path) -> None:
    """A block that left a hundred nanoseconds before the verdict is not leaked: neither figure
    may say so, though both instants are the same to the microsecond."""
    events = [
        *reply(sent_ms=250),
        *commit(200.0004, "programmatic"),
        cleared(259),
    ]
    analysis = of(tmp_path, *events)
    leak = (only(analysis).leaked or {})["sent"]
    assert leak is not None
    (finding,) = [f for f in analysis.findings if f.rule == "leak-after-verdict"]
    assert finding.evidence.figure.exact == leak.ns
