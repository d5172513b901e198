"""Two runtimes, one truth: the same raw records give the same events in Python and in Node."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reports import analyze
from tests.call_model import HABITS, CallModel, call_actions, play
from tests.conformance.run import Case, Found, Node, corpus, differences, in_python, told

CASES = {case["name"]: case for case in corpus()}
NOWHERE, INSERTED = -1, -2

every_case = pytest.mark.parametrize("name", CASES)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
simulated = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
calls = st.fixed_dictionaries(
    {
        "chunk": st.sampled_from([None, 1200, 480, 333]),
        "channels": st.sampled_from([1, 2]),
        "every_tick": st.booleans(),
        "queue_ms": st.sampled_from([60, 200]),
        "batched": st.booleans(),
        "inherited": st.sampled_from([0, 0, 700]),
    }
)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    runner = Node()
    yield runner
    runner.close()


@every_case
def test_python_gives_the_events_of_the_corpus(name: str) -> None:
    case = CASES[name]
    assert differences(case["events"], told(in_python(case))) == []


@needs_node
@every_case
def test_node_gives_the_events_of_the_corpus(node: Node, name: str) -> None:
    case = CASES[name]
    assert differences(case["events"], told(node(case)), case.get("late_ms", 0)) == []


def labels(parts: list[list[Any]]) -> NDArray[np.int64]:
    """Where each of the samples of some ranges comes from."""
    found = [np.zeros(0, np.int64)]
    for start, samples in parts:
        where = {None: NOWHERE, "inserted": INSERTED}.get(start)
        found.append(
            np.arange(start, start + samples) if where is None else np.full(samples, where)
        )
    return np.concatenate(found)


def wrong_samples(events: list[Found], truth: dict[str, Any]) -> int:
    """Of how many samples it is said that they were others than they truly were. Of what was
    changed beyond recognition nothing is said."""
    wrong = 0
    for event in events:
        if event["event"] == "pushed" and event.get("habit") != "changed":
            true = labels(truth["pushed"][str(event["push"])])
            wrong += int((labels(event["captured"]) != true).sum())
    for source, parts in truth["sent"].items():
        found = [
            [
                event.get("start_sample") if event["event"] == "sent" else "inserted",
                event["samples"],
            ]
            for event in events
            if event["event"] in ("sent", "inserted") and event["source"] == int(source)
        ]
        one, other = labels(found), labels(parts)
        assert len(one) == len(other)
        # In which order silence was put out that was pushed, and that was not, is no question.
        told_sent, truly_sent = set(one[one >= 0]), set(other[other >= 0])
        wrong += max(len(told_sent - truly_sent), len(truly_sent - told_sent))
    return wrong


def ambiguous_samples(events: list[Found]) -> int:
    return sum(event.get("ambiguous_samples", 0) for event in events)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "truth" in case])
def test_the_corpus_says_what_truly_happened_where_content_tells(name: str) -> None:
    events, truth = CASES[name]["events"], CASES[name]["truth"]
    refused = [event["push"] for event in events if event.get("accepted") is False]
    assert refused == truth["refused"]
    assert wrong_samples(events, truth) <= ambiguous_samples(events)


def test_the_corpus_has_what_makes_a_difference() -> None:
    events = [event for case in CASES.values() for event in case["events"]]
    assert {event.get("habit") for event in events if event["event"] == "pushed"} == {
        None, "gain", "noise", "added", "changed",
    }  # fmt: skip
    assert {event["event"] for event in events} == {
        "captured", "mark", "pushed", "skipped", "source_cleared", "sent", "inserted",
    }  # fmt: skip
    assert any(event.get("ambiguous_samples") for event in events)
    assert any(event.get("accepted") is False for event in events)


def called(how: dict[str, Any], actions: list[Any]) -> Case:
    model = CallModel(**how)
    play(model, actions)
    return model.case("random")


@needs_node
@simulated
@given(how=calls, actions=call_actions(["noise"]))
def test_any_call_of_distinct_audio_is_followed_to_the_sample(
    node: Node, tmp_path: Path, how: dict[str, Any], actions: list[Any]
) -> None:
    case = called(how, actions)
    events, lines = told(in_python(case)), node(case)
    assert differences(events, told(lines)) == []
    assert balance(case, lines, tmp_path / "call.jsonl") is not False
    assert wrong_samples(events, case["truth"]) == 0
    assert ambiguous_samples(events) == 0


@needs_node
@simulated
@given(how=calls, actions=call_actions(["noise"], late_ms=(0, 0, 40, 140)))
def test_late_readings_change_no_sample_of_what_was_sent(
    node: Node, how: dict[str, Any], actions: list[Any]
) -> None:
    case = called(how, actions)
    for events in (in_python(case), node(case)):
        assert wrong_samples(told(events), case["truth"]) == 0
        assert ambiguous_samples(told(events)) == 0


@needs_node
@simulated
@given(how=calls, actions=call_actions(["noise", "silence", "constant", "again"]))
def test_what_content_cannot_tell_is_ambiguous_and_balances(
    node: Node, tmp_path: Path, how: dict[str, Any], actions: list[Any]
) -> None:
    case = called(how, actions)
    events, lines = told(in_python(case)), node(case)
    assert differences(events, told(lines)) == []
    assert balance(case, lines, tmp_path / "call.jsonl") is not False
    assert wrong_samples(events, case["truth"]) <= ambiguous_samples(events)


@needs_node
@simulated
@given(how=calls, actions=call_actions(["noise", "quiet", "silence"], HABITS))
def test_what_sinks_do_to_audio_is_told_alike_in_both(
    node: Node, how: dict[str, Any], actions: list[Any]
) -> None:
    case = called(how, actions)
    assert differences(told(in_python(case)), told(node(case))) == []


def balance(case: Case, events: list[Found], path: Path) -> bool | None:
    """Whether the trace of a case balances; fails where it is not read whole."""
    header = {
        "event": "header", "schema": 1, "started_monotonic_ns": 1, "started_unix_s": 1.0,
        "boundaries": ["captured", "pushed", "sent"],
    }  # fmt: skip
    lines = [header, {"event": "tapped", "at_ns": 0, "boundary": "captured"}, *events]
    trailer = {"event": "trailer", "at_ns": round(case["finish"] * 1e6), "events": len(lines)}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, trailer]))
    analysis = analyze(path)
    assert analysis.trace.complete, analysis.trace.incomplete_because
    return analysis.balanced


@needs_node
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("calls")])
def test_the_trace_of_a_case_balances(node: Node, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    for events in (in_python(case), node(case)):
        assert balance(case, events, tmp_path / "call.jsonl") is True
