"""A small scripted session for tests of the taps: real `AgentSession`, a leaf that notes its calls.

Run in a child process. Nothing here needs models, a room or a network, and it runs on every
release the probe knows.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from livekit import rtc
from livekit.agents import Agent, AgentSession
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities

from probe.taps.calls import CAPTURE_FRAME
from probe.taps.taps import Taps as AllTaps

RATE = 24_000


def frame(start: int, samples: int = 480, rate: int = RATE) -> rtc.AudioFrame:
    """Sample k has value k."""
    content = np.arange(start, start + samples).astype(np.int16)
    return rtc.AudioFrame(content.tobytes(), rate, 1, samples)


async def frames(
    count: int, *, first: int = 0, pause: float = 0.0
) -> AsyncIterator[rtc.AudioFrame]:
    for k in range(count):
        yield frame(first + k * 480)
        if pause:
            await asyncio.sleep(pause)


class Leaf(AudioOutput):
    """Notes every call with its frame's first sample; plays at once, or when told to."""

    def __init__(self, *, gate: asyncio.Event | None = None, finish_inside: bool = False) -> None:
        super().__init__(
            label="leaf", capabilities=AudioOutputCapabilities(pause=True), sample_rate=RATE
        )
        self.calls: list[Any] = []
        self.gate = gate
        self.finish_inside = finish_inside
        self.hold = False
        self.captured = 0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        self.calls.append(["capture", int(np.frombuffer(frame.data, dtype=np.int16)[0])])
        if self.gate is not None:
            await self.gate.wait()
        await super().capture_frame(frame)
        self.captured += 1
        if self.captured == 1 and hasattr(self, "on_playback_started"):
            self.on_playback_started(created_at=1.0)
        if self.finish_inside:
            AudioOutput.flush(self)
            self.on_playback_finished(playback_position=0.02, interrupted=False)

    def flush(self) -> None:
        self.calls.append(["flush"])
        super().flush()
        if self.captured and not self.hold and not self.finish_inside:
            self.finish(interrupted=False)

    def finish(self, *, interrupted: bool) -> None:
        captured, self.captured = self.captured, 0
        self.on_playback_finished(playback_position=captured * 0.02, interrupted=interrupted)

    def clear_buffer(self) -> None:
        self.calls.append(["clear"])
        if self.captured:
            self.finish(interrupted=True)

    def pause(self) -> None:
        self.calls.append(["pause"])
        super().pause()

    def resume(self) -> None:
        self.calls.append(["resume"])
        super().resume()


class Greeter(Agent):
    """Says a greeting as it enters."""

    def __init__(self, greeting: Callable[[], AsyncIterator[rtc.AudioFrame]] | None = None) -> None:
        super().__init__(instructions="scripted")
        self._greeting = greeting

    async def on_enter(self) -> None:
        if self._greeting is not None:
            self.session.say("hello there", audio=self._greeting())


class Recorder:
    """Stands where the recorder does: a list."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.faults: list[tuple[str, str]] = []

    def put(self, record: Any) -> None:
        self.records.append(record)

    def fault(self, kind: str, detail: str = "", count: int = 1) -> None:
        self.faults.append((kind, detail))

    def named(self, name: str) -> list[Any]:
        """Events of that wire name, or raw calls of that kind."""
        return [
            record
            for record in self.records
            if (record[0] if isinstance(record, list) else record.NAME) == name
        ]


def first_samples(recorder: Recorder) -> list[int]:
    captured = recorder.named("capture")
    return [int(np.frombuffer(call[CAPTURE_FRAME].data, dtype=np.int16)[0]) for call in captured]


PROBED = os.environ.get("UNPROBED") is None


class Taps:
    """The taps over a list, or nothing at all where the call is to run without a probe."""

    def __init__(self, session: AgentSession, *, wire: bool = False) -> None:
        self.recorder = Recorder()
        self.taps: AllTaps | None = None
        if PROBED:
            self.taps = AllTaps(session, self.recorder.put, self.recorder.fault, wire=wire)
            self.taps.install()

    def remove(self) -> None:
        if self.taps is not None:
            self.taps.remove()


async def settle(seconds: float = 0.05) -> None:
    await asyncio.sleep(seconds)


async def finished(handle: Any, seconds: float = 3.0) -> bool:
    """Whether the speech comes to its end in time."""
    for _ in range(int(seconds / 0.01)):
        if handle.done():
            return True
        await asyncio.sleep(0.01)
    return bool(handle.done())


def history(session: AgentSession) -> list[list[Any]]:
    items = session.history.items
    return [
        [item.role, item.text_content, bool(item.interrupted)]
        for item in items
        if item.type == "message"
    ]


class Wrapper(AudioOutput):
    """A user's wrapper; keeps the next link under a name of its own as well."""

    def __init__(self, following: AudioOutput, label: str = "wrapper") -> None:
        super().__init__(
            label=label,
            capabilities=AudioOutputCapabilities(pause=True),
            next_in_chain=following,
            sample_rate=following.sample_rate,
        )
        self.following = self.next_in_chain

    async def capture_frame(self, frame: Any) -> None:
        await super().capture_frame(frame)
        await self.following.capture_frame(frame)

    def flush(self) -> None:
        super().flush()
        self.following.flush()

    def clear_buffer(self) -> None:
        self.following.clear_buffer()


def kinds(head: Any) -> list[str]:
    found = []
    while head is not None:
        found.append(type(head).__name__)
        head = head.next_in_chain
    return found


class Room(rtc.Room):
    """Never connected. Such a one has no participants, and some releases register calls with it."""

    local_participant = MagicMock()  # type: ignore[assignment]


def run(name: str, scenario: Callable[[], Coroutine[Any, Any, dict[str, Any]]]) -> None:
    """Run a scenario and print what it found, or how it failed, as one line of stdout."""
    try:
        found: Any = asyncio.run(asyncio.wait_for(scenario(), 60))
    except Exception:
        found = {"failed": traceback.format_exc()}
    sys.stdout.write("\nFOUND " + json.dumps([name, found]) + "\n")
    sys.stdout.flush()


def main(scenarios: Mapping[str, Callable[[], Coroutine[Any, Any, dict[str, Any]]]]) -> None:
    """Run those that are named on the command line, or all of them, and leave."""
    logging.disable(logging.CRITICAL)
    # what is loaded by now is looked through no more: it takes 300 ms, in the middle of a call
    gc.freeze()
    # one process for all of them: importing livekit-agents takes longer than every scenario
    for name in sys.argv[1:] or scenarios:
        run(name, scenarios[name])
    # the native library may abort while the interpreter shuts down
    os._exit(0)
