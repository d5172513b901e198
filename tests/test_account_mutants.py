"""What changed code of the account was once not noticed by any test. 24 kHz, blocks of 240 samples.

Each test here fails with one small change of the account that every other test lets through.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from probe.trace.events import (
    Event,
    OverlapJudged,
    PlaybackReported,
    QueueCleared,
    RunSent,
    SpeechCommitted,
)
from tests.report_traces import MS
from tests.test_barge_ins import commit, leak, reply, user
from tests.test_barge_ins import only as only_barge_in
from tests.test_ledger_words import captured, cleared, mark, of, pushed, sent
from tests.test_ledger_words import only as only_segment


def test_of_a_run_astride_the_next_segments_start_what_left_after_it_is_sent_later(
    tmp_path: Path,
) -> None:
    # Blocks leave at 10, 20, … 200 ms; those from 110 ms on left in the next segment's time.
    first, second = of(
        tmp_path,
        captured(1, 1, 0, 4800),
        pushed(2, 1, 0, 4800),
        sent(10, 0, 4800),
        captured(105, 2, 4800, 240, speech="s2"),
        pushed(106, 2, 4800, 240),
        sent(210, 4800, 240),
    ).segments
    assert first.sent is not None
    assert first.sent.samples == 4800
    assert first.sent_in_later_segments_samples == 10 * 240
    assert second.sent_in_later_segments_samples == 0


def test_a_block_that_leaves_as_the_next_segment_begins_is_sent_later(tmp_path: Path) -> None:
    first, _ = of(
        tmp_path,
        captured(1, 1, 0, 4800),
        pushed(2, 1, 0, 4800),
        sent(10, 0, 4800),
        captured(110, 2, 4800, 240, speech="s2"),
        pushed(111, 2, 4800, 240),
        sent(210, 4800, 240),
    ).segments
    assert first.sent_in_later_segments_samples == 10 * 240


def test_a_whole_block_inside_at_the_end_is_queued_and_no_tail(tmp_path: Path) -> None:
    for rest, tail in ((239, 239), (240, 0)):
        analysis = of(
            tmp_path, captured(1, 1, 0, 240 + rest), pushed(2, 1, 0, 240 + rest), sent(10, 0, 240)
        )
        segment = only_segment(analysis)
        assert (segment.queued_samples, segment.tail_samples) == (rest, tail)
        assert analysis.balanced is True


def test_a_whole_block_that_waited_for_the_next_segment_is_no_tail(tmp_path: Path) -> None:
    for rest, tail in ((239, 239), (240, 0)):
        first, _ = of(
            tmp_path,
            captured(1, 1, 0, 240 + rest),
            pushed(2, 1, 0, 240 + rest),
            sent(10, 0, 240),
            captured(201, 2, 240 + rest, 481, speech="s2"),
            pushed(202, 2, 240 + rest, 481),
            sent(210, 240, rest + 481),
        ).segments
        assert first.sent_in_later_segments_samples == rest
        assert first.tail_samples == tail


def finish(at_ms: float, speech: str | None, position_s: float) -> PlaybackReported:
    return PlaybackReported(
        int(at_ms * MS), "finished", speech, position_s=position_s, interrupted=False
    )


def test_a_finish_report_belongs_to_the_speech_it_names(tmp_path: Path) -> None:
    first, second = of(
        tmp_path,
        captured(1, 1, 0, 240, speech="s1"),
        pushed(2, 1, 0, 240),
        sent(10, 0, 240),
        captured(20, 2, 240, 480, speech="s2"),
        pushed(21, 2, 240, 480),
        sent(30, 240, 480),
        finish(60, "s2", 0.02),
        finish(70, "s1", 0.01),
    ).segments
    assert (first.finished_ns, first.claimed_position_ns) == (70 * MS, 10 * MS)
    assert (second.finished_ns, second.claimed_position_ns) == (60 * MS, 20 * MS)


def test_a_finish_report_of_no_known_speech_belongs_to_the_oldest_segment_without_one(
    tmp_path: Path,
) -> None:
    for name in (None, "another"):
        first, second = of(
            tmp_path,
            captured(1, 1, 0, 240, speech="s1"),
            captured(20, 2, 240, 480, speech="s2"),
            finish(60, name, 0.01),
        ).segments
        assert (first.finished_ns, second.finished_ns) == (60 * MS, None)


def leaking_past(clear: QueueCleared, *, taken: int = 0) -> list[Event]:
    """A reply whose verdict comes at 150 ms, sent until 260 ms past a clear of its source.

    ``taken``: blocks the clear took, those of 210 ms and on.
    """
    skipped = taken * 240
    return [
        *reply(sent_ms=0),
        RunSent(10 * MS, 210 * MS, 1, 0, 4800),
        RunSent(210 * MS, 260 * MS, 1, 4800 + skipped, 1200),
        *commit(150),
        mark(160, "clear"),
        clear,
        cleared(262),
    ]


def test_what_is_sent_while_a_clear_is_carried_out_was_not_sent_after_it(tmp_path: Path) -> None:
    # The clear is over at 230 ms, and a block's stamp may be late by 10 ms.
    analysis = of(tmp_path, *leaking_past(QueueCleared(200 * MS, 1, ended_ns=230 * MS)))
    barge_in = only_barge_in(analysis)
    assert leak(barge_in).ms == 110.0
    assert barge_in.causes is not None
    assert [(c.cause, c.ms) for c in barge_in.causes] == [
        ("not-stopped", 10.0),
        ("clear-pending", 80.0),
        ("after-clear", 20.0),
    ]


def test_what_lies_behind_what_a_clear_took_was_sent_after_it(tmp_path: Path) -> None:
    # It left at 210 ms, before the clear was over, but could not have without it.
    events = leaking_past(QueueCleared(200 * MS, 1, ended_ns=230 * MS), taken=2)
    barge_in = only_barge_in(of(tmp_path, *events))
    assert barge_in.causes is not None
    assert [(c.cause, c.ms) for c in barge_in.causes] == [
        ("not-stopped", 10.0),
        ("clear-pending", 50.0),
        ("after-clear", 50.0),
    ]


def test_what_a_gate_held_back_at_the_verdict_was_left_to_stop(tmp_path: Path) -> None:
    # All that was pushed had gone out; 100 ms more waited at the gate, and were dropped there.
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 2400),
        pushed(2, 1, 0, 2400),
        sent(10, 0, 2400),
        user(40, True),
        mark(50, "pause"),
        captured(60, 2, 2400, 2400),
        OverlapJudged(220 * MS, True, "s1"),
        SpeechCommitted(225 * MS, "s1"),
        mark(230, "resume"),
        captured(240, 3, 4800, 240, speech="s2"),
        pushed(241, 2, 2400, 240, captured=[(4800, 240)]),
        sent(250, 2400, 240),
    )
    (barge_in,) = analysis.barge_ins
    (loss,) = analysis.segments[0].losses
    assert (loss.what, loss.cause, loss.samples) == ("dropped", "pause", 2400)
    assert barge_in.remaining is not None
    assert (barge_in.remaining.samples, barge_in.outcome) == (2400, "committed")
    assert leak(barge_in).samples == 0


def test_what_was_refused_before_the_verdict_was_not_left_to_stop(tmp_path: Path) -> None:
    refused = dataclasses.replace(
        pushed(61, 2, 2400, 2400), accepted=False, end="raised", error="Exception"
    )
    analysis = of(
        tmp_path,
        captured(1, 1, 0, 2400),
        pushed(2, 1, 0, 2400),
        sent(10, 0, 2400),
        captured(60, 2, 2400, 2400, end="raised"),
        refused,
        *commit(220, "programmatic"),
    )
    barge_in = only_barge_in(analysis)
    assert barge_in.remaining is not None
    assert (barge_in.remaining.samples, barge_in.outcome) == (0, "finished")
