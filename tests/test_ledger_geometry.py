"""Where the sink changes rate or channels, captured and pushed samples can't be compared: the two
laws stand alone, and what joins them is an estimate in time, or nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
from reports import Analysis, analyze
from reports.account.boundary import CAPTURED, PUSHED, SENT
from reports.account.crossings import Audio
from reports.account.estimates import Estimates
from reports.account.ledger import balance
from reports.account.samples import GeometryError, Samples, encoded
from reports.results import Estimate
from tests.ledger_lines import captured, of, only, pushed, sent
from tests.report_traces import MS, Simulation, write


def interrupted_call(**sink: Any) -> Simulation:
    """A speech cut after 100 ms of it were sent, then a reply that goes out whole.

    24 kHz in, 48 kHz out through a sink that makes two samples of one.
    """
    call = Simulation(step_ns=1_037, grid_ns=300)
    call.swap(rate_hz=48_000, ratio=2, **sink)
    call.happens(SpeechCreated, "s1")
    for _ in range(50):
        call.capture(480, "s1", rate_hz=24_000)
    call.tick(11)
    call.user(True)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    call.tick(3)
    call.clear()
    call.happens(PlaybackReported, "finished", "s1", position_s=0.1, interrupted=True)
    call.happens(SpeechDone, "s1", True)
    call.user(False)
    call.happens(SpeechCreated, "s2")
    for _ in range(20):
        call.capture(480, "s2", rate_hz=24_000)
        call.tick(2)
    call.flush()
    call.tick(30)
    call.happens(PlaybackReported, "finished", "s2", position_s=0.4, interrupted=False)
    call.happens(SpeechDone, "s2")
    return call


def with_silence_taken_for_silence(events: list[Event]) -> list[Event]:
    """A quarter of each push is matched: silence in it looks like silence captured long before."""
    return [
        dataclasses.replace(e, captured=[(240 * nth, 600), (None, e.samples - 600)])
        if isinstance(e, FramePushed)
        else e
        for nth, e in enumerate(events)
    ]


@pytest.fixture(params=["nothing matched", "silence matched"])
def resampled(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Simulation, Analysis]:
    call = interrupted_call(follows=False)
    events = call.end()
    if request.param == "silence matched":
        events = with_silence_taken_for_silence(events)
    return call, analyze(write(tmp_path / "call.jsonl", events))


def test_across_a_resampling_sink_the_two_laws_stand_alone(
    resampled: tuple[Simulation, Analysis],
) -> None:
    call, analysis = resampled
    assert analysis.unaccounted_because == ()
    assert analysis.balanced is None
    for segment, truth in zip(analysis.segments, call.truth, strict=True):
        assert (segment.unjoined, segment.resampled, segment.balanced) == ("resampled", True, None)
        assert segment.captured is not None
        assert segment.pushed is not None
        assert segment.sent is not None
        assert segment.captured.samples == truth.captured
        assert segment.pushed.samples == segment.sent.samples + (
            (segment.cleared_samples or 0) + (segment.queued_samples or 0)
        )
        assert (segment.pushed.samples, segment.sent.samples) == (truth.pushed, truth.sent)
        assert (segment.dropped_samples, segment.held_samples) == (None, None)
        assert (segment.swallowed_samples, segment.last_sent_position) == (None, None)
    assert analysis.totals.dropped_samples is None
    assert analysis.totals.swallowed_samples is None


def test_a_leak_behind_a_resampling_sink_is_an_estimate_in_time(
    resampled: tuple[Simulation, Analysis],
) -> None:
    _, analysis = resampled
    (barge_in,) = analysis.barge_ins
    assert barge_in.outcome == "committed"
    assert barge_in.leaked is not None
    assert barge_in.leaked["captured"] is not None
    assert (barge_in.leaked["pushed"], barge_in.leaked["sent"]) == (None, None)
    assert (barge_in.unseen, barge_in.remaining, barge_in.causes) == ("resampled", None, None)
    assert (barge_in.stop_ns, barge_in.last_sent_ns) == (None, None)
    assert barge_in.estimated is not None
    assert barge_in.estimated["sent"] == Estimate(30 * MS, 0)
    assert barge_in.estimated["captured"] is None
    assert "~ 30.0 ms (± 0.0 ms)" in barge_in.explanation


def test_no_finding_rests_on_what_can_not_be_compared(
    resampled: tuple[Simulation, Analysis],
) -> None:
    _, analysis = resampled
    assert analysis.findings == ()
    reasons = {told.rule: told.reason for told in analysis.not_judged}
    assert "segment 1: the sink resamples" in reasons["old-audio-in-new-segment"]
    assert "segment 2: the sink resamples" in reasons["swallowed-reply"]


def test_what_was_in_the_sink_when_the_next_segment_began_is_the_error(tmp_path: Path) -> None:
    # 20 ms of the first speech are still in the sink, and are pushed under the second one's name.
    call = Simulation()
    call.swap(rate_hz=48_000, ratio=2, follows=False)
    call.capture(1680, "s1", rate_hz=24_000)
    call.capture(3000, "s2", rate_hz=24_000)
    call.capture(2400, "s3", rate_hz=24_000)
    call.tick(30)
    audio = Audio(balance(read_trace(write(tmp_path / "call.jsonl", call.end()))))
    estimates = Estimates(audio)
    assert estimates.crossed(SENT, "s1", 0, 10**12) == Estimate(50 * MS, 20 * MS)
    assert estimates.crossed(PUSHED, "s2", 0, 10**12) == Estimate(100 * MS, 45 * MS)
    assert estimates.crossed(PUSHED, "s3", 0, 10**12) == Estimate(100 * MS, 45 * MS)
    assert estimates.crossed(SENT, "s1", 10**12, 2 * 10**12) == Estimate(0, 20 * MS)
    assert estimates.crossed(CAPTURED, "s1", 0, 10**12) is None
    assert estimates.crossed(SENT, "nobody", 0, 10**12) is None


def test_a_short_segment_pushed_under_the_next_ones_time_is_not_taken_for_dropped(
    tmp_path: Path,
) -> None:
    call = Simulation()
    call.swap(rate_hz=48_000, ratio=2, follows=False)
    call.capture(480, "s1", rate_hz=24_000)
    call.capture(4800, "s2", rate_hz=24_000)
    call.tick(30)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    assert [segment.unjoined for segment in analysis.segments] == ["resampled"] * 2
    assert analysis.unaccounted_because == ()


# --- Followed all the same -----------------------------------------------------------------------


def test_a_relabelled_rate_is_flagged_followed_and_balanced(tmp_path: Path) -> None:
    call = Simulation(rate_hz=24_000)
    for _ in range(20):
        call.capture(441, rate_hz=22_050)
        call.tick(2)
    call.flush()
    call.tick(20)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    (segment,) = analysis.segments
    assert (segment.geometry_differs, segment.resampled, segment.unjoined) == (True, False, None)
    assert analysis.balanced is True


def test_values_laid_out_in_other_channels_have_an_owner_and_no_joined_figures(
    tmp_path: Path,
) -> None:
    # 480 mono samples handed on as 240 of two channels: the same values, and another count.
    events: list[Event] = [
        captured(1, 1, 0, 480, speech="s1"),
        captured(1.1, 2, 480, 480, speech="s2"),
        pushed(2, 1, 0, 240, channels=2, captured=[(0, 240)]),
        pushed(3, 2, 240, 240, channels=2, captured=[(480, 240)]),
        sent(10, 0, 480),
    ]
    analysis = of(tmp_path, *events)
    assert analysis.unaccounted_because == ()
    for segment in analysis.segments:
        assert (segment.unjoined, segment.resampled, segment.balanced) == ("channels", False, None)
        assert segment.pushed is not None
        assert segment.pushed.samples == 240
        assert segment.dropped_samples is None
    audio = Audio(balance(read_trace(tmp_path / "call.jsonl")))
    assert audio.unseen(SENT, "s1", 0) is None, "whose it is, is known"
    assert audio.crossed(SENT, "s1", 0, 10**12).samples == 240
    assert audio.remaining("s1", 0) is None


def test_silence_pushed_at_another_rate_is_no_captured_silence(tmp_path: Path) -> None:
    # One push is all silence and matches whole; the others show that nothing is followed there.
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 480, rate_hz=48_000),
            captured(1.1, 2, 480, 480, rate_hz=48_000),
            pushed(2, 1, 0, 240, captured=[(None, 240)]),
            pushed(3, 2, 240, 240, captured=[(480, 240)]),
            sent(10, 0, 480),
        )
    )
    assert (segment.unjoined, segment.dropped_samples) == ("resampled", None)
    assert segment.last_sent_position is None


def test_a_source_that_is_followed_is_believed_beside_one_that_is_not(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(4800, "s1")
    call.tick(30)
    call.swap(rate_hz=48_000, ratio=2, follows=False)
    call.capture(4800, "s2", rate_hz=24_000)
    call.tick(30)
    analysis = analyze(write(tmp_path / "call.jsonl", call.end()))
    assert [(s.unjoined, s.balanced) for s in analysis.segments] == [
        (None, True),
        ("resampled", None),
    ]


# --- Amounts -------------------------------------------------------------------------------------


def amount(samples: int, rate_hz: int, channels: int = 1) -> Samples:
    return Samples.counted(np.array([samples]), encoded(np.array([rate_hz]), np.array([channels])))


def test_an_amount_of_another_geometry_can_not_be_taken_away() -> None:
    assert (amount(480, 24_000) - amount(240, 24_000)).count == 240
    for other in (amount(240, 48_000), amount(240, 24_000, 2)):
        with pytest.raises(GeometryError, match="24000"):
            amount(480, 24_000) - other


def test_a_sum_keeps_geometries_apart_and_lasts_as_long_as_each_at_its_rate() -> None:
    both = amount(240, 24_000) + amount(480, 48_000) + amount(240, 24_000)
    assert both.of == {(24_000, 1): 480, (48_000, 1): 480}
    assert (both.count, both.rates, both.ns) == (960, {24_000, 48_000}, 30 * MS)
    assert (both - amount(480, 48_000)).of == {(24_000, 1): 480, (48_000, 1): 0}
