"""Frameworks with one defect each: what uses a sink wrongly, whatever the sink is.

Stands between a session and its sink, before the probe, and passes on what the session calls; so
rules about the order of calls are provoked on any release.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import numpy as np
from livekit import rtc

from probe.scenarios.audio import known_samples

__all__ = [
    "CapturesLate",
    "ChangesRate",
    "EmptyFrames",
    "ForgetsClear",
    "ForgetsResume",
    "PadsFrames",
    "ResumesFirst",
]


class _Driver:
    """Passes everything on."""

    def __init__(self, sink: Any) -> None:
        self.sink = sink

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sink, name)


class ForgetsClear(_Driver):
    """An interrupted reply ends without a clear."""

    def clear_buffer(self) -> None:
        return None


class ResumesFirst(_Driver):
    """A paused reply that is interrupted is resumed before it is cleared, ``EARLY_S`` before."""

    EARLY_S: ClassVar = 0.1
    _paused = False

    def pause(self) -> None:
        self._paused = True
        self.sink.pause()

    def resume(self) -> None:
        self._paused = False
        self.sink.resume()

    def clear_buffer(self) -> None:
        if not self._paused:
            self.sink.clear_buffer()
            return
        self.resume()
        asyncio.get_running_loop().call_later(self.EARLY_S, self.sink.clear_buffer)


class ForgetsResume(_Driver):
    """A sink that was paused is never resumed."""

    def resume(self) -> None:
        return None


class CapturesLate(_Driver):
    """``FRAMES`` of 50 ms are still captured after a clear."""

    FRAMES: ClassVar = 4
    _SOMEWHERE: ClassVar = 10**9

    def clear_buffer(self) -> None:
        self.sink.clear_buffer()
        self._late = asyncio.create_task(self._capture())

    async def _capture(self) -> None:
        rate_hz: int = self.sink.sample_rate
        samples = rate_hz // 20
        for number in range(self.FRAMES):
            content = known_samples(self._SOMEWHERE + number * samples, samples)
            await self.sink.capture_frame(rtc.AudioFrame(content.tobytes(), rate_hz, 1, samples))
        self.sink.flush()


class PadsFrames(_Driver):
    """Frames carry ``BYTES`` more than their samples take."""

    BYTES: ClassVar = 2

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        data = bytes(frame.data.cast("B")) + bytes(self.BYTES)
        await self.sink.capture_frame(
            rtc.AudioFrame(data, frame.sample_rate, frame.num_channels, frame.samples_per_channel)
        )


class ChangesRate(_Driver):
    """From the ``NTH`` frame of a call on frames come at half the rate."""

    NTH: ClassVar = 10
    _taken = 0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        self._taken += 1
        if self._taken < self.NTH:
            await self.sink.capture_frame(frame)
            return
        data = frame.data.cast("B")[: len(frame.data) // 2 * 2]
        await self.sink.capture_frame(
            rtc.AudioFrame(
                bytes(data),
                frame.sample_rate // 2,
                frame.num_channels,
                frame.samples_per_channel // 2,
            )
        )


class EmptyFrames(_Driver):
    """Before the ``NTH`` frame of a call an empty one is captured."""

    NTH: ClassVar = 5
    _taken = 0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        self._taken += 1
        if self._taken == self.NTH:
            nothing = np.empty(0, dtype=np.int16).tobytes()
            await self.sink.capture_frame(
                rtc.AudioFrame(nothing, frame.sample_rate, frame.num_channels, 0)
            )
        await self.sink.capture_frame(frame)
