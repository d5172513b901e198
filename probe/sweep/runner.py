"""Calls made in child processes: so many at a time, none twice, ended cleanly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from probe.errors import ProbeError, ScenarioError
from probe.scenarios.runner import Outcome, run_in_child
from probe.scenarios.scenario import Scenario
from probe.sweep.cells import Call
from probe.sweep.journal import Journal

__all__ = ["Done", "RunsCall", "run"]


@dataclass(frozen=True, slots=True)
class Done:
    """A call that came to its end, or did not."""

    call: Call
    trace: Path | None
    """``None``: there is an error."""
    error: str
    seconds: float
    """Wall clock, the process's start and end included; 0 where it was made before."""


class RunsCall(Protocol):
    """What makes one call; `run_in_child`."""

    def __call__(
        self,
        scenario: Scenario,
        directory: Path,
        *,
        python: str,
        command: Sequence[str] | None,
        stop: threading.Event,
    ) -> Outcome: ...


def run(
    todo: Iterable[Call],
    directory: Path,
    *,
    jobs: int = 1,
    journal: Journal | None = None,
    begun: Callable[[Call], None] | None = None,
    call: RunsCall = run_in_child,
) -> Generator[Done, None, None]:
    """Makes the calls, and tells of each as it ends, in the order they end.

    A call that fails is told as such; the others go on. Closed or interrupted, it ends the calls
    under way, which takes a moment, and forgets them.

    Args:
        todo: what to run, in this order. No call is asked for before there is room to make it, so
            with one at a time what is asked for may depend on what became of the one before.
        directory: where traces and logs go, each cell's in its own folder.
        jobs: how many calls run at a time.
        journal: of ``directory``. What is in it is not made again but told at once; what is made
            goes into it.
        begun: told of each call that is made, as it begins.
        call: what makes a call.
    """
    stop = threading.Event()
    under_way: set[Future[Done]] = set()

    def ended() -> list[Done]:
        nonlocal under_way
        over, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        done = [future.result() for future in over]
        for one in done:
            if journal is not None and one.trace is not None:
                journal.keep(one.call, one.trace)
        return done

    with ThreadPoolExecutor(jobs, thread_name_prefix="sweep") as pool:
        try:
            for one in todo:
                made = None if journal is None else journal.trace(one)
                if made is not None:
                    yield Done(one, made, "", 0.0)
                    continue
                if begun is not None:
                    begun(one)
                under_way.add(pool.submit(_make, one, directory, call, stop))
                while len(under_way) >= jobs:
                    yield from ended()
            while under_way:
                yield from ended()
        finally:
            stop.set()


def _make(one: Call, directory: Path, call: RunsCall, stop: threading.Event) -> Done:
    began = time.monotonic()
    trace: Path | None = None
    error = ""
    try:
        scenario, build = one.cell.scenario, one.cell.build
        outcome = call(
            scenario,
            directory / one.cell.folder,
            python=build.python,
            command=build.command,
            stop=stop,
        )
        trace = outcome.trace
    except ScenarioError as failure:
        error = failure.reason
    except (ProbeError, OSError) as failure:
        error = str(failure)
    return Done(one, trace, error, time.monotonic() - began)
