"""What changed code of following and assembling was once not noticed by any test.

Each test here fails with one small change of it that every other test lets through. The audio says
of each sample which it is: sample k has value k.
"""

from __future__ import annotations

import numpy as np
import pytest

from probe.follow import SampleStore, Stretch, WireMatcher
from probe.taps.calls import CLEAR
from probe.trace.events import Faulted, FrameCaptured, FramePushed, RunSent, Tapped
from tests.source_model import BLOCK, MS, TONE_VALUE
from tests.test_assembler import BLOCK as WIRE_BLOCK
from tests.test_assembler import RATE, REFUSED, Trace, capture_of, frame
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


# --- Pushes that are taken back -------------------------------------------------------------------


def test_only_the_last_push_can_be_taken_back_and_only_while_nothing_of_it_was_sent() -> None:
    matcher = WireMatcher(BLOCK, start=1000)
    matcher.push("first", coded(1, 2 * BLOCK), 0)
    matcher.push("second", coded(1001, 2 * BLOCK), MS)
    assert matcher.retract("first") is False
    assert matcher.retract("second") is True
    assert matcher.end == 1000 + 2 * BLOCK
    matcher.push("third", coded(2001, BLOCK), 2 * MS)
    told = stretches(matcher, (10, coded(1, BLOCK)), (20, coded(1 + BLOCK, BLOCK)))
    assert kinds(told) == [("sent", 1000), ("sent", 1000 + BLOCK)]
    (last,) = matcher.blocks(2, coded(2001, BLOCK), 30 * MS)
    assert (last.kind, last.position) == ("sent", 1000 + 2 * BLOCK)
    assert matcher.retract("third") is False


def test_what_is_known_of_earlier_pushes_outlives_one_that_is_taken_back() -> None:
    silence = bytes(2 * BLOCK)
    matcher = WireMatcher(BLOCK)
    matcher.push("first", silence, 0)
    matcher.push_ended("first", MS, returned=True)
    matcher.push("second", silence, 2 * MS)
    assert matcher.retract("second") is True
    # It was inside for longer than stamps may be off: silence of its own.
    (told,) = matcher.blocks(0, silence, 70 * MS)
    assert (told.kind, told.position, told.ambiguous_values) == ("sent", 0, 0)


def test_a_push_refused_while_another_came_behind_it_leaves_its_positions_unused() -> None:
    trace = Trace()
    trace.put(Tapped(0, "pushed", 2, RATE, 1, 200))
    first = trace.push(0, coded(1, 480), end=None)
    trace.push(1, coded(481, 480), source=2)
    ended(first, 5, REFUSED)
    trace.tick(10)
    trace.push(20, coded(961, 480))
    trace.blocks(60, coded(961, 480))
    trace.finish(500)
    pushed = [(event.accepted, event.start_sample) for event in trace.of(FramePushed)]
    assert pushed == [(False, 0), (True, 480), (True, 960)]
    assert [(run.start_sample, run.samples) for run in trace.of(RunSent)] == [(960, 480)]


def test_a_push_refused_before_the_wire_is_read_is_not_looked_for_on_it() -> None:
    trace = Trace()
    trace.put(Tapped(0, "pushed", 2, RATE, 1, 200))
    trace.push(0, coded(1, 480), source=2)
    refused = trace.push(5, coded(481, 480), end=None, source=2)
    ended(refused, 6, REFUSED)
    trace.tick(10)
    trace.push(12, coded(961, 480), source=2)
    trace.put(Tapped(15 * MS, "sent", 2, RATE, 1, None, WIRE_BLOCK, True))
    trace.blocks(50, coded(1, 480) + coded(961, 480), source=2)
    trace.finish(500)
    assert [event.start_sample for event in trace.of(FramePushed)] == [0, 480, 480]
    assert [(run.start_sample, run.samples) for run in trace.of(RunSent)] == [(0, 960)]


