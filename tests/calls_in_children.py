"""Many scripted calls in few children, that make one call after the other and live as long as the
tests do: what costs is starting Python with LiveKit, not a call.

As a program it is such a child: a JSON object of a call on each line of stdin, a JSON object of
what became of it on a line of stdout.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import LifoQueue
from typing import Any

from probe.errors import ProbeError
from probe.scenarios.document import from_document, to_document
from probe.scenarios.runner import limit_s, run_call
from probe.scenarios.scenario import Scenario
from reports import Analysis, analyze

ROOT = Path(__file__).resolve().parent.parent
CHILDREN = 4
"""A call keeps a processor busy for a thirtieth of its time."""
READY = "ready"


@dataclass(frozen=True)
class Wanted:
    """A call to make."""

    scenario: Scenario
    sink: str | None = None
    driver: str | None = None
    model: str | None = None


def run_all(wanted: Mapping[str, Wanted], folder: Path) -> dict[str, Path | str]:
    """The trace of each call by its name, or what it failed with."""
    traces = [folder / f"{number:03}.jsonl" for number in range(len(wanted))]
    with ThreadPoolExecutor(CHILDREN) as pool:
        return dict(zip(wanted, pool.map(_make, wanted.values(), traces), strict=True))


def analysed(result: Path | str) -> Analysis:
    """The analysis of a call's trace; fails with what the call failed with."""
    assert isinstance(result, Path), result
    return analyze(result)


class _Child:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.calls_in_children"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def wait(self) -> None:
        """Until it has imported everything."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == READY

    def make(self, call: dict[str, Any], bound_s: float) -> dict[str, str] | None:
        """What became of a call; ``None``: the child is gone, or was ended after that time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(bound_s, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps(call) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline() or "null")  # type: ignore[no-any-return]
        except BrokenPipeError:
            return None
        finally:
            watch.cancel()

    def end(self) -> None:
        self._process.kill()
        with self._process:
            pass


@cache
def _idle() -> LifoQueue[_Child]:
    """Children that wait for a call: none is begun while others still import."""
    children = [_Child() for _ in range(CHILDREN)]
    queue: LifoQueue[_Child] = LifoQueue()
    for child in children:
        child.wait()
        queue.put(child)
    return queue


_FIRST = threading.Lock()


def _make(wanted: Wanted, trace: Path) -> Path | str:
    with _FIRST:
        idle = _idle()
    call = {
        "scenario": to_document(wanted.scenario),
        "trace": str(trace),
        "sink": wanted.sink,
        "driver": wanted.driver,
        "model": wanted.model,
    }
    child = idle.get()
    try:
        became = child.make(call, limit_s(wanted.scenario))
        if became is None:
            child.end()
            child = _Child()
            child.wait()
            return f"{wanted.scenario.name}: the child that made the call is gone"
    finally:
        idle.put(child)
    return Path(became["trace"]) if "trace" in became else became["error"]


def _became(call: dict[str, Any]) -> dict[str, str]:
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
    import livekit.agents  # noqa: F401

    logging.disable(logging.CRITICAL)
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    print(READY, file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_became(json.loads(line))), file=answers, flush=True)
    # Whoever wanted calls is gone; without the interpreter's clean-up, in which the native library
    # can abort or hang.
    os._exit(0)
