"""Every scenario takes the framework's own path, in the order it claims, and its trace balances.

The calls run in children, once for all tests of this file; nothing here looks at a time but to put
events in order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Outcome, Scenario, Step, run_in_child
from probe.scenarios.releases import missing
from reports import Analysis, analyze
from tests.ahead import Begun, starting
from tests.calls_in_children import Wanted, run_all

pytestmark = pytest.mark.livekit


@dataclass(frozen=True)
class Promise:
    """What a scenario shows on a build that works as LiveKit means it to."""

    order: tuple[str, ...]
    """What happens, in this order, whatever else happens in between."""
    never: tuple[str, ...] = ()
    """What does not happen before the control."""
    kind: str | None = None
    outcome: str | None = None
    """Of the one barge-in; ``None``: there is none."""


ONSET = "state user speaking"
COMMITTED = ("transcript", "committed", "mark clear", "control", "done control")
RESUMED = ("mark resume", "false_interruption", "done reply", "control", "done control")

PROMISES = {
    "barge-in": Promise(
        (ONSET, "mark pause", "source_cleared", "overlap yes", *COMMITTED),
        kind="overlap",
        outcome="committed",
    ),
    "barge-in-no-transcript": Promise(
        (ONSET, "mark pause", "source_cleared", "overlap yes", "state user listening", *RESUMED),
        never=("transcript", "committed"),
        kind="overlap",
        outcome="resumed",
    ),
    "barge-in-model": Promise(
        (ONSET, "overlap yes", "mark pause", *COMMITTED), kind="overlap", outcome="committed"
    ),
    "barge-in-activity": Promise(
        (ONSET, "mark pause", *COMMITTED),
        never=("overlap yes",),
        kind="activity",
        outcome="committed",
    ),
    "barge-in-cut": Promise(
        (ONSET, "committed", "mark clear", "transcript", "control", "done control"),
        never=("mark pause", "overlap yes"),
        kind="activity",
        outcome="committed",
    ),
    "false-interruption": Promise(
        (ONSET, "mark pause", "state user listening", *RESUMED),
        never=("transcript", "committed", "overlap yes"),
        outcome="resumed",
    ),
    "caller-ignored": Promise(
        (ONSET, "state user listening", "done reply", "control", "done control"),
        never=("mark pause", "mark clear", "committed"),
        outcome="ignored",
    ),
    "programmatic": Promise(
        ("interrupted programmatic", "mark clear", "done reply", "control", "done control"),
        never=("mark pause", ONSET),
        kind="programmatic",
        outcome="committed",
    ),
    "uninterrupted": Promise(
        ("done reply", "control", "done control"),
        never=("mark pause", "mark clear", "committed", ONSET),
    ),
}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "barge-in realtime 98.5 ms": ("barge-in", {"pacing": "realtime", "frame_ms": 98.5}),
    "barge-in before the first frame": ("barge-in", {"at": "before-first-frame"}),
    "barge-in-activity stalled": ("barge-in-activity", {"pacing": "stalled"}),
    "false-interruption stalled 48 kHz": (
        "false-interruption",
        {"pacing": "stalled", "rate_hz": 48_000, "reply_ms": 1495},
    ),
    "uninterrupted 10 ms 8 kHz": (
        "uninterrupted",
        {"frame_ms": 10.0, "rate_hz": 8000, "reply_ms": 1495},
    ),
}

Calls = dict[str, "Path | str"]


def _calls(folder: Path) -> Calls:
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        name: (name, {}) for name in (*PROMISES, "interrupted-before-subscribed")
    }
    wanted.update(VARIANTS)
    scenarios = {
        name: CATALOGUE[base].with_axes(replace(CATALOGUE[base].axes, **axes))
        for name, (base, axes) in wanted.items()
    }
    runs = {name: Wanted(call) for name, call in scenarios.items() if missing(call) is None}
    return run_all(runs, folder)


def _alone(scenario: Scenario, folder: Path) -> Outcome | ScenarioError:
    with starting():
        try:
            return run_in_child(scenario, folder)
        except ScenarioError as error:
            return error


VAIN = replace(
    CATALOGUE["uninterrupted"], name="vain", steps=(Step("land"), Step("await-interrupted"))
)
AHEAD = {
    "calls": _calls,
    "programmatic": partial(_alone, CATALOGUE["programmatic"]),
    "vain": lambda folder: (folder, _alone(VAIN, folder)),
}


@pytest.fixture(scope="module")
def calls(begun: Begun) -> Any:
    return begun("calls")


def trace_of(calls: Calls, name: str) -> Path:
    if name not in calls:
        pytest.skip("the installed release can't run it")
    trace = calls[name]
    assert isinstance(trace, Path), trace
    return trace


def happened(trace: Path) -> list[str]:
    """What the trace says, in order of time, in the words of the promises."""
    events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert events[-1]["event"] == "trailer"
    control = next(event["speech"] for event in events if event["event"] == "control")
    words = []
    for event in sorted(events[1:], key=lambda event: int(event["at_ns"])):
        kind = event["event"]
        if kind == "state":
            words.append(f"state {event['who']} {event['new']}")
        elif kind == "mark":
            words.append(f"mark {event['mark']}")
        elif kind == "overlap":
            words.append("overlap yes" if event["is_interruption"] else "overlap no")
        elif kind == "speech_committed":
            words.append("committed")
        elif kind == "interrupt_called":
            words.append(f"interrupted {event.get('by')}")
        elif kind == "speech_done":
            words.append("done control" if event["speech"] == control else "done reply")
        else:
            words.append(kind)
    return words


def follows(words: list[str], order: tuple[str, ...]) -> str | None:
    """The first of ``order`` that does not come after the ones before it."""
    rest = iter(words)
    return next((expected for expected in order if expected not in rest), None)


Ends = list[tuple[str | None, str]]


def check(name: str, trace: Path, promise: Promise, ends: Ends | None = None) -> Analysis:
    """``ends``: kind and outcome of the barge-ins, where there is not just the promised one."""
    words = happened(trace)
    assert follows(words, promise.order) is None, words
    before = words[: words.index("control")]
    assert not set(promise.never) & set(before), before
    analysis = analyze(trace)
    assert analysis.balanced is True
    assert analysis.unaccounted_samples == 0
    assert not analysis.faults
    barge_ins = [(barge_in.verdict_kind, barge_in.outcome) for barge_in in analysis.barge_ins]
    expected = [] if promise.outcome is None else [(promise.kind, promise.outcome)]
    assert barge_ins == (expected if ends is None else ends)
    assert analysis.run is not None
    assert analysis.run.control is not None
    assert analysis.run.control.whole is True
    return analysis


@pytest.mark.parametrize("name", PROMISES)
def test_a_scenario_goes_the_way_it_claims(calls: Calls, name: str) -> None:
    check(name, trace_of(calls, name), PROMISES[name])


@pytest.mark.parametrize("name", VARIANTS)
def test_it_does_so_at_other_paces_rates_and_places(calls: Calls, name: str) -> None:
    base, axes = VARIANTS[name]
    promise = PROMISES[base]
    if axes.get("pacing") == "stalled" or "at" in axes:
        order = tuple(word for word in promise.order if word != "source_cleared")
        promise = replace(promise, order=order)
    check(name, trace_of(calls, name), promise)


def test_a_greeting_interrupted_before_anybody_subscribed_ends_in_a_whole_trace(
    calls: Calls,
) -> None:
    trace = trace_of(calls, "interrupted-before-subscribed")
    words = happened(trace)
    assert follows(words, ("captured", "interrupted programmatic", "control")) is None, words
    assert analyze(trace).balanced is True


def test_a_pause_leaves_the_queue_playing_when_the_tts_stalls(calls: Calls) -> None:
    leaked = analyze(trace_of(calls, "barge-in-activity stalled")).barge_ins[0].leaked
    assert leaked is not None
    assert leaked["sent"] is not None
    # The queue's 200 ms, less what went out until the pause: more than three of the room output's
    # frames, which is all that could be left of it had something come to the gate.
    assert leaked["sent"].samples > 2400


def test_the_framework_logs_into_a_file_beside_the_trace(begun: Begun) -> None:
    outcome = begun("programmatic")
    assert outcome.log == outcome.trace.with_suffix(".log")
    assert "livekit" in outcome.log.read_text(encoding="utf-8")


def test_a_step_that_waits_in_vain_is_an_error_and_leaves_the_trace(begun: Begun) -> None:
    folder, error = begun("vain")
    assert isinstance(error, ScenarioError)
    assert re.search(r"vain: waited .* s for the speech to be int", str(error))
    assert json.loads((folder / "vain.jsonl").read_text().splitlines()[-1])["event"] == "trailer"


def test_a_python_without_livekit_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="expected a Python interpreter"):
        run_in_child(CATALOGUE["uninterrupted"], tmp_path, python=str(tmp_path / "nothing"))