@pytest.mark.parametrize("shape", [{"rate_hz": 2 * RATE}, {"channels": 2}, {}])
def test_a_frame_that_was_refused_and_is_handed_over_again_is_the_same_audio(
    shape: dict[str, int],
) -> None:
    trace = Trace()
    trace.capture(0, coded(1, 480))
    trace.capture(0, coded(481, 480))
    waiting = trace.push(5, coded(1, 480), end=None)
    refused = trace.push(6, coded(481, 480), end=None, **shape)
    trace.tick(160)
    assert len(trace.of(FramePushed)) == 1, "whether it is taken is not known yet"
    ended(refused, 161, REFUSED)
    ended(waiting, 162)
    trace.push(170, coded(481, 480))
    trace.finish(500)
    origins = trace.origins()
    assert [event.accepted for event in trace.of(FramePushed)] == [True, False, True]
    assert (origins[1], origins[3]) == ([(0, 480)], [(480, 480)])


# --- Jumps that no reading of the wire explains ---------------------------------------------------


def going_on(pushed: bytes) -> WireMatcher:
    """A block was sent, and this was pushed behind it."""
    matcher = WireMatcher(BLOCK)
    matcher.push("before", coded(30_000, BLOCK), 0)
    matcher.blocks(0, coded(30_000, BLOCK), 5 * MS)
    matcher.push("known", pushed, 0)
    return matcher


def test_a_block_that_began_before_what_is_known_is_parted_where_the_known_begins() -> None:
    pushed = coded(1, 3 * BLOCK)
    for foreign in (1, 10, BLOCK - 1):
        matcher = going_on(pushed)
        known = BLOCK - foreign
        first = coded(20_000, foreign) + pushed[: 2 * known]
        assert matcher.blocks(1, first, 10 * MS) == []
        assert matcher.has_stray
        told = matcher.blocks(2, pushed[2 * known : 2 * (known + BLOCK)], 20 * MS)
        assert told == [
            Stretch(1, 0, "unknown", None, foreign),
            Stretch(1, foreign, "sent", BLOCK, known),
            Stretch(2, 0, "sent", BLOCK + known, BLOCK),
        ]
        assert not matcher.has_stray


def test_a_block_that_nothing_explains_takes_back_none_of_what_was_sent() -> None:
    pushed = coded(1, 4 * BLOCK)
    matcher = WireMatcher(BLOCK)
    matcher.push("known", pushed, 0)
    matcher.blocks(0, pushed[: 2 * BLOCK], 10 * MS)
    # It ends as what was sent does and goes on with three values of what comes next.
    begun, known = BLOCK - 5, BLOCK + 3
    odd = coded(20_000, BLOCK - 8) + pushed[2 * begun : 2 * known]
    told = matcher.blocks(1, odd, 20 * MS)
    told += matcher.blocks(2, pushed[2 * known : 2 * (known + BLOCK)], 30 * MS)
    assert told == [
        Stretch(1, 0, "unknown", None, BLOCK - 3),
        Stretch(1, BLOCK - 3, "sent", BLOCK, 3),
        Stretch(2, 0, "sent", known, BLOCK),
    ]


def test_a_block_that_was_given_up_is_not_explained_any_more() -> None:
    pushed = coded(1, 3 * BLOCK)
    matcher = going_on(pushed)
    assert matcher.blocks(1, coded(20_000, 10) + pushed[: 2 * (BLOCK - 10)], 10 * MS) == []
    assert matcher.give_up_stray() == [Stretch(1, 0, "unknown", None, BLOCK)]
    assert not matcher.has_stray
    known = BLOCK - 10
    told = matcher.blocks(2, pushed[2 * known : 2 * (known + BLOCK)], 300 * MS)
    assert told == [Stretch(2, 0, "sent", BLOCK + known, BLOCK)]


@pytest.mark.parametrize("again", [BLOCK + 1, 2 * BLOCK, None])
def test_where_a_jump_leads_is_in_doubt_if_the_block_comes_again(again: int | None) -> None:
    word = coded(10_000, BLOCK)
    behind = coded(2000, BLOCK if again is None else again - BLOCK)
    matcher = WireMatcher(BLOCK)
    matcher.push("all", coded(1, 2 * BLOCK) + word + behind + (word if again else b""), 0)
    (told,) = matcher.blocks(0, word, 10 * MS)
    assert (told.kind, told.position) == ("sent", 2 * BLOCK)
    assert told.ambiguous_values == (BLOCK if again else 0)


