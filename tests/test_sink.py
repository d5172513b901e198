"""The tap at the sink's head changes nothing and sees everything."""

from __future__ import annotations

import pytest

from tests.session_child import found

pytestmark = pytest.mark.livekit

SAME_CALLS = [
    "greeting_before_start",
    "interrupted_reply",
    "cancelled_first_capture",
    "finish_inside_first_capture",
    "attached_mid_speech",
    "wrapped_afterwards",
]


@pytest.mark.parametrize("scenario", SAME_CALLS)
def test_the_leaf_sees_the_same_calls_with_and_without_the_probe(scenario: str) -> None:
    with_probe, without = found(scenario), found(scenario, probed=False)
    assert with_probe["leaf"] == without["leaf"]
    assert with_probe["history"] == without["history"]
    assert with_probe.get("done") == without.get("done")
    assert with_probe["faults"] == []


def test_a_capture_cancelled_before_the_sink_accepted_it_is_noted_and_hangs_no_reply() -> None:
    seen = found("cancelled_first_capture")
    assert seen["ends"] == ["cancelled"]
    assert seen["done"] == found("cancelled_first_capture", probed=False)["done"]


def test_a_sink_that_finishes_inside_its_first_capture_ends_every_reply() -> None:
    assert found("finish_inside_first_capture")["done"] == [True, True, True]


def test_what_the_sink_raises_reaches_the_caller_and_is_noted() -> None:
    seen = found("sink_raises")
    assert seen["raised"] == ["ValueError('broken sink')", "KeyError('broken pause')"]
    assert seen["cancelled"]
    assert seen["open_end"] is None
    assert seen["ends"] == [
        ["capture", "raised", "ValueError", None],
        ["mark", "raised", "KeyError", None],
        ["capture", "cancelled", "CancelledError", None],
    ]


def test_an_exception_inside_the_tap_leaves_the_call_untouched_and_is_a_fault() -> None:
    seen, without = found("tap_raises"), found("tap_raises", probed=False)
    assert seen["leaf"] == without["leaf"]
    assert seen["history"] == without["history"]
    assert seen["done"] == [True, True]
    assert seen["faults"] == ["tap_raised"]
    assert "capture_frame" in seen["where"]
    assert without["faults"] == []


def test_the_next_link_answers_whatever_the_probe_is_asked() -> None:
    seen = found("answers_of_the_next_link")
    assert seen["missing"] == []
    assert seen["is_output"]
    assert seen["next"]
    assert (seen["sample_rate"], seen["label"], seen["can_pause"]) == (24_000, "leaf", True)
    assert seen["pending"] == 1
    assert seen["volume"] == 5


def test_playback_events_come_back_once_and_as_the_same_object() -> None:
    seen = found("answers_of_the_next_link")
    assert seen["heard"] == 1
    assert seen["same_event"]
    assert seen["position"] == 0.02
    assert seen["reports"][-1] == "finished"
    # those of the probe, and none of the listener that was taken off again
    assert set(seen["listeners"].values()) == {1}


def test_frames_are_bounded_and_counted_while_the_writer_is_stuck() -> None:
    seen = found("full_queue")
    assert seen["counted"] == 5
    assert seen["appended"] == 60_000
    assert seen["later"] == [5, 5]
