"""The tap on realtime models tells what happened, and changes nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    CancelSent,
    ContextSeen,
    GenerationCounted,
    MessageAudio,
    RealtimeTapped,
    ResponseCreated,
    ResponseEnded,
)
from probe.trace.reader import read_trace
from tests import session_child
from tests.releases import python_with

pytestmark = pytest.mark.livekit

MODULE = "tests.realtime_scenarios"
COMPARED = session_child.UNPROBED[MODULE]

Row = dict[str, Any]


def found(scenario: str, *, probed: bool = True) -> dict[str, Any]:
    return session_child.found(scenario, probed=probed, module=MODULE)


def told(scenario: str, event: str, **wanted: Any) -> list[Row]:
    """Events of that name in the order of their times, those with the wanted values."""
    return pick(found(scenario), event, **wanted)


def pick(result: dict[str, Any], event: str, **wanted: Any) -> list[Row]:
    return [
        row
        for row in result["told"]
        if row["event"] == event and all(row[key] == value for key, value in wanted.items())
    ]


def values(rows: list[Row], *names: str) -> list[Any]:
    return [tuple(row[name] for name in names) for row in rows]


# -- it changes nothing --


@pytest.mark.parametrize("scenario", COMPARED)
@pytest.mark.parametrize("seen", ["calls", "leaf", "history"])
def test_model_and_sink_see_the_same_with_the_probe_and_without(scenario: str, seen: str) -> None:
    assert found(scenario)[seen] == found(scenario, probed=False)[seen]


def test_what_the_model_raises_reaches_who_called_it() -> None:
    assert found("model_raises")["raised"] == found("model_raises", probed=False)["raised"]
    assert found("model_raises")["raised"] == [
        "Broken", "TypeError", "NotImplementedError", "RealtimeError", "cancelled",
        "AttributeError",
    ]  # fmt: skip


def test_a_tap_that_fails_at_everything_is_a_fault_and_nothing_else() -> None:
    seen = found("tap_fails")
    assert seen["done"]
    assert {kind for kind, _ in seen["faults"]} == {"tap_raised"}
    assert all(detail.endswith("LookupError") for _, detail in seen["faults"])


def test_no_other_scenario_makes_the_tap_fail() -> None:
    for scenario in ("channels", "generators", "handle_interrupted", "model_raises", "answers"):
        assert found(scenario)["faults"] == []


def test_frames_and_messages_are_handed_on_as_the_same_objects() -> None:
    assert found("frames_are_the_same_objects")["same"] == 30
    assert found("frames_are_the_same_objects")["messages"] == [True]
    assert found("answers")["identical"] == [True, True, True]


@pytest.mark.parametrize("stream", ["channel", "generator", "iterable"])
def test_a_watched_stream_has_the_attributes_of_its_stream_and_no_others(stream: str) -> None:
    seen = found("streams_are_the_same")[stream]
    assert seen["missing"] == []
    assert seen["static"] == []
    assert seen["closeable"]
    assert seen["class"]
    assert seen["items"] == [1, 2, 3]
    assert seen["seen"] == ["opened", 1, 2, 3, "StopAsyncIteration"]


def test_a_watched_channel_can_be_received_from_asked_and_closed() -> None:
    seen = found("streams_are_the_same")
    assert seen["set"]
    assert seen["received"] == [4, 5]
    assert seen["asked"] == [0, False]
    assert seen["errors"] == ["ChanEmpty", "ChanClosed"]
    assert seen["seen"] == ["ChanEmpty", 4, "CancelledError", 5, "ChanClosed"]


def test_a_watched_stream_fails_is_cancelled_and_is_closed_like_its_stream() -> None:
    seen = found("streams_fail_the_same")
    assert seen["items"] == [1]
    assert seen["raised"] == "half way"
    assert seen["cancelled"]
    assert seen["closed"] == ["CancelledError", "GeneratorExit"]


def test_a_stream_that_another_tap_has_watched_can_be_watched_again() -> None:
    assert found("streams_fail_the_same")["twice"] == [1, 2]


def test_reading_through_the_tap_never_gives_the_loop_a_turn_of_its_own() -> None:
    seen = found("streams_fail_the_same")
    assert seen["whole"]
    # the one that started the count
    assert seen["turns"] == 1


def test_an_error_nobody_looks_at_stays_unseen() -> None:
    seen = found("answers")
    assert seen["unseen"]
    assert seen["refused"] == "RealtimeError"


def test_detached_in_the_middle_of_a_message_it_leaves_nothing_and_says_nothing_more() -> None:
    seen = found("detached_mid_response")
    assert seen["patched"] == ["emit", "interrupt"]
    assert seen["left"] == []
    assert seen["silent"]
    assert values(pick(seen, "realtime_untapped"), "session", "reason") == [(1, "detached")]
    assert values(pick(seen, "generation_counted"), "why", "read_samples") == [("detached", 4800)]


def test_a_response_that_ran_before_the_probe_came_is_left_alone_and_the_next_is_whole() -> None:
    seen = found("attached_mid_response")
    assert seen["faults"] == []
    assert values(pick(seen, "response_created"), "id") == [("r2",)]
    assert sum(row["samples"] for row in pick(seen, "message_audio")) == 4800
    assert values(pick(seen, "response_ended"), "response") == [(1,)]


# -- responses and their messages --


def test_a_response_belongs_to_the_speech_that_was_made_for_it() -> None:
    created = told("channels", "response_created")
    assert values(created, "response", "session", "id", "user_initiated") == [
        (1, 1, "r1", False), (2, 1, "r2", True),
    ]  # fmt: skip
    done = [row["speech"] for row in told("channels", "speech_done")]
    assert [row["speech"] for row in created] == done
    assert done[1] == found("channels")["speech"]


def test_an_answer_belongs_to_the_speech_that_asked_in_whatever_order_it_comes() -> None:
    assert values(told("answers", "response_created"), "id", "speech", "user_initiated") == [
        ("r1", "answered first", True),
        ("r2", "emitted first", True),
        ("r3", "not emitted", True),
        ("r4", None, False),
    ]


def test_two_responses_in_flight_each_have_their_own_speech() -> None:
    created = told("handle_interrupted", "response_created")
    assert [row["speech"] for row in created] == found("handle_interrupted")["speeches"]


@pytest.mark.parametrize(("scenario", "by"), [("channels", "event"), ("generators", "stream")])
def test_each_message_is_created_pulled_and_opened_once_and_in_that_order(
    scenario: str, by: str
) -> None:
    created = told(scenario, "message_created")
    assert values(created, "message", "response", "by") == [
        ("r1-1", 1, by), ("r1-2", 1, by), ("r2-1", 2, by),
    ]  # fmt: skip
    names = ("message_created", "message_pulled", "message_opened")
    for row in created:
        life = [
            other["event"]
            for other in found(scenario)["told"]
            if other.get("message") == row["message"] and other["event"] in names
        ]
        assert life == list(names)


def test_audio_read_is_told_first_frame_alone_then_in_runs() -> None:
    for scenario in ("channels", "generators"):
        audio = told(scenario, "message_audio", message="r1-1")
        assert audio[0]["frames"] == 1
        assert sum(row["samples"] for row in audio) == 15 * 480
        assert sum(row["frames"] for row in audio) == 15
        assert [row["ended"] for row in audio] == [False] * (len(audio) - 1) + [True]


def test_audio_waits_200_ms_at_most_before_it_is_told() -> None:
    seen = found("audio_in_time")
    assert [row["frames"] for row in pick(seen, "message_audio")] == [1, 11, 11, 7]
    assert seen["written"] == [23 * 480, seen["read"]]


def test_audio_told_is_the_audio_that_reached_the_sink() -> None:
    for scenario in ("channels", "generators", "handle_interrupted"):
        read = sum(row["samples"] for row in told(scenario, "message_audio"))
        captured = [call for call in found(scenario)["leaf"] if call[0] == "capture"]
        assert read == 480 * len(captured)


def test_what_was_generated_is_counted_at_the_interrupt_and_after_it_without_reading() -> None:
    counted = told("channels", "generation_counted", message="r1-2")
    assert values(counted[:1], "why", "read_samples", "unread_samples") == [
        ("interrupt", 9600, 1440)
    ]
    assert values(counted[-1:], "why", "read_samples", "unread_samples") == [("ended", 12000, 0)]
    first = next(row for row in found("channels")["told"] if row["event"] == "speech_committed")
    order = found("channels")["told"]
    assert order.index(counted[0]) < order.index(first)


def test_where_a_stream_cannot_be_asked_what_lies_unread_is_not_known() -> None:
    counted = told("generators", "generation_counted", message="r1-2")
    assert {row["unread_samples"] for row in counted} == {None}
    assert counted[0]["read_samples"] == 9600
    # of a message read to its end nothing lies unread, whatever its stream is
    ended = told("generators", "generation_counted", message="r1-1")
    assert {row["unread_samples"] for row in ended} == {0}


def test_unread_messages_are_counted_and_stay_where_they_are() -> None:
    seen = found("nobody_reads")
    assert seen["unread"] == [1, 1, 6]
    assert values(pick(seen, "generation_counted"), "response", "unread_samples", "why") == [
        (1, 4800, "ended"), (2, 1920, "cancel"), (2, 2880, "ended"),
    ]  # fmt: skip
    assert pick(seen, "message_pulled") == []


def test_a_message_that_may_belong_to_several_responses_belongs_to_none() -> None:
    created = told("nobody_reads", "message_created")
    assert values(created, "message", "response") == [
        ("r1-1", 1), ("r2-1", 2), ("elsewhere", None),
    ]  # fmt: skip


def test_messages_no_event_tells_of_are_found_in_the_stream_or_in_the_context() -> None:
    created = told("found_in_the_stream", "message_created")
    assert values(created, "message", "response", "by") == [
        ("r1-1", 1, "stream"), ("committed", 1, "context"),
    ]  # fmt: skip


# -- the end of a response --


def test_a_response_nobody_reads_is_found_closed_before_a_cancel_is_told() -> None:
    seen = found("nobody_reads")
    assert values(pick(seen, "response_ended"), "response", "by", "cancelled") == [
        (1, "closed", None), (2, "closed", None), (2, "metrics", True),
    ]  # fmt: skip
    assert values(pick(seen, "cancel_sent"), "hits", "speech") == [([2], "speech_1")]
    order = [row["event"] for row in seen["told"]]
    assert order.index("response_ended") < order.index("cancel_sent")


def test_the_first_sign_of_an_end_counts_and_metrics_may_come_after_it() -> None:
    ended = told("generators", "response_ended", response=2)
    assert values(ended, "by", "cancelled") == [("metrics", False)]


# -- what is sent --


def test_a_cancel_says_whose_it_is_and_which_responses_it_hits() -> None:
    speeches = found("handle_interrupted")["speeches"]
    cancels = told("handle_interrupted", "cancel_sent")
    # the last is sent as the session closes
    assert values(cancels[-1:], "speech", "hits") == [(None, [])]
    assert all(row["speech"] == speeches[0] for row in cancels[:-1])
    calls = [call for call in found("handle_interrupted")["calls"] if call[0] == "interrupt"]
    assert len(cancels) == len(calls)


def test_a_cancel_hits_no_response_that_nobody_took_and_nobody_will_see_end() -> None:
    seen = found("nobody_took_it")
    assert seen["faults"] == []
    assert seen["frames"] == 2
    assert values(pick(seen, "response_created"), "response", "speech") == [(1, None), (2, None)]
    assert values(pick(seen, "cancel_sent"), "hits") == [([],), ([2],), ([],)]
    assert values(pick(seen, "response_ended"), "response", "by") == [(2, "stream")]


def test_truncations_are_told_as_they_were_called() -> None:
    rows = values(told("channels", "truncate_sent"), "message", "audio_end_ms", "end")
    calls = [call for call in found("channels")["calls"] if call[0] == "truncate"]
    assert rows == [(message, end_ms, "returned") for _, message, end_ms, *_ in calls]
    assert rows


def test_calls_that_fail_say_how_they_ended() -> None:
    cancels = told("model_raises", "cancel_sent")
    assert values(cancels[:1], "end") == [("raised",)]
    sent = told("model_raises", "context_sent")
    assert values(sent, "end", "error") == [
        ("raised", "RealtimeError"), ("cancelled", "CancelledError"),
    ]  # fmt: skip


# -- both conversations --


def test_both_sides_are_looked_at_when_a_speech_is_done() -> None:
    seen = found("channels")
    for speech in [row["speech"] for row in pick(seen, "speech_done")]:
        sides = [row["side"] for row in pick(seen, "context_seen", speech=speech)]
        assert sides == ["server", "local"]
    server = [item for row in pick(seen, "context_seen", side="server") for item in row["added"]]
    local = [item for row in pick(seen, "context_seen", side="local") for item in row["added"]]
    assert server == [["r1-1", "assistant"], ["r1-2", "assistant"], ["r2-1", "assistant"]]
    spoken = [item for item in local if item[1] == "assistant"]
    assert len(spoken) == len(seen["history"])
    assert [item for item in server if item in spoken] == spoken


def test_what_an_agent_brought_along_is_on_both_sides_and_nobodys_message() -> None:
    seen = found("brought_context")
    for side in ("server", "local"):
        looks = pick(seen, "context_seen", side=side)
        assert ["brought", "assistant"] in looks[0]["added"]
        assert all("brought" not in row["removed"] for row in looks)
    assert values(pick(seen, "message_created"), "message") == [("r1-1",)]


def test_what_no_one_heard_stays_the_providers_even_where_it_is_sent_to_the_next_one() -> None:
    seen = found("carried_over")
    assert values(pick(seen, "message_created"), "message", "by") == [("r1-1", "event")]
    server = [row["added"] for row in pick(seen, "context_seen", side="server", session=2)]
    assert server[0] == [["r1-1", "assistant"], ["brought", "assistant"]]
    local = [row["added"] for row in pick(seen, "context_seen", side="local")]
    assert [["brought", "assistant"]] in local
    assert not any(["r1-1", "assistant"] in added for added in local)


def test_a_context_that_is_sent_says_what_it_adds_and_removes() -> None:
    seen = found("brought_context")
    sent = pick(seen, "context_sent")
    assert values(sent, "items", "adds", "removes", "end") == [(2, ["typed"], ["r1-1"], "returned")]
    (after,) = [row for row in pick(seen, "context_seen", side="server") if row["removed"]]
    assert (after["added"], after["removed"]) == ([["typed", "user"]], ["r1-1"])


def test_another_agents_model_is_tapped_as_another_session() -> None:
    seen = found("handed_over")
    assert values(pick(seen, "realtime"), "session") == [(1,), (2,)]
    assert values(pick(seen, "realtime_untapped"), "session", "reason") == [
        (1, "closed"), (2, "closed"),
    ]  # fmt: skip
    assert values(pick(seen, "response_created"), "session") == [(2,)]
    assert not seen["patched"]


# -- in a file --


def test_a_recorded_call_is_a_sound_trace() -> None:
    seen = found("recorded")
    trace = read_trace(Path(seen["path"]))
    assert seen["faults"] == {}
    assert trace.complete
    assert trace.problems == ()
    kinds = (RealtimeTapped, ResponseCreated, ResponseEnded, MessageAudio, GenerationCounted,
             CancelSent, ContextSeen)  # fmt: skip
    assert {kind for kind in kinds if any(isinstance(e, kind) for e in trace.events)} == set(kinds)


@pytest.mark.registry
def test_an_older_release_tells_the_same_kinds_of_events() -> None:
    python = str(python_with("1.6.5"))
    for scenario in ("channels", "generators", "brought_context"):
        older = session_child.found(scenario, module=MODULE, python=python)
        assert older["faults"] == []
        assert {row["event"] for row in older["told"]} == {
            row["event"] for row in found(scenario)["told"]
        }
