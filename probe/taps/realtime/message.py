"""A message of a response: who reads its audio, how much of it there is."""

from __future__ import annotations

from typing import Any, Final, Protocol

from probe import compat
from probe.taps.realtime.shared import Shared
from probe.taps.realtime.streams import watch_of, watched
from probe.trace.events import CountedAt, GenerationCounted, MessageAudio, MessageOpened

__all__ = ["RUN_NS", "Message"]

RUN_NS: Final = 200_000_000
"""Longest stretch of audio told in one event."""


class _Response(Protocol):
    number: int
    speech: str | None


class Message:
    """One message, seen through the stream its audio is read from."""

    def __init__(self, shared: Shared, response: _Response, id_: str, audio: Any) -> None:
        self._shared = shared
        self._response = response
        self._audio = audio
        self.id = id_
        self.read_samples = 0
        self.rate_hz: int | None = None
        self.began_ns = 0
        """When the first frame that waits to be written was read."""
        self._opened = False
        self._ended = False
        self._end_told = False
        self._first = True
        self._frames = 0
        self._samples = 0
        self._channels = 1
        self._last_ns = 0

    def watch(self, message: Any) -> None:
        """Look on as the audio of ``message`` is read."""
        if watch_of(message.audio_stream) is not self:
            message.audio_stream = watched(message.audio_stream, self)

    def opened(self) -> None:
        if not self._opened and not self._shared.removed:
            self._opened = True
            self._shared.guard.attempt("open", self._open)

    reading = opened

    def _open(self) -> None:
        speech = self._response.speech or self._shared.asking_speech()
        self._shared.put(MessageOpened(self._shared.now_ns(), self.id, speech))

    def passed(self, item: Any) -> None:
        if not self._shared.removed:
            self._shared.guard.attempt("audio", self._pass, item, self._shared.now_ns())

    def _pass(self, frame: Any, at_ns: int) -> None:
        samples, rate_hz = frame.samples_per_channel, frame.sample_rate
        if self._frames and (rate_hz, frame.num_channels) != (self.rate_hz, self._channels):
            self.flush()
        self.read_samples += samples
        if not self._frames:
            self.rate_hz = rate_hz
            self._channels = frame.num_channels
            self.began_ns = at_ns
            self._shared.flowing[self] = None
        self._frames += 1
        self._samples += samples
        self._last_ns = at_ns
        if self._first or at_ns - self.began_ns >= RUN_NS:
            self._first = False
            self.flush()

    def stopped(self, error: BaseException) -> None:
        self._shared.guard.attempt("audio", self._stop, error)

    def _stop(self, error: BaseException) -> None:
        if not self._ended and compat.ends_stream(error):
            self._ended = True
            self.flush()

    def flush(self) -> None:
        """Write the audio read since the last time, and the end once it was seen."""
        end_told = self._end_told or not self._ended
        if self.rate_hz is not None and (self._frames or not end_told):
            if not self._frames:
                self.began_ns = self._last_ns = self._shared.now_ns()
            self._end_told = self._ended
            self._shared.put(
                MessageAudio(
                    self.began_ns, self._last_ns, self.id, self._frames, self._samples,
                    self.rate_hz, self._channels, self._ended,
                )
            )  # fmt: skip
        self._frames = self._samples = 0
        self._shared.flowing.pop(self, None)

    def count(self, at_ns: int, why: CountedAt) -> GenerationCounted:
        """How much audio of it there is; the stream's own frames are looked at, none is taken."""
        unread: int | None = 0
        waiting = () if self._ended else compat.unread(self._audio)
        if waiting is None:
            unread = None
        elif waiting:
            frames = list(waiting)
            unread = sum(frame.samples_per_channel for frame in frames)
            self.rate_hz = self.rate_hz or frames[0].sample_rate
        return GenerationCounted(
            at_ns, self._response.number, self.id, self.read_samples, unread, self.rate_hz, why
        )
