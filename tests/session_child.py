"""Runs a scenario of `session_scenarios` in a child process and gives what it found."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@functools.cache
def found(scenario: str, *, probed: bool = True) -> dict[str, Any]:
    """What the scenario printed.

    ``SINKPROBE_TEST_PYTHON`` names another interpreter, with another release of LiveKit.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("UNPROBED", None)
    if not probed:
        environment["UNPROBED"] = "1"
    child = subprocess.run(
        [
            os.environ.get("SINKPROBE_TEST_PYTHON", sys.executable),
            "-m",
            "tests.session_scenarios",
            scenario,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    for line in reversed(child.stdout.splitlines()):
        if line.startswith("FOUND "):
            result: dict[str, Any] = json.loads(line.removeprefix("FOUND "))
            return result
    raise AssertionError(f"{scenario} found nothing:\n{child.stdout}\n{child.stderr}")
