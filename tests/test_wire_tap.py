"""The wire, read back from real sources: what left them is known sample for sample."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.livekit

CALL = Path(__file__).with_name("source_call.py")
ROOT = CALL.parent.parent
PERIOD = 65535

SCENARIOS = [
    "steady",
    "rate-22050",
    "rate-8000",
    "stereo-48000",
    "clear",
    "pause",
    "underrun",
    "tails",
    "digital-silence",
    "long-frames",
    "blocked-loop",
    "inherited",
    "refused",
    "cancelled",
]


def run_call(scenario: str, folder: Path) -> dict[str, Any]:
    """Run a call in a child; its exit code says nothing, its file does."""
    out = folder / f"{scenario}.json"
    done = subprocess.run(
        [sys.executable, str(CALL), scenario, str(out)],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.exists(), done.stderr
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def of(call: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in call["events"] if event["event"] == name]


def labels_of(call: dict[str, Any]) -> list[int | str | None]:
    """What every sample that was read is said to be, in the order it left."""
    labels: list[int | str | None] = []
    events = of(call, "sent") + of(call, "inserted")
    for event in sorted(
        events, key=lambda event: (event["at_ns"], event.get("block_offset_samples", 0))
    ):
        start = event.get("start_sample")
        if event["event"] == "inserted":
            labels += ["inserted"] * event["samples"]
        elif start is None:
            labels += [None] * event["samples"]
        else:
            labels += range(start, start + event["samples"])
    return labels


def judge(call: dict[str, Any]) -> None:
    """Hold the events against the values of the blocks, decoded by themselves."""
    channels, block = call["channels"], call["block"]
    values = call["values"][::channels]
    values = values[: len(values) // block * block]
    pushed = [event for event in of(call, "pushed") if event["accepted"]]
    assert sum(event["samples"] for event in pushed) == call["pushed"]
    labels = labels_of(call)
    assert len(labels) == len(values)
    for label, value in zip(labels, values, strict=True):
        if isinstance(label, int):
            assert value in (label * channels % PERIOD + 1, 0)
        elif label == "inserted":
            assert value == 0
        else:
            assert value > call["pushed"] * channels
    assert not of(call, "fault")

    positions = [label for label in labels if isinstance(label, int)]
    assert positions == sorted(set(positions))
    cleared = of(call, "source_cleared")
    sent = set(positions)
    last = max(positions)
    gaps = [k for k in range(last) if k not in sent]
    if gaps:
        assert cleared
    for run in of(call, "sent"):
        assert run["until_ns"] - run["at_ns"] <= 215_000_000
    assert not [name for name in call["threads"] if name.startswith("sinkprobe")]
    assert not call["attributes"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_sample_read_back_is_named_as_its_content_says(scenario: str, tmp_path: Path) -> None:
    judge(run_call(scenario, tmp_path))


LIFE = """
import asyncio, gc, json, os, sys, threading
from livekit import rtc
from livekit.rtc._ffi_client import FfiClient
from probe.taps.wire import WireTap


def left():
    gc.collect()
    return [
        len(threading.enumerate()),
        len(FfiClient.instance.queue._subscribers),
        len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0,
    ]


async def main():
    source = rtc.AudioSource(24000, 1, queue_size_ms=200)
    faults, boundaries = [], []

    def put(record):
        if not isinstance(record, list):
            boundaries.append(record.NAME)

    for turn in range(30):
        if turn == 5:
            before = left()
        tap = WireTap(source, 1, put, lambda *fault: faults.append(fault))
        if turn % 7 == 6:
            tap.stop()
        tap.start()
        if turn % 3:
            await asyncio.to_thread(tap.opened.wait, 5)
        tap.stop()
        tap.stop()
        tap.start()
    await asyncio.get_running_loop().shutdown_default_executor()
    json.dump([before, left(), faults, boundaries], open(sys.argv[1], "w"))

asyncio.run(main())
"""


def test_started_and_stopped_again_and_again_it_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    subprocess.run([sys.executable, "-c", LIFE, str(out)], timeout=60, check=False)
    before, after, faults, boundaries = json.loads(out.read_text())
    assert after[1:] <= before[1:]
    assert after[0] <= before[0]
    assert faults == []
    assert boundaries.count("tapped") == boundaries.count("untapped") > 10


def test_a_refusal_says_in_the_trace_what_the_source_said(tmp_path: Path) -> None:
    refused = [event for event in of(run_call("refused", tmp_path), "pushed") if event.get("error")]
    another_rate, overtaking = refused
    assert "sample_rate" in another_rate["detail"]
    assert overtaking["detail"]
    assert overtaking["detail"] != another_rate["detail"]
