"""The agent of a scripted call and its TTS: replies of known content, at the pace of the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
from livekit import rtc
from livekit.agents import Agent, function_tool

from probe.scenarios.audio import PERIOD, frame_bounds, known_samples
from probe.scenarios.axes import AFTER_LAST_FRAME, BEFORE_FIRST_FRAME, CONTROL_MS
from probe.scenarios.scenario import Scenario
from probe.scenarios.sinks import Signals

_RIGHT: Final = 1000 * PERIOD
"""By how much the second channel is ahead of the first, so that they have nothing in common."""


@dataclass(slots=True)
class Reply:
    """What the voice has to say in one reply."""

    number: int
    lengths_ms: list[int]
    """Of the parts still to be said."""
    control: bool
    delivered_ms: float = 0.0


class Voice:
    """The TTS, and what a realtime model speaks with."""

    def __init__(self, scenario: Scenario, signals: Signals) -> None:
        self._axes = scenario.axes
        self._realtime = scenario.realtime
        self._scripted = scenario.replies
        self._signals = signals
        self._call_samples = 0
        self.reply = Reply(0, [], control=False)
        """The one begun last."""
        self.stalled = False
        """Whether it has stopped delivering until it is let go on."""
        self._held = asyncio.Event()

    def begin(self, *, control: bool) -> None:
        """What is spoken next belongs to a new reply."""
        self.reply = Reply(self.reply.number + 1, self._parts_ms(control), control)

    def _parts_ms(self, control: bool) -> list[int]:
        reply_ms = self._axes.reply_ms
        if control:
            return [CONTROL_MS]
        if self._axes.reply == "tool":
            return [reply_ms // 2, reply_ms - reply_ms // 2]
        shares = (1,) if self._realtime is None else self._realtime.messages
        stops = [reply_ms * part // sum(shares) for part in accumulate(shares)]
        return [stop - start for start, stop in pairwise([0, *stops])]

    @property
    def wants_tool(self) -> bool:
        """Whether there is a tool to call before the reply under way is whole."""
        return len(self.reply.lengths_ms) > 1

    def go_on(self) -> None:
        """Ends the stall, now or before it has begun."""
        self._held.set()

    async def speak(self, reply: Reply | None = None) -> AsyncGenerator[rtc.AudioFrame, None]:
        """The next part of ``reply``, of the one begun last where it is left out."""
        axes = self._axes
        reply = reply or self.reply
        length_ms = reply.lengths_ms.pop(0) if reply.lengths_ms else CONTROL_MS
        total = length_ms * axes.rate_hz // 1000
        base, self._call_samples = self._call_samples, self._call_samples + total
        said_ms = reply.delivered_ms
        speed = 1.0 if self._realtime is None else self._realtime.speed
        loop = asyncio.get_running_loop()
        started = loop.time()
        # The stall is where the barge-in lands, and that is in the last reply of the script.
        stall_ms = self._stall_ms() if reply.number == self._scripted else None
        self._signals.notify()
        try:
            for start, stop in frame_bounds(total, axes.frame_ms, axes.rate_hz):
                if stall_ms is not None and said_ms + start * 1000 / axes.rate_hz >= stall_ms:
                    stall_ms = None
                    self.stalled = not self._held.is_set()
                    self._signals.notify()
                    stall_began = loop.time()
                    await self._held.wait()
                    self.stalled = False
                    started += loop.time() - stall_began
                due_in_s = started + start / axes.rate_hz / speed - loop.time()
                # Even a TTS that has it all at once lets the loop turn between two frames.
                await asyncio.sleep(max(due_in_s, 0.0) if axes.pacing == "realtime" else 0)
                frame = self._frame(base + start, stop - start)
                if not reply.control:
                    reply.delivered_ms = said_ms + stop * 1000 / axes.rate_hz
                    self._signals.notify()
                yield frame
        finally:
            if axes.close_ms and not reply.control:
                await asyncio.sleep(axes.close_ms / 1000)

    def _frame(self, start: int, samples: int) -> rtc.AudioFrame:
        content = known_samples(start, samples)
        if self._axes.channels == 2:
            content = np.stack([content, known_samples(start + _RIGHT, samples)], axis=1)
        return rtc.AudioFrame(content.tobytes(), self._axes.rate_hz, self._axes.channels, samples)

    def _stall_ms(self) -> float | None:
        axes = self._axes
        if axes.at == BEFORE_FIRST_FRAME:
            return 0.0
        if axes.pacing != "stalled" or axes.at == AFTER_LAST_FRAME or self._held.is_set():
            return None
        return axes.frame_ms if axes.landing_ms is None else float(axes.landing_ms)


@function_tool
async def _look_up() -> str:
    """Look something up."""
    return "found"


class ScriptedAgent(Agent):
    """Says what the voice says."""

    def __init__(self, voice: Voice, *, tools: bool) -> None:
        super().__init__(instructions="A scripted agent.", tools=[_look_up] if tools else [])
        self._voice = voice

    async def tts_node(
        self, text: AsyncIterable[str], model_settings: Any
    ) -> AsyncIterator[rtc.AudioFrame]:
        async for _ in text:
            pass
        async with aclosing(self._voice.speak()) as frames:
            async for frame in frames:
                yield frame


TOOL: Final = "_look_up"
