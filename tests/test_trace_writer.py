"""Events become lines: defaults left out, instants relative, and nothing that is no JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from probe.trace.events import (
    EVENTS,
    Bookmarked,
    Event,
    FrameCaptured,
    FramePushed,
    GenerationCounted,
    Header,
    InterruptCalled,
    OptionsChanged,
    OverlapJudged,
    RunSent,
    Tapped,
)
from probe.trace.writer import MAX_LINE_BYTES, MAX_TEXT, encode


def decoded(event: Event, zero_ns: int = 0) -> dict[str, Any]:
    line = encode(event, zero_ns)
    assert line.endswith("}\n")
    assert line.isascii()
    values: dict[str, Any] = json.loads(line)
    return values


def test_line_begins_with_the_name_of_the_event() -> None:
    line = encode(FrameCaptured(5, 1, 0, 480, 24000, 1))

    assert line == (
        '{"event":"captured","at_ns":5,"frame":1,"start_sample":0,"samples":480,'
        '"rate_hz":24000,"channels":1}\n'
    )


def test_defaults_are_left_out_and_everything_else_is_written() -> None:
    assert decoded(Tapped(1, "sent", source=2, grouped=True)) == {
        "event": "tapped",
        "at_ns": 1,
        "boundary": "sent",
        "source": 2,
        "grouped": True,
    }


def test_none_is_written_where_it_is_not_the_default() -> None:
    assert decoded(RunSent(1, 2, 1, None, 480))["start_sample"] is None
    assert "by" not in decoded(InterruptCalled(1, "speech"))


def test_instants_become_relative_and_lengths_of_time_do_not() -> None:
    zero = 7_000_000_000

    assert decoded(Tapped(zero + 5, "sent", resolution_ns=10), zero) == {
        "event": "tapped",
        "at_ns": 5,
        "boundary": "sent",
        "resolution_ns": 10,
    }
    sent = decoded(RunSent(zero + 1, zero + 2, 1, 0, 480), zero)
    assert (sent["at_ns"], sent["until_ns"]) == (1, 2)
    captured = decoded(FrameCaptured(zero, 1, 0, 1, 8000, 1, ended_ns=zero + 9), zero)
    assert captured["ended_ns"] == 9
    assert decoded(Header(1, zero, 1.5), zero)["started_monotonic_ns"] == zero


def test_ranges_of_a_push_keep_unknown_starts() -> None:
    push = FramePushed(1, 1, 1, 0, 30, 8000, 1, captured=[(None, 10), (5, 20)])

    assert decoded(push)["captured"] == [[None, 10], [5, 20]]


def test_numpy_integers_are_written_as_numbers() -> None:
    captured = FrameCaptured(np.int64(3), 1, np.int64(0), np.int32(480), 24000, 1)  # type: ignore[arg-type]

    assert decoded(captured)["samples"] == 480
    assert decoded(captured, 1)["at_ns"] == 2


def test_floats_that_are_no_numbers_are_absent() -> None:
    judged = OverlapJudged(1, True, probability=float("nan"), event_unix_s=float("inf"))

    values = decoded(judged)
    assert values["probability"] is None
    assert values["event_unix_s"] is None


def test_text_that_is_no_text_to_json_is_mended() -> None:
    assert decoded(Bookmarked(1, 'a\ud800b\n"é'))["name"] == 'a?b\n"é'
    assert decoded(Bookmarked(1, 17))["name"] == "17"  # type: ignore[arg-type]


def test_long_text_is_cut_so_that_every_line_stays_readable() -> None:
    line = encode(Bookmarked(1, "\N{GRINNING FACE}" * 10**6))

    assert len(json.loads(line)["name"]) == MAX_TEXT
    assert len(line) < MAX_LINE_BYTES


def test_options_of_any_kind_are_written_as_far_as_json_goes() -> None:
    class Stubborn:
        def __str__(self) -> str:
            raise RuntimeError

    nested: dict[str, Any] = {}
    nested["itself"] = nested
    options = {"a": 1, "b": (1.5, float("nan")), 3: Stubborn(), "c": nested, "d": None}

    values = decoded(OptionsChanged(1, options))["options"]  # type: ignore[arg-type]

    assert (values["a"], values["b"], values["3"]) == (1, [1.5, None], "<Stubborn>")
    assert "itself" in values["c"]
    assert values["d"] is None


def test_whoever_is_no_event_is_refused() -> None:
    with pytest.raises(KeyError):
        encode("captured")  # type: ignore[arg-type]


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: event.NAME)
def test_every_event_can_be_written_with_its_required_fields_alone(event: type[Event]) -> None:
    samples: dict[str, Any] = {"int": 1, "float": 1.5, "bool": True}
    fields = [
        field
        for field in dataclasses.fields(event)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    values = {
        field.name: []
        if field.type.startswith("list")
        else {}
        if field.type.startswith("dict")
        else samples.get(field.type, "x")
        for field in fields
        if isinstance(field.type, str)
    }
    if event is RunSent:
        values["start_sample"] = None
    if event is GenerationCounted:
        values["unread_samples"] = None

    assert decoded(event(**values)) == {"event": event.NAME, **values}
