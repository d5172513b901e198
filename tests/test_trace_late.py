"""Stamps of the wire that came late are put right or named, and no call is lost by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from probe.trace.events import (
    Event,
    FramePushed,
    RunSent,
    SilenceInserted,
    SourceClosed,
    Tapped,
    Untapped,
)
from probe.trace.reader import Trace, read_trace
from reports import analyze
from tests.report_traces import MS, write

BLOCK = 240
TAPPED_MS = 95


def taps(*, grouped: bool = True, sent_late_ms: float = 0) -> list[Event]:
    """Both taps of a source; the second is stamped on another thread, which may be late."""
    at_ns = round((TAPPED_MS + sent_late_ms) * MS)
    return [
        Tapped(0, "captured"),
        Tapped(TAPPED_MS * MS, "pushed", 1, 24_000, 1, 200),
        Tapped(
            at_ns, "sent", 1, 24_000, 1, block_samples=BLOCK, grouped=grouped,
            resolution_ns=(10 if grouped else 20) * MS,
        ),
    ]  # fmt: skip


def beat(
    *late_ms: float, every_ms: int = 200, sound_ms: Sequence[int] = (600,), until_late: bool = False
) -> list[Event]:
    """Stretches of 200 ms from 100 ms on, each stamped late by what is given for it.

    ``sound_ms``: when audio of 20 ms leaves, in place of silence. ``until_late``: whether only
    the end of a stretch has that stamp, and its beginning the one of the stretch before.
    """
    events: list[Event] = []
    sent = 0
    before = late_ms[0]
    for nth, late in enumerate(late_ms):
        begin, end = 100 + nth * every_ms, 100 + (nth + 1) * every_ms
        times = (round((begin + (before if until_late else late)) * MS), round((end + late) * MS))
        if begin - 100 in sound_ms:
            events.append(RunSent(*times, 1, sent, every_ms * 24))
            sent += every_ms * 24
        else:
            events.append(SilenceInserted(*times, 1, every_ms * 24))
        before = late
    return [FramePushed(99 * MS, 1, 1, 0, sent, 24_000, 1, captured=[(None, sent)]), *events]


def read(folder: Path, events: Sequence[Event]) -> Trace:
    return read_trace(write(folder / "call.jsonl", events))


def told(trace: Trace) -> list[tuple[str, str]]:
    return [(problem.kind, problem.text) for problem in trace.problems]


def times(trace: Trace) -> list[tuple[int, int]]:
    """Of everything that left, in order."""
    columns = (trace.sent, trace.inserted)
    return sorted(
        pair for c in columns for pair in zip(c.at_ns.tolist(), c.until_ns.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    "late_ms",
    [
        (800, 0, 0, 0),
        (800, 740, 300, 290.5, 0),
        (310, 260, 210, 160, 110, 60, 10, 0),
        (70, 70, 70, 70, 70, 70, 70, 70, 0),
    ],
    ids=str,
)
def test_a_first_reading_that_came_late_is_put_right_by_later_ones(
    tmp_path: Path, late_ms: tuple[float, ...]
) -> None:
    sound = read(tmp_path, [*taps(), *beat(*[0] * len(late_ms))])
    late = read(tmp_path, [*taps(), *beat(*late_ms)])

    assert told(sound) == []
    assert {kind for kind, _ in told(late)} <= {"late"}
    assert late.complete
    assert late.late_ns == 0
    # What is less than a block off the beat is as good as the tap says.
    for found, right in zip(times(late), times(sound), strict=True):
        assert found == pytest.approx(right, abs=10 * MS)


def test_a_tap_whose_own_stamp_came_late_does_not_bound_the_reading(tmp_path: Path) -> None:
    """Measured with Python code holding the interpreter: 300 ms after its first block."""
    assert told(read(tmp_path, [*taps(sent_late_ms=300), *beat(0, 0, 0)])) == []


def test_a_run_that_was_stamped_anew_in_its_middle_does_not_end_before_it_began(
    tmp_path: Path,
) -> None:
    """Measured: begun 123 ms late, ended in time, so that it ended before it began."""
    late = [200] * 15 + [0] * 3
    events = [*taps(), *beat(*late, sound_ms=(3000,), until_late=True)]
    run = next(event for event in events if isinstance(event, RunSent))
    assert run.until_ns - run.at_ns == 0
    trace = read(tmp_path, events)

    assert [kind for kind, _ in told(trace)] == ["late"]
    assert "came up to 200.0 ms late: put right" in trace.problems[0].text
    assert times(trace) == times(read(tmp_path, [*taps(), *beat(*[0] * 18, sound_ms=(3000,))]))


def test_stamps_that_were_late_for_seconds_until_the_end_bound_what_they_are_worth(
    tmp_path: Path,
) -> None:
    """Nothing was read in time for five seconds on end: late, or blocks missing; nothing tells."""
    events = [*taps(), *beat(*[0] * 30, *[45] * 10, *[75] * 10)]
    trace = read(tmp_path, events)

    assert told(trace) == [
        ("late", "stamps of what left a source may be up to 75.0 ms late from here on")
    ]
    assert trace.complete
    assert trace.late_ns == 75 * MS
    analysis = analyze(trace)
    assert analysis.trace.complete
    assert analysis.balanced is True
    assert analysis.trace.resolution_ns["sent"] == 85 * MS


def test_stamps_that_were_late_for_a_while_are_put_right(tmp_path: Path) -> None:
    trace = read(tmp_path, [*taps(), *beat(*[0] * 30, *[45] * 10, *[0] * 10)])

    assert [kind for kind, _ in told(trace)] == ["late"]
    assert trace.late_ns == 0
    assert times(trace) == times(read(tmp_path, [*taps(), *beat(*[0] * 50)]))


@pytest.mark.parametrize(
    ("late_ms", "text"),
    [
        # Within five seconds of a stamp in time: blocks are missing.
        ([0] * 10 + [45] * 10, "more time passed at a source than blocks left it"),
        ([300] + [0] * 10 + [45] * 10, "more time passed at a source than blocks left it"),
        ([0] * 30 + [600] * 10, "more time passed at a source than blocks left it"),
        ([0] * 30 + [300] * 10 + [550] * 10, "more time passed at a source than blocks left it"),
        # Before the reading began.
        ([0, 0, 0, -60, -60, -60], "more blocks left a source than time passed at it"),
        ([0] * 30 + [-200] * 10, "more blocks left a source than time passed at it"),
        ([200] * 30 + [-20] * 10, "more blocks left a source than time passed at it"),
        ([-60] * 5, "more blocks left a source than time passed at it"),
    ],
    ids=str,
)
def test_what_no_lateness_explains_is_refused(
    tmp_path: Path, late_ms: list[float], text: str
) -> None:
    trace = read(tmp_path, [*taps(), *beat(*late_ms)])

    assert ("inconsistent", text) in told(trace)
    assert not trace.complete
    assert analyze(trace).balanced is None
    # Nothing is put right by what can't be true.
    assert times(trace) == sorted(
        (event.at_ns, event.until_ns)
        for event in beat(*late_ms)
        if isinstance(event, RunSent | SilenceInserted)
    )


def test_one_bad_reading_leaves_the_stamps_of_the_others_alone(tmp_path: Path) -> None:
    other = [
        Tapped(TAPPED_MS * MS, "pushed", 2, 24_000, 1),
        Tapped(TAPPED_MS * MS, "sent", 2, 24_000, 1, block_samples=BLOCK, grouped=True),
        SilenceInserted(400 * MS, 500 * MS, 2, 10 * BLOCK),
        SilenceInserted(200 * MS, 300 * MS, 2, 10 * BLOCK),
    ]
    trace = read(tmp_path, [*taps(), *beat(0, 0, 0, -60, -60, sound_ms=()), *other])

    mine = trace.inserted.source == 2
    assert trace.inserted.at_ns[mine].tolist() == [100 * MS, 200 * MS]
    assert not trace.complete


def test_stamps_of_single_blocks_that_overlap_are_put_right(tmp_path: Path) -> None:
    """A burst of arrivals that was looked at in two pieces."""
    wire: list[Event] = [
        SilenceInserted(100 * MS, 300 * MS, 1, 20 * BLOCK),
        RunSent(420 * MS, 430 * MS, 1, 0, BLOCK),
        RunSent(310 * MS, 430 * MS, 1, BLOCK, 12 * BLOCK),
    ]
    push = FramePushed(99 * MS, 1, 1, 0, 13 * BLOCK, 24_000, 1, captured=[(None, 13 * BLOCK)])
    trace = read(tmp_path, [*taps(grouped=False), push, *wire, SourceClosed(500 * MS, 1)])

    assert trace.complete
    assert times(trace) == [
        (100 * MS, 300 * MS), (300 * MS, 310 * MS), (310 * MS, 430 * MS),
    ]  # fmt: skip
    assert analyze(trace).balanced is True


def test_a_reading_opened_anew_begins_after_the_one_before_it(tmp_path: Path) -> None:
    first = beat(0, 0, 0, sound_ms=())
    stop = Untapped(700 * MS, "sent", 1, "stopped")
    again = Tapped(
        760 * MS, "sent", 1, 24_000, 1, block_samples=BLOCK, grouped=True, resolution_ns=10 * MS
    )

    def opened(at_ms: int) -> Trace:
        silence = SilenceInserted(at_ms * MS, (at_ms + 100) * MS, 1, 10 * BLOCK)
        return read(tmp_path, [*taps(), *first[1:], stop, again, silence])

    assert opened(733).complete
    assert not opened(680).complete
