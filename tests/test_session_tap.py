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
