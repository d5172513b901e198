"""What is followed by content: exact where content can tell, counted where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.alignment import FlowMatcher, WireMatcher
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


def source_model(*, group: int, every_tick: bool, queue: int = QUEUE) -> SourceModel:
    matcher = WireMatcher(
        BLOCK,
        queue,
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
