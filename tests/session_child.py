"""Runs a module of scenarios in a child process and gives what a scenario found."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

SESSION = "tests.session_scenarios"

UNPROBED = {
    SESSION: (
        "greeting_before_start",
        "interrupted_reply",
        "cancelled_first_capture",
        "finish_inside_first_capture",
        "attached_mid_speech",
        "wrapped_afterwards",
        "tap_raises",
    ),
    "tests.realtime_scenarios": (
        "channels",
        "generators",
        "handle_interrupted",
        "tap_fails",
        "model_raises",
        "detached_mid_response",
        "attached_mid_response",
    ),
}
"""Scenarios that also run without the probe, to compare."""


def found(
    scenario: str, *, probed: bool = True, module: str = SESSION, python: str | None = None
) -> dict[str, Any]:
    """What the scenario found; the first question runs all of its module. ``python``: an
    interpreter that has another release of LiveKit."""
    result = _all(probed, module, python)[scenario]
    assert "failed" not in result, result["failed"]
    return result


@functools.cache
def _all(probed: bool, module: str, python: str | None) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("UNPROBED", None)
    if not probed:
        environment["UNPROBED"] = "1"
    child = subprocess.run(
        [
            python or os.environ.get("SINKPROBE_TEST_PYTHON", sys.executable),
            "-m",
            module,
            *(() if probed else UNPROBED[module]),
        ],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = [line for line in child.stdout.splitlines() if line.startswith("FOUND ")]
    results = dict(json.loads(line.removeprefix("FOUND ")) for line in lines)
    if not results:
        raise AssertionError(f"nothing was found:\n{child.stdout}\n{child.stderr}")
    return results
