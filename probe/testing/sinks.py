"""Sinks with one defect each: the reference sink, and one thing about it changed.

The first line of each docstring says what is wrong. Amounts are class attributes, so that a
subclass can change them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

from livekit import rtc
from livekit.agents.voice.io import AudioOutput, PlaybackFinishedEvent

from probe.testing.reference import ReferenceAudioOutput, Segment

__all__ = [
    "BlocksCapture",
    "ClaimsMore",
    "ClearsMidway",
    "ClearsSourceLate",
    "DropsAtResume",
    "FeedsLongFrames",
    "FinishesEarly",
    "FinishesTwice",
    "HaltsGateOnly",
    "HoldsBack",
    "IgnoresPause",
    "KeepsBuffer",
    "LeavesSourceFull",
    "LosesMiddle",
    "MutesAfterClear",
    "NeverFinishes",
    "PlaysNothing",
    "PushesAfterClear",
    "RefusesAfterClear",
    "RelabelsRate",
    "ReportsInterrupted",
    "ReportsUninterrupted",
    "StartsEarly",
    "StartsTwice",
    "StarvesSource",
    "SwallowsCancellation",
    "TakesAnyRate",
]


# -- audio that stays too long --


class HaltsGateOnly(ReferenceAudioOutput):
    """A pause closes the gate and leaves the source playing what it holds."""

    def _halt_source(self, segment: Segment) -> None:
        return None


class IgnoresPause(ReferenceAudioOutput):
    """A pause does nothing."""

    def pause(self) -> None:
        return None


class LeavesSourceFull(ReferenceAudioOutput):
    """A clear empties the sink's buffer and leaves the source playing what it holds."""

    def _stop_source(self, segment: Segment) -> None:
        self._discard(segment)


class ClearsSourceLate(ReferenceAudioOutput):
    """A clear reaches the source only ``LATE_S`` after the sink."""

    LATE_S: ClassVar = 0.1

    def _stop_source(self, segment: Segment) -> None:
        self._discard(segment)
        asyncio.get_running_loop().call_later(self.LATE_S, self._audio_source.clear_queue)


class PushesAfterClear(ReferenceAudioOutput):
    """What the sink has buffered goes on to the source after a clear, ``FRAMES`` of 50 ms."""

    FRAMES: ClassVar = 4

    def clear_buffer(self) -> None:
        late = list(self._segments[0].frames)[: self.FRAMES] if self._segments else []
        super().clear_buffer()
        self._pusher = asyncio.create_task(self._push_late(late))

    async def _push_late(self, frames: list[rtc.AudioFrame]) -> None:
        # A frame that is under way at the clear is cleared when it is in, with what lies behind it.
        await asyncio.sleep(0.02)
        for frame in frames:
            await self._audio_source.capture_frame(frame)


class FeedsLongFrames(ReferenceAudioOutput):
    """Frames are longer than the source's queue, and a clear lets in what is left of one."""

    FRAME_MS = 1000

    def _stop_source(self, segment: Segment) -> None:
        if not segment.cleared:  # and not again once the frame is in
            super()._stop_source(segment)


class KeepsBuffer(ReferenceAudioOutput):
    """A clear leaves ``FRAMES`` of 50 ms in the buffer, and they come out with the next reply."""

    FRAMES: ClassVar = 4
    _kept: tuple[rtc.AudioFrame, ...] = ()

    def clear_buffer(self) -> None:
        if self._segments:
            self._kept = tuple(self._segments[0].frames)[: self.FRAMES]
        super().clear_buffer()

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        begins = self._captured is None
        await super().capture_frame(frame)
        if begins and self._captured is not None:
            self._captured.frames.extendleft(reversed(self._kept))
            self._kept = ()


class SwallowsCancellation(ReferenceAudioOutput):
    """A capture takes as long as its frame and goes on when it is cancelled, so the reply does."""

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(frame.duration)
        await super().capture_frame(frame)


# -- audio that never comes --


