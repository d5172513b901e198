"""A recording that begins in the middle of a call says which speeches there were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probe.trace.reader import read_trace
from tests.session_child import found


@pytest.mark.livekit
def test_speeches_from_before_the_probe_are_told_and_no_problem(tmp_path: Path) -> None:
    seen = found("recorded_from_the_middle")
    assert seen["done"] == [True] * 4
    path = tmp_path / "call.jsonl"
    path.write_text(seen["trace"], encoding="utf-8")

    trace = read_trace(path)
    assert trace.problems == ()
    assert sorted(trace.header.speeches or ()) == sorted(seen["speeches"][:3])
    captured = {trace.text(index) for index in trace.captured.speech.tolist()}
    assert captured == set(seen["speeches"])

    # Without what the header tells, three of them would be of nobody's making.
    lines = seen["trace"].splitlines(keepends=True)
    header = json.loads(lines[0])
    header["speeches"] = []
    path.write_text(json.dumps(header) + "\n" + "".join(lines[1:]), encoding="utf-8")
    (problem,) = read_trace(path).problems
    assert problem.text.startswith("a speech was never created")
    assert problem.count == 3


@pytest.mark.livekit
def test_the_recorder_counts_its_lines_by_kind(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    path.write_text(found("recorded_from_the_middle")["trace"], encoding="utf-8")
    trace = read_trace(path)
    assert trace.trailer is not None
    assert trace.trailer.counts is not None
    assert sum(trace.trailer.counts.values()) == trace.trailer.events == trace.lines - 1
