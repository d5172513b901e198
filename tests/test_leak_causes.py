"""A cause is proven from the marks of the sink that audio went through, and from when it was
pushed. 24 kHz, blocks of 240 samples, times off the grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probe.trace.events import (
    FramePushed,
    InterruptCalled,
    RunSent,
    SpeechCommitted,
    SpeechCreated,
)
from reports import BargeIn, analyze
from tests.report_traces import Simulation, write
from tests.test_barge_ins import cleared, commit, mark, of, reply, user
from tests.test_barge_ins import only as only_barge_in


def causes(barge_in: BargeIn) -> dict[str, int]:
    assert barge_in.causes is not None
    return {cause.cause: cause.samples for cause in barge_in.causes}


def swapped(*, numbered: bool, pauses_old: bool = False, commits: bool = True) -> Simulation:
    """A reply of 700 ms through one sink while the session has another by now; a pause at 250 ms,
    which goes to one of the two, and the commit at 700 ms."""
    call = Simulation(step_ns=1_037, grid_ns=300, numbered=numbered)
    call.happens(SpeechCreated, "s1")
    old = call.sink
    for _ in range(7):
        call.capture(2400)
    call.tick(20)
    new = call.swap()
    call.user(True)
    call.tick(5)
    call.pause(old if pauses_old else new)
    call.tick(45)
    call.user(False)
    if commits:
        call.happens(InterruptCalled, "s1", "transcript")
        call.happens(SpeechCommitted, "s1")
        call.clear(sink=old)
    call.tick(10)
    return call


def analysed(call: Simulation, folder: Path) -> BargeIn:
    analysis = analyze(write(folder / "call.jsonl", call.end()))
    assert analysis.balanced is True, analysis.unaccounted_because
    return only_barge_in(analysis)


def test_a_pause_of_another_sink_stops_nothing_here(tmp_path: Path) -> None:
    call = swapped(numbered=True)
    barge_in = analysed(call, tmp_path)
    assert barge_in.verdict_kind == "activity", "the session did decide"
    assert barge_in.leaked is not None
    assert barge_in.leaked["pushed"] is not None
    assert barge_in.leaked["pushed"].samples > 0, "the old gate never closed"
    assert barge_in.leaked["sent"] is not None
    assert causes(barge_in) == {"not-stopped": barge_in.leaked["sent"].samples}
    assert "before anything had stopped the sink" in barge_in.explanation


def test_a_pause_of_its_own_sink_leaves_the_queue(tmp_path: Path) -> None:
    # The frame at the gate makes the sink clear its source: nothing is left to play on.
    barge_in = analysed(swapped(numbered=True, pauses_old=True), tmp_path)
    assert sum(causes(barge_in).values()) <= 240


def test_without_numbers_what_only_a_mark_of_its_own_could_prove_is_not_known(
    tmp_path: Path,
) -> None:
    call = swapped(numbered=False)
    barge_in = analysed(call, tmp_path)
    last_push = max(event.at_ns for event in call.events if isinstance(event, FramePushed))
    after = [
        event for event in call.events if isinstance(event, RunSent) and event.until_ns > last_push
    ]
    assert after, "some of it was sent when no more was pushed"
    found = causes(barge_in)
    # What was pushed behind the pause was not held by it, whosever that was.
    assert set(found) == {"not-stopped", "not-known"}
    assert barge_in.leaked is not None
    assert barge_in.leaked["sent"] is not None
    assert sum(found.values()) == barge_in.leaked["sent"].samples
    assert "can't be told whether their sink" in barge_in.explanation


def test_without_numbers_and_with_one_source_a_mark_is_its_sinks(tmp_path: Path) -> None:
    barge_in = only_barge_in(
        of(
            tmp_path,
            *reply(sent_ms=250),
            user(100, True),
            mark(150, "pause"),
            *commit(240),
            mark(241, "clear"),
            cleared(259),
        )
    )
    assert causes(barge_in) == {"queue-played-on": 2400, "clear-pending": 240}


@pytest.mark.parametrize("late_ns", [-1, 0, 1])
def test_what_is_pushed_behind_a_pause_was_not_held_by_it(tmp_path: Path, late_ns: int) -> None:
    # The second half comes with the pause, and is behind it by a nanosecond or not.
    push: Callable[[int, int], FramePushed] = lambda nth, at: FramePushed(  # noqa: E731
        at, nth, 1, (nth - 1) * 6000, 6000, 24_000, 1,
        captured=[((nth - 1) * 6000, 6000)], end="returned", ended_ns=at + 50,
    )  # fmt: skip
    events = reply(sent_ms=400)
    events[2:3] = [push(1, 1_002_000), push(2, 150_000_000 + late_ns)]
    barge_in = only_barge_in(
        of(
            tmp_path,
            *sorted(events, key=lambda event: event.at_ns),  # type: ignore[union-attr]
            user(100, True),
            mark(150, "pause"),
            *commit(400),
            mark(401, "clear"),
            cleared(409),
        )
    )
    expected = {"queue-played-on": 26 * 240}
    if late_ns > 0:
        expected = {"not-stopped": 15 * 240, "queue-played-on": 11 * 240}
    assert causes(barge_in) == expected
