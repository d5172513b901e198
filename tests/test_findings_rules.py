"""Each rule proven both ways: it fires on the defect, with the right cause and the right number of
samples, and every rule is silent on the same call mended."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reports.findings import RULES
from tests.findings_calls import (
    HandCall,
    Proof,
    assert_fires,
    assert_silent,
    barge_in,
    clean_call,
    found,
    reply,
)

# --- Audio that stayed too long ------------------------------------------------------------------


def resumed_with_parked_frames(*, clear_first: bool) -> HandCall:
    """100 ms stand at the gate when it is opened after the commit."""
    call = HandCall().created(0).capture(1, 200).started(1.5).push(2, 200)
    call.send(10, 190).user(150, True).mark(200, "pause").cleared(200.1).lose(10)
    call.capture(205, 100, ended_ms=300).commit(301)
    if clear_first:
        call.mark(302, "clear").cleared(302.5).finished(303, 190, interrupted=True)
        call.mark(310, "resume")
    else:
        call.mark(302, "resume").push(302.2, 100).send(310, 20)
        call.mark(325, "clear").cleared(325.1).lose(80).finished(326, 210, interrupted=True)
    return call.done(330, interrupted=True).user(400, False)


def committed_without_clear(*, clears: bool) -> HandCall:
    """The queue is emptied by the pause, so that nothing leaks; only the sink is never cleared."""
    call = barge_in()
    if not clears:
        call.events = [e for e in call.events if getattr(e, "mark", "") != "clear"]
    return call


def overlap_then_resume(*, verdict: bool) -> HandCall:
    call = HandCall().created(0).capture(1, 500).started(1.5).push(2, 500).mark(3, "flush")
    call.send(10, 190).user(150, True).mark(200, "pause")
    if verdict:
        call.overlap(205)
    call.user(300, False).mark(900, "resume").false_alarm(901).send(910, 310)
    return call.finished(1221, 500).item(1222).done(1223)


def old_audio_after_new(*, interrupted: bool, old_ms: float, clears: bool) -> HandCall:
    """Of segment 1, ``old_ms`` are inside until the first block of segment 2."""
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 100)
    if interrupted:
        call.commit(110, by="programmatic").mark(110.2, "clear")
        if clears:
            call.cleared(110.3).lose(100)
        else:
            call.cleared(110.3).lose(100 - old_ms)
    call.finished(120, 100, interrupted=True).done(121, interrupted=True)
    call.created(500, "s2").capture(501, 100 - 0, "s2").push(502, 100).mark(503, "flush", "s2")
    if not clears:
        call.send(510, old_ms)
        call.send(510, 100, offset=round(old_ms * 24) % 240)
    else:
        call.send(510, 100)
    return call.finished(621, 100, "s2").done(623, "s2")


def frames_after_commit(*, late: bool) -> HandCall:
    """20 ms enter the sink 20 ms after the commit, and are cleared with the rest."""
    call = HandCall().created(0).capture(1, 300).push(2, 300).send(10, 190)
    call.user(150, True).commit(200, by="activity")
    if late:
        call.capture(220, 20).drop(20)
    call.mark(225, "clear").cleared(225.1).lose(110).finished(226, 190, interrupted=True)
    return call.done(227, interrupted=True).user(300, False)


# --- Audio that never came -----------------------------------------------------------------------


def hole(ms: float, *, cleared: bool) -> HandCall:
    """A false interruption; the pause discards ``ms`` from the queue unless it is mended."""
    call = HandCall().created(0).capture(1, 500).started(1.5).push(2, 500).mark(3, "flush")
    call.send(10, 190).user(150, True).mark(200, "pause")
    if cleared:
        call.cleared(200.1).lose(ms)
    call.user(300, False).mark(400, "resume")
    rest = 310 - (ms if cleared else 0)
    call.send(410, rest).finished(411 + rest, 190 + rest).item(412 + rest)
    return call.done(413 + rest)


def refused(*, cancelled: bool) -> HandCall:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    call.finished(212, 200).done(213).created(300, "s2")
    if cancelled:
        call.capture(301, 20, "s2", end="cancelled").capture(302, 20, "s2", end="cancelled")
        call.mark(303, "flush", "s2")
    else:
        call.capture(301, 20, "s2").capture(302, 20, "s2").push(303, 40).mark(303, "flush", "s2")
        call.send(310, 40).finished(351, 40, "s2")
    return call.item(352, "s2").done(353, "s2")


def reply_after_barge_in(*, arrives: float) -> HandCall:
    """The reply after the barge-in, of which only ``arrives`` ms do, the rest cleared."""
    call = barge_in()
    call.created(990, "s2").capture(991, 300, "s2").push(992, 300).mark(993, "flush", "s2")
    call.send(1000, arrives)
    if arrives < 300:
        call.cleared(1000.5 + arrives).lose(300 - arrives)
    return call.finished(1002 + arrives, arrives, "s2").item(1304, "s2").done(1305, "s2")


def speaking_state(*, silent_ms: float) -> HandCall:
    call = reply(HandCall())
    call.created(600, "s2").agent(601, "speaking").agent(602 + silent_ms, "listening")
    return call.silence(510, silent_ms + 200)


def left_closed(*, resumes: bool) -> HandCall:
    """The speech ends while it is paused; all of it had been sent."""
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    call.user(150, True).mark(205, "pause").finished(211, 200).done(213).user(300, False)
    return call.mark(320, "resume") if resumes else call


def gap(kind: str | None) -> HandCall:
    """700 ms of silence in the middle of a reply of 400 ms."""
    call = HandCall().created(0).capture(1, 200).started(1.5).push(2, 200).send(10, 200)
    if kind is None:
        call.capture(100, 200).push(101, 200).send(210, 200)
        end = 410.0
    else:
        captured = 905.0 if kind == "starved" else 100.0
        pushed = 906.0 if kind != "source" else 102.0
        call.capture(captured, 200).push(pushed, 200).send(910, 200).silence(210, 700)
        end = 1110.0
    return call.mark(906.5, "flush").finished(max(end, 907) + 2, 400).done(max(end, 907) + 4)


# --- Reports -------------------------------------------------------------------------------------


def claims(position_ms: float, *, progress_ms: float | None = None) -> HandCall:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    if progress_ms is not None:
        call.progressed(211.5, 0, progress_ms)
    return call.finished(212, position_ms).done(213)


def cut_and_reported(*, interrupted: bool) -> HandCall:
    call = HandCall().options().capture(1, 200, None).push(2, 200).send(10, 90)
    call.mark(95, "clear", None)
    call.cleared(95.1).lose(110)
    return call.finished(96, 90, interrupted=interrupted)


def whole_and_reported(*, interrupted: bool) -> HandCall:
    call = HandCall().options().capture(1, 200, None).push(2, 200)
    call.mark(3, "flush", None).send(10, 200)
    return call.finished(230, 200, interrupted=interrupted)


def unheard(*, sent: bool) -> HandCall:
    """Interrupted before its first block; the history has the text all the same."""
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush")
    if sent:
        call.send(10, 90)
    until = 95 if sent else 5
    call.commit(until + 0.5, by="programmatic").mark(until + 1, "clear").cleared(until + 1.1)
    call.lose(110 if sent else 200)
    call.finished(until + 2, 90 if sent else 0, interrupted=True)
    return call.item(until + 3, interrupted=True).done(until + 4, interrupted=True)


def finishes(number: int) -> HandCall:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    for nth in range(number):
        call.finished(212 + nth, 200)
    return call.done(220)


def starts(*times: float) -> HandCall:
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    for ms in times:
        call.started(ms)
    return call.finished(212, 200).done(213)


def finish_at(ms: float) -> HandCall:
    """A reply of 200 ms, the last of which leaves at 210 ms."""
    call = HandCall().created(0).capture(1, 200).push(2, 200).mark(3, "flush").send(10, 200)
    call.finished(ms, 200).done(213)
    # What it claims is true a moment later; here only the time of the report is wrong.
    return call


# --- Around the caller ---------------------------------------------------------------------------


def spoken_over(ms: float, **options: Any) -> HandCall:
    """The caller speaks from 200 ms on for ``ms``; nothing stops the reply of 2 s."""
    call = reply(HandCall(), ms=2000).user(200, True).user(200 + ms, False)
    return call.options(**options)


def stall_before_clear(ms: float) -> HandCall:
    """The loop stands still between the verdict and the clear; the queue is empty by then."""
    return barge_in().stalled(301.5 - ms, ms)


def reply_while_caller_speaks(*, over: bool) -> HandCall:
    call = HandCall().user(0, True).user(400 if over else 40, False)
    return reply(call, 100, "s1", ms=200)


def burst(ms: float) -> HandCall:
    """Resumed, and cleared for good ``ms`` later."""
    call = HandCall().created(0).capture(1, 500, ended_ms=350).started(1.5).push(2, 190)
    call.send(10, 190).user(150, True).mark(200, "pause").commit(400 + ms)
    if ms:
        call.mark(400, "resume").push(400.1, 310).send(401, ms)
        call.mark(400.3 + ms, "clear").cleared(400.4 + ms).lose(310 - ms)
    else:
        call.mark(400.3, "clear").cleared(400.4).mark(401, "resume")
    call.finished(402 + ms, 190 + ms, interrupted=True)
    return call.done(403 + ms, interrupted=True).user(600 + ms, False)


def stale(*, about_this: bool, stamped: bool) -> HandCall:
    """The caller speaks over the first reply; the verdict falls on the second."""
    call = reply(HandCall(), ms=200).user(100, True).user(190, False)
    call.created(300, "s2").capture(301, 300, "s2").started(301.5, "s2").push(302, 300)
    call.mark(303, "flush", "s2").send(310, 90)
    if about_this:
        call.user(350, True)
    started = (350 if about_this else 100) / 1000
    call.overlap(400, "s2", overlap_started_unix_s=1_700_000_000.0 + started if stamped else None)
    call.commit(400.2, "s2", by="activity").mark(400.4, "clear", "s2").cleared(400.5).lose(210)
    call.finished(401, 90, "s2", interrupted=True).done(402, "s2", interrupted=True)
    return call.user(500, False) if about_this else call


def long_capture(ms: float) -> HandCall:
    call = HandCall().created(0).capture(1, 20, ended_ms=1 + ms).push(ms, 20).mark(ms + 2, "flush")
    return call.send(ms + 5, 20).finished(ms + 27, 20).done(ms + 28)


def shapes(*, bad: str | None) -> HandCall:
    call = HandCall().created(0).capture(1, 100).push(2, 100)
    if bad == "empty":
        call.capture(3, 0)
    call.capture(4, 100, data_bytes=4801 if bad == "odd" else None)
    call.push(5, 100).mark(6, "flush").send(10, 200)
    return call.finished(212, 200).done(213)


def relabelled(rate_hz: int) -> HandCall:
    """A reply of 200 ms by the source's rate, captured at another."""
    call = HandCall().created(0).capture(1, 200, rate_hz=rate_hz).push(2, 200).mark(3, "flush")
    return call.send(10, 200).finished(212, 200).done(213)


