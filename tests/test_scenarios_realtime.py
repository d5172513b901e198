"""The scripted calls with a realtime model: what its server does, and that the calls land where
they are meant to. All of it runs in children, once for the file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Axes, Scenario, releases
from probe.scenarios.scenario import RealtimeOptions
from probe.scenarios.script import Step
from reports import Analysis
from reports.results import BargeIn, RealtimeMessage
from reports.units import time_ms
from tests.ahead import Begun, starting
from tests.calls_in_children import ROOT, Wanted, analysed, run_all

pytestmark = [pytest.mark.livekit, pytest.mark.timeout(300)]

NAMES = tuple(name for name, scenario in CATALOGUE.items() if scenario.realtime is not None)
MID_MESSAGE = CATALOGUE["realtime-mid-message"]


def _at(scenario: Scenario, **axes: Any) -> Scenario:
    return scenario.with_axes(replace(scenario.axes, **axes))


def _by(scenario: Scenario, **options: Any) -> Scenario:
    assert scenario.realtime is not None
    return replace(scenario, realtime=replace(scenario.realtime, **options))


VARIED = {
    "burst": _at(MID_MESSAGE, pacing="burst"),
    "stalled": _at(MID_MESSAGE, pacing="stalled", reply_ms=1995, at=300),
    "resampled": _at(MID_MESSAGE, rate_hz=16_000, frame_ms=98.5),
    "long-frames": _at(CATALOGUE["realtime-uninterrupted"], frame_ms=300, reply_ms=1495),
    "generators": _by(MID_MESSAGE, streams="generator"),
    "slow": _by(_at(CATALOGUE["realtime-uninterrupted"], reply_ms=995), speed=0.8),
    "vad": replace(
        _by(MID_MESSAGE, detects_turns=False),
        options=CATALOGUE["barge-in-cut"].options,
        steps=CATALOGUE["barge-in-cut"].steps,
    ),
    "own-words": replace(
        MID_MESSAGE,
        steps=(*MID_MESSAGE.steps[:-1], Step("transcript"), Step("await-end")),
    ),
}
"""Calls that differ from the catalogue's in one respect."""

Calls = Callable[[str], Analysis]


def _calls(folder: Path) -> dict[str, Path | str]:
    wanted = {name: Wanted(CATALOGUE[name]) for name in NAMES}
    wanted |= {name: Wanted(scenario) for name, scenario in VARIED.items()}
    return run_all(wanted, folder)


@pytest.fixture(scope="module")
def call(begun: Begun) -> Calls:
    became = begun("calls")
    analyses: dict[str, Analysis] = {}

    def of(name: str) -> Analysis:
        if name not in analyses:
            analyses[name] = analysed(became[name])
        return analyses[name]

    return of


