"""The session's verdicts, commits and options, told the same way on every release."""

from __future__ import annotations

import pytest

from tests.session_child import found

pytestmark = pytest.mark.livekit


@pytest.mark.parametrize(
    ("asked", "by"),
    [
        ("activity", "activity"),
        ("transcript", "transcript"),
        ("session", "programmatic"),
        ("handle", "programmatic"),
        ("user_code", "programmatic"),
    ],
)
def test_who_asks_a_speech_to_stop_is_told(asked: str, by: str) -> None:
    seen = found("verdict_kinds")[asked]
    assert seen["by"] == [by]
    assert seen["committed"] == 1
    assert seen["done"]


def test_a_verdict_is_never_later_than_its_commit() -> None:
    assert all(seen["ordered"] for seen in found("verdict_kinds").values())
    assert found("interrupted_reply")["asked_first"]
    assert found("interrupted_reply")["same_speech"]


def test_a_pause_before_the_commit_is_a_mark_of_its_own() -> None:
    seen = found("verdict_kinds")
    assert seen["transcript"]["marks"] == ["pause"]
    assert seen["activity"]["marks"] == []


def test_speeches_end_with_their_outcome() -> None:
    assert found("interrupted_reply")["speech_done"] == [True, False]


def test_an_interrupt_that_is_refused_raises_as_before_and_commits_nothing() -> None:
    seen = found("refused_interrupt")
    assert seen["raised"] == "RuntimeError"
    assert seen["calls"] == [["programmatic", "raised"]]
    assert seen["committed"] == 0
    assert seen["done"]
    assert seen["allowed"] == [False]


def test_a_speech_that_is_done_keeps_nothing_of_the_probe() -> None:
    seen = found("refused_interrupt")
    assert seen["own"] == []
    assert seen["callbacks"] == 0


def test_a_speech_that_ran_before_the_probe_came_is_taken_along() -> None:
    seen = found("running_speech_is_taken_along")
    assert seen["done"]
    assert {"interrupt_called", "speech_committed", "speech_done"} <= set(seen["names"])


def test_options_have_the_same_names_on_every_release_and_changes_are_told() -> None:
    seen = found("options_are_told")
    assert seen["before"] == 0
    first = seen["first"]
    assert first["allow_interruptions"] is True
    assert first["min_duration_s"] == 0.5
    assert first["min_words"] == 0
    assert first["false_interruption_timeout_s"] == 2.0
    assert first["resume_false_interruption"] is True
    assert first["can_pause"] is True
    assert "turn_detection" in first
    assert seen["later"] == [0.5, 0.75]


@pytest.mark.parametrize(
    ("path", "by"),
    [
        ("vad", "activity"),
        ("stt", "activity"),
        ("server", "activity"),
        ("pause", "transcript"),
        ("old pause", "transcript"),
        ("turn", "transcript"),
        ("tool", "programmatic"),
        ("user code", "programmatic"),
        ("closing", "programmatic"),
    ],
)
def test_where_a_release_does_not_say_who_the_nearest_known_caller_decides(
    path: str, by: str
) -> None:
    assert found("callers")[path] == by


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("audio_activity", "activity"),
        ("user_turn", "transcript"),
        ("programmatic", "programmatic"),
        ("something new", None),
    ],
)
def test_what_a_release_says_is_believed(source: str, by: str | None) -> None:
    assert found("callers")[f"source {source}"] == by


@pytest.mark.parametrize("way", ["aclose", "shutdown"])
def test_a_close_is_told_before_it_interrupts_the_speech(way: str) -> None:
    seen = found("closed_while_it_speaks")[way]
    assert seen["endings"] == [
        "session_closed", "interrupt_called", "speech_committed", "speech_done",
    ]  # fmt: skip
    assert seen["reasons"] == ["user_initiated"]
    assert seen["done"]
    assert seen["own"] == []
    assert seen["faults"] == []


def test_closing_a_session_that_never_ran_is_no_close() -> None:
    assert found("closed_while_it_speaks")["never started"] == []


def test_where_only_its_end_can_be_seen_the_close_is_told_then_and_the_header_says_so() -> None:
    assert found("closed_in_another_way") == {"reasons": ["job_shutdown"], "missing": True}


def test_a_caller_who_leaves_is_told_before_the_session_closes_over_it() -> None:
    seen = found("caller_leaves")
    assert seen["other"] == 0
    assert seen["left"] == ["CLIENT_INITIATED"]
    assert seen["closed"] == ["participant_disconnected"]
    assert sorted(seen["endings"][:2]) == ["caller_left", "session_closed"]
    assert seen["endings"][2:] == ["interrupt_called", "speech_committed", "speech_done"]
    assert seen["done"]
    assert seen["faults"] == []


def test_detached_it_leaves_no_listener_in_the_room() -> None:
    before, meanwhile, after = found("nobody_listens_to_a_room_any_more")["counts"]
    assert (meanwhile, after) == (before + 1, before)


def test_a_handoff_is_told_by_numbers_and_before_what_is_interrupted_for_it() -> None:
    seen = found("handed_over")
    assert seen["agents"] == [[1, 2], [2, 1]]
    assert seen["endings"] == [
        "handed_over", "handed_over", "interrupt_called", "speech_committed", "speech_done",
    ]  # fmt: skip
    assert seen["done"]
    assert seen["faults"] == []
