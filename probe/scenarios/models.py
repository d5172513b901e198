"""The scripted participants of a call: caller, VAD, STT and LLM.

Each is a public plugin class of LiveKit with the recognition left out: what it would have found in
the audio, the script says. What the session makes of it is the session's own decision.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from livekit import rtc
from livekit.agents import llm, stt, vad
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN
from livekit.agents.voice import io

MIC_RATE_HZ: Final = 16_000
MIC_FRAME_MS: Final = 20
_MIC_SAMPLES: Final = MIC_RATE_HZ * MIC_FRAME_MS // 1000
_LOUD: Final = 8000
_ENGLISH: Final[Any] = "en"
"""A plain string, or what the release makes of one."""

SPEECH_AFTER_FRAMES: Final = 3
"""Frames of speech after which the VAD says that the caller started."""
SILENCE_AFTER_FRAMES: Final = 10
"""Frames of silence after which the VAD says that the caller stopped."""


class Caller(io.AudioInput):
    """The caller's microphone: a frame every 20 ms, loud while the caller speaks."""

    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__(label="ScriptedCaller")
        self._heard = heard
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()
        self.speaking = False
        self.spoke_from_unix_s = 0.0
        self.spoke_until_unix_s = 0.0
        """When the caller last began and ended to speak, by the wall clock."""
        self.frames = 0
        """Frames the microphone took up so far."""

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()

    async def run(self) -> None:
        """Keeps the microphone going until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self._take_up()
            self._heard()
            due = max(due + MIC_FRAME_MS / 1000, loop.time())
            await asyncio.sleep(due - loop.time())

    def speak(self, ms: int) -> None:
        """Starts to speak: ``ms`` of speech arrive at once, as after a hitch of the network."""
        self.speaking = True
        self.spoke_from_unix_s = time.time()
        for _ in range(ms // MIC_FRAME_MS):
            self._take_up()

    def hush(self) -> None:
        """Falls silent."""
        self.speaking = False
        self.spoke_until_unix_s = time.time()

    def _take_up(self) -> None:
        samples = np.full(_MIC_SAMPLES, _LOUD if self.speaking else 0, dtype=np.int16)
        self._frames.put_nowait(rtc.AudioFrame(samples.tobytes(), MIC_RATE_HZ, 1, _MIC_SAMPLES))
        self.frames += 1


class ScriptedVAD(vad.VAD):
    """Voice activity is what is not silent."""

    def __init__(self) -> None:
        super().__init__(capabilities=vad.VADCapabilities(update_interval=MIC_FRAME_MS / 1000))

    def stream(self) -> vad.VADStream:
        return _ActivityStream(self)


@dataclass(slots=True)
class Activity:
    """What a VAD keeps count of, in frames of the microphone."""

    speaking: bool = False
    loud_frames: int = 0
    quiet_frames: int = 0
    samples: int = 0
    speech_s: float = 0.0
    silence_s: float = 0.0

    def event(self, kind: vad.VADEventType, frame: rtc.AudioFrame) -> vad.VADEvent:
        span_s = frame.samples_per_channel / frame.sample_rate
        return vad.VADEvent(
            type=kind,
            samples_index=self.samples,
            timestamp=time.time(),
            speech_duration=self.speech_s,
            silence_duration=self.silence_s,
            frames=[frame],
            probability=1.0 if self.loud_frames else 0.0,
            speaking=self.speaking,
            raw_accumulated_speech=self.loud_frames * span_s,
            raw_accumulated_silence=self.quiet_frames * span_s,
        )

    def take(self, frame: rtc.AudioFrame) -> Iterator[vad.VADEvent]:
        span_s = frame.samples_per_channel / frame.sample_rate
        self.samples += frame.samples_per_channel
        if np.frombuffer(frame.data, dtype=np.int16).any():
            self.loud_frames, self.quiet_frames = self.loud_frames + 1, 0
        else:
            self.loud_frames, self.quiet_frames = 0, self.quiet_frames + 1
        if self.speaking:
            self.speech_s += span_s
        else:
            self.silence_s += span_s
        yield self.event(vad.VADEventType.INFERENCE_DONE, frame)
        if not self.speaking and self.loud_frames >= SPEECH_AFTER_FRAMES:
            self.speaking, self.speech_s, self.silence_s = True, self.loud_frames * span_s, 0.0
            yield self.event(vad.VADEventType.START_OF_SPEECH, frame)
        elif self.speaking and self.quiet_frames >= SILENCE_AFTER_FRAMES:
            self.speaking, self.silence_s = False, self.quiet_frames * span_s
            yield self.event(vad.VADEventType.END_OF_SPEECH, frame)
            self.speech_s = 0.0


class _ActivityStream(vad.VADStream):
    async def _main_task(self) -> None:
        activity = Activity()
        async for frame in self._input_ch:
            if isinstance(frame, rtc.AudioFrame):
                for event in activity.take(frame):
                    self._event_ch.send_nowait(event)
            else:
                activity = Activity()  # a flush is a hard boundary: what was heard is forgotten


class ScriptedSTT(stt.STT[Any]):
    """Delivers a final transcript when told to."""

    def __init__(self) -> None:
        capabilities: dict[str, Any] = {"streaming": True, "interim_results": False}
        if "aligned_transcript" in inspect.signature(stt.STTCapabilities).parameters:
            # Some releases only take the interruption model where transcripts carry their times.
            capabilities["aligned_transcript"] = "chunk"
        super().__init__(capabilities=stt.STTCapabilities(**capabilities))
        self._streams: list[_TranscriptStream] = []

    def deliver(self, text: str, spoken_from_unix_s: float, spoken_until_unix_s: float) -> None:
        """A final transcript comes from the stream the session opened last."""
        self._streams[-1].deliver(text, spoken_from_unix_s, spoken_until_unix_s)

    def stream(self, **_: Any) -> stt.RecognizeStream:
        stream = _TranscriptStream(
            stt=self, conn_options=DEFAULT_API_CONNECT_OPTIONS, sample_rate=NOT_GIVEN
        )
        self._streams.append(stream)
        return stream

    async def _recognize_impl(self, *_: Any, **__: Any) -> stt.SpeechEvent:
        raise NotImplementedError("a scripted call only streams")


class _TranscriptStream(stt.RecognizeStream):
    _began_unix_s: float | None = None

    async def _run(self) -> None:
        async for _ in self._input_ch:
            if self._began_unix_s is None:
                self._began_unix_s = time.time()

    def deliver(self, text: str, spoken_from_unix_s: float, spoken_until_unix_s: float) -> None:
        began = self._began_unix_s or spoken_from_unix_s
        self._event_ch.send_nowait(
            stt.SpeechEvent(
                type=stt.SpeechEventType.FINAL_TRANSCRIPT,
                alternatives=[
                    stt.SpeechData(
                        language=_ENGLISH,
                        text=text,
                        start_time=max(spoken_from_unix_s - began, 0.0),
                        end_time=max(spoken_until_unix_s - began, 0.0),
                        confidence=1.0,
                    )
                ],
            )
        )


class ScriptedLLM(llm.LLM[Any]):
    """Answers at once, always the same: the audio is the TTS's."""

    def __init__(self, tool: Callable[[], str | None]) -> None:
        """``tool`` says which tool is to be called now, ``None``: none."""
        super().__init__()
        self._tool = tool

    def chat(self, *, chat_ctx: Any, tools: Any = None, **_: Any) -> llm.LLMStream:
        answer = _Answer(
            self, chat_ctx=chat_ctx, tools=tools or [], conn_options=DEFAULT_API_CONNECT_OPTIONS
        )
        answer.tool = self._tool()
        return answer


class _Answer(llm.LLMStream):
    tool: str | None = None

    async def _run(self) -> None:
        calls = []
        if self.tool is not None:
            calls.append(
                llm.FunctionToolCall(
                    type="function", name=self.tool, arguments="{}", call_id="scripted"
                )
            )
        self._event_ch.send_nowait(
            llm.ChatChunk(
                id="scripted",
                delta=llm.ChoiceDelta(
                    role="assistant", content="A scripted reply.", tool_calls=calls
                ),
            )
        )
