"""The benchmark times what it says: a call that is complete and balances, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from probe.bench import analysis as bench
from probe.errors import ProbeError
from probe.trace.events import Event, QueueCleared, RunSent
from probe.trace.reader import read_trace
from reports import analyze

TURNS = 3
MINUTES = TURNS * bench.TURN_MS / 60_000


def samples(length_ms: int) -> int:
    return length_ms * bench.RATE_HZ // 1000


def test_the_made_call_is_sound_and_balances_to_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    lines = bench.write_call(path, MINUTES)
    trace = read_trace(path)
    analysis = analyze(trace)

    assert trace.problems == ()
    assert trace.lines == lines
    assert trace.trailer is not None
    assert trace.trailer.counts is not None
    assert analysis.trace.complete
    assert analysis.balanced is True
    assert analysis.unaccounted_samples == 0
    assert analysis.faults == ()
    assert len(analysis.segments) == len(analysis.barge_ins) == TURNS
    # Each reply is captured whole and sent up to its clear, a block later.
    for segment in analysis.segments:
        assert segment.captured.samples == samples(bench.REPLY_MS)
        assert segment.pushed is not None
        assert segment.pushed.samples == samples(bench.CUT_MS + bench.QUEUE_MS)
        assert segment.sent is not None
        assert segment.sent.samples == samples(bench.CUT_MS + 10)
        assert segment.cleared_samples == samples(bench.QUEUE_MS - 10)
        assert segment.dropped_samples == samples(bench.REPLY_MS - bench.CUT_MS - bench.QUEUE_MS)
        assert (segment.held_samples, segment.queued_samples) == (0, 0)
        assert segment.gaps == ()
    assert {barge_in.outcome for barge_in in analysis.barge_ins} == {"committed"}


def test_the_made_call_is_as_long_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    bench.write_call(path, 1)
    assert read_trace(path).last_ns == pytest.approx(60e9, abs=bench.TURN_MS * 1e6)


def test_what_is_measured_says_that_it_balances(tmp_path: Path) -> None:
    measured = bench.measure(MINUTES, tmp_path)
    assert measured["balanced"] is True
    assert measured["events"] == read_trace(tmp_path / "call.jsonl").lines
    assert measured["seconds"] > 0


@pytest.mark.parametrize(
    ("left_out", "found"),
    [
        (QueueCleared, "were never sent"),
        (RunSent, "more time passed at a source"),
    ],
)
def test_a_call_that_does_not_balance_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: type[Event], found: str
) -> None:
    whole = bench.call

    def broken(minutes: float) -> Iterator[Event]:
        return (event for event in whole(minutes) if not isinstance(event, left_out))

    monkeypatch.setattr(bench, "call", broken)
    with pytest.raises(ProbeError, match=f"expected a made call that balances, found: .*{found}"):
        bench.measure(MINUTES, tmp_path)
