"""Where one sample or one instant decides: edges of blocks, clears, segments and reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.trace.events import (
    Event,
    PlaybackReported,
    QueueCleared,
    SilenceInserted,
    SourceClosed,
    Tapped,
    Untapped,
)
from probe.trace.reader import read_trace
from reports.account.ledger import balance
from tests.ledger_lines import captured, cleared, mark, of, only, pushed, sent
from tests.report_traces import MS, Simulation, taps, write

# --- Tails ---------------------------------------------------------------------------------------


def test_a_rest_that_left_right_behind_the_others_was_no_tail(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 300, speech="s1"),
        pushed(2, 1, 0, 300),
        sent(10, 0, 240),
        captured(15, 2, 300, 420, speech="s2"),
        pushed(16, 2, 300, 420),
        sent(20, 240, 480),
    )
    assert [segment.tail_samples for segment in analysis.segments] == [0, 0]


def test_a_tail_in_each_of_two_sources_is_counted(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(250)
    call.flush()
    call.tick(10)
    call.new_segment = False
    call.swap()
    call.capture(280)
    call.flush()
    call.tick(10)
    events = [e for e in call.end() if e.NAME != "mark"]
    ledger = balance(read_trace(write(tmp_path / "call.jsonl", events)))
    assert ledger.sums.tail.tolist() == [10 + 40]
    assert ledger.sums.tail_unsent.tolist() == [10 + 40]


# --- Reports -------------------------------------------------------------------------------------


def finished(at_ms: float, speech: str | None, position_s: float) -> PlaybackReported:
    return PlaybackReported(
        int(at_ms * MS), "finished", speech, position_s=position_s, interrupted=False
    )


def three_segments(*events: Event) -> list[Event]:
    return [
        captured(1, 1, 0, 240, speech="s1"),
        captured(10, 2, 240, 240, speech="s2"),
        captured(20, 3, 480, 240, speech="s3"),
        *events,
    ]


def claims(folder: Path, *events: Event) -> list[int | None]:
    analysis = of(folder, *three_segments(*events))
    return [
        None if s.claimed_position_ns is None else s.claimed_position_ns // MS
        for s in analysis.segments
    ]


def test_a_report_does_not_belong_to_a_segment_that_begins_later(tmp_path: Path) -> None:
    assert claims(tmp_path, finished(5, "s2", 0.01), finished(12, "s3", 0.02)) == [10, 20, None]


def test_a_report_too_many_belongs_to_none(tmp_path: Path) -> None:
    trace = write(
        tmp_path / "call.jsonl",
        [captured(1, 1, 0, 240), finished(2, "s1", 0.01), finished(3, "s1", 0.02)],
    )
    ledger = balance(read_trace(trace))
    assert [owner for _, owner in ledger.finishes] == [0, -1]
    assert ledger.sums.claimed_s.tolist() == [0.01]


# --- Clears --------------------------------------------------------------------------------------


def clear_around_a_push(folder: Path, pushed_ms: float) -> tuple[int | None, bool | None]:
    """A clear runs from 20 to 25 ms; a second push comes at ``pushed_ms`` and is never sent."""
    analysis = of(
        folder,
        captured(1, 1, 0, 960),
        pushed(2, 1, 0, 480),
        sent(10, 0, 240),
        mark(19, "clear"),
        QueueCleared(20 * MS, 1, ended_ns=25 * MS),
        pushed(pushed_ms, 2, 480, 480),
        SilenceInserted(30 * MS, 500 * MS, 1, 47 * 240),
    )
    return only(analysis).cleared_samples, analysis.balanced


@pytest.mark.parametrize("pushed_ms", [19.5, 21, 24.9])
def test_a_push_made_while_a_clear_runs_may_be_taken_by_it(
    tmp_path: Path, pushed_ms: float
) -> None:
    assert clear_around_a_push(tmp_path, pushed_ms) == (240 + 480, True)


def test_a_push_made_behind_a_clear_is_not_taken_by_it(tmp_path: Path) -> None:
    assert clear_around_a_push(tmp_path, 26) == (240, False)


def test_a_clear_takes_what_is_inside_and_not_what_left_after_it(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 1200),
        pushed(2, 1, 0, 1200),
        sent(10, 0, 240),
        cleared(19),
        sent(20, 960, 240),
    )
    segment = only(analysis)
    assert (segment.cleared_samples, segment.losses[0].start_sample) == (720, 240)
    assert analysis.balanced is True


# --- Closed sources ------------------------------------------------------------------------------


def test_a_source_that_is_closed_takes_only_what_comes_last(tmp_path: Path) -> None:
    # What lies before a sample that left had left, or was cleared, long before the end.
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 1200),
        pushed(2, 1, 0, 1200),
        sent(10, 0, 240),
        sent(20, 720, 240),
        SourceClosed(30 * MS, 1),
    )
    segment = only(analysis)
    assert segment.cleared_samples == 240
    assert analysis.unaccounted_samples == 480


def test_a_push_behind_the_end_of_a_source_is_not_taken_by_it(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480),
        pushed(2, 1, 0, 240),
        sent(10, 0, 240),
        SourceClosed(30 * MS, 1),
        pushed(40, 2, 240, 240),
    )
    segment = only(analysis)
    assert (segment.cleared_samples, segment.queued_samples) == (0, 240)


def test_what_nobody_read_is_not_taken_by_the_end_of_its_source(tmp_path: Path) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240),
        pushed(2, 1, 0, 240),
        SourceClosed(30 * MS, 1),
        tapped=[*taps()[:2], Tapped(20 * MS, "sent", 1, 24_000, 1, block_samples=240)],
    )
    segment = only(analysis)
    assert (segment.unknown_samples, segment.cleared_samples, segment.sent) == (240, None, None)


def test_a_wire_that_was_left_alone_and_read_again_shows_what_leaves_then(tmp_path: Path) -> None:
    again = Tapped(200 * MS, "sent", 1, 24_000, 1, block_samples=240)
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 480, speech="s1"),
        pushed(2, 1, 0, 480),
        sent(10, 0, 240),
        Untapped(15 * MS, "sent", 1),
        captured(100, 2, 480, 240, speech="s2"),
        pushed(101, 2, 480, 240),
        again,
        captured(210, 3, 720, 240, speech="s3"),
        pushed(211, 3, 720, 240),
        sent(220, 720, 240),
    )
    assert [s.unknown_samples for s in analysis.segments] == [240, 240, 0]
    assert analysis.unaccounted_because == ()
    assert analysis.segments[2].balanced is True
