"""What nobody saw is not judged, and the reason stands where it is missed. 24 kHz."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.trace.events import (
    InterruptCalled,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
)
from reports import Analysis, analyze
from tests.report_traces import Simulation, write

UNREAD = "some of it went into a source whose wire nobody read"


def reasons(analysis: Analysis) -> dict[str, str]:
    return {told.rule: told.reason for told in analysis.not_judged}


def over_two_sources(*, read: bool) -> Simulation:
    """A reply that goes on for two seconds into another source, after 50 ms into the first."""
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=True)
    call.happens(SpeechCreated, "s1", "say")
    call.happens(StateChanged, "agent", "thinking", "speaking")
    call.capture(1200)
    call.tick(10)
    call.swap(read=read)
    for _ in range(20):
        call.capture(2400)
        call.tick(10)
    return call


def analysed(call: Simulation, folder: Path) -> Analysis:
    return analyze(write(folder / f"call-{len(list(folder.iterdir()))}.jsonl", call.end()))


def test_a_leak_that_nobody_saw_is_not_judged(tmp_path: Path) -> None:
    found = {}
    for read in (True, False):
        call = over_two_sources(read=read)
        call.user(True)
        call.happens(InterruptCalled, "s1", "activity")
        call.happens(SpeechCommitted, "s1")
        call.capture(4800)
        call.tick(12)
        call.clear()
        call.tick(30)
        found[read] = analysed(call, tmp_path)
    assert "leak-after-verdict" in {finding.rule for finding in found[True].findings}
    assert "leak-after-verdict" not in reasons(found[True])
    assert "leak-after-verdict" not in {finding.rule for finding in found[False].findings}
    (barge_in,) = found[False].barge_ins
    assert barge_in.unseen == "source-unread"
    assert UNREAD in reasons(found[False])["leak-after-verdict"]
    assert UNREAD in barge_in.explanation


@pytest.mark.parametrize("read", [True, False])
def test_a_caller_who_is_ignored_over_audio_nobody_saw(tmp_path: Path, read: bool) -> None:
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=True)
    call.happens(SpeechCreated, "s1", "say")
    for _ in range(5):
        call.capture(2400)
        call.tick(10)
    call.swap(read=read)
    call.user(True)
    for _ in range(15):
        call.capture(2400)
        call.tick(10)
    call.user(False)
    call.flush()
    call.tick(30)
    analysis = analysed(call, tmp_path)
    (barge_in,) = analysis.barge_ins
    assert barge_in.outcome == "ignored"
    fired = {finding.rule for finding in analysis.findings}
    if read:
        assert "caller-ignored" in fired
        assert barge_in.unseen is None
        return
    assert "caller-ignored" not in fired
    assert barge_in.unseen == "source-unread"
    assert UNREAD in reasons(analysis)["caller-ignored"]
    assert f"is not known: {UNREAD}" in barge_in.explanation


@pytest.mark.parametrize("read", [True, False])
def test_silence_is_none_where_nobody_read(tmp_path: Path, read: bool) -> None:
    """The state says speaking, and all of it goes into the second source."""
    call = over_two_sources(read=read)
    call.flush()
    call.tick(20)
    call.happens(StateChanged, "agent", "speaking", "listening")
    analysis = analysed(call, tmp_path)
    assert "speaking-but-silent" not in {finding.rule for finding in analysis.findings}
    assert (UNREAD in reasons(analysis).get("speaking-but-silent", "")) is not read


def test_silence_is_found_where_everybody_read_and_nothing_came(tmp_path: Path) -> None:
    call = over_two_sources(read=True)
    call.flush()
    call.tick(200)
    call.happens(StateChanged, "agent", "speaking", "listening")
    analysis = analysed(call, tmp_path)
    assert "speaking-but-silent" in {finding.rule for finding in analysis.findings}


@pytest.mark.parametrize(
    "rule", ["gap-in-speech", "position-off", "committed-unheard", "finished-uninterrupted"]
)
def test_what_concludes_from_what_was_not_sent_needs_all_of_it(tmp_path: Path, rule: str) -> None:
    call = over_two_sources(read=False)
    call.flush()
    call.tick(20)
    call.happens(SpeechDone, "s1")
    analysis = analysed(call, tmp_path)
    assert rule not in {finding.rule for finding in analysis.findings}
    assert f"segment 1: {UNREAD}" in reasons(analysis)[rule]