def _child(*arguments: str) -> Any:
    with starting():
        child = subprocess.run(
            [sys.executable, "-m", "tests.realtime_model_child", *arguments],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert child.stdout.startswith("{"), child.stderr[-2000:]
    return json.loads(child.stdout.splitlines()[-1])


AHEAD = {
    "calls": _calls,
    "model": lambda _: _child(),
    "with the probe and without": lambda _: _child(*NAMES),
}


@pytest.fixture(scope="module")
def model(begun: Begun) -> Any:
    return begun("model")


def messages(analysis: Analysis) -> list[RealtimeMessage]:
    """Of the reply the script is about."""
    assert analysis.realtime is not None
    return [message for message in analysis.realtime.messages if message.response == 1]


def barge_in(analysis: Analysis) -> BargeIn:
    assert len(analysis.barge_ins) == 1, analysis.barge_ins
    return analysis.barge_ins[0]


# -- the model --


def test_a_message_is_in_the_servers_conversation_before_anyone_hears_it(model: Any) -> None:
    commits = model["commits"]
    assert commits["first_on_server"] == ["message_1"]
    assert commits["added"] == ["message_1", "message_2"]
    assert commits["previous"] == [None, "message_1"]


def test_a_reply_has_its_messages_with_audio_text_and_modalities(model: Any) -> None:
    both = ["audio", "text"]
    assert model["commits"]["messages"] == [
        ["message_1", 4800, 1, both],
        ["message_2", 4800, 1, both],
    ]


def test_the_event_of_a_response_is_the_answer_to_who_asked(model: Any) -> None:
    assert model["commits"]["user_initiated"] is True
    assert model["commits"]["same_event"] is True
    assert model["cancels"]["server_initiated"] == [True, False, False]


def test_metrics_say_which_response_ended_and_whether_it_was_cancelled(model: Any) -> None:
    assert model["commits"]["metrics"] == [[True, False]]
    assert model["cancels"]["metrics"] == [True, True, False]


def test_a_cancel_ends_all_that_was_under_way_and_nothing_that_began_later(model: Any) -> None:
    cancels = model["cancels"]
    assert cancels["at_once"] == [False, False, False]
    assert cancels["then"] == [True, True, False]
    assert cancels["cancelled"] == [True, True, False]


def test_the_servers_conversation_is_what_it_was_last_told(model: Any) -> None:
    edits = model["edits"]
    assert edits["after_first"] == ["hello"]
    assert edits["truncated"] == ["This"]
    assert edits["after_second"] == ["hello", "again"]
    assert edits["added"] == ["hello", "message_1", "again"]


def test_what_is_handed_out_of_the_conversation_is_a_copy(model: Any) -> None:
    assert model["edits"]["untouched"] == ["hello", "message_1"]


def test_what_the_caller_said_is_committed_and_reported(model: Any) -> None:
    assert model["edits"]["heard"] == ["And again."]


def test_streams_are_channels_or_plain_generators(model: Any) -> None:
    assert model["streams"] == {
        "channel": [[True, True], 9600],
        "generator": [[False, False], 9600],
    }


def test_a_reply_nobody_waits_for_any_more_is_not_begun(model: Any) -> None:
    assert model["abandoned"]["dropped"] == 0


def test_a_session_that_closes_ends_its_responses(model: Any) -> None:
    assert model["abandoned"]["ended"] is True


# -- the calls --


@pytest.mark.parametrize("name", [*NAMES, *VARIED])
def test_the_ledger_of_the_call_balances_and_its_control_is_whole(call: Calls, name: str) -> None:
    analysis = call(name)
    assert analysis.balanced is True
    assert analysis.faults == ()
    assert analysis.run is not None
    assert analysis.run.control is not None
    assert analysis.run.control.whole


@pytest.mark.parametrize(
    "name", ["realtime-between-messages", "realtime-mid-message", "realtime-before-first-frame"]
)
def test_what_the_server_hears_is_a_barge_in_with_onset_and_verdict(call: Calls, name: str) -> None:
    found = barge_in(call(name))
    assert found.verdict_kind == "activity"
    assert found.onset_ns is not None
    assert found.verdict_ns is not None
    assert found.commit_ns is not None
    assert time_ms(found.onset_ns) <= time_ms(found.verdict_ns) <= time_ms(found.commit_ns)


def test_between_messages_the_first_is_sent_and_the_second_is_not_begun(call: Calls) -> None:
    analysis = call("realtime-between-messages")
    first, second = messages(analysis)
    commit_ms = time_ms(barge_in(analysis).commit_ns)
    assert first.sent is not None
    assert first.sent.samples == 1500 * 24
    assert second.created_ns is not None
    assert commit_ms is not None
    assert time_ms(second.created_ns) < commit_ms
    assert second.opened_ns is None


def test_mid_message_the_first_is_cut_and_the_second_exists(call: Calls) -> None:
    analysis = call("realtime-mid-message")
    first, second = messages(analysis)
    commit_ms = time_ms(barge_in(analysis).commit_ns)
    assert first.sent is not None
    assert 0 < first.sent.samples < 1498 * 24
    assert first.truncated_to_ns is not None
    assert second.created_ns is not None
    assert commit_ms is not None
    assert time_ms(second.created_ns) < commit_ms


def test_before_the_first_frame_the_message_is_opened_and_has_no_audio(call: Calls) -> None:
    (only,) = messages(call("realtime-before-first-frame"))
    assert only.opened_ns is not None
    assert only.first_audio_ns is None
    assert only.captured.samples == 0


def test_a_handle_is_interrupted_by_code_while_its_response_is_generated(call: Calls) -> None:
    analysis = call("realtime-handle-interrupt")
    assert barge_in(analysis).verdict_kind == "programmatic"
    assert analysis.realtime is not None
    (stop,) = analysis.realtime.stops
    assert stop.under_way is True


def test_a_late_interrupt_comes_after_the_end_of_its_response_and_in_the_next(call: Calls) -> None:
    analysis = call("realtime-late-interrupt")
    assert analysis.realtime is not None
    (stop,) = analysis.realtime.stops
    first, second, _ = analysis.realtime.responses
    assert stop.responses == (first.number,)
    assert stop.under_way is False
    assert first.ended_ns is not None
    assert second.ended_ns is not None
    assert (
        time_ms(first.ended_ns)
        <= time_ms(second.created_ns)
        <= time_ms(stop.interrupt_ns)
        <= time_ms(second.ended_ns)
    )


def test_nobody_interrupts_the_uninterrupted_call(call: Calls) -> None:
    analysis = call("realtime-uninterrupted")
    assert analysis.barge_ins == ()
    assert [message.sent and message.sent.ms for message in messages(analysis)] == [1497, 1498]


def test_with_a_vad_the_session_itself_finds_out_that_the_caller_speaks(call: Calls) -> None:
    assert barge_in(call("vad")).verdict_kind == "activity"


def test_words_the_server_understood_bring_a_reply_it_begins_itself(call: Calls) -> None:
    realtime = call("own-words").realtime
    assert realtime is not None
    assert [response.user_initiated for response in realtime.responses] == [True, False]


def test_generated_at_once_there_is_nothing_left_to_cancel(call: Calls) -> None:
    realtime = call("burst").realtime
    assert realtime is not None
    (stop,) = realtime.stops
    assert stop.under_way is False


def test_the_probe_changes_no_call_on_the_model(begun: Begun) -> None:
    told = begun("with the probe and without")
    for name in NAMES:
        bare, watched = told[name]
        assert bare == watched, name
        assert ["generate_reply"] in bare


# -- what a scenario may be --


def test_a_release_without_such_models_says_so_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_annotations", lambda _: frozenset())
    for name in NAMES:
        with pytest.raises(ScenarioError) as caught:
            releases.require(CATALOGUE[name])
        message = str(caught.value)
        assert message.startswith(f"{name} can't run on livekit-agents")
        assert "mutable_chat_context" in message
        assert "run barge-in-cut instead" in message
        assert "\n" not in message


@pytest.mark.parametrize("reply", ["say", "tool"])
def test_a_realtime_model_speaks_for_itself(reply: Any) -> None:
    with pytest.raises(ScenarioError, match="expected generated, a realtime model speaks"):
        MID_MESSAGE.with_axes(Axes(reply=reply))


@pytest.mark.parametrize("at", ["in-pause", "twice"])
def test_what_the_server_hears_pauses_nothing(at: Any) -> None:
    with pytest.raises(ScenarioError, match="does not pause it"):
        MID_MESSAGE.with_axes(Axes(at=at))


def test_steps_of_a_model_need_one() -> None:
    with pytest.raises(ScenarioError, match="`await-created` needs a realtime model"):
        replace(MID_MESSAGE, realtime=None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"messages": ()}, "messages: expected shares from 1"),
        ({"messages": (1, 0)}, "messages: expected shares from 1"),
        ({"speed": 0.0}, "speed: expected more than 0"),
        ({"cancel_ms": -1}, "cancel_ms: expected 0 to 10000"),
        ({"streams": "tape"}, "streams: expected one of channel, generator"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        RealtimeOptions(**options)
    assert said in str(caught.value)
