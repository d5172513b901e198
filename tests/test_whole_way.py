"""The law of conservation from the taps' raw records to the account, whatever a call does."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports import Analysis, analyze
from tests.whole_way import BLOCK, STEPS, LiveCall, play

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def analysed(call: LiveCall) -> Analysis:
    with tempfile.TemporaryDirectory() as folder:
        analysis = analyze(call.finish(Path(folder)))
    assert analysis.trace.problems == ()
    assert not analysis.faults
    assert analysis.unaccounted_because == ()
    assert analysis.balanced is True
    return analysis


@QUICK
@given(STEPS, st.booleans(), st.integers(0, 3))
def test_every_sample_of_a_call_meets_the_fate_it_met(
    steps: list[tuple[str, int]], beat: bool, delay_ms: int
) -> None:
    call = LiveCall(beat=beat, delay_ms=delay_ms)
    play(call, steps)
    analysis = analysed(call)
    truth = call.truth()
    assert len(analysis.segments) == len(truth)
    for segment, true in zip(analysis.segments, truth, strict=True):
        assert segment.captured is not None
        assert segment.pushed is not None
        assert segment.sent is not None
        assert segment.captured.samples == sum(true.values())
        assert segment.pushed.samples == true["sent"] + true["cleared"] + true["queued"]
        assert segment.sent.samples == true["sent"]
        assert segment.dropped_samples == true["dropped"]
        assert segment.held_samples == true["held"]
        assert segment.cleared_samples == true["cleared"]
        assert segment.queued_samples == true["queued"]


@QUICK
@given(STEPS, STEPS, st.booleans(), st.integers(0, 3))
def test_what_crosses_a_boundary_after_a_verdict_is_leaked(
    before: list[tuple[str, int]], after: list[tuple[str, int]], beat: bool, delay_ms: int
) -> None:
    call = LiveCall(beat=beat, delay_ms=delay_ms)
    play(call, [*before, ("capture", 1_000), ("interrupt", 0), *after])
    analysis = analysed(call)
    judged = [b for b in analysis.barge_ins if b.verdict_ns is not None]
    assert {b.speech_id for b in judged} == set(call.verdicts)
    for barge_in in judged:
        speech, verdict_ns = barge_in.speech_id, barge_in.verdict_ns
        # A pause that the commit confirms is the verdict.
        assert verdict_ns is not None
        assert verdict_ns <= call.verdicts[speech]
        assert barge_in.leaked is not None
        told = {name: leak.samples for name, leak in barge_in.leaked.items() if leak is not None}
        for boundary in ("captured", "pushed"):
            assert told[boundary] == call.crossed(boundary, speech, verdict_ns)
        # A block is stamped when it was read, a little after it left.
        assert abs(told["sent"] - call.crossed("sent", speech, verdict_ns)) <= BLOCK
