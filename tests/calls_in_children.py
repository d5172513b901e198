"""Many scripted calls in few children: a child makes its calls one after the other.

As a program it is such a child: a JSON list of calls on stdin, a JSON object of what became of
each on the last line of stdout.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probe.errors import ProbeError
from probe.scenarios.document import from_document, to_document
from probe.scenarios.runner import limit_s, run_call
from probe.scenarios.scenario import Scenario
from reports import Analysis, analyze

ROOT = Path(__file__).resolve().parent.parent
CHILDREN = 2
CALLS_EACH = 8
SLOW_MACHINE = 3


@dataclass(frozen=True)
class Wanted:
    """A call to make."""

    scenario: Scenario
    sink: str | None = None
    driver: str | None = None
    model: str | None = None


def run_all(wanted: Mapping[str, Wanted], folder: Path) -> dict[str, Path | str]:
    """The trace of each call by its name, or what it failed with."""
    names = list(wanted)
    chunks = [names[start : start + CALLS_EACH] for start in range(0, len(names), CALLS_EACH)]
    with ThreadPoolExecutor(CHILDREN) as pool:
        parts = pool.map(
            lambda chunk: _run_chunk({name: wanted[name] for name in chunk[1]}, folder / chunk[0]),
            [(str(number), chunk) for number, chunk in enumerate(chunks)],
        )
        return {name: result for part in parts for name, result in part.items()}


def analysed(result: Path | str) -> Analysis:
    """The analysis of a call's trace; fails with what the call failed with."""
    assert isinstance(result, Path), result
    return analyze(result)


def _run_chunk(wanted: Mapping[str, Wanted], folder: Path) -> dict[str, Path | str]:
    folder.mkdir(parents=True)
    calls = [
        {
            "name": name,
            "scenario": to_document(call.scenario),
            "trace": str(folder / f"{number:02}.jsonl"),
            "sink": call.sink,
            "driver": call.driver,
            "model": call.model,
        }
        for number, (name, call) in enumerate(wanted.items())
    ]
    bound_s = sum(limit_s(call.scenario) for call in wanted.values()) / SLOW_MACHINE
    with (folder / "log").open("w", encoding="utf-8") as log:
        child = subprocess.run(
            [sys.executable, "-m", "tests.calls_in_children"],
            input=json.dumps(calls),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            timeout=bound_s,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    said = (child.stdout.splitlines() or [""])[-1]
    assert said.startswith("{"), (child.returncode, (folder / "log").read_text()[-2000:])
    return {
        name: Path(became["trace"]) if "trace" in became else became["error"]
        for name, became in json.loads(said).items()
    }


def _serve(calls: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    logging.disable(logging.CRITICAL)
    return {call["name"]: _make(call) for call in calls}


def _make(call: dict[str, Any]) -> dict[str, str]:
    scenario = from_document(call["scenario"])
    made = run_call(
        scenario,
        Path(call["trace"]),
        sink=call["sink"],
        driver=call["driver"],
        model=call["model"],
    )
    try:
        return {"trace": str(asyncio.run(made))}
    except ProbeError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    print(json.dumps(_serve(json.load(sys.stdin))), flush=True)
    # Without the interpreter's clean-up, in which the native library can abort or hang.
    os._exit(0)
