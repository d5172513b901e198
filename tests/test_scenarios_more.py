"""Places, replies and sinks beyond the plain barge-in: each call goes the framework's own way, in
the order it claims, and its trace balances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Scenario
from probe.scenarios.axes import PLACES
from probe.scenarios.releases import missing
from reports import analyze
from tests.ahead import Begun
from tests.calls_in_children import Wanted, run_all
from tests.test_scenarios_calls import COMMITTED, ONSET, Ends, Promise, check, follows, happened

pytestmark = pytest.mark.timeout(300)

PAUSED = (ONSET, "mark pause")


@dataclass(frozen=True)
class Call:
    """One of the catalogue's, somewhere else on the axes."""

    scenario: str
    axes: dict[str, Any]
    promise: Promise

    def on_its_axes(self) -> Scenario:
        scenario = CATALOGUE[self.scenario]
        return scenario.with_axes(replace(scenario.axes, **self.axes))


def activity(*order: str, **axes: Any) -> Call:
    promise = Promise((*PAUSED, *order, *COMMITTED), kind="activity", outcome="committed")
    return Call("barge-in-activity", {"reply_ms": 1495, "at": 300, **axes}, promise)


CALLS = {
    "on the first frame": activity(at="first-frame"),
    "in the follow-up": Call(
        "barge-in-activity",
        {"reply_ms": 1495, "at": "follow-up"},
        Promise(("interrupted programmatic", "mark clear", "done reply", *PAUSED, *COMMITTED)),
    ),
    "inside a pause": activity("state user listening", ONSET, at="in-pause"),
    "twice": Call(
        "barge-in-activity",
        {"reply_ms": 2995, "at": "twice"},
        Promise((*PAUSED, "mark resume", "false_interruption", *PAUSED, *COMMITTED)),
    ),
    "said": activity(reply="say"),
    "said, stalled, slow to close": activity(reply="say", pacing="stalled", close_ms=300),
    "a tool call, in its second half": Call(
        "barge-in-cut",
        {"reply": "tool", "reply_ms": 1995, "at": 1400},
        Promise(
            (
                "mark flush",
                "playback",
                "mark flush",
                ONSET,
                "committed",
                "mark clear",
                "control",
                "done control",
            ),
            kind="activity",
            outcome="committed",
        ),
    ),
    "a tool call, to the end": Call(
        "uninterrupted",
        {"reply": "tool", "reply_ms": 995, "at": 300},
        Promise(("mark flush", "mark flush", "done reply", "control", "done control")),
    ),
    "stereo": activity(channels=2),
    "stereo, resampled": activity(channels=2, rate_hz=48_000, frame_ms=98.5),
    "a reply of a minute": Call("long-reply", {}, activity().promise),
    "a new sink": Call("sink-swapped", {"reply_ms": 1495, "at": 300}, activity().promise),
}

AFTER_LAST_FRAME = Call(
    "barge-in-activity",
    {"reply_ms": 995, "at": "after-last-frame"},
    Promise((*PAUSED, "transcript", "control", "done control"), never=("mark clear", "committed")),
)

ENDS: dict[str, Ends] = {
    "in the follow-up": [("programmatic", "committed"), ("activity", "committed")],
    "twice": [(None, "resumed"), ("activity", "committed")],
}
"""Kind and outcome of the barge-ins, where there are two."""


def _calls(folder: Path) -> dict[str, Path | str]:
    wanted = {name: call.on_its_axes() for name, call in CALLS.items()}
    wanted |= {name: CATALOGUE[name] for name in ("reply-over-caller", "stale-verdict")}
    wanted["after the last frame"] = AFTER_LAST_FRAME.on_its_axes()
    runs = {name: Wanted(call) for name, call in wanted.items() if missing(call) is None}
    return run_all(runs, folder)


AHEAD = {"calls": _calls}


@pytest.fixture(scope="module")
def traces(begun: Begun) -> Any:
    return begun("calls")


def trace_of(traces: dict[str, Path | str], name: str) -> Path:
    if name not in traces:
        pytest.skip("the installed release can't run it")
    trace = traces[name]
    assert isinstance(trace, Path), trace
    return trace


@pytest.mark.livekit
@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_the_way_it_claims(traces: dict[str, Path | str], name: str) -> None:
    check(name, trace_of(traces, name), CALLS[name].promise, ENDS.get(name))


@pytest.mark.livekit
def test_a_pause_after_the_last_frame_comes_too_late_to_stop_it(
    traces: dict[str, Path | str],
) -> None:
    trace = trace_of(traces, "after the last frame")
    words = happened(trace)
    assert follows(words, AFTER_LAST_FRAME.promise.order) is None, words
    assert not set(AFTER_LAST_FRAME.promise.never) & set(words[: words.index("control")])
    analysis = analyze(trace)
    assert analysis.balanced is True
    (barge_in,) = analysis.barge_ins
    assert barge_in.verdict_ns is None
    reply = analysis.segments[0]
    assert reply.swallowed_samples == 0
    assert reply.captured is not None
    assert reply.sent is not None
    assert reply.captured.samples == reply.sent.samples


@pytest.mark.livekit
def test_a_reply_asked_for_while_the_caller_speaks_comes_whole(
    traces: dict[str, Path | str],
) -> None:
    trace = trace_of(traces, "reply-over-caller")
    order = ("done reply", ONSET, "captured", "state user listening", "done reply", "control")
    words = happened(trace)
    assert follows(words, order) is None, words


@pytest.mark.livekit
def test_a_stale_verdict_names_the_overlap_it_is_about(traces: dict[str, Path | str]) -> None:
    trace = trace_of(traces, "stale-verdict")
    order = (ONSET, "done reply", "overlap no", "overlap yes", "done reply", "control")
    words = happened(trace)
    assert follows(words, order) is None, words


@pytest.mark.parametrize(
    ("scenario", "at", "said"),
    [
        ("barge-in-model", "first-frame", None),
        ("barge-in-model", "in-pause", "only the model's verdict pauses it"),
        ("barge-in-cut", "twice", "its session does not pause"),
        ("caller-ignored", "follow-up", "its replies allow no interruptions"),
        ("uninterrupted", "twice", "there is no barge-in in it"),
        ("interrupted-before-subscribed", "after-last-frame", "its place is fixed"),
        ("barge-in", "follow-up", None),
    ],
)
def test_a_place_that_makes_no_sense_is_refused_in_one_line(
    scenario: str, at: Any, said: str | None
) -> None:
    call = CATALOGUE[scenario]
    axes = replace(call.axes, at=at)
    if said is None:
        assert call.with_axes(axes).axes.at == at
        return
    with pytest.raises(ScenarioError, match=said) as caught:
        call.with_axes(axes)
    assert str(caught.value).startswith(f"{scenario}: ")


def test_what_comes_before_the_landing_stands_where_the_landing_was() -> None:
    call = CATALOGUE["barge-in-activity"]
    for at in PLACES:
        script = call.with_axes(replace(call.axes, at=at)).script
        assert script[-len(call.steps) + 1 :] == call.steps[1:]
    twice = call.with_axes(replace(call.axes, at="twice")).script
    assert [step.ms for step in twice if step.do == "land"] == [None, 1200]
    follow_up = call.with_axes(replace(call.axes, at="follow-up"))
    assert follow_up.replies == 2
