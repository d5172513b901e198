"""What took captured audio on its way: the right mark, at the right sink, at the right time."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.trace.events import Event, InterruptCalled, PlaybackReported, SpeechCreated
from probe.trace.reader import read_trace
from reports import Analysis, analyze
from reports.account.crossings import Audio
from reports.account.ledger import balance
from tests.ledger_lines import captured, cleared, mark, of, only, pushed, sent
from tests.report_traces import MS, Simulation, write


def causes(analysis: Analysis) -> list[tuple[str, int, int]]:
    return [(loss.cause, loss.samples, loss.at_ns // MS) for loss in only(analysis).losses]


def lost_at_35(*events: Event) -> list[Event]:
    """The second of three frames is in no push; the third is pushed at 61 ms."""
    return [
        captured(1, 1, 0, 240),
        pushed(1.5, 1, 0, 240),
        sent(10, 0, 240),
        captured(35, 2, 240, 240),
        *events,
        captured(60, 3, 480, 240),
        pushed(61, 2, 240, 240, captured=[(480, 240)]),
        sent(70, 240, 240),
    ]


def unbroken(events: list[Event]) -> list[Event]:
    """Clears begin a segment; here all frames are of one all the same: marks come before them."""
    return sorted(events, key=lambda event: event.at_ns)  # type: ignore[union-attr]


def test_a_clear_that_was_carried_out_takes_nothing_that_came_after_it(tmp_path: Path) -> None:
    # The next clear of the source is a pause's.
    events = lost_at_35(cleared(40))
    first = [mark(0.2, "clear"), cleared(0.4)]
    assert causes(of(tmp_path, *unbroken([*first, *events]))) == [("source-cleared", 240, 40)]


def test_a_clear_that_is_still_pending_takes_what_comes_until_it_is_carried_out(
    tmp_path: Path,
) -> None:
    events = lost_at_35(cleared(40))
    analysis = of(tmp_path, *unbroken([mark(0.2, "clear"), *events]))
    assert causes(analysis) == [("clear", 240, 40)]


@pytest.mark.parametrize("over", [True, False])
def test_behind_a_pending_clear_the_last_frame_is_dropped_once_it_is_reported_over(
    tmp_path: Path, over: bool
) -> None:
    report = PlaybackReported(50 * MS, "finished", "s1", position_s=0.0, interrupted=True)
    analysis = of(
        tmp_path,
        mark(0.2, "clear"),
        captured(35, 1, 0, 240),
        cleared(40),
        *([report] if over else []),
    )
    segment = only(analysis)
    assert (segment.dropped_samples, segment.held_samples) == ((240, 0) if over else (0, 240))


@pytest.mark.parametrize("over", [True, False])
def test_behind_a_gate_the_last_frame_is_dropped_once_it_was_opened_and_is_reported_over(
    tmp_path: Path, over: bool
) -> None:
    report = PlaybackReported(50 * MS, "finished", "s1", position_s=0.0, interrupted=True)
    analysis = of(
        tmp_path,
        mark(30, "pause"),
        captured(35, 1, 0, 240),
        mark(40, "resume"),
        *([report] if over else []),
    )
    segment = only(analysis)
    assert (segment.dropped_samples, segment.held_samples) == ((240, 0) if over else (0, 240))


def test_a_gate_that_was_open_again_takes_nothing(tmp_path: Path) -> None:
    events = [mark(30, "pause"), mark(33, "resume"), *lost_at_35()]
    assert of(tmp_path, *unbroken(events)).balanced is False


def test_what_took_something_took_it_before_later_audio_was_pushed(tmp_path: Path) -> None:
    for event in (cleared(61.5), mark(61.5, "pause")):
        analysis = of(tmp_path, *unbroken([*lost_at_35(), event]))
        assert analysis.balanced is False


def cleared_at(sink: int, folder: Path) -> Analysis:
    """The rest of the second of two sinks vanishes; one of them is cleared, its source is not."""
    call = Simulation(numbered=True)
    call.capture(1200)
    second = call.swap()
    call.capture(1500)
    call.tick(10)
    second.rest = []
    call.happens(InterruptCalled, "s1", "programmatic")
    call._mark("clear", call.sinks[sink - 1])
    call.capture(1200)
    call.tick(20)
    return analyze(write(folder / "call.jsonl", call.end()))


def test_a_clear_takes_the_rest_of_its_own_sink(tmp_path: Path) -> None:
    analysis = cleared_at(2, tmp_path)
    assert analysis.balanced is True
    assert [loss.cause for loss in analysis.segments[0].losses] == ["clear"]


def test_a_clear_of_another_sink_takes_nothing(tmp_path: Path) -> None:
    assert cleared_at(1, tmp_path).balanced is False


# --- What is left to stop ------------------------------------------------------------------------


def test_what_remains_is_neither_sent_nor_refused_nor_cleared_by_then(tmp_path: Path) -> None:
    call = Simulation()
    call.happens(SpeechCreated, "s1")
    call.capture(2400)
    call.sink.source.refuses = True
    call.capture(1200)
    call.sink.source.refuses = False
    call.tick(4)
    before_ns = call.now
    call._clear_source(call.sink.source)
    after_ns = call.now
    call.capture(1200)
    call.tick(1)
    end = call.now
    call.tick(10)
    audio = Audio(balance(read_trace(write(tmp_path / "call.jsonl", call.end()))))

    def left(at_ns: int) -> int:
        remaining = audio.remaining("s1", at_ns)
        assert remaining is not None
        return remaining.count

    assert left(0) == 4800
    assert left(before_ns + 1) == 4800 - 1200 - 4 * 240
    assert left(after_ns) == 4800 - 1200 - 4 * 240, "a clear takes from its instant on"
    assert left(after_ns + 1) == 1200
    assert left(end + 1) == 1200 - 240


def test_a_tail_is_nothing_that_remains(tmp_path: Path) -> None:
    events = [captured(1, 1, 0, 300), pushed(2, 1, 0, 300), sent(10, 0, 240)]
    of(tmp_path, *events)
    audio = Audio(balance(read_trace(tmp_path / "call.jsonl")))
    for at_ms, count in ((5, 300), (25, 0)):
        remaining = audio.remaining("s1", at_ms * MS)
        assert remaining is not None
        assert (remaining.count, bool(remaining)) == (count, count > 0)


def test_what_is_lost_later_still_remains(tmp_path: Path) -> None:
    of(tmp_path, *lost_at_35(mark(50, "pause"), mark(55, "resume")))
    audio = Audio(balance(read_trace(tmp_path / "call.jsonl")))
    remaining = audio.remaining("s1", 100 * MS)
    assert remaining is not None
    assert remaining.count == 240, "what a pause took was there to be stopped"
