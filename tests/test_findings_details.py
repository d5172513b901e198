"""What a rule says beside that it fires: reasons, parts, places, stalls; what it can't judge."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    Faulted,
    FrameCaptured,
    SizeBounded,
    SourceClosed,
    SpeechCreated,
    SpeechDone,
)
from reports import Analysis, Finding, analyze
from reports.findings import RULES, SEVERITIES
from reports.units import time_ms
from tests.findings_calls import HandCall, at, barge_in, clean_call, reply
from tests.report_traces import Simulation, header, taps, write


def the(analysis: Analysis, rule: str) -> Finding:
    mine = [finding for finding in analysis.findings if finding.rule == rule]
    assert len(mine) == 1, analysis.findings
    return mine[0]


def rules(analysis: Analysis) -> set[str]:
    return {finding.rule for finding in analysis.findings}


# --- leak-after-verdict --------------------------------------------------------------------------


def test_a_leak_of_one_block_is_no_finding_and_of_two_is(tmp_path: Path) -> None:
    assert rules(barge_in(plays_on=10).analysis(tmp_path)) == set()
    assert rules(barge_in(plays_on=20).analysis(tmp_path)) == {"leak-after-verdict"}


def test_a_coarser_tap_raises_what_counts_as_a_leak(tmp_path: Path) -> None:
    call = barge_in(plays_on=20).retap("sent", resolution_ns=at(20))
    assert rules(call.analysis(tmp_path)) == set()


@pytest.mark.parametrize(("fade", "fires"), [(0, True), (30, True), (50, False), (80, False)])
def test_a_deliberate_fade_out_is_allowed_for(tmp_path: Path, fade: float, fires: bool) -> None:
    analysis = barge_in(plays_on=50).analysis(
        tmp_path, settings={"leak-after-verdict": {"fade-ms": fade}}
    )
    assert rules(analysis) == ({"leak-after-verdict"} if fires else set())
    if fires:
        assert the(analysis, "leak-after-verdict").evidence.samples == 1200


def test_audio_long_after_the_verdict_is_no_fade_out(tmp_path: Path) -> None:
    """As much audio as the fade allows, but half a second late."""
    call = HandCall().created(0).capture(1, 240, ended_ms=700).push(2, 190).send(10, 190)
    call.user(150, True).commit(200, by="activity").push(700, 50).send(702, 50)
    call.mark(760, "clear").cleared(760.1).finished(761, 240, interrupted=True)
    call.done(762, interrupted=True).user(800, False)
    analysis = call.analysis(tmp_path, settings={"leak-after-verdict": {"fade-ms": 50}})
    assert the(analysis, "leak-after-verdict").evidence.samples == 1200


def escape(how: str) -> HandCall:
    call = HandCall().created(0).capture(1, 600, ended_ms=240)
    call.retap("pushed", queue_ms=200)
    first = 600 if how == "rest-of-long-frame" else 190
    call.push(2, first).send(10, 190).user(150, True).commit(200, by="activity")
    call.mark(200.2, "clear")
    if how == "survived-clear":
        call.push(200.3, 40)
    call.cleared(200.4)
    if how == "pushed-late":
        call.push(210, 40)
    if how == "rest-of-long-frame":
        call.lose(200)
    call.send(220, 40)
    if how == "rest-of-long-frame":
        call.cleared(260.1).lose(170)
    return call.finished(270, 190, interrupted=True).done(271, interrupted=True).user(400, False)


@pytest.mark.parametrize("how", ["survived-clear", "pushed-late", "rest-of-long-frame"])
def test_what_was_sent_after_a_clear_is_told_apart(tmp_path: Path, how: str) -> None:
    analysis = escape(how).analysis(tmp_path)
    evidence = the(analysis, "leak-after-verdict").evidence
    assert {p.cause: p.samples for p in evidence.parts} == {f"after-clear: {how}": 960}
    survivors = analysis.barge_ins[0].survivors
    assert survivors is not None
    assert [(s.how, s.samples) for s in survivors] == [(how, 960)]
    says = {
        "survived-clear": "A push was under way",
        "pushed-late": "went on pushing",
        "rest-of-long-frame": "longer than its queue",
    }
    assert says[how] in the(analysis, "leak-after-verdict").cause


def test_parts_of_several_causes_add_up_to_the_leak(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 500).push(2, 500).send(10, 190).send(200, 100)
    call.user(150, True).commit(200, by="activity").mark(240, "clear").cleared(300.1).lose(210)
    call.finished(301, 290, interrupted=True).done(302, interrupted=True).user(400, False)
    evidence = the(call.analysis(tmp_path), "leak-after-verdict").evidence
    assert {p.cause: p.samples for p in evidence.parts} == {
        "not-stopped": 960,
        "clear-pending": 1440,
    }
    assert evidence.samples == 2400


def test_a_leak_has_the_cause_and_remedy_of_its_largest_part(tmp_path: Path) -> None:
    played_on = the(barge_in(plays_on=50).analysis(tmp_path), "leak-after-verdict")
    assert "gate" in played_on.cause
    assert "when the gate closes" in played_on.remedy
    call = HandCall().created(0).capture(1, 500).started(1.5).push(2, 500).mark(3, "flush")
    call.send(10, 190).user(150, True).mark(200, "pause").overlap(205).user(300, False)
    call.mark(900, "resume").false_alarm(901).send(910, 310)
    call.finished(1221, 500).item(1222).done(1223)
    resumed = the(call.analysis(tmp_path), "leak-after-verdict")
    assert "opened again" in resumed.cause
    assert "queue" not in resumed.remedy
    assert "false-interruption timer" in resumed.remedy


def test_a_finding_without_a_cause_of_its_own_has_its_rules(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    call.finished(212, 200).finished(213, 200).done(214)
    extra = the(call.analysis(tmp_path), "extra-finish")
    assert (extra.cause, extra.remedy) == (
        RULES["extra-finish"].cause,
        RULES["extra-finish"].remedy,
    )


# --- Severities ----------------------------------------------------------------------------------


def test_the_listed_severity_says_what_the_findings_are(tmp_path: Path) -> None:
    assert RULES["leak-after-verdict"].severity == "warning, error above serious-ms"
    for serious, severity in ((200, "warning"), (40, "error")):
        settings = {"leak-after-verdict": {"serious-ms": float(serious)}}
        analysis = barge_in(plays_on=50).analysis(tmp_path, settings=settings)
        assert the(analysis, "leak-after-verdict").severity == severity
    for rule in RULES.values():
        assert rule.severity.split(",")[0] in SEVERITIES


# --- Stalls ---------------------------------------------------------------------------------------


def test_a_stall_is_named_in_every_finding_whose_marks_lie_in_it(tmp_path: Path) -> None:
    call = barge_in(plays_on=60).stalled(190, 20).stalled(700, 30)
    leak = the(call.analysis(tmp_path), "leak-after-verdict")
    assert [(time_ms(s.at_ns), time_ms(s.ns)) for s in leak.evidence.stalls] == [(190, 20)]
    assert all("stall" not in part.cause for part in leak.evidence.parts)


# --- caller-ignored -------------------------------------------------------------------------------


def ignored(**options: Any) -> HandCall:
    call = reply(HandCall(), ms=3000).user(200, True).user(1500, False)
    call.end_ms = 4000
    return call.options(**options)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda: ignored(allow_interruptions=False), "not allowed in this session"),
        (lambda: ignored(aec_warmup_s=3.0), "echo warm-up"),
        (lambda: ignored(min_words=4).transcript(1400, words=2), "2 words were recognized"),
        (lambda: ignored(min_duration_s=2.0), "min_duration is 2 s"),
        (lambda: ignored().overlap(1300, is_interruption=False), "backchannel"),
        (lambda: ignored(turn_detection="manual"), "turn detection is manual"),
        (lambda: ignored(turn_detection="stt"), "no VAD"),
        (lambda: ignored(can_pause=False), "can't pause"),
        (lambda: ignored(aec_warmup_s=1.0, min_words=0), "the trace does not show why"),
    ],
)
def test_the_reason_is_given_where_it_can_be_known(tmp_path: Path, bend: Any, says: str) -> None:
    assert says in the(bend().analysis(tmp_path), "caller-ignored").message


def test_a_speech_that_allows_no_interruption_is_the_reason_before_the_session(
    tmp_path: Path,
) -> None:
    call = ignored(allow_interruptions=True)
    created = next(e for e in call.events if e.NAME == "speech_created")
    call.events.remove(created)
    call.created(0, allowed=False)
    assert "for this speech" in the(call.analysis(tmp_path), "caller-ignored").message


# --- Tails and places -----------------------------------------------------------------------------


def test_a_lost_tail_is_no_swallowed_audio(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 205).push(2, 205).mark(3, "flush").send(10, 200)
    call.finished(212, 205).item(213).done(214).silence(210, 400).cleared(800)
    call.lose(5)
    analysis = call.analysis(tmp_path)
    assert analysis.segments[0].tail_samples == 120
    assert rules(analysis) == set()


def test_the_tail_of_an_uninterrupted_segment_may_open_the_next(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 205).push(2, 205).mark(3, "flush").send(10, 200)
    call.finished(212, 205).done(214).silence(210, 290)
    call.created(490, "s2").capture(491, 200, "s2").push(492, 200).mark(493, "flush", "s2")
    call.send(500, 5).send(500, 195, offset=120).finished(702, 200, "s2").done(703, "s2")
    assert rules(call.analysis(tmp_path)) == set()


def test_a_block_of_an_uninterrupted_segment_in_the_next_is_found(tmp_path: Path) -> None:
    """Sent in disorder: 20 ms of the first after the second had begun."""
    call = HandCall().created(0).capture(1, 200).push(2, 180).mark(3, "flush").send(10, 180)
    call.finished(212, 200).done(213).created(300, "s2").capture(301, 100, "s2")
    start = call.captured - 100 * 24
    # The sink pushes the head of the second before the rest of the first.
    call.forwarded = start
    call.push(302, 50).send(310, 50)
    call.forwarded = start - 20 * 24
    call.push(303, 20).send(360, 20)
    call.forwarded = start + 50 * 24
    call.push(304, 50).send(380, 50).finished(432, 100, "s2").done(433, "s2")
    analysis = call.analysis(tmp_path)
    # Out of order is unaccounted for, so the account can't be judged by; the rule says so.
    assert analysis.balanced is False
    assert "old-audio-in-new-segment" in {n.rule for n in analysis.not_judged}


def test_holes_are_given_by_their_place_in_the_speech(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 500).push(2, 500).mark(3, "flush").send(10, 90)
    call.mark(100, "pause").cleared(100.1).lose(60).mark(300, "resume").send(310, 350)
    call.finished(661, 440).done(662)
    evidence = the(call.analysis(tmp_path), "swallowed-audio").evidence
    assert evidence.facts["holes"] == [{"at_ns": 90_000_000, "ns": 60_000_000}]
    assert [(r.start_sample, r.stop_sample) for r in evidence.ranges] == [(2160, 3600)]


def test_a_resume_counts_as_going_on_only_beyond_the_resolution(tmp_path: Path) -> None:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    call.user(150, True).mark(205, "pause").overlap(206).user(300, False).mark(400, "resume")
    call.finished(401, 200).done(402)
    assert "resumed-after-verdict" not in rules(call.analysis(tmp_path))


# --- What can't be judged -------------------------------------------------------------------------


def test_a_rule_without_its_boundary_is_listed_with_the_reason(tmp_path: Path) -> None:
    call = barge_in(plays_on=50).without("sent", "inserted")
    call.events = [e for e in call.events if getattr(e, "boundary", "") != "sent"]
    analysis = call.analysis(tmp_path, head=header(missing={"sent": "switched off"}))
    reasons = {n.rule: n.reason for n in analysis.not_judged}
    assert reasons["leak-after-verdict"] == "sent was not tapped: switched off"
    assert "late-frames" not in reasons
    assert "leak-after-verdict" not in rules(analysis)


def test_a_signal_the_release_lacks_is_the_reason(tmp_path: Path) -> None:
    lacks = {"playback_started": "not in this release", "overlapping_speech": "no such event"}
    analysis = clean_call().analysis(tmp_path, head=header(missing=lacks))
    reasons = {n.rule: n.reason for n in analysis.not_judged}
    assert set(reasons) == {
        "started-twice",
        "started-before-captured",
        "stale-verdict",
        "resumed-after-verdict",
    }
    assert reasons["started-twice"] == "playback_started: not in this release"


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Faulted(at(50), "events_lost", 3, "buffer full"), "fault of the probe"),
        (SizeBounded(at(2900)), "bound"),
    ],
)
def test_amounts_are_not_judged_where_the_trace_lost_something(
    tmp_path: Path, event: Any, says: str
) -> None:
    analysis = barge_in(plays_on=50).add(event).analysis(tmp_path)
    reasons = {n.rule: n.reason for n in analysis.not_judged}
    assert says in reasons["leak-after-verdict"]
    assert "late-frames" not in reasons
    for rule in RULES.values():
        if rule.from_absence and "realtime" not in rule.needs:
            assert says in reasons[rule.name]


def test_a_finish_whose_segment_lies_behind_the_bound_is_not_one_too_many(tmp_path: Path) -> None:
    call = reply(HandCall())
    call.add(SizeBounded(at(900))).created(990, "s2").mark(1200, "flush", "s2")
    analysis = call.finished(1400, 200, "s2").done(1401, "s2").analysis(tmp_path)
    assert rules(analysis) == set()
    assert "bound" in {n.rule: n.reason for n in analysis.not_judged}["extra-finish"]


def test_a_bounded_trace_says_so_where_the_leak_is_not_known(tmp_path: Path) -> None:
    call = barge_in(plays_on=50).add(SizeBounded(at(120)))
    (found,) = call.analysis(tmp_path).barge_ins
    assert found.unseen == "bounded"
    assert "the file of the trace had reached its bound by then" in found.explanation
    assert "nobody read the wire" not in found.explanation


def test_a_call_without_a_session_leaves_its_rules_unjudged(tmp_path: Path) -> None:
    call = HandCall().capture(1, 200, None).push(2, 200).mark(3, "flush", None).send(10, 200)
    analysis = call.finished(212, 200).analysis(tmp_path)
    assert rules(analysis) == set()
    assert {n.reason for n in analysis.not_judged} == {"the trace shows no events of a session"}


def test_findings_come_worst_first(tmp_path: Path) -> None:
    call = barge_in(plays_on=50)
    call.created(990, "s2").capture(991, 300, "s2").push(992, 300).mark(993, "flush", "s2")
    call.send(1000, 50).cleared(1050.5).lose(250).finished(1052, 50, "s2").done(1305, "s2")
    severities = [f.severity for f in call.analysis(tmp_path).findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert set(severities) == {"error", "warning"}


# --- A trace that was cut -------------------------------------------------------------------------


def cut(call: HandCall, folder: Path, keep: Any) -> Analysis:
    """The trace of a process that was killed: no trailer, and of the events only what is kept."""
    events = sorted(
        (event for event in call.events if keep(event)),
        key=lambda event: event.at_ns,  # type: ignore[union-attr]
    )
    return analyze(write(folder / "cut.jsonl", events, trailer=False))


def test_what_a_cut_trace_no_longer_shows_is_no_finding(tmp_path: Path) -> None:
    """The last run of the wire was not written; everything else of the reply was."""
    analysis = cut(reply(HandCall()), tmp_path, lambda event: event.NAME != "sent")
    assert not analysis.trace.complete
    assert rules(analysis) == set()


def test_what_a_cut_trace_shows_well_before_its_end_is_found(tmp_path: Path) -> None:
    call = reply(barge_in(plays_on=50), 1990, "s2")
    analysis = cut(call, tmp_path, lambda event: True)
    assert rules(analysis) == {"leak-after-verdict"}
    assert rules(cut(reply(hole(), 1990, "s2"), tmp_path, lambda event: True)) == {
        "swallowed-audio"
    }


def hole() -> HandCall:
    """A false interruption whose pause discards 100 ms."""
    call = HandCall().created(0).capture(1, 500).push(2, 500).mark(3, "flush").send(10, 190)
    call.user(150, True).mark(200, "pause").cleared(200.1).lose(100).user(300, False)
    return call.mark(400, "resume").send(410, 210).finished(621, 400).item(622).done(623)


# --- Evidence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_what_happened_at_one_instant_is_told_in_the_order_of_the_rule(
    seed: int, tmp_path: Path
) -> None:
    """Every time: a report must not change with how Python scatters its hashes."""
    empty = FrameCaptured(at(3), 1, 0, 0, 24_000, 1, "s1", "returned", ended_ns=at(3) + 1000)
    path = write(tmp_path / "call.jsonl", [*taps(), empty])
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import reports, sys\n"
            "for finding in reports.analyze(sys.argv[1]).findings:\n"
            "    print(*(moment.event for moment in finding.evidence.moments), sep='\\n')",
            str(path),
        ],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        timeout=60,
    ).stdout.splitlines()
    assert told == ["first such frame captured", "last such frame captured"]


# --- Why a source refuses ------------------------------------------------------------------------


def refused_call(*, closed: bool = False, busy: bool = False, committed: bool = False) -> HandCall:
    """20 ms of a second speech that its source refuses."""
    call = reply(HandCall())
    if committed:
        call.commit(505).created(600, "s2")
    else:
        call.created(600, "s2")
    if busy:
        call.capture(601, 500, "s2").push(601.1, 500)
        call.events[-1] = replace(call.events[-1], ended_ns=at(1000))  # type: ignore[type-var,call-arg]
    if closed:
        call.add(SourceClosed(at(602), 1))
    call.capture(603, 20, "s2", end="raised", ended_ms=603.2, error="RtcError")
    call.push(603.1, 20, accepted=False)
    if busy:
        call.send(610, 500)
    return call.mark(1200, "flush", "s2").done(1201, "s2")


@pytest.mark.parametrize(
    ("call", "message", "cause"),
    [
        (refused_call(closed=True), "The source had been closed.", "had been closed"),
        (refused_call(busy=True), "Another push was under way.", "one push at a time"),
        (refused_call(), "although nobody interrupted", "raised instead of taking"),
    ],
)
def test_a_refusal_says_why(tmp_path: Path, call: HandCall, message: str, cause: str) -> None:
    finding = the(call.analysis(tmp_path), "sink-refuses")
    assert message in finding.message
    assert "refused by the source" in finding.message
    assert cause in finding.cause
    assert "interruption" not in finding.cause


def test_what_an_exception_said_is_told_where_the_trace_has_it(tmp_path: Path) -> None:
    call = reply(HandCall()).created(600, "s2")
    call.capture(
        601, 20, "s2", end="raised", error="RtcError", detail="an error occured: InvalidState"
    ).drop(20)
    call.mark(603, "flush", "s2").done(604, "s2")
    finding = the(call.analysis(tmp_path), "sink-refuses")
    assert "It raised RtcError: an error occured: InvalidState." in finding.message
    assert finding.evidence.facts["detail"] == "an error occured: InvalidState"


def test_captures_that_fail_after_an_interruption_are_laid_to_it(tmp_path: Path) -> None:
    call = barge_in().created(500, "s2")
    call.capture(501, 20, "s2", end="cancelled").drop(20).mark(502, "flush", "s2").done(503, "s2")
    finding = the(call.analysis(tmp_path), "sink-refuses")
    assert "An interruption cancelled something" in finding.cause
    assert finding.evidence.moments[0].event == "an earlier speech is interrupted"


def test_captures_that_are_cancelled_with_no_interruption_before_them(tmp_path: Path) -> None:
    call = reply(HandCall()).created(600, "s2")
    call.capture(601, 20, "s2", end="cancelled").drop(20).mark(602, "flush", "s2").done(603, "s2")
    assert "no interruption" in the(call.analysis(tmp_path), "sink-refuses").cause


# --- What took swallowed audio -------------------------------------------------------------------


def taken(*, paused: bool) -> HandCall:
    """The source is cleared in the middle of a speech nobody interrupts, after a pause or not."""
    call = HandCall().created(0).capture(1, 500).push(2, 500).mark(3, "flush").send(10, 190)
    if paused:
        call.mark(200, "pause")
    call.cleared(200.1).lose(200)
    if paused:
        call.mark(210, "resume")
    return call.send(220, 110).finished(331, 300).done(332)


def test_only_a_pause_is_called_one(tmp_path: Path) -> None:
    with_pause, without = (
        the(taken(paused=paused).analysis(tmp_path), "swallowed-audio") for paused in (True, False)
    )
    for finding in (with_pause, without):
        assert finding.message.endswith(
            "never sent, from 190 ms of it on: taken by a clear of the source."
        )
    assert "pause" in with_pause.cause
    assert "pause" not in without.cause + without.remedy


def unexplained(*, later: bool) -> HandCall:
    """The middle of a reply vanishes in the sink, and nothing in the trace says why."""
    call = HandCall().created(0).capture(1, 100).capture(1.1, 100).push(2, 100).drop(100)
    if later:
        call.capture(1.2, 100).push(2.1, 100).mark(3, "flush").send(10, 200)
        return call.finished(211, 200).done(212)
    return call.mark(3, "flush").send(10, 100).finished(111, 100).done(112)


def test_what_is_lost_for_certain_is_found_though_the_ledger_does_not_balance(
    tmp_path: Path,
) -> None:
    analysis = unexplained(later=True).analysis(tmp_path)
    assert analysis.balanced is False
    finding = the(analysis, "swallowed-audio")
    assert finding.message.startswith("At least 100.0 ms (2400 samples) of a speech")
    assert finding.evidence.samples == 2400
    assert [part.cause for part in finding.evidence.parts] == [
        "never pushed, although later audio was"
    ]
    told = {n.rule: n.reason for n in analysis.not_judged}
    assert told["swallowed-audio"] == "2400 samples are unaccounted for"


def test_what_is_lost_at_the_end_is_known_exactly(tmp_path: Path) -> None:
    analysis = unexplained(later=False).analysis(tmp_path)
    assert analysis.balanced is True
    finding = the(analysis, "swallowed-audio")
    assert finding.message.startswith("100.0 ms (2400 samples) of a speech")
    assert "still inside when the speech was over" in finding.message


def test_the_parts_of_what_was_swallowed_add_up_without_the_tail(tmp_path: Path) -> None:
    """104 ms are cleared, of which the last 4 are a rest that would have stayed in the source."""
    call = HandCall().created(0).capture(1, 204).push(2, 204).mark(3, "flush").send(10, 100)
    call.cleared(110.1).lose(104).silence(110, 500).finished(111, 100).done(112)
    finding = the(call.analysis(tmp_path), "swallowed-audio")
    assert sum(part.samples for part in finding.evidence.parts) == finding.evidence.samples


# --- Which sink's gate ---------------------------------------------------------------------------


def test_a_gate_left_closed_is_met_by_what_goes_through_its_own_sink(tmp_path: Path) -> None:
    severities = []
    for through_old in (True, False):
        call = Simulation(step_ns=1_037, grid_ns=300, numbered=True)
        old = call.sink
        call.happens(SpeechCreated, "s1", "say")
        call.capture(2400)
        call.tick(5)
        call.pause()
        call.happens(SpeechDone, "s1")
        new = call.swap()
        call.flush(sink=old)
        call.tick(120)
        call.happens(SpeechCreated, "s2", "say")
        call.capture(2400, "s2", sink=old if through_old else new)
        call.tick(120)
        call.resume(sink=old)
        call.tick(30)
        path = write(tmp_path / f"{through_old}.jsonl", call.end())
        severities.append(the(analyze(path), "gate-left-closed").severity)
    assert severities == ["error", "warning"]
