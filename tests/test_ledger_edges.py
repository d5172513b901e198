"""Where one sample or one instant decides: edges of blocks, clears, segments and reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.trace.events import (
    Event,
    InterruptCalled,
    PlaybackReported,
    QueueCleared,
    SilenceInserted,
    SpeechCommitted,
    SpeechCreated,
)
from probe.trace.reader import read_trace
from reports.account.crossings import Audio
from reports.account.ledger import balance
from tests.ledger_lines import captured, cleared, mark, of, only, pushed, sent
from tests.report_traces import MS, Simulation, write

# --- Sent later ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("next_ms", "later"), [(15, 720), (20, 720), (20.5, 480), (30, 480), (49, 0), (50, 0)]
)
def test_of_a_run_astride_the_next_segments_start_its_later_blocks_count(
    tmp_path: Path, next_ms: float, later: int
) -> None:
    # Blocks leave at 10, 20, 30 and 40 ms.
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 960, speech="s1"),
        pushed(2, 1, 0, 960),
        sent(10, 0, 960),
        captured(next_ms, 2, 960, 240, speech="s2"),
        pushed(next_ms + 1, 2, 960, 240),
        sent(60, 960, 240),
    )
    assert [s.sent_in_later_segments_samples for s in analysis.segments] == [later, 0]


# --- Tails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rest", "tail"), [(1, 1), (239, 239), (240, 0), (241, 0)])
def test_a_rest_is_a_tail_only_below_a_block(tmp_path: Path, rest: int, tail: int) -> None:
    segment = only(
        of(
            tmp_path,
            captured(1, 1, 0, 240 + rest),
            pushed(2, 1, 0, 240 + rest),
            sent(10, 0, 240),
        )
    )
    assert (segment.queued_samples, segment.tail_samples) == (rest, tail)


@pytest.mark.parametrize(("rest", "tail"), [(239, 239), (240, 0)])
def test_a_rest_sent_behind_a_gap_was_a_tail_only_below_a_block(
    tmp_path: Path, rest: int, tail: int
) -> None:
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 240 + rest, speech="s1"),
        pushed(2, 1, 0, 240 + rest),
        sent(10, 0, 240),
        captured(100, 2, 240 + rest, 240, speech="s2"),
        pushed(101, 2, 240 + rest, 240),
        sent(110, 240, 240),
        sent(120, 480, rest),
    )
    assert analysis.segments[0].tail_samples == tail


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


def test_a_report_belongs_to_the_segment_of_its_own_name(tmp_path: Path) -> None:
    assert claims(tmp_path, finished(30, "s2", 0.02), finished(31, "s1", 0.01)) == [10, 20, None]


def test_a_report_of_no_name_or_another_belongs_to_the_oldest_without_one(tmp_path: Path) -> None:
    assert claims(tmp_path, finished(30, None, 0.01), finished(31, "s9", 0.02)) == [10, 20, None]


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


# --- Remaining -----------------------------------------------------------------------------------


def test_what_a_pause_is_to_lose_still_remained_and_what_else_was_lost_did_not(
    tmp_path: Path,
) -> None:
    call = Simulation(discards_behind_gate=True)
    call.happens(SpeechCreated, "s1")
    call.capture(1200)
    call.sink.source.refuses = True
    call.capture(1200)
    call.sink.source.refuses = False
    call.tick(2)
    call.pause()
    call.capture(3600)
    paused_ns = call.now
    call.tick(3)
    call.resume()
    call.tick(20)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    audio = Audio(balance(read_trace(write(tmp_path / "call.jsonl", call.end()))))
    causes = {lost.cause: lost.stop - lost.start for lost in audio.ledger.losses}
    assert causes == {"refused": 1200, "pause": 1200, "clear": 1200 - 480}
    # At the pause 480 had left, 1200 were refused; the frames at the gate were not lost yet.
    at_pause = audio.remaining("s1", paused_ns - 1)
    assert at_pause is not None
    assert at_pause.count == 6000 - 480 - 1200
    later = audio.remaining("s1", call.now)
    assert later is not None
    assert later.count == 1200, "what the pause took was there to go out"
