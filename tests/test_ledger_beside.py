"""What stands beside the balance, and what can't be known, on traces written by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from probe.trace.events import (
    Event,
    Faulted,
    PlaybackReported,
    SilenceInserted,
    SizeBounded,
    SourceClosed,
    SpeechCommitted,
    SpeechDone,
    SumsKept,
    Tapped,
    Untapped,
)
from reports.units import time_ms
from tests.ledger_lines import captured, cleared, mark, of, only, pushed, sent
from tests.report_traces import MS, header, taps

# --- Beside the balance --------------------------------------------------------------------------


def test_silence_inside_a_segment_is_inserted_and_a_gap(tmp_path: Path) -> None:
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 240),
            pushed(2, 1, 0, 240),
            sent(10, 0, 240),
            SilenceInserted(20 * MS, 60 * MS, 1, 960),
            captured(55, 2, 240, 240),
            pushed(56, 2, 240, 240),
            sent(60, 240, 240),
            SilenceInserted(70 * MS, 100 * MS, 1, 720),
        )
    )
    assert segment.inserted_samples == 960
    assert [(time_ms(gap.at_ns), time_ms(gap.ns)) for gap in segment.gaps] == [(20.0, 40.0)]
    assert segment.balanced is True


def test_what_was_inside_before_the_probe_is_inherited_and_in_no_balance(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        sent(5, None, 960),
        captured(60, 1, 0, 480),
        pushed(61, 1, 0, 600, captured=[(None, 120), (0, 480)]),
        sent(70, 0, 480),
        tapped=taps(mid_speech=True),
    )
    segment = only(analysis)
    assert segment.partial is True
    assert segment.pushed is not None
    assert segment.sent is not None
    assert (segment.pushed.samples, segment.sent.samples) == (480, 360)
    assert segment.inherited_samples == 120
    assert analysis.totals.inherited_samples == 1080
    assert analysis.totals.sent_samples == 360
    assert analysis.balanced is True


def test_audio_from_before_the_probe_is_inherited_where_code_feeds_the_sink(
    tmp_path: Path,
) -> None:
    # No session says that the probe came in mid-speech.
    inside: list[Event] = [
        sent(5, None, 4800),
        pushed(6, 1, 0, 1200, captured=[(None, 1200)]),
        sent(205, 0, 1200),
    ]
    analysis = of(tmp_path, *inside)
    assert (analysis.balanced, analysis.unaccounted_samples) == (True, 0)
    assert (analysis.totals.inherited_samples, analysis.totals.sent_samples) == (6000, 0)

    later = of(
        tmp_path,
        *inside,
        captured(300, 1, 0, 240),
        pushed(301, 2, 1200, 240, captured=[(0, 240)]),
        sent(310, 1200, 240),
    )
    segment = only(later)
    assert (later.balanced, later.totals.inherited_samples) == (True, 6000)
    assert (segment.pushed, segment.sent, segment.inherited_samples) == (
        segment.captured,
        segment.captured,
        0,
    )


@pytest.mark.parametrize("captured_ms", [1, 4])
def test_audio_of_no_origin_after_the_first_frame_is_not_inherited(
    tmp_path: Path, captured_ms: float
) -> None:
    analysis = of(
        tmp_path,
        captured(captured_ms, 1, 0, 240),
        pushed(6, 1, 0, 240, captured=[(None, 240)]),
        sent(10, 0, 240),
    )
    assert analysis.balanced is False
    assert analysis.totals.inherited_samples == 0


def test_a_segment_that_began_after_a_flush_is_not_partial(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        pushed(1, 1, 0, 240, captured=[(None, 240)]),
        sent(10, 0, 240),
        mark(20, "flush"),
        captured(30, 1, 0, 240),
        pushed(31, 2, 240, 240, captured=[(0, 240)]),
        sent(40, 240, 240),
        tapped=taps(mid_speech=True),
    )
    assert only(analysis).partial is False
    assert only(analysis).inherited_samples == 0
    assert analysis.totals.inherited_samples == 240
    assert analysis.balanced is True


def test_audio_of_no_known_origin_is_unaccounted(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 240),
        pushed(3, 2, 240, 240, captured=[(None, 240)]),
        sent(10, 0, 480),
    )
    assert analysis.balanced is False
    assert analysis.unaccounted_samples == 240


def test_sent_audio_that_nobody_pushed_is_unaccounted(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 240),
        sent(10, 0, 240),
        sent(20, None, 480),
    )
    assert analysis.balanced is False
    assert analysis.unaccounted_samples == 480


def test_ambiguous_samples_are_counted_and_no_fault(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 240, ambiguous_samples=10),
        sent(10, 0, 240, ambiguous_samples=7),
    )
    assert only(analysis).ambiguous_samples == 17
    assert analysis.balanced is True


def test_positions_that_do_not_follow_on_leave_no_balance(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        captured(2, 2, 300, 240),
        pushed(3, 1, 0, 240),
        pushed(4, 2, 240, 240, captured=[(300, 240)]),
        sent(10, 0, 480),
    )
    assert analysis.balanced is not True
    assert any("does not start" in why for why in analysis.trace.incomplete_because)


def test_a_push_whose_origins_do_not_add_up_is_unaccounted(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 240, captured=[(0, 200)]),
        sent(10, 0, 240),
    )
    assert analysis.balanced is not True
    assert analysis.unaccounted_because


# --- Geometry, claims, swallowed -----------------------------------------------------------------


def test_a_sink_that_resamples_is_flagged_and_has_no_balance(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 160, rate_hz=16_000),
        pushed(2, 1, 0, 240, captured=[(None, 240)]),
        sent(10, 0, 240),
    )
    segment = only(analysis)
    assert segment.resampled is True
    assert segment.geometry_differs is True
    assert segment.dropped_samples is None
    assert (segment.captured.ms, segment.pushed.ms) == (10.0, 10.0)  # type: ignore[union-attr]
    assert (segment.balanced, analysis.balanced) == (None, None)


def test_a_sink_that_only_claims_another_rate_is_flagged_and_balances(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240, rate_hz=48_000),
        pushed(2, 1, 0, 240),
        sent(10, 0, 240),
    )
    segment = only(analysis)
    assert (segment.geometry_differs, segment.resampled) == (True, False)
    assert analysis.balanced is True


def test_milliseconds_of_mixed_rates_are_missing(tmp_path: Path) -> None:
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 240, rate_hz=24_000),
            captured(2, 2, 240, 160, rate_hz=16_000),
        )
    )
    assert segment.captured is not None
    assert (segment.captured.samples, segment.captured.ms) == (400, None)


def test_claimed_and_sent_positions_stand_side_by_side(tmp_path: Path) -> None:
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 960),
            pushed(2, 1, 0, 960),
            sent(10, 0, 240),
            cleared(19),
            captured(60, 2, 960, 240),
            pushed(61, 2, 960, 240),
            sent(70, 960, 240),
            mark(80, "flush"),
            PlaybackReported(90 * MS, "finished", "s1", position_s=0.05, interrupted=False),
        )
    )
    assert time_ms(segment.claimed_position_ns) == 50.0
    assert segment.sent_position.ms == 20.0
    assert segment.last_sent_position.ms == 50.0
    assert time_ms(segment.finished_ns) == 90.0
    assert segment.interrupted is False


def swallowing(*events: Event) -> list[Event]:
    return [
        captured(1, 1, 0, 960),
        pushed(2, 1, 0, 960),
        sent(10, 0, 480),
        cleared(29),
        *events,
        SpeechDone(300 * MS, "s1"),
    ]


def test_lost_audio_of_a_speech_nobody_interrupted_is_swallowed(tmp_path: Path) -> None:
    assert only(of(tmp_path, *swallowing())).swallowed_samples == 480


def test_lost_audio_of_an_interrupted_speech_is_not_swallowed(tmp_path: Path) -> None:
    events = swallowing(SpeechCommitted(28 * MS, "s1"))
    assert only(of(tmp_path, *events)).swallowed_samples == 0


# --- What can't be known -------------------------------------------------------------------------


def simple_call() -> list[Event]:
    return [captured(1, 1, 0, 240), pushed(2, 1, 0, 240), sent(10, 0, 240)]


def test_a_boundary_that_was_not_tapped_is_missing_and_never_zero(tmp_path: Path) -> None:
    analysis = of(tmp_path, *simple_call()[:2], tapped=taps()[:2])
    segment = only(analysis)
    assert analysis.trace.boundaries == ("captured", "pushed")
    assert "sent" in analysis.trace.missing
    assert segment.sent is None
    assert segment.cleared_samples is None
    assert segment.queued_samples is None
    assert segment.pushed is not None
    assert segment.dropped_samples == 0
    assert analysis.totals.sent_samples is None
    assert analysis.balanced is None
    assert analysis.unaccounted_samples == 0


def test_without_a_tap_on_the_source_only_the_sink_is_known(tmp_path: Path) -> None:
    analysis = of(tmp_path, captured(1, 1, 0, 240), tapped=taps()[:1])
    segment = only(analysis)
    assert (segment.pushed, segment.dropped_samples, segment.held_samples) == (None, None, None)
    assert analysis.balanced is None


def test_pushes_while_nobody_read_the_wire_are_not_taken_for_unsent(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *simple_call(),
        Untapped(50 * MS, "sent", 1, "the source was swapped"),
        mark(55, "flush"),
        captured(60, 2, 240, 480, speech="s2"),
        pushed(61, 2, 240, 480),
    )
    first, second = analysis.segments
    assert first.sent is not None
    assert second.sent is None
    assert second.unknown_samples == 480
    assert analysis.balanced is None


SWAPPED: list[Event] = [Untapped(200 * MS, "sent", 1, "stopped"), *taps(source=2)[1:]]


def swapped(*events: Event) -> list[Event]:
    """100 ms captured and pushed, 50 ms sent; then the wire is left alone, and the call goes on."""
    return [
        captured(1, 1, 0, 2400),
        pushed(2, 1, 0, 2400),
        sent(149, 0, 1200),
        *events,
        captured(900, 2, 2400, 240),
        pushed(901, 2, 2400, 240, source=2),
        dataclasses.replace(sent(910, 2400, 240), source=2),
    ]


@pytest.mark.parametrize(
    "events",
    [SWAPPED, [*SWAPPED, cleared(500)], [*SWAPPED, SourceClosed(500 * MS, 1)]],
    ids=["alive", "cleared-later", "closed-later"],
)
def test_what_was_inside_a_source_left_alone_is_unknown(
    tmp_path: Path, events: list[Event]
) -> None:
    analysis = of(tmp_path, *swapped(*events))
    segment = only(analysis)
    assert (analysis.balanced, segment.balanced) == (None, None)
    assert (segment.unknown_samples, analysis.totals.unknown_samples) == (1200, 1200)
    assert (segment.queued_samples, segment.cleared_samples) == (0, 0)
    assert (segment.swallowed_samples, analysis.unaccounted_samples) == (0, 0)


@pytest.mark.parametrize(
    "event", [cleared(199), SourceClosed(199 * MS, 1)], ids=["cleared", "closed"]
)
def test_what_left_a_source_before_it_was_left_alone_is_known(tmp_path: Path, event: Event) -> None:
    analysis = of(tmp_path, *swapped(event, *SWAPPED))
    segment = only(analysis)
    assert (analysis.balanced, segment.cleared_samples, segment.unknown_samples) == (True, 1200, 0)


def test_a_source_that_had_run_dry_keeps_its_tail_when_it_is_left_alone(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 300),
        pushed(2, 1, 0, 300),
        sent(10, 0, 240),
        SilenceInserted(20 * MS, 190 * MS, 1, 17 * 240),
        *SWAPPED,
        mark(900, "flush"),
    )
    segment = only(analysis)
    assert (analysis.balanced, segment.queued_samples, segment.tail_samples) == (True, 60, 60)


def test_what_is_still_queued_is_not_swallowed(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480),
        pushed(2, 1, 0, 480),
        sent(10, 0, 240),
        mark(11, "flush"),
        PlaybackReported(19 * MS, "finished", "s1", position_s=0.02, interrupted=False),
        Untapped(19 * MS + 1000, "captured", reason="detached"),
        Untapped(19 * MS + 2000, "sent", 1, "stopped"),
    )
    segment = only(analysis)
    assert (analysis.balanced, segment.queued_samples, segment.swallowed_samples) == (True, 240, 0)


def test_a_cut_trace_has_no_balance_and_says_so(tmp_path: Path) -> None:
    analysis = of(tmp_path, *simple_call(), trailer=False)
    assert analysis.trace.complete is False
    assert analysis.balanced is None
    assert analysis.unaccounted_samples is None
    assert analysis.trace.incomplete_because


@pytest.mark.parametrize("kind", ["events_lost", "wire_hole", "audio_forgotten", "tap_raised"])
def test_after_a_fault_a_hole_is_unknown_and_not_wrong(tmp_path: Path, kind: str) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480),
        pushed(2, 1, 0, 480),
        sent(10, 0, 240),
        captured(200, 2, 480, 240),
        pushed(201, 2, 480, 240),
        sent(210, 480, 240),
        Faulted(100 * MS, kind, 3),
    )
    assert analysis.balanced is None
    assert analysis.unaccounted_samples is None
    assert only(analysis).unknown_samples == 240
    assert [(f.kind, f.count, time_ms(f.first_ns)) for f in analysis.faults] == [(kind, 3, 100.0)]


def test_a_slow_disk_is_shown_and_leaves_the_balance_alone(tmp_path: Path) -> None:
    analysis = of(tmp_path, *simple_call(), Faulted(100 * MS, "write_slow"))
    assert analysis.balanced is True
    assert analysis.faults[0].kind == "write_slow"


def test_a_bounded_trace_adds_the_sums_and_gives_no_balance(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        *simple_call(),
        SizeBounded(50 * MS),
        SumsKept(
            60 * MS,
            captured_frames=2,
            captured_samples=480,
            pushed_frames=1,
            pushed_samples=480,
            sent_samples=240,
        ),
    )
    assert analysis.totals.captured_samples == 720
    assert analysis.totals.sent_samples == 480
    assert analysis.balanced is None
    assert any("bound" in why for why in analysis.trace.incomplete_because)


def test_an_empty_call_balances(tmp_path: Path) -> None:
    analysis = of(tmp_path)
    assert (analysis.balanced, analysis.segments, analysis.totals.captured_samples) == (True, (), 0)


def test_the_header_does_not_make_a_boundary_tapped(tmp_path: Path) -> None:
    analysis = of(tmp_path, tapped=[], head=header(boundaries=["captured", "pushed", "sent"]))
    assert analysis.trace.boundaries == ()
    assert analysis.balanced is None


def test_the_resolution_is_the_worst_of_the_taps(tmp_path: Path) -> None:
    second = Tapped(0, "sent", source=2, resolution_ns=90 * MS)
    analysis = of(tmp_path, tapped=[*taps(), second])
    assert analysis.trace.resolution_ns == {"captured": 0, "pushed": 0, "sent": 90 * MS}
