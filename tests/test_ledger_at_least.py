"""What is certain although the ledger does not balance: so much was lost at least."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from probe.trace.events import (
    Event,
    FramePushed,
    InterruptCalled,
    PlaybackReported,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
)
from probe.trace.reader import read_trace
from reports import Analysis, Finding, analyze
from reports.account.ledger import balance
from tests.report_traces import Simulation, write


def reply_that_loses(frames: int, *, swap: bool = False, read: bool = True) -> Simulation:
    """A speech is cut; of the 20 frames of the next one the sink drops so many, and says nothing.

    ``swap``: the first half of that reply goes into another source, which is read or not.
    """
    call = Simulation()
    call.happens(SpeechCreated, "s1")
    call.capture(4800, "s1")
    call.tick(5)
    call.user(True)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    call.clear()
    call.happens(PlaybackReported, "finished", "s1", position_s=0.05, interrupted=True)
    call.happens(SpeechDone, "s1", True)
    call.user(False)
    call.tick(50)
    call.happens(SpeechCreated, "s2")
    before, after = call.sink, call.sink
    if swap:
        after = call.swap(read=read)
    for nth in range(20):
        sink = before if nth >= 10 else after
        call.capture(480, "s2", sink=sink)
        if 1 <= nth <= frames:
            del sink.rest[-480:]
        call.tick(2)
    call.flush(sink=before)
    call.flush(sink=after)
    call.tick(30)
    call.happens(PlaybackReported, "finished", "s2", position_s=0.4, interrupted=False)
    call.happens(SpeechDone, "s2")
    return call


def swallowed(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.rule == "swallowed-reply"]


def test_a_swallowed_reply_is_named_although_nothing_accounts_for_the_loss(tmp_path: Path) -> None:
    analysis = analyze(write(tmp_path / "call.jsonl", reply_that_loses(18).end()))
    assert analysis.balanced is False
    (finding,) = swallowed(analysis)
    assert finding.message.startswith("At least 360.0 ms (8640 samples) of 400.0 ms")
    assert (finding.evidence.samples, finding.evidence.facts["at_least"]) == (18 * 480, True)


def test_what_a_push_of_no_known_origin_may_hold_is_not_lost_for_certain(tmp_path: Path) -> None:
    # 18 frames are in no push that says so, and 12 frames' worth were pushed of unknown origin.
    events: list[Event] = list(reply_that_loses(18).end())
    last = next(e for e in reversed(events) if isinstance(e, FramePushed))
    strange = dataclasses.replace(
        last,
        push=last.push + 1,
        at_ns=last.at_ns + 1,
        ended_ns=last.at_ns + 2,
        start_sample=last.start_sample + last.samples,
        samples=12 * 480,
        captured=[(None, 12 * 480)],
    )
    trace = write(tmp_path / "call.jsonl", [*events, strange])
    assert balance(read_trace(trace)).sums.lost_at_least.tolist()[1] == 6 * 480
    assert swallowed(analyze(trace)) == []


def test_audio_that_went_where_nobody_read_is_not_lost_for_certain(tmp_path: Path) -> None:
    call = reply_that_loses(0, swap=True, read=False)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    assert analysis.segments[1].unknown_samples > 4000
    assert swallowed(analysis) == []


def test_where_the_ledger_balances_the_least_is_what_was_lost(tmp_path: Path) -> None:
    call = reply_that_loses(0)
    ledger = balance(read_trace(write(tmp_path / "call.jsonl", call.end())))
    assert ledger.issues == []
    assert ledger.sums.lost_at_least.tolist() == ledger.sums.lost.tolist()
    assert ledger.sums.lost.tolist()[0] == call.truth[0].cleared > 0
