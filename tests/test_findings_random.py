"""Whatever a call does, the rules judge it without an error, and what they say adds up."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from probe.trace.events import (
    Event,
    InterruptCalled,
    ItemCommitted,
    LoopStalled,
    OverlapJudged,
    PlaybackReported,
    SpeechCommitted,
    SpeechDone,
)
from reports import Analysis, analyze
from reports.units import time_ms
from tests.report_traces import Simulation, write

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["capture", "capture", "tick", "tick", "pause", "resume", "clear", "flush", "speech",
             "user", "overlap", "commit", "finished", "started", "item", "done", "stall"]
        ),
        st.integers(0, 30),
    ),
    max_size=50,
)  # fmt: skip
QUICK = settings(max_examples=80, deadline=None)


def simulate(steps: Sequence[tuple[str, int]], rate_hz: int) -> list[Event]:
    call = Simulation(rate_hz=rate_hz)
    name = "s1"
    for step, amount in steps:
        if step == "capture":
            call.capture(amount * 80 + 1, name)
        elif step == "tick":
            call.tick(amount + 1)
        elif step in ("pause", "resume", "flush"):
            getattr(call, step)()
        elif step == "clear":
            call.clear(amount % 3)
        elif step == "speech":
            name = f"s{amount % 4}"
        elif step == "user":
            call.user(amount % 2 == 0)
        elif step == "overlap":
            call.happens(OverlapJudged, amount % 3 > 0, speech=name)
        elif step == "commit":
            call.happens(InterruptCalled, name, by="activity")
            call.happens(SpeechCommitted, name)
        elif step in ("finished", "started"):
            call.happens(
                PlaybackReported, step, name, position_s=amount / 50, interrupted=amount % 2 == 0
            )
        elif step == "item":
            call.happens(ItemCommitted, f"i{amount}", "assistant", amount, speech=name)
        elif step == "done":
            call.happens(SpeechDone, name, amount % 2 == 0)
        else:
            call.happens(LoopStalled, call.now + amount * 20_000_000)
    return call.end()


def judged(events: Sequence[Event], *, trailer: bool = True) -> Analysis:
    with tempfile.TemporaryDirectory() as folder:
        return analyze(write(Path(folder) / "call.jsonl", events, trailer=trailer))


@QUICK
@given(STEPS, st.sampled_from([8_000, 22_050, 24_000]))
def test_parts_and_figures_of_every_finding_add_up(
    steps: Sequence[tuple[str, int]], rate_hz: int
) -> None:
    analysis = judged(simulate(steps, rate_hz))
    for finding in analysis.findings:
        evidence = finding.evidence
        assert finding.message.endswith(".")
        assert finding.segment is None or 1 <= finding.segment <= len(analysis.segments)
        assert evidence.figure.value >= 0
        assert [time_ms(m.at_ns) for m in evidence.moments] == sorted(
            time_ms(m.at_ns) for m in evidence.moments
        )
        if evidence.parts:
            assert sum(part.samples for part in evidence.parts) == evidence.samples
        for place in evidence.ranges:
            assert place.start_sample <= place.stop_sample


@QUICK
@given(STEPS)
def test_the_parts_of_a_leak_add_up_to_the_leak(steps: Sequence[tuple[str, int]]) -> None:
    for barge_in in judged(simulate(steps, 24_000)).barge_ins:
        sent = (barge_in.leaked or {}).get("sent")
        if sent is None or barge_in.causes is None or barge_in.survivors is None:
            continue
        assert sum(cause.samples for cause in barge_in.causes) == sent.samples
        after_clear = sum(c.samples for c in barge_in.causes if c.cause == "after-clear")
        assert sum(s.samples for s in barge_in.survivors) == after_clear


@QUICK
@given(STEPS, st.data())
def test_a_trace_that_lost_lines_is_judged_without_an_error(
    steps: Sequence[tuple[str, int]], data: st.DataObject
) -> None:
    events = simulate(steps, 24_000)
    keep = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    judged([e for e, kept in zip(events, keep, strict=True) if kept], trailer=False)
