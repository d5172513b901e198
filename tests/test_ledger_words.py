"""Each word of the balance, proven on a trace written by hand. 24 kHz, blocks of 240 samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.trace.events import (
    CallEnd,
    Event,
    PlaybackReported,
    SilenceInserted,
    SourceClosed,
    SpeechDone,
)
from reports import Analysis, Segment
from reports.units import time_ms
from tests.ledger_lines import captured, cleared, mark, of, only, pushed, sent
from tests.report_traces import MS

# --- Segments and marks --------------------------------------------------------------------------


def test_a_segment_ends_with_a_flush_or_a_clear_and_not_with_a_pause(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        mark(2, "pause"),
        mark(3, "resume"),
        captured(4, 2, 240, 240),
        mark(5, "flush"),
        captured(6, 3, 480, 240),
        mark(7, "clear"),
        captured(8, 4, 720, 240),
    )
    assert [s.captured.samples for s in analysis.segments if s.captured] == [480, 240, 240]
    assert [s.index for s in analysis.segments] == [1, 2, 3]


def test_a_frame_of_another_speech_starts_a_new_segment(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240, speech="s1"),
        captured(2, 2, 240, 240, speech="s2"),
        captured(3, 3, 480, 240, speech=None),
    )
    assert [s.speech_id for s in analysis.segments] == ["s1", "s2", None]


def test_marks_belong_to_the_segment_that_began_last_and_early_ones_to_the_first(
    tmp_path: Path,
) -> None:
    analysis = of(
        tmp_path,
        mark(0.5, "resume"),
        captured(1, 1, 0, 240),
        mark(2, "flush"),
        mark(3, "clear"),
        captured(4, 2, 240, 240),
        mark(5, "flush"),
    )
    first, second = analysis.segments
    assert [m.mark for m in first.order] == ["resume", "flush", "clear"]
    assert [(m.mark, time_ms(m.at_ns)) for m in second.order] == [("flush", 5.0)]


def test_equal_times_are_told_apart_by_the_order_of_lines(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        mark(2, "flush"),
        captured(2, 2, 240, 240),
        mark(2, "clear"),
    )
    assert [len(s.order) for s in analysis.segments] == [1, 1]


# --- Dropped and held ----------------------------------------------------------------------------


def lost_frame(folder: Path, *events: Event, end: CallEnd | None = "returned") -> Segment:
    """Three frames of which the second never reaches the source."""
    return only(
        of(
            folder,
            captured(1, 1, 0, 240),
            captured(2, 2, 240, 240, end=end),
            *events,
            captured(60, 3, 480, 240),
            pushed(1.5, 1, 0, 240),
            pushed(61, 2, 240, 240, captured=[(480, 240)]),
            sent(10, 0, 240),
            sent(70, 240, 240),
        )
    )


@pytest.mark.parametrize(
    ("cause", "events", "end", "at_ms"),
    [
        ("pause", [mark(5, "pause"), mark(50, "resume")], "returned", 5.0),
        ("cancelled", [], "cancelled", 2.001),
        ("raised", [], "raised", 2.001),
        ("source-cleared", [cleared(30)], "returned", 30.0),
        ("source-closed", [SourceClosed(30 * MS, 1)], "returned", 30.0),
        (
            "refused",
            [pushed(3, 9, 240, 240, accepted=False, end="raised", error="Exception")],
            "returned",
            3.0,
        ),
    ],
)
def test_a_dropped_frame_has_its_cause_and_its_place(
    tmp_path: Path, cause: str, events: list[Event], end: CallEnd, at_ms: float
) -> None:
    segment = lost_frame(tmp_path, *events, end=end)
    assert segment.dropped_samples == 240
    assert segment.held_samples == 0
    (loss,) = [loss for loss in segment.losses if loss.what == "dropped"]
    assert (loss.cause, time_ms(loss.at_ns)) == (cause, at_ms)
    assert (loss.start_sample, loss.stop_sample, loss.ms) == (240, 480, 10.0)


def test_a_clear_of_the_sink_drops_what_waited(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        captured(2, 2, 240, 240),
        pushed(3, 1, 0, 240),
        sent(10, 0, 240),
        mark(20, "clear"),
    )
    segment = only(analysis)
    assert (segment.dropped_samples, segment.losses[0].cause) == (240, "clear")
    assert analysis.balanced is True


def test_what_comes_while_a_clear_is_pending_goes_with_it(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(1.5, 1, 0, 240),
        sent(10, 0, 240),
        mark(20, "clear"),
        captured(21, 2, 240, 240, speech="s2"),
        cleared(30),
        captured(40, 3, 480, 240, speech="s2"),
        pushed(41, 2, 240, 240, captured=[(480, 240)]),
        sent(50, 240, 240),
    )
    assert analysis.balanced is True
    assert analysis.segments[1].losses[0].cause == "clear"


def test_a_hole_that_nothing_announced_is_unaccounted(tmp_path: Path) -> None:
    segment = lost_frame(tmp_path)
    assert segment.dropped_samples == 0
    assert segment.unaccounted_samples == 240
    assert segment.balanced is False


def test_a_cause_at_another_time_accounts_for_nothing(tmp_path: Path) -> None:
    # The sink was cleared before the frame came, and the source with it.
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(1.5, 1, 0, 240),
        sent(10, 0, 240),
        mark(20, "clear"),
        cleared(21),
        captured(30, 2, 240, 240),
        captured(40, 3, 480, 240),
        pushed(41, 2, 240, 240, captured=[(480, 240)]),
        sent(50, 240, 240),
    )
    assert analysis.balanced is False
    assert analysis.unaccounted_samples == 240


def test_held_is_what_nothing_later_has_passed(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        captured(2, 2, 240, 240, end=None),
        pushed(3, 1, 0, 240),
        sent(10, 0, 240),
    )
    segment = only(analysis)
    assert (segment.held_samples, segment.dropped_samples, analysis.balanced) == (240, 0, True)


def test_frames_at_a_gate_that_is_never_opened_are_held(tmp_path: Path) -> None:
    segment = only(of(tmp_path, captured(1, 1, 0, 240), mark(2, "pause")))
    assert segment.held_samples == 240


def test_frames_forgotten_behind_a_gate_are_dropped_once_the_sink_has_finished(
    tmp_path: Path,
) -> None:
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 240),
            mark(2, "pause"),
            mark(3, "resume"),
            PlaybackReported(9 * MS, "finished", "s1", position_s=0.0, interrupted=False),
        )
    )
    assert (segment.dropped_samples, segment.losses[0].cause) == (240, "pause")


# --- Cleared, queued, tail -----------------------------------------------------------------------


def test_cleared_needs_a_clear_between_its_push_and_what_was_sent_later(tmp_path: Path) -> None:
    def call(clear_ms: float) -> Analysis:
        return of(
            tmp_path,
            captured(1, 1, 0, 480),
            pushed(2, 1, 0, 480),
            sent(10, 0, 240),
            cleared(clear_ms),
            captured(200, 2, 480, 240),
            pushed(201, 2, 480, 240),
            sent(210, 480, 240),
        )

    assert only(call(15)).cleared_samples == 240
    assert call(15).balanced is True
    assert call(1000).balanced is False, "the clear came after what was sent later"


def test_a_clear_may_be_stamped_a_block_away_from_the_wire(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 720),
        pushed(2, 1, 0, 240),
        pushed(3, 2, 240, 480, captured=[(240, 480)]),
        sent(10, 0, 240),
        cleared(26),
        sent(20, 480, 240),
    )
    assert analysis.balanced is True
    assert only(analysis).cleared_samples == 240


def test_a_block_stamped_after_the_clear_it_left_before_does_not_move_the_loss_to_a_later_clear(
    tmp_path: Path,
) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 720),
        pushed(2, 1, 0, 720),
        sent(10, 0, 240),
        cleared(19.5),
        sent(20, 240, 240),
        cleared(400),
        captured(500, 2, 720, 240),
        pushed(501, 2, 720, 240),
        sent(510, 720, 240),
    )
    assert analysis.balanced is True
    assert [time_ms(loss.at_ns) for loss in only(analysis).losses] == [pytest.approx(19.5)]


def test_queued_is_inside_the_source_at_the_end(tmp_path: Path) -> None:
    analysis = of(tmp_path, captured(1, 1, 0, 2400), pushed(2, 1, 0, 2400), sent(10, 0, 240))
    segment = only(analysis)
    assert (segment.queued_samples, segment.tail_samples, analysis.balanced) == (2160, 0, True)


def test_a_block_that_stays_behind_silence_is_no_queue(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480),
        pushed(2, 1, 0, 480),
        sent(10, 0, 240),
        SilenceInserted(200 * MS, 400 * MS, 1, 4800),
    )
    assert analysis.balanced is False
    assert analysis.unaccounted_samples == 240


def test_the_tail_stays_inside_and_is_shown(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 300),
        pushed(2, 1, 0, 300),
        sent(10, 0, 240),
        SilenceInserted(20 * MS, 400 * MS, 1, 9120),
        SpeechDone(400 * MS, "s1"),
    )
    segment = only(analysis)
    assert (segment.queued_samples, segment.tail_samples) == (60, 60)
    assert segment.swallowed_samples == 0
    assert analysis.balanced is True


def test_the_tail_opens_the_next_segment(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 300),
        pushed(2, 1, 0, 300),
        mark(3, "flush"),
        sent(10, 0, 240),
        SilenceInserted(20 * MS, 200 * MS, 1, 4320),
        captured(201, 2, 300, 420, speech="s2"),
        pushed(202, 2, 300, 420),
        sent(210, 240, 480),
    )
    first, second = analysis.segments
    assert analysis.balanced is True
    assert first.sent is not None
    assert (first.sent.samples, first.tail_samples) == (300, 60)
    assert first.sent_in_later_segments_samples == 60
    assert second.tail_samples == 0
    assert second.inserted_samples == 0


def test_a_closed_source_clears_what_is_inside(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 300),
        pushed(2, 1, 0, 300),
        sent(10, 0, 240),
        SourceClosed(30 * MS, 1),
    )
    segment = only(analysis)
    assert (segment.cleared_samples, segment.losses[0].cause) == (60, "source-closed")
    assert (segment.tail_samples, analysis.balanced) == (60, True)
