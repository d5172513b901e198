"""What is followed by content: exact where content can tell, counted where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probe.follow import FlowMatcher, SampleStore, WireMatcher
from probe.follow.upstream import Upstream
from tests.source_model import (
    BLOCK,
    MS,
    NOISE,
    REPEAT,
    TONE,
    ZEROS,
    Content,
    SinkModel,
    SourceModel,
    operate,
    play,
    sink_actions,
    source_actions,
)

QUEUE = 4 * BLOCK


def source_model(
    *, group: int, every_tick: bool, queue: int = QUEUE, guess: int | None = QUEUE
) -> SourceModel:
    matcher = WireMatcher(
        BLOCK,
        guess,
        slack_ns=(60 if every_tick else 200) * MS,
        quiet_ns=0 if every_tick else 80 * MS,
    )
    return SourceModel(matcher, queue=queue, group=group, every_tick=every_tick)


def noise(seed: int, values: int) -> bytes:
    return np.random.default_rng(seed).integers(-32768, 32767, values, dtype=np.int16).tobytes()


READINGS = pytest.mark.parametrize(("group", "every_tick"), [(5, True), (1, True), (1, False)])


@READINGS
@settings(max_examples=150, deadline=None)
@given(actions=source_actions([NOISE]), seed=st.integers(0, 99))
def test_distinct_audio_is_named_exactly_whatever_happens_to_the_queue(
    group: int, every_tick: bool, actions: list[Any], seed: int
) -> None:
    model = source_model(group=group, every_tick=every_tick)
    play(model, Content(np.random.default_rng(seed)), actions)
    assert model.labels() == model.truth
    assert model.ambiguous == 0


@READINGS
@pytest.mark.parametrize("guess", [None, QUEUE // 2, QUEUE - 7, 3 * QUEUE])
@settings(max_examples=60, deadline=None)
@given(actions=source_actions([NOISE]), seed=st.integers(0, 99))
def test_what_the_queue_s_size_is_taken_for_changes_nothing(
    group: int, every_tick: bool, guess: int | None, actions: list[Any], seed: int
) -> None:
    """A frame longer than the queue goes in by pieces, and a clear takes the one that is inside:
    what comes after it begins where the pieces do, wherever that was thought to be."""
    model = source_model(group=group, every_tick=every_tick, guess=guess)
    play(model, Content(np.random.default_rng(seed)), actions)
    assert model.labels() == model.truth
    assert model.ambiguous == 0


@READINGS
@settings(max_examples=200, deadline=None)
@given(actions=source_actions([NOISE, ZEROS, TONE, REPEAT]), seed=st.integers(0, 99))
def test_what_content_cannot_tell_is_counted_as_ambiguous(
    group: int, every_tick: bool, actions: list[Any], seed: int
) -> None:
    model = source_model(group=group, every_tick=every_tick)
    play(model, Content(np.random.default_rng(seed)), actions)
    labels = model.labels()
    assert len(labels) == len(model.truth)
    told = {position for kind, position in labels if kind == "sent"}
    true = {position for kind, position in model.truth if kind == "sent"}
    assert len(told) == sum(kind == "sent" for kind, _ in labels)
    assert max(len(told - true), len(true - told)) <= model.ambiguous


@settings(max_examples=200, deadline=None)
@given(
    actions=sink_actions([NOISE], foreign=True),
    chunk=st.integers(33, 120),
    seed=st.integers(0, 99),
)
def test_distinct_audio_is_found_again_however_the_sink_cuts_and_drops_it(
    actions: list[Any], chunk: int, seed: int
) -> None:
    model = SinkModel(FlowMatcher(), chunk)
    operate(model, Content(np.random.default_rng(seed)), actions)
    labels = model.labels()
    assert len(labels) == len(model.truth)
    wrong = sum(told != true for told, true in zip(labels, model.truth, strict=True))
    assert wrong <= model.ambiguous


@settings(max_examples=300, deadline=None)
@given(
    actions=sink_actions([NOISE, ZEROS, TONE], foreign=False, drops=False),
    chunk=st.integers(33, 120),
    seed=st.integers(0, 99),
)
@example(
    actions=[
        ("capture", NOISE, 1),
        ("clear", 0),
        ("capture", ZEROS, 33),
        ("capture", NOISE, 1),
        ("clear", 1),
        ("capture", ZEROS, 33),
        ("push", 1),
        ("push", 1),
    ],
    chunk=33,
    seed=0,
)
@example(
    actions=[
        ("capture", NOISE, 1), ("clear", 0), ("capture", ZEROS, 33), ("clear", 1),
        ("capture", ZEROS, 1), ("clear", 1), ("capture", NOISE, 33), ("push", 2),
    ],
    chunk=33,
    seed=0,
)  # fmt: skip
def test_what_was_captured_before_a_clear_is_told_from_what_was_captured_after_it(
    actions: list[Any], chunk: int, seed: int
) -> None:
    model = SinkModel(FlowMatcher(), chunk)
    operate(model, Content(np.random.default_rng(seed)), actions)
    told, true = model.owners(model.labels()), model.owners(model.truth)
    wrong = [
        label
        for label, one, other in zip(model.truth, told, true, strict=True)
        if one != other and label is not None
    ]
    assert len(wrong) <= model.ambiguous
    assert all(model.is_silence(label) for label in wrong)


PIECES = st.lists(
    st.tuples(st.sampled_from([NOISE, ZEROS, TONE]), st.integers(1, 400)), min_size=1, max_size=4
)


@settings(max_examples=300, deadline=None)
@given(
    first=PIECES,
    pushed=st.integers(0, 20),
    leaked=st.integers(0, 5),
    at_once=st.booleans(),
    second=PIECES,
    chunk=st.integers(33, 120),
)
def test_a_reply_after_a_clear_owns_all_of_its_audio_and_a_leak_none_of_it(
    first: list[Any],
    pushed: int,
    leaked: int,
    at_once: bool,
    second: list[Any],
    chunk: int,
) -> None:
    model = SinkModel(FlowMatcher(), chunk)
    content = Content(np.random.default_rng(chunk))
    for kind, values in first:
        model.capture(content.of(kind, values))
    model.push(pushed)
    model.clear(leaked)
    if at_once:
        model.push(leaked)
    for kind, values in [*second, (NOISE, 200)]:
        model.capture(content.of(kind, values))
    model.push(100)
    model.finish()
    assert model.owners(model.labels()) == model.owners(model.truth)


@settings(max_examples=200, deadline=None)
@given(
    actions=sink_actions([NOISE, ZEROS, TONE, REPEAT], foreign=False),
    chunk=st.integers(33, 120),
    seed=st.integers(0, 99),
)
def test_pushes_always_add_up_and_never_run_backwards(
    actions: list[Any], chunk: int, seed: int
) -> None:
    model = SinkModel(FlowMatcher(), chunk)
    operate(model, Content(np.random.default_rng(seed)), actions)
    labels = model.labels()
    assert len(labels) == len(model.truth)
    positions = [label for label in labels if label is not None]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("value", [0, 1234])
def test_a_minute_of_one_value_costs_no_more_than_following_it(value: int) -> None:
    block, minute = 240, 100 * 60
    data = np.full(block, value, np.int16).tobytes()
    flow = FlowMatcher()
    wire = WireMatcher(block, 20 * block)
    flow.capture(noise(1, block))
    for index in range(minute):
        flow.capture(data)
        wire.push(index, data, index * 10 * MS)
        wire.push_ended(index, index * 10 * MS, returned=True)
    told = 0
    for index in range(minute):
        flow.push(index, data)
        for stretch in wire.blocks(index, data, (index + 20) * 10 * MS):
            told += stretch.values
        assert wire.undecided_blocks <= 400
    told += sum(stretch.values for stretch in wire.finish())
    assert told == block * minute
    assert sum(len(match.parts) for match in flow.finish()) <= minute


def test_a_sink_that_resamples_matches_nothing_and_is_searched_for_within_a_budget() -> None:
    flow = FlowMatcher(limit_bytes=1 << 20)
    searched = 0
    find = SampleStore.find

    def counting(store: SampleStore, data: bytes, start: int) -> int | None:
        nonlocal searched
        searched += store.end - start
        return find(store, data, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SampleStore, "find", counting)
        parts = []
        for index in range(2000):
            flow.capture(noise(index, 1200))
            for match in flow.push(index, noise(10_000 + index, 1200)):
                parts += match.parts
    assert parts == [(None, 1200)] * 2000
    budget = Upstream._BUDGET_BYTES + 2000 * Upstream._REFILL_BYTES
    assert searched * 2 <= budget + 4 * (1 << 20)


def test_captured_audio_nobody_pushes_is_forgotten_oldest_first_and_counted() -> None:
    flow = FlowMatcher(limit_bytes=48_000)
    forgotten = sum(flow.capture(noise(index, 2400)) for index in range(30))
    assert flow.end == 30 * 2400
    assert flow.expected == forgotten
    last = flow.push("last", noise(29, 2400))
    assert [match.parts for match in last] == [[(29 * 2400, 2400)]]


def test_a_refused_frame_handed_over_again_is_the_same_captured_audio() -> None:
    flow = FlowMatcher()
    flow.capture(noise(1, 960))
    (first,) = flow.push(1, noise(1, 960))
    flow.rewind(0)
    (again,) = flow.push(2, noise(1, 960))
    assert first.parts == again.parts == [(0, 960)]


def test_silence_in_the_speech_is_placed_by_what_follows_it() -> None:
    flow = FlowMatcher()
    flow.capture(noise(1, 480))
    flow.capture(bytes(2 * 960))
    flow.capture(noise(2, 960))
    assert len(flow.push(1, noise(1, 480))) == 1
    assert flow.push(2, bytes(2 * 480)) == []
    matches = flow.push(3, bytes(2 * 480) + noise(2, 100))
    assert [match.parts for match in matches] == [[(480, 480)], [(960, 580)]]
    assert not any(match.ambiguous_values for match in matches)


def test_silence_that_ends_in_a_jump_is_counted_as_ambiguous() -> None:
    flow = FlowMatcher()
    flow.capture(noise(1, 480) + bytes(2 * 960))
    flow.capture(noise(2, 960))
    flow.push(1, noise(1, 480))
    assert flow.push(2, bytes(2 * 480)) == []
    matches = flow.push(3, noise(2, 480))
    assert [match.parts for match in matches] == [[(480, 480)], [(1440, 480)]]
    assert [match.ambiguous_values for match in matches] == [480, 0]


def test_audio_from_before_the_probe_has_no_origin_and_its_border_is_found() -> None:
    flow = FlowMatcher()
    flow.capture(noise(1, 2400))
    (before,) = flow.push(1, noise(7, 1200))
    (mixed,) = flow.push(2, noise(8, 500) + noise(1, 2400)[: 2 * 700])
    (after,) = flow.push(3, noise(1, 2400)[2 * 700 : 2 * 1900])
    assert before.parts == [(None, 1200)]
    assert mixed.parts == [(None, 500), (0, 700)]
    assert after.parts == [(700, 1200)]


def test_the_same_words_after_a_clear_are_those_captured_after_it() -> None:
    flow = FlowMatcher()
    words = noise(1, 4800)
    flow.capture(words)
    flow.push(1, words[:2400])
    flow.clear()
    flow.capture(words)
    (again,) = flow.push(2, words[:2400])
    assert again.parts == [(4800, 1200)]


def test_words_that_are_said_again_after_a_gate_dropped_them_are_those_entering_then() -> None:
    flow = FlowMatcher()
    words = noise(1, 480)
    flow.capture(noise(2, 480))
    assert len(flow.push(1, noise(2, 480), entering=True)) == 1
    flow.capture(words)
    flow.capture(words)
    assert flow.push(2, words, entering=True) == []
    flow.capture(noise(3, 480))
    matches = flow.push(3, noise(3, 480), entering=True)
    assert [match.parts for match in matches] == [[(960, 480)], [(1440, 480)]]


def test_words_a_sink_held_back_are_not_those_that_enter_when_it_hands_them_on() -> None:
    flow = FlowMatcher()
    words = noise(1, 480)
    for _ in range(3):
        flow.capture(words)
    assert flow.push(1, words, entering=True) == []
    assert flow.push(2, words, entering=True) == []
    flow.capture(noise(2, 480))
    matches = flow.push(3, words, entering=True) + flow.push(4, noise(2, 480), entering=True)
    assert [match.parts for match in matches] == [[(480 * k, 480)] for k in range(4)]


def test_the_second_of_two_places_is_found_after_audio_of_the_sinks_own() -> None:
    flow = FlowMatcher()
    words = noise(1, 480)
    flow.capture(noise(2, 480))
    flow.push(1, noise(9, 480))
    flow.capture(words + noise(3, 480))
    flow.capture(words + noise(4, 480))
    assert flow.push(2, words) == []
    matches = flow.push(3, noise(4, 480))
    assert [match.parts for match in matches] == [[(1440, 480)], [(1920, 480)]]


def silence(values: int) -> bytes:
    return bytes(2 * values)


def cleared_in_silence(flow: FlowMatcher) -> int:
    """Push speech and 1000 values of silence of 1500, and clear; return where the silence ends."""
    flow.capture(noise(1, 500) + silence(1500))
    assert flow.push("speech", noise(1, 500))[0].parts == [(0, 500)]
    assert flow.push("silence", silence(1000)) == []
    (decided,) = flow.clear()
    assert (decided.parts, decided.ambiguous_values) == ([(500, 1000)], 1000)
    return flow.end


def test_silence_after_a_clear_belongs_to_the_speech_that_follows_it() -> None:
    flow = FlowMatcher()
    end = cleared_in_silence(flow)
    flow.capture(silence(800))
    flow.capture(noise(2, 400))
    assert flow.push(1, silence(400)) == flow.push(2, silence(400)) == []
    matches = flow.push(3, noise(2, 400))
    assert [match.parts for match in matches] == [
        [(end, 400)],
        [(end + 400, 400)],
        [(end + 800, 400)],
    ]
    assert not any(match.ambiguous_values for match in matches)


def test_silence_that_leaks_past_a_clear_is_more_than_what_the_next_speech_begins_with() -> None:
    flow = FlowMatcher()
    end = cleared_in_silence(flow)
    flow.capture(silence(800))
    flow.capture(noise(2, 400))
    assert not any(flow.push(index, silence(400)) for index in (1, 2, 3))
    matches = flow.push(4, noise(2, 400))
    assert [match.parts for match in matches] == [
        [(1500, 400)],
        [(end, 400)],
        [(end + 400, 400)],
        [(end + 800, 400)],
    ]


def test_a_chunk_may_begin_before_a_clear_and_end_after_it() -> None:
    flow = FlowMatcher()
    end = cleared_in_silence(flow)
    for _ in range(8):
        flow.capture(silence(100))
    flow.capture(noise(2, 400))
    assert flow.push(1, silence(500)) == flow.push(2, silence(500)) == []
    matches = flow.push(3, silence(200) + noise(2, 400))
    assert [match.parts for match in matches] == [
        [(1500, 400), (end, 100)],
        [(end + 100, 500)],
        [(end + 600, 600)],
    ]


def test_silence_pushed_before_the_next_was_captured_leaked_past_the_clear() -> None:
    flow = FlowMatcher()
    end = cleared_in_silence(flow)
    assert flow.push(1, silence(400)) == []
    flow.capture(silence(800))
    flow.capture(noise(2, 400))
    assert flow.push(2, silence(400)) == []
    leaked, silent, _ = flow.push(3, noise(2, 400))
    assert leaked.parts == [(1500, 400)]
    assert silent.parts == [(end + 400, 400)]


def test_speech_that_leaks_past_a_clear_takes_the_silence_in_front_of_it_along() -> None:
    flow = FlowMatcher()
    words = silence(600) + noise(1, 600)
    flow.capture(words)
    assert flow.clear() == []
    flow.capture(silence(600) + noise(2, 600))
    assert flow.push(1, silence(600)) == []
    matches = flow.push(2, noise(1, 600)) + flow.push(3, silence(600)) + flow.push(4, noise(2, 600))
    assert [match.parts for match in matches] == [
        [(0, 600)],
        [(600, 600)],
        [(1200, 600)],
        [(1800, 600)],
    ]
    assert not any(match.ambiguous_values for match in matches)


@pytest.mark.parametrize("value", [0, 1234])
@pytest.mark.parametrize("next_clear", [True, False])
def test_where_nothing_tells_what_is_pushed_after_a_clear_was_captured_after_it(
    value: int, next_clear: bool
) -> None:
    flow = FlowMatcher()
    tone = np.full(800, value, np.int16).tobytes()
    flow.capture(tone)
    flow.clear()
    assert flow.push(1, tone[: 2 * 200]) == []
    flow.capture(tone)
    flow.capture(tone)
    assert flow.push(2, tone[: 2 * 400]) == flow.push(3, tone[: 2 * 400]) == []
    matches = flow.clear() if next_clear else flow.finish()
    assert [match.parts for match in matches] == [[(0, 200)], [(800, 400)], [(1200, 400)]]
    assert [match.ambiguous_values for match in matches] == [200, 400, 400]


def test_the_same_words_said_twice_are_told_apart_by_what_follows_them() -> None:
    words = noise(1, 800)
    for following, expected in ((noise(3, 800), 1600), (noise(2, 800), 0)):
        flow = FlowMatcher()
        flow.capture(words + noise(2, 800))
        flow.clear()
        flow.capture(words + noise(3, 800))
        assert flow.push(1, words) == []
        matches = flow.push(2, following)
        assert [match.parts for match in matches] == [[(expected, 800)], [(expected + 800, 800)]]
        assert not any(match.ambiguous_values for match in matches)


def test_what_nothing_tells_apart_is_held_no_longer_than_the_patience() -> None:
    flow = FlowMatcher(patience_values=4800)
    words = noise(1, 9600)
    flow.capture(words)
    flow.clear()
    flow.capture(words)
    decided = [flow.push(index, words[480 * index : 480 * (index + 1)]) for index in range(40)]
    assert [len(matches) for matches in decided[:20]] == [0] * 19 + [20]
    assert all(len(matches) == 1 for matches in decided[20:])
    (last,) = decided[-1]
    assert (last.parts, last.ambiguous_values) == ([(9600 + 39 * 240, 240)], 0)


def test_minutes_of_silence_around_a_clear_cost_no_more_than_following_them() -> None:
    block, minute = 240, 100 * 60
    compared = 0
    matches = SampleStore.matches

    def counting(store: SampleStore, position: int, data: bytes) -> bool:
        nonlocal compared
        compared += len(data) // 2
        return matches(store, position, data)

    flow = FlowMatcher()
    for _ in range(minute):
        flow.capture(silence(block))
    flow.clear()
    for _ in range(minute):
        flow.capture(silence(block))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SampleStore, "matches", counting)
        told = sum(len(flow.push(index, silence(block))) for index in range(minute))
        told += len(flow.finish())
    assert told == minute
    assert flow.expected == 2 * minute * block
    assert compared <= 4 * minute * block


@given(st.binary(min_size=0, max_size=400), st.integers(0, 50))
def test_what_a_store_finds_lies_where_it_says(data: bytes, start: int) -> None:
    store = SampleStore(1 << 16, base=10)
    store.append(data[: len(data) // 2 * 2])
    needle = data[2 * start : 2 * start + 8]
    if len(needle) == 8:
        found = store.find(needle, 10)
        assert found is not None
        assert found <= 10 + start
        assert store.matches(found, needle)


def pushed_by_then(wire: WireMatcher, data: bytes) -> None:
    wire.push(1, data, 0)
    wire.push_ended(1, MS, returned=True)


def test_what_left_before_a_clear_is_known_however_late_it_is_read() -> None:
    wire = WireMatcher(BLOCK)
    data = noise(1, 10 * BLOCK)
    pushed_by_then(wire, data)
    wire.clear(50 * MS)
    left = data[: 2 * 4 * BLOCK]
    # Read so late that the clear would have taken it long ago.
    found = wire.blocks(0, bytes(2 * BLOCK) + left, 140 * MS) + wire.finish()
    sent = [(part.position, part.values) for part in found if part.kind == "sent"]
    assert sum(values for _, values in sent) == 4 * BLOCK
    assert sent[0][0] == 0


@pytest.mark.parametrize("inherited", [BLOCK - 2, BLOCK, 2 * BLOCK - 10])
def test_what_a_source_held_before_it_was_read_ends_where_what_was_pushed_begins(
    inherited: int,
) -> None:
    """Also where a rest of it stays in the source, and no block follows that would tell."""
    wire = WireMatcher(BLOCK)
    pushed_by_then(wire, noise(1, BLOCK - 1))
    left = (inherited + BLOCK - 1) // BLOCK
    whole = noise(2, inherited) + noise(1, BLOCK - 1)
    found = wire.blocks(0, whole[: 2 * left * BLOCK] + bytes(2 * BLOCK), 10 * MS) + wire.finish()
    told = [(part.kind, part.position, part.values) for part in found if part.kind != "inserted"]
    assert sum(values for kind, _, values in told if kind == "unknown") == inherited
    head = left * BLOCK - inherited
    assert [part for part in told if part[0] == "sent"] == ([("sent", 0, head)] if head else [])
