"""Scripted calls on a Node build: they go the way they do in Python, and every sample balances.

The build comes from the package registry and is kept.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

from probe.builds import make, parse
from probe.scenarios import CATALOGUE, Outcome, run_in_child
from probe.scenarios.document import to_document
from probe.scenarios.scenario import Scenario
from probe.sweep import Build
from reports import Analysis, analyze
from tests.ahead import Begun, starting
from tests.releases import CACHE

VERSION = "1.9.0"
LOST_NS = 250_000_000
"""What a killed process may lose."""

pytestmark = [
    pytest.mark.livekit,
    pytest.mark.registry,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]

SILENT = CATALOGUE["uninterrupted"]
WANTED: dict[str, Scenario] = {
    **{
        name: CATALOGUE[name]
        for name in (
            "barge-in",
            "barge-in-no-transcript",
            "barge-in-activity",
            "false-interruption",
            "programmatic",
            "uninterrupted",
        )
    },
    "stereo": SILENT.with_axes(replace(SILENT.axes, channels=2, reply_ms=995)),
    "resampled": SILENT.with_axes(replace(SILENT.axes, rate_hz=8000, reply_ms=995)),
    "tool": SILENT.with_axes(replace(SILENT.axes, reply="tool", reply_ms=995)),
    "swapped": CATALOGUE["sink-swapped"],
    "stalled": CATALOGUE["barge-in-activity"].with_axes(
        replace(CATALOGUE["barge-in-activity"].axes, pacing="stalled")
    ),
}


@cache
def _build() -> Build:
    return make(parse(f"npm:@livekit/agents@{VERSION}"), CACHE)


@pytest.fixture(scope="module")
def build() -> Build:
    return _build()


def _made(name: str, folder: Path) -> Outcome:
    with starting():
        return run_in_child(WANTED[name], folder, command=_build().command)


AHEAD = {name: partial(_made, name) for name in WANTED}
"""By the name among the wanted."""


def analysed(begun: Begun, name: str) -> Analysis:
    return analyze(begun(name).trace)


@pytest.mark.parametrize("name", WANTED)
def test_every_sample_of_a_node_call_is_accounted_for(begun: Begun, name: str) -> None:
    analysis = analysed(begun, name)
    assert analysis.trace.complete, analysis.trace.incomplete_because
    assert analysis.faults == ()
    assert analysis.trace.boundaries == ("captured", "pushed", "sent")
    assert analysis.balanced is True
    assert analysis.unaccounted_samples == 0
    assert analysis.run is not None
    assert analysis.run.control is not None
    assert analysis.run.control.whole


def test_the_header_says_what_was_recorded_with_what(begun: Begun) -> None:
    analysis = analysed(begun, "uninterrupted")
    runtime = analysis.trace.runtime
    assert runtime["language"] == "node"
    assert runtime["livekit_agents"] == VERSION
    assert runtime.keys() == {
        "language",
        "language_version",
        "platform",
        "livekit",
        "livekit_agents",
        "probe",
    }
    assert analysis.run is not None
    assert analysis.run.scenario == "uninterrupted"
    assert analysis.run.reply_ns == SILENT.axes.reply_ms * 1_000_000
    assert analysis.trace.options["false_interruption_timeout_s"] == 0.6


@pytest.mark.parametrize(
    ("name", "kind", "outcome"),
    [
        ("barge-in", "overlap", "committed"),
        ("barge-in-no-transcript", "overlap", "resumed"),
        ("barge-in-activity", "activity", "committed"),
        ("stalled", "activity", "committed"),
        ("programmatic", "programmatic", "committed"),
        ("false-interruption", None, "resumed"),
    ],
)
def test_a_barge_in_is_seen_for_what_it_is(
    begun: Begun, name: str, kind: str | None, outcome: str
) -> None:
    (barge_in,) = analysed(begun, name).barge_ins
    assert (barge_in.verdict_kind, barge_in.outcome) == (kind, outcome)


def test_a_call_nobody_interrupts_is_sent_whole(begun: Begun) -> None:
    analysis = analysed(begun, "uninterrupted")
    assert analysis.barge_ins == ()
    first = analysis.segments[0]
    assert first.captured is not None
    assert first.pushed is not None
    assert first.sent is not None
    assert first.captured.ms == SILENT.axes.reply_ms
    assert first.captured.samples == first.pushed.samples
    assert first.captured.samples - first.sent.samples <= first.tail_samples


def test_what_the_queue_plays_after_a_stalled_reply_was_paused_is_its_leak(
    begun: Begun,
) -> None:
    (barge_in,) = analysed(begun, "stalled").barge_ins
    assert barge_in.leaked is not None
    sent, pushed = barge_in.leaked["sent"], barge_in.leaked["pushed"]
    assert sent is not None
    assert pushed is not None
    assert pushed.samples == 0
    assert 0 < sent.ms <= 200


def test_each_step_is_told_and_the_framework_s_log_is_kept(build: Build, tmp_path: Path) -> None:
    told: list[str] = []
    started: list[Path] = []
    scenario = SILENT.with_axes(replace(SILENT.axes, reply_ms=995))
    outcome = run_in_child(
        scenario, tmp_path, command=build.command, progress=told.append, started=started.append
    )
    assert told == [*(step.do for step in scenario.script), "control"]
    assert started == [outcome.trace]
    assert "Agent" in outcome.log.read_text(encoding="utf-8")


def under_way(build: Build, path: Path) -> subprocess.Popen[str]:
    """A call's own process, once audio has been handed to the source."""
    specification = {"scenario": to_document(SILENT), "trace": str(path)}
    assert build.command is not None
    process = subprocess.Popen(
        build.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(specification) + "\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_text(encoding="utf-8").count('"event":"pushed"') < 20:
        assert time.monotonic() < deadline, "no audio left the call"
        assert process.poll() is None, "the call ended by itself"
        time.sleep(0.02)
    return process


def test_a_killed_call_loses_a_quarter_second_at_most(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    with under_way(build, path) as process:
        time.sleep(0.5)
        killed_ns = time.monotonic_ns()
        process.send_signal(signal.SIGKILL)
    *whole, _ = path.read_text(encoding="utf-8").split("\n")
    events = [json.loads(line) for line in whole]
    latest = max(event["at_ns"] for event in events[1:])
    stalls = [event["until_ns"] - event["at_ns"] for event in events if event["event"] == "stalled"]
    # On a machine that is busy the loop itself was late by as much.
    late_ns = max(stalls, default=0)
    assert killed_ns - events[0]["started_monotonic_ns"] - latest <= LOST_NS + late_ns
    assert analyze(path).trace.complete is False


def test_a_call_that_is_stopped_closes_its_trace(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    with under_way(build, path) as process:
        process.send_signal(signal.SIGINT)
        process.wait(10)
    assert analyze(path).trace.complete
    assert analyze(path).balanced is True


def test_a_call_nobody_waits_for_any_more_ends(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    with under_way(build, path) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)
    assert analyze(path).trace.complete


def test_a_probe_that_joins_a_speech_records_the_rest_and_leaves_no_trace_of_itself(
    build: Build, tmp_path: Path
) -> None:
    document = tmp_path / "scenario.json"
    document.write_text(json.dumps(to_document(SILENT)), encoding="utf-8")
    trace = tmp_path / "call.jsonl"
    script = Path(__file__).with_name("node_late.mjs")
    done = subprocess.run(
        ["node", str(script), str(build.home), str(document), str(trace)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["after"] == told["before"]
    assert told["faults"] == {}
    analysis = analyze(trace)
    assert analysis.trace.complete
    assert analysis.balanced is True
    assert analysis.segments[0].partial
