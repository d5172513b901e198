"""A sink that does everything right, small enough to be read in one go.

It plays into an `rtc.AudioSource` like the framework's room output and needs no room. Start from
it for a sink of your own, or compare yours with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Any, ClassVar, Final

from livekit import rtc
from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities

__all__ = ["ReferenceAudioOutput", "Segment"]

PLAYED_S: Final = 0.02
"""The source takes 10 ms at a time, by a clock of its own: what it was given has left it two
blocks after the time that audio takes."""


class Segment:
    """What the reply hands over between two flushes."""

    def __init__(self) -> None:
        self.frames: deque[rtc.AudioFrame] = deque()
        """Cut to the sink's length, not yet handed to the source."""
        self.rest = bytearray()
        """Shorter than a frame."""
        self.flushed = False
        self.cleared = False
        self.finished = False
        self.started = False
        self.pushed_samples = 0
        self.discarded_samples = 0
        """Taken out of the source again before they were played."""
        self.reported_samples = 0
        """How far the progress reports have come."""


class ReferenceAudioOutput(AudioOutput):
    """An honest sink: it stops at once, loses nothing it need not, and reports what happened.

    What its source holds when it is paused, 190 ms at most, is not played: a source can't be
    halted, only emptied, and a pause that becomes an interruption must not leak.
    """

    FRAME_MS: ClassVar = 50
    """Frames are handed to the source in this length, whatever length they come in."""
    AHEAD_S: ClassVar = 0.14
    """The source gets its next frame when it holds no more than this. With a frame more it still
    has room, so no frame ever waits at a full source, where a clear would let it in."""

    def __init__(self, rate_hz: int, channels: int) -> None:
        super().__init__(
            label="Reference",
            next_in_chain=None,
            sample_rate=rate_hz,
            capabilities=AudioOutputCapabilities(pause=True),
        )
        self._rate_hz = rate_hz
        self._channels = channels
        self._audio_source = rtc.AudioSource(rate_hz, channels, queue_size_ms=200)
        self._segments: deque[Segment] = deque()
        """Those that are not over, the one that plays first."""
        self._captured: Segment | None = None
        """The one the reply is handing over."""
        self._paused = False
        self._plays_until_s = 0.0
        self._changed = asyncio.Event()
        self._player: asyncio.Task[None] | None = None

    # -- what the reply calls --

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        if (frame.sample_rate, frame.num_channels) != (self._rate_hz, self._channels):
            raise ValueError(
                f"expected {self._rate_hz} Hz x {self._channels}, "
                f"found {frame.sample_rate} Hz x {frame.num_channels}"
            )
        await super().capture_frame(frame)
        if self._captured is None:
            self._captured = Segment()
            self._segments.append(self._captured)
        if self._captured.cleared:
            return  # the rest of a reply that was cut
        data = frame.data.cast("B")
        self._captured.rest += data[: frame.samples_per_channel * 2 * self._channels]
        self._cut(self._captured, self._rate_hz * self.FRAME_MS // 1000)
        self._play_on()

    def flush(self) -> None:
        super().flush()
        segment, self._captured = self._captured, None
        if segment is None:
            return
        self._cut(segment, 1)
        segment.flushed = True
        self._play_on()

    def clear_buffer(self) -> None:
        if not self._segments:
            return
        playing = self._segments[0]
        self._stop_source(playing)
        for segment in self._segments:
            segment.cleared = True
            segment.frames.clear()
            segment.rest.clear()
            self._finish(segment)
        self._segments.clear()
        self._changed.set()

    def pause(self) -> None:
        super().pause()
        if self._paused:
            return
        self._paused = True
        if self._segments:
            self._halt_source(self._segments[0])
        self._changed.set()

    def resume(self) -> None:
        super().resume()
        self._paused = False
        self._changed.set()

    async def aclose(self) -> None:
        """Ends playing for good."""
        if self._player is not None:
            self._player.cancel()
            with suppress(asyncio.CancelledError):
                await self._player
        await self._audio_source.aclose()

    # -- playing --

    def _play_on(self) -> None:
        self._changed.set()
        if self._player is None or self._player.done():
            self._player = asyncio.create_task(self._play())

    async def _play(self) -> None:
        while self._segments:
            await self._step(self._segments[0])

    async def _step(self, segment: Segment) -> None:
        """Does what is due, or waits until something is."""
        if self._paused:
            await self._change()
        elif segment.frames and self._queued_s() <= self.AHEAD_S:
            await self._push(segment, segment.frames.popleft())
        elif segment.frames:
            await self._change(self._queued_s() - self.AHEAD_S)
        elif not segment.flushed:
            await self._change()
        elif time.monotonic() < self._plays_until_s + PLAYED_S:
            await self._change(self._plays_until_s + PLAYED_S - time.monotonic())
        else:
            self._segments.remove(segment)
            self._finish(segment)

    async def _push(self, segment: Segment, frame: rtc.AudioFrame) -> None:
        if not segment.started:
            segment.started = True
            self._report_started()
        segment.pushed_samples += frame.samples_per_channel
        self._plays_until_s = max(self._plays_until_s, time.monotonic()) + frame.duration
        await self._audio_source.capture_frame(frame)
        # It was on its way to the source when that was cleared.
        if segment.cleared:
            self._stop_source(segment)
        elif self._paused:
            self._halt_source(segment)

    async def _change(self, timeout_s: float | None = None) -> None:
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_s)

    def _cut(self, segment: Segment, least_samples: int) -> None:
        """Cuts the rest into frames; one that is shorter than the sink's has ``least_samples``."""
        whole = self._rate_hz * self.FRAME_MS // 1000
        width = 2 * self._channels
        while len(segment.rest) >= least_samples * width:
            data = bytes(segment.rest[: whole * width])
            del segment.rest[: whole * width]
            segment.frames.append(
                rtc.AudioFrame(data, self._rate_hz, self._channels, len(data) // width)
            )

    # -- the source --

    def _queued_s(self) -> float:
        """Seconds of audio inside the source. An estimate, by the clock."""
        return max(self._plays_until_s - time.monotonic(), 0.0)

    def _stop_source(self, segment: Segment) -> None:
        """The segment is cut."""
        self._discard(segment)
        self._audio_source.clear_queue()

    def _halt_source(self, segment: Segment) -> None:
        """The segment is paused."""
        self._discard(segment)
        self._audio_source.clear_queue()
        self._report_progress(segment)

    def _discard(self, segment: Segment) -> None:
        """Takes into account that what the source holds will not be played."""
        queued = round(self._queued_s() * self._rate_hz)
        segment.discarded_samples += min(queued, segment.pushed_samples)
        self._plays_until_s = 0.0

    # -- reports --

    def _finish(self, segment: Segment) -> None:
        if segment.finished:
            return
        segment.finished = True
        self._report_progress(segment)
        played = segment.pushed_samples - segment.discarded_samples
        self._report_finished(played / self._rate_hz, interrupted=segment.cleared)

    def _report_started(self) -> None:
        report: Any = getattr(self, "on_playback_started", None)
        if report is not None:  # from 1.3
            report(created_at=time.time())

    def _report_progress(self, segment: Segment) -> None:
        """Reports what has played since the last report."""
        report: Any = getattr(self, "on_playback_progressed", None)
        start, stop = segment.reported_samples, segment.pushed_samples - segment.discarded_samples
        segment.reported_samples = stop
        if report is None or stop <= start:  # from 1.7.1
            return
        duration_s = (stop - start) / self._rate_hz
        report(
            started_at=time.time() - duration_s, offset=start / self._rate_hz, duration=duration_s
        )

    def _report_finished(self, position_s: float, *, interrupted: bool) -> None:
        self.on_playback_finished(playback_position=position_s, interrupted=interrupted)