@pytest.mark.parametrize(("clear_ms", "found"), [(40, 6), (41, 1), (170, 1)])
def test_a_jump_goes_past_what_a_clear_took_for_certain(clear_ms: int, found: int) -> None:
    # The same block inside a push that was in the queue at the clear, and inside one that was
    # still under way and that the source cut up in its own way.
    word = coded(10_000, BLOCK)
    matcher = WireMatcher(BLOCK, slack_ns=60 * MS)
    matcher.push("inside", coded(1, BLOCK) + word + coded(1000, BLOCK), 0)
    matcher.push_ended("inside", MS, returned=True)
    matcher.push("under way", coded(2000, 3 * BLOCK) + word, 2 * MS)
    matcher.clear(clear_ms * MS, clear_ms * MS)
    (told,) = matcher.blocks(0, word, 100 * MS)
    assert (told.kind, told.position) == ("sent", found * BLOCK)


def test_what_was_never_pushed_is_searched_for_within_a_budget() -> None:
    matcher = WireMatcher(BLOCK, limit_bytes=1 << 21)
    matcher.push("all", np.zeros(1 << 19, np.int16).tobytes() + coded(1, BLOCK), 0)
    searched = 0
    find = SampleStore.find

    def counting(store: SampleStore, data: bytes, start: int) -> int | None:
        nonlocal searched
        searched += 2 * (store.end - start)
        return find(store, data, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SampleStore, "find", counting)
        told = stretches(matcher, *((10 * k, coded(20_000 + k, BLOCK)) for k in range(200)))
    assert kinds(told) == [("unknown", None)] * 200
    budget = WireMatcher._BUDGET_BYTES + 200 * WireMatcher._REFILL_BYTES
    assert WireMatcher._BUDGET_BYTES <= searched <= budget + 2 * (1 << 20)


def test_a_clear_that_takes_time_took_what_was_inside_until_it_was_over() -> None:
    # Read long after: what it would have taken had left when it was over, not when it was called.
    trace = Trace()
    data = coded(1, 480)
    trace.push(0, data)
    trace.put([CLEAR, 62 * MS, 82 * MS, None, 1])
    trace.blocks(140, data + bytes(2 * 720))
    trace.finish(800)
    (run,) = trace.of(RunSent)
    assert (run.at_ns, run.until_ns) == (72 * MS, 92 * MS)


# --- What is kept, and where it lies --------------------------------------------------------------


def test_audio_that_has_to_be_forgotten_is_a_fault_that_says_which_and_how_much() -> None:
    trace = Trace()
    frames = 10
    for index in range(frames):
        trace.capture(10 * index, coded(index, 1) * (1 << 21))
    forgotten = [(fault.kind, fault.detail) for fault in trace.of(Faulted)]
    assert set(forgotten) == {("audio_forgotten", "captured, not pushed yet")}
    lost = sum(fault.count for fault in trace.of(Faulted))
    assert 0 < frames * (1 << 21) - lost <= 1 << 24
    trace.events.clear()
    for index in range(frames):
        trace.push(200 + 10 * index, coded(index, 1) * (1 << 21))
    faults = [f for f in trace.of(Faulted) if f.detail == "pushed, not sent yet"]
    assert {fault.kind for fault in faults} == {"audio_forgotten"}
    lost = sum(fault.count for fault in faults)
    assert 0 < frames * (1 << 21) - lost <= 1 << 23


def test_a_push_made_of_frames_of_different_channels_says_where_each_part_lies() -> None:
    trace = Trace()
    trace.put(capture_of(frame(coded(1, 480), RATE, 2), 0, MS))
    trace.capture(1, coded(481, 480))
    trace.put(capture_of(frame(coded(961, 480), RATE, 2), 2 * MS, 3 * MS))
    trace.push(5, coded(1, 1440))
    trace.finish(300)
    assert [event.start_sample for event in trace.of(FrameCaptured)] == [0, 240, 720]
    assert trace.origins() == {1: [(0, 480), (240, 480), (720, 480)]}