def rate_change() -> HandCall:
    call = HandCall().created(0).capture(1, 100).push(2, 100)
    call.capture(3, 100, rate_hz=48_000, end="raised").drop(100).mark(6, "flush").send(10, 100)
    return call.finished(112, 100).done(113)


PROOFS: dict[str, list[Proof]] = {
    "leak-after-verdict": [
        Proof(
            lambda: barge_in(plays_on=50), barge_in,
            samples=1200, figure=50, says="queue-played-on", severity="warning",
        )
    ],
    "resume-before-clear": [
        Proof(
            lambda: resumed_with_parked_frames(clear_first=False),
            lambda: resumed_with_parked_frames(clear_first=True),
            samples=2400, figure=100, says="2400 samples) were pushed",
            beside=("leak-after-verdict", "resume-burst"),
        )
    ],
    "never-cleared": [
        Proof(
            lambda: committed_without_clear(clears=False),
            lambda: committed_without_clear(clears=True),
            samples=310 * 24, figure=310, says="never cleared",
        )
    ],
    "resumed-after-verdict": [
        Proof(
            lambda: overlap_then_resume(verdict=True), lambda: overlap_then_resume(verdict=False),
            samples=310 * 24, figure=310, says="with a false-interruption event",
            beside=("leak-after-verdict",),
        )
    ],
    "old-audio-in-new-segment": [
        Proof(
            lambda: old_audio_after_new(interrupted=True, old_ms=4, clears=False),
            lambda: old_audio_after_new(interrupted=True, old_ms=4, clears=True),
            samples=96, figure=4, says="interrupted segment 1", severity="error",
        ),
    ],
    "late-frames": [
        Proof(
            lambda: frames_after_commit(late=True), lambda: frames_after_commit(late=False),
            samples=480, figure=20, says="1 frame", severity="warning",
        )
    ],
    "swallowed-audio": [
        Proof(
            lambda: hole(200, cleared=True), lambda: hole(200, cleared=False),
            samples=4800, figure=200, says="from 190 ms of it on: taken by a clear of the source",
        )
    ],
    "sink-refuses": [
        Proof(
            lambda: refused(cancelled=True), lambda: refused(cancelled=False),
            samples=960, figure=2, says="cancelled", segment=2,
            beside=("swallowed-audio", "committed-unheard"),
        )
    ],
    "swallowed-reply": [
        Proof(
            lambda: reply_after_barge_in(arrives=50), lambda: reply_after_barge_in(arrives=300),
            samples=6000, figure=83.3, says="reported as spoken", segment=2,
            beside=("swallowed-audio",),
        )
    ],
    "speaking-but-silent": [
        Proof(
            lambda: speaking_state(silent_ms=1200), lambda: speaking_state(silent_ms=800),
            figure=1201, says="nothing was sent",
        )
    ],
    "gate-left-closed": [
        Proof(
            lambda: left_closed(resumes=False), lambda: left_closed(resumes=True),
            figure=2787, says="stayed closed", severity="warning",
        )
    ],
    "gap-in-speech": [
        Proof(lambda: gap("starved"), lambda: gap(None), figure=700, says="starved"),
        Proof(lambda: gap("sink"), lambda: gap(None), figure=700, says="held in the sink"),
        Proof(
            lambda: gap("sink").stalled(215, 690), lambda: gap(None), figure=700,
            says="loop stalled", beside=("loop-blocked",),
        ),
        Proof(lambda: gap("source"), lambda: gap(None), figure=700, says="blocked in the source"),
    ],
    "position-off": [
        Proof(lambda: claims(280), lambda: claims(200), figure=80, says="80.0 ms more"),
        Proof(lambda: claims(120), lambda: claims(200), figure=80, says="80.0 ms less"),
        Proof(
            lambda: claims(200, progress_ms=300), lambda: claims(200, progress_ms=200),
            figure=100, says="progress events",
        ),
    ],
    "finished-uninterrupted": [
        Proof(
            lambda: cut_and_reported(interrupted=False),
            lambda: cut_and_reported(interrupted=True),
            samples=110 * 24, figure=110, says="reported as not interrupted",
            beside=("swallowed-audio",),
        ),
        Proof(
            lambda: whole_and_reported(interrupted=True),
            lambda: whole_and_reported(interrupted=False),
            samples=0, figure=0, says="reported as interrupted",
        ),
    ],
    "committed-unheard": [
        Proof(
            lambda: unheard(sent=False), lambda: unheard(sent=True),
            samples=4800, figure=17, says="17 characters were committed",
        )
    ],
    "segment-never-finished": [
        Proof(
            lambda: finishes(0), lambda: finishes(1),
            samples=4800, figure=2790, says="never reported",
        )
    ],
    "extra-finish": [
        Proof(lambda: finishes(2), lambda: finishes(1), figure=1, says="reported already")
    ],
    "started-twice": [
        Proof(lambda: starts(1.5, 50), lambda: starts(1.5), figure=2, says="2 times")
    ],
    "started-before-captured": [
        Proof(lambda: starts(0.5), lambda: starts(1.5), figure=0.5, says="0.5 ms too early")
    ],
    "finish-before-sent": [
        Proof(
            lambda: finish_at(110), lambda: finish_at(212),
            samples=100 * 24, figure=100, says="still to be sent", beside=("position-off",),
        )
    ],
    "caller-ignored": [
        Proof(
            lambda: spoken_over(1200, allow_interruptions=False),
            lambda: spoken_over(700, allow_interruptions=False),
            samples=1200 * 24, figure=1200, says="not allowed in this session",
        )
    ],
    "loop-blocked": [
        Proof(
            lambda: stall_before_clear(80), lambda: stall_before_clear(20),
            figure=80, says="between the verdict and the clear",
        ),
        Proof(
            lambda: clean_call().stalled(100, 900), lambda: clean_call().stalled(100, 300),
            figure=900, says="900 ms",
        ),
    ],
    "reply-over-caller": [
        Proof(
            lambda: reply_while_caller_speaks(over=True),
            lambda: reply_while_caller_speaks(over=False),
            figure=290, says="110 ms after the caller had begun",
        )
    ],
    "resume-burst": [
        Proof(
            lambda: burst(60), lambda: burst(0), samples=1440, figure=60,
            says="60 ms later",
        )
    ],
    "stale-verdict": [
        Proof(
            partial(stale, about_this=False, stamped=stamped),
            partial(stale, about_this=True, stamped=stamped),
            figure=201, says="cut the speech", segment=2,
        )
        for stamped in (True, False)
    ],
    "capture-stalled": [
        Proof(lambda: long_capture(1900), lambda: long_capture(300), samples=480, figure=1900)
    ],
    "relabelled-rate": [
        Proof(
            lambda: relabelled(22_050), lambda: relabelled(24_000),
            samples=4800, figure=8.8,
            says="captured at 22050 Hz was pushed as 24000 Hz and not resampled: 217.7 ms (4800 "
            "samples) were played in 200.0 ms, 8.8 % too fast.",
        ),
        Proof(
            lambda: relabelled(48_000), lambda: relabelled(24_000),
            samples=4800, figure=50, says="50.0 % too slow",
        ),
    ],
    "bad-geometry": [
        Proof(
            lambda: shapes(bad="empty"), lambda: shapes(bad=None), figure=1, says="1 frames are",
            severity="warning",
        ),
        Proof(
            lambda: shapes(bad="odd"), lambda: shapes(bad=None), figure=1,
            says="another length than they say",
        ),
        Proof(
            rate_change, lambda: shapes(bad=None), figure=1, says="24000 Hz x 1, 48000 Hz x 1",
            beside=("sink-refuses", "swallowed-audio"),
        ),
    ],
}  # fmt: skip

EACH = [(rule, proof) for rule, proofs in PROOFS.items() for proof in proofs]
NAMES = [f"{rule}-{nth}" for rule, proofs in PROOFS.items() for nth in range(len(proofs))]


def test_every_rule_is_proven() -> None:
    assert set(PROOFS) == {name for name, rule in RULES.items() if "realtime" not in rule.needs}


@pytest.mark.parametrize(("rule", "proof"), EACH, ids=NAMES)
def test_a_rule_fires_on_its_defect(rule: str, proof: Proof, tmp_path: Path) -> None:
    assert_fires(rule, proof, tmp_path)


@pytest.mark.parametrize(("rule", "proof"), EACH, ids=NAMES)
def test_every_rule_is_silent_on_the_same_call_mended(
    rule: str, proof: Proof, tmp_path: Path
) -> None:
    assert_silent(rule, proof, tmp_path)


def test_every_rule_is_silent_on_a_clean_call(tmp_path: Path) -> None:
    assert found(clean_call(), tmp_path) == []


def test_every_rule_is_silent_on_a_sound_barge_in(tmp_path: Path) -> None:
    assert found(barge_in(), tmp_path) == []
