"""What tests of the recorder share: an assembler that passes on, events, child processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from probe.taps.calls import Call
from probe.trace.events import Bookmarked, Event, Faulted, FrameCaptured, Header
from probe.trace.reader import Trace


class PassOn:
    """An assembler that hands every event on as it is."""

    def accept(self, record: Call | Event) -> Iterable[Event]:
        return (record,)  # type: ignore[return-value]

    def tick(self, now_ns: int) -> Iterable[Event]:
        return ()

    def finish(self, now_ns: int) -> Iterable[Event]:
        return ()


def header(**more: Any) -> Header:
    return Header(1, time.monotonic_ns(), time.time(), ["captured"], **more)


def bookmark(name: object) -> Bookmarked:
    return Bookmarked(time.monotonic_ns(), str(name))


def frame(number: int, samples: int = 480) -> FrameCaptured:
    at_ns = time.monotonic_ns()
    return FrameCaptured(at_ns, number, (number - 1) * samples, samples, 24000, 1)


def names(trace: Trace) -> list[str]:
    return [event.name for event in trace.events if isinstance(event, Bookmarked)]


def faults(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in trace.events:
        if isinstance(event, Faulted):
            found[event.kind] = found.get(event.kind, 0) + event.count
    return found


def wait_for(condition: Callable[[], object]) -> None:
    """Waits until it is so; a generous ten seconds, then it never will be."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never came to that")


def child(script: str, *arguments: object, **more: Any) -> subprocess.Popen[str]:
    """A process of its own that runs a script with the recorder and its helpers at hand."""
    prelude = f"""
        import os, sys, threading, time
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
        from tests.recording import PassOn, bookmark, frame, header
        from probe.recorder import Recorder
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(script)]
        + [str(argument) for argument in arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        **more,
    )
