"""No trace breaks the account: whatever is missing, repeated, or beyond reason."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe.trace.events import (
    Event,
    FrameCaptured,
    FramePushed,
    InterruptCalled,
    PlaybackReported,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
)
from probe.trace.reader import read_trace
from reports import analyze, lay_out
from reports.account.boundary import BOUNDARIES, FOREVER
from reports.account.crossings import Audio
from reports.account.ledger import balance
from tests.report_traces import MS, Simulation, write

KINDS = (
    FrameCaptured,
    FramePushed,
    RunSent,
    SilenceInserted,
    Tapped,
    SinkMarked,
    QueueCleared,
    SpeechCreated,
    SpeechCommitted,
    StateChanged,
)
ODD = st.sampled_from([0, 1, 7, 240, 10**6, 10**9])


def whole_call() -> list[Event]:
    """Two speeches over two sources, one of them with a gap and interrupted."""
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=True)
    call.happens(SpeechCreated, "s1")
    call.capture(1200, "s1")
    call.tick(12)
    for _ in range(20):
        call.capture(480, "s1")
        call.tick(1)
    call.user(True)
    call.pause()
    call.happens(InterruptCalled, "s1", "activity")
    call.happens(SpeechCommitted, "s1")
    call.clear(1)
    call.tick(5)
    call.resume()
    call.user(False)
    call.happens(SpeechDone, "s1", True)
    call.happens(PlaybackReported, "finished", "s1", position_s=0.1, interrupted=True)
    call.swap(rate_hz=48_000, channels=2)
    call.happens(SpeechCreated, "s2")
    for _ in range(10):
        call.capture(480, "s2", rate_hz=24_000, channels=1)
        call.tick(1)
    call.add(100)
    call.flush()
    call.tick(30)
    return call.end()


WHOLE = whole_call()


def is_judged(events: Sequence[Event], *, trailer: bool = True) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = read_trace(write(Path(folder) / "call.jsonl", events, trailer=trailer))
    ledger = balance(trace)
    for field in dataclasses.fields(ledger.sums):
        assert len(getattr(ledger.sums, field.name)) == ledger.count
    for name in ("dropped", "held", "cleared", "queued", "lost", "lost_at_least", "unseen"):
        assert bool(np.all(getattr(ledger.sums, name) >= 0)), name
    audio = Audio(ledger)
    for speech in {*audio.segments_of, "nobody"} - {None}:
        for boundary in BOUNDARIES:
            audio.unseen(boundary, str(speech), 100 * MS)
            whole = audio.crossed(boundary, str(speech), -FOREVER, FOREVER)
            assert whole.leak(boundary.gap_ns).samples == whole.amount.count
        audio.remaining(str(speech), 100 * MS)
    analyze(trace)
    lay_out(ledger)


@pytest.mark.parametrize("boundary", [b.name for b in BOUNDARIES])
@pytest.mark.parametrize("taps", [True, False], ids=["tapped", "not-tapped"])
def test_a_boundary_may_be_missing_with_its_taps_or_without(boundary: str, taps: bool) -> None:
    is_judged(
        [
            e
            for e in WHOLE
            if boundary != e.NAME and (taps or getattr(e, "boundary", "") != boundary)
        ]
    )


@pytest.mark.parametrize("boundary", [b.name for b in BOUNDARIES])
def test_a_boundary_may_be_all_there_is(boundary: str) -> None:
    others = {b.name for b in BOUNDARIES} - {boundary}
    is_judged([e for e in WHOLE if e.NAME not in others])
    is_judged([e for e in WHOLE if boundary == e.NAME])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    missing=st.sets(st.sampled_from(KINDS)),
    lost=st.lists(st.integers(0, len(WHOLE) - 1), max_size=30),
    doubled=st.lists(st.integers(0, len(WHOLE) - 1), max_size=5),
    changed=st.lists(
        st.tuples(
            st.integers(0, len(WHOLE) - 1),
            st.sampled_from(["start_sample", "samples", "source", "at_ns", "until_ns", "rate_hz"]),
            ODD,
        ),
        max_size=8,
    ),
    trailer=st.booleans(),
)
def test_no_trace_breaks_the_account(
    missing: set[Any],
    lost: list[int],
    doubled: list[int],
    changed: list[tuple[int, str, int]],
    trailer: bool,
) -> None:
    events: list[Any] = list(WHOLE)
    for row, name, value in changed:
        if hasattr(events[row], name) and getattr(events[row], name) is not None:
            events[row] = dataclasses.replace(events[row], **{name: max(value, name == "rate_hz")})
    kept = [e for row, e in enumerate(events) if row not in lost and type(e) not in missing]
    is_judged([*kept, *(events[row] for row in doubled)], trailer=trailer)
