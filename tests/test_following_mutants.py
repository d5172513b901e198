"""What changed code of following and assembling was once not noticed by any test.

Each test here fails with one small change of it that every other test lets through. The audio says
of each sample which it is: sample k has value k.
"""

from __future__ import annotations

import numpy as np
import pytest

from probe.follow import Stretch, WireMatcher
from probe.trace.events import FramePushed, RunSent, Tapped
from tests.source_model import BLOCK, MS, TONE_VALUE
from tests.test_assembler import BLOCK as WIRE_BLOCK
from tests.test_assembler import RATE, REFUSED, Trace
from tests.test_assembler import end as ended


def coded(start: int, count: int) -> bytes:
    """``count`` samples from ``start`` on, each its own number."""
    return np.arange(start, start + count, dtype=np.int16).tobytes()


# --- Assembling -----------------------------------------------------------------------------------


def test_a_push_under_way_casts_no_doubt_on_a_push_to_another_source() -> None:
    trace = Trace()
    trace.put(Tapped(0, "pushed", 2, RATE, 1, 200))
    trace.push(0, coded(1, 480), end=None)
    trace.push(1, coded(481, 480), end=None, source=2)
    refusable = trace.push(2, coded(961, 480), end=None)
    trace.tick(200)
    written = [(each.source, each.accepted, each.start_sample) for each in trace.of(FramePushed)]
    assert written == [(1, True, 0), (2, True, 480)]
    ended(refusable, 210, REFUSED)
    trace.tick(220)
    assert [event.accepted for event in trace.of(FramePushed)] == [True, True, False]


def test_a_push_under_way_outlives_a_clear_before_the_wire_is_read() -> None:
    trace = Trace()
    trace.put(Tapped(0, "pushed", 2, RATE, 1, 200))
    trace.push(0, coded(1, 480), source=2)
    under_way = trace.push(10, coded(481, 480), end=None, source=2)
    trace.clear(15, source=2)
    trace.put(Tapped(20 * MS, "sent", 2, RATE, 1, None, WIRE_BLOCK, True))
    ended(under_way, 25)
    trace.blocks(50, coded(481, 480), source=2)
    trace.finish(500)
    assert [(run.start_sample, run.samples) for run in trace.of(RunSent)] == [(480, 480)]


def test_what_had_returned_before_a_clear_is_forgotten_before_the_wire_is_read() -> None:
    # The same words again after the clear: what is sent is the second time.
    trace = Trace()
    trace.put(Tapped(0, "pushed", 2, RATE, 1, 200))
    trace.push(0, coded(1, 480), source=2)
    trace.clear(15, source=2)
    trace.push(18, coded(1, 480), source=2)
    trace.put(Tapped(20 * MS, "sent", 2, RATE, 1, None, WIRE_BLOCK, True))
    trace.blocks(50, coded(1, 480), source=2)
    trace.finish(500)
    (run,) = trace.of(RunSent)
    assert (run.start_sample, run.samples, run.ambiguous_samples) == (480, 480, 0)


# --- Pushed to sent -------------------------------------------------------------------------------


def stretches(matcher: WireMatcher, *blocks: tuple[int, bytes]) -> list[Stretch]:
    """What a matcher says of single blocks, each with its time in milliseconds."""
    told = []
    for number, (at_ms, block) in enumerate(blocks):
        told += matcher.blocks(number, block, at_ms * MS)
    return told + matcher.finish()


def kinds(told: list[Stretch]) -> list[tuple[str, int | None]]:
    return [
        (stretch.kind, None if stretch.position is None else stretch.position + offset)
        for stretch in told
        for offset in range(0, stretch.values, BLOCK)
    ]


@pytest.mark.parametrize(("at_ms", "first"), [(20, "inserted"), (21, "sent")])
def test_a_push_that_is_not_known_to_be_inside_is_taken_in_within_two_ticks(
    at_ms: int, first: str
) -> None:
    # One block of silence too many: before the push was taken in, or inside what it sent?
    silence = bytes(2 * BLOCK)
    matcher = WireMatcher(BLOCK, slack_ns=0)
    matcher.push("under way", silence + coded(1, BLOCK), 0)
    told = stretches(
        matcher, (at_ms, silence), (at_ms + 10, silence), (at_ms + 20, coded(1, BLOCK))
    )
    others = {"inserted": ("sent", 0), "sent": ("inserted", None)}
    assert [kind for kind, _ in kinds(told)] == [first, others[first][0], "sent"]
    assert kinds(told)[-1] == ("sent", BLOCK)


def test_no_clear_tells_when_left_what_was_pushed_after_it_was_called() -> None:
    silence = bytes(2 * BLOCK)
    for pushed_ms, latest_ns in ((5, 30 * MS), (12, None)):
        matcher = WireMatcher(BLOCK)
        if pushed_ms < 10:
            matcher.push("before", silence, pushed_ms * MS)
        matcher.clear(10 * MS, 30 * MS)
        if pushed_ms > 10:
            matcher.push("after", silence, pushed_ms * MS)
        (told,) = stretches(matcher, (20, silence))
        assert (told.kind, told.position, told.latest_ns) == ("sent", 0, latest_ns)


def test_where_the_clock_decides_what_a_clear_took_the_audio_is_ambiguous() -> None:
    # 300 ms of a tone, cleared after 100 ms, and the same tone again: that the block at 110 ms was
    # one the clear missed fits the content as well, and only the clock is against it.
    tone = np.full(30 * BLOCK, TONE_VALUE, np.int16).tobytes()
    matcher = WireMatcher(BLOCK, slack_ns=5 * MS)
    told = []
    for number in range(30):
        at_ms = 10 * (number + 1)
        if at_ms in (10, 110):
            matcher.push(at_ms, tone, (at_ms - 8) * MS)
            matcher.push_ended(at_ms, (at_ms - 8) * MS, returned=True)
        told += matcher.blocks(number, tone[: 2 * BLOCK], at_ms * MS)
        if at_ms == 100:
            matcher.clear(101 * MS, 101 * MS)
    told += matcher.finish()
    assert kinds(told) == [
        *(("sent", number * BLOCK) for number in range(10)),
        *(("sent", (30 + number) * BLOCK) for number in range(20)),
    ]
    assert [stretch.block for stretch in told if stretch.ambiguous_values] == [10]