class LosesMiddle(ReferenceAudioOutput):
    """``FRAMES`` of 50 ms are lost on the way to the source, once, after ``AFTER``."""

    AFTER: ClassVar = 6
    FRAMES: ClassVar = 4
    _passed = 0

    async def _push(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        self._passed += 1
        if not self.AFTER < self._passed <= self.AFTER + self.FRAMES:
            await super()._push(segment, frame)


class ClearsMidway(ReferenceAudioOutput):
    """The source is cleared once in the middle of a reply, after ``AFTER`` frames."""

    AFTER: ClassVar = 6
    _passed = 0

    async def _push(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        await super()._push(segment, frame)
        self._passed += 1
        if self._passed == self.AFTER:
            self._stop_source(segment)


class DropsAtResume(ReferenceAudioOutput):
    """A resume drops ``FRAMES`` of 50 ms that stood at the gate."""

    FRAMES: ClassVar = 4

    def resume(self) -> None:
        if self._paused and self._segments:
            frames = self._segments[0].frames
            for _ in range(min(self.FRAMES, len(frames))):
                frames.popleft()
        super().resume()


class RefusesAfterClear(ReferenceAudioOutput):
    """A clear cancels the future that captures wait for, so all later ones end cancelled."""

    def __init__(self, rate_hz: int, channels: int) -> None:
        super().__init__(rate_hz, channels)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready.set_result(None)

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await self._ready
        await super().capture_frame(frame)

    def clear_buffer(self) -> None:
        super().clear_buffer()
        self._ready = asyncio.get_running_loop().create_future()
        self._ready.cancel()


class MutesAfterClear(ReferenceAudioOutput):
    """Once cleared, the sink plays nothing of the next reply and reports it as played."""

    _mute = False

    def clear_buffer(self) -> None:
        self._mute = self._mute or bool(self._segments)
        super().clear_buffer()

    async def _push(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        if not self._mute:
            await super()._push(segment, frame)
        else:
            await self._swallow(segment, frame)

    async def _swallow(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        """Takes the time a frame takes and reports it as played."""
        segment.pushed_samples += frame.samples_per_channel
        await asyncio.sleep(frame.duration)


class PlaysNothing(MutesAfterClear):
    """The sink plays nothing at all and reports everything as played."""

    _mute = True


class HoldsBack(ReferenceAudioOutput):
    """After ``AFTER`` frames the sink holds the next one back for ``HOLD_S``."""

    AFTER: ClassVar = 6
    HOLD_S: ClassVar = 1.6
    _passed = 0

    async def _push(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        self._passed += 1
        if self._passed == self.AFTER:
            await asyncio.sleep(self.HOLD_S)
        await super()._push(segment, frame)


class StarvesSource(HoldsBack):
    """The same for 400 ms: the source runs dry in the middle although audio is there."""

    HOLD_S: ClassVar = 0.4


# -- reports that do not match --


class ClaimsMore(ReferenceAudioOutput):
    """The sink claims to have played ``MORE_S`` more than it has."""

    MORE_S: ClassVar = 0.4

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        super()._report_finished(position_s + self.MORE_S, interrupted=interrupted)


class ReportsUninterrupted(ReferenceAudioOutput):
    """A segment that was cut is reported as not interrupted."""

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        super()._report_finished(position_s, interrupted=False)


class ReportsInterrupted(ReferenceAudioOutput):
    """A segment that was played to its end is reported as interrupted."""

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        super()._report_finished(position_s, interrupted=True)


class NeverFinishes(ReferenceAudioOutput):
    """A segment is never reported as finished."""

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        return None


class FinishesTwice(ReferenceAudioOutput):
    """The finish of a segment is emitted a second time, past the base class that would not."""

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        super()._report_finished(position_s, interrupted=interrupted)
        event = PlaybackFinishedEvent(playback_position=position_s, interrupted=interrupted)
        emitter: Any = self
        emitter.emit("playback_finished", event)


class FinishesEarly(ReferenceAudioOutput):
    """A segment is reported as finished when its last frame was handed over, not played."""

    def flush(self) -> None:
        segment = self._captured
        super().flush()
        if segment is not None and not segment.finished:
            segment.finished = True
            samples = sum(frame.samples_per_channel for frame in segment.frames)
            position_s = (segment.pushed_samples + samples) / self._rate_hz
            self._report_finished(position_s, interrupted=False)


class StartsTwice(ReferenceAudioOutput):
    """The start of playback is reported again after a resume."""

    def resume(self) -> None:
        again = self._paused and bool(self._segments) and self._segments[0].started
        super().resume()
        if again:
            self._report_started()


class StartsEarly(ReferenceAudioOutput):
    """The start of the next segment's playback is reported as one ends, and not when it starts."""

    _early = False

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        super()._report_finished(position_s, interrupted=interrupted)
        super()._report_started()
        self._early = True

    def _report_started(self) -> None:
        if not self._early:
            super()._report_started()
        self._early = False


# -- captures and frames --


class BlocksCapture(ReferenceAudioOutput):
    """One capture, the sink's ``NTH``, takes ``BLOCK_S``."""

    NTH: ClassVar = 10
    BLOCK_S: ClassVar = 1.2
    _taken = 0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        self._taken += 1
        if self._taken == self.NTH:
            await asyncio.sleep(self.BLOCK_S)
        await super().capture_frame(frame)


class RelabelsRate(ReferenceAudioOutput):
    """The sink writes its source's rate on frames of any rate: they are played at another pace."""

    def __init__(self, rate_hz: int, channels: int) -> None:
        super().__init__(rate_hz, channels)
        self._sample_rate = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        relabelled = rtc.AudioFrame(
            frame.data, self._rate_hz, frame.num_channels, frame.samples_per_channel
        )
        await super().capture_frame(relabelled)


class TakesAnyRate(ReferenceAudioOutput):
    """The sink does not say which rate it needs, so nobody resamples, and the source refuses."""

    def __init__(self, rate_hz: int, channels: int) -> None:
        super().__init__(rate_hz, channels)
        self._sample_rate = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await AudioOutput.capture_frame(self, frame)
        await self._audio_source.capture_frame(frame)

    def flush(self) -> None:
        super().flush()
        self._report_finished(0.0, interrupted=False)
