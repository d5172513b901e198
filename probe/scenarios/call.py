"""One scripted call, in the running event loop: participants, room output, script, control.

What a script waits for it counts: samples handed to the source, frames of the microphone, calls on
the sink. The clock only bounds the waiting, so that a call that hangs ends as an error that says
what it waited for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from livekit import rtc
from livekit.agents import Agent, AgentSession

from probe.errors import ScenarioError
from probe.scenarios import releases
from probe.scenarios.audio import frame_bounds, known_samples
from probe.scenarios.catalogue import (
    BEFORE_FIRST_FRAME,
    CONTROL_MS,
    SOURCE_RATE_HZ,
    Scenario,
    Step,
)
from probe.scenarios.models import (
    MIC_FRAME_MS,
    Caller,
    ScriptedLLM,
    ScriptedSTT,
    ScriptedVAD,
)
from probe.trace.events import ControlStarted, Event

logger = logging.getLogger(__name__)

STEP_LIMIT_S: Final = 10.0
"""How long a step may wait for the framework before the call counts as hung."""
CLOSE_LIMIT_S: Final = 5.0

_CHUNK_MS: Final = 50
"""The room output hands audio on in frames of this length; a shorter rest stays inside it."""

_WORDS: Final = "hold on a second please"


class Recording(Protocol):
    """What a call needs of `probe.Recording`."""

    def put(self, event: Event) -> None: ...
    def mark(self, name: str) -> None: ...


class _Signals:
    """Wakes whoever waits for a condition each time something happened."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Waits until the condition holds; False where it did not within the limit."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while not condition():
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            await asyncio.wait([future], timeout=max(deadline - loop.time(), 0.0))
            if not future.done():
                return condition()
        return True


class _Publication:
    sid = "TR_scripted"

    def __init__(self, subscribed: asyncio.Event) -> None:
        self._subscribed = subscribed

    async def wait_for_subscription(self) -> None:
        await self._subscribed.wait()


class _Room:
    """The part of a room that needs a server: publishing a track and being subscribed to."""

    def __init__(self) -> None:
        self.subscribed = asyncio.Event()
        self.name = "scripted"
        self.local_participant = self
        self.identity = "agent"

    async def publish_track(self, *_: Any) -> _Publication:
        return _Publication(self.subscribed)

    def on(self, *_: Any) -> None: ...

    def off(self, *_: Any) -> None: ...


class _Counts:
    """What went by at the sink and at the source so far."""

    def __init__(self, signals: _Signals) -> None:
        self.signals = signals
        self.captures = 0
        self.pushed_samples = 0
        self.pushing = 0
        self.queue_clears = 0
        self.clears_before_pause = 0
        self.resumes = 0
        self.paused = False


def _counted_source(counts: _Counts) -> type[rtc.AudioSource]:
    class CountedSource(rtc.AudioSource):
        async def capture_frame(self, frame: rtc.AudioFrame) -> None:
            counts.pushed_samples += frame.samples_per_channel
            counts.pushing += 1
            counts.signals.notify()
            try:
                await super().capture_frame(frame)
            finally:
                counts.pushing -= 1
                counts.signals.notify()

        def clear_queue(self) -> None:
            counts.queue_clears += 1
            counts.signals.notify()
            super().clear_queue()

    return CountedSource


def _counted_output(counts: _Counts) -> Any:
    class CountedRoomOutput(releases.room_output_class()):  # type: ignore[misc]  # found by name
        async def capture_frame(self, frame: rtc.AudioFrame) -> None:
            counts.captures += 1
            counts.signals.notify()
            await super().capture_frame(frame)

        def pause(self) -> None:
            if not counts.paused:
                counts.clears_before_pause = counts.queue_clears
            counts.paused = True
            counts.signals.notify()
            super().pause()

        def resume(self) -> None:
            counts.resumes += counts.paused
            counts.paused = False
            counts.signals.notify()
            super().resume()

    return CountedRoomOutput


def _room_output(room: _Room, counts: _Counts) -> Any:
    # The output makes its source itself, with arguments of its own; only the class is counted.
    with releases.replaced(rtc, "AudioSource", _counted_source(counts)):
        return _counted_output(counts)(
            room,
            sample_rate=SOURCE_RATE_HZ,
            num_channels=1,
            track_publish_options=rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE),
        )


class _Voice:
    """The TTS: replies of known content, delivered at the pace of the call."""

    def __init__(self, scenario: Scenario, signals: _Signals) -> None:
        self._axes = scenario.axes
        self._signals = signals
        self._call_samples = 0
        self.replies = 0
        self.delivered_ms = 0.0
        """Of the first reply."""
        self.stalled = False
        """Whether it has stopped delivering until it is let go on."""
        self._held = asyncio.Event()

    def go_on(self) -> None:
        """Ends the stall, now or before it has begun."""
        self._held.set()

    async def speak(self) -> AsyncIterator[rtc.AudioFrame]:
        self.replies += 1
        first = self.replies == 1
        axes = self._axes
        total = (axes.reply_ms if first else CONTROL_MS) * axes.rate_hz // 1000
        base, self._call_samples = self._call_samples, self._call_samples + total
        loop = asyncio.get_running_loop()
        started = loop.time()
        stall_ms = self._stall_ms() if first else None
        self._signals.notify()
        for start, stop in frame_bounds(total, axes.frame_ms, axes.rate_hz):
            if stall_ms is not None and start * 1000 >= stall_ms * axes.rate_hz:
                stall_ms = None
                self.stalled = not self._held.is_set()
                self._signals.notify()
                stall_began = loop.time()
                await self._held.wait()
                self.stalled = False
                started += loop.time() - stall_began
            due_in_s = started + start / axes.rate_hz - loop.time()
            # Even a TTS that has it all at once lets the loop turn between two frames.
            await asyncio.sleep(max(due_in_s, 0.0) if axes.pacing == "realtime" else 0)
            samples = known_samples(base + start, stop - start)
            if first:
                self.delivered_ms = stop * 1000 / axes.rate_hz
                self._signals.notify()
            yield rtc.AudioFrame(samples.tobytes(), axes.rate_hz, 1, stop - start)

    def _stall_ms(self) -> int | None:
        if self._axes.at == BEFORE_FIRST_FRAME:
            return 0
        return self._axes.at if self._axes.pacing == "stalled" else None


class _ScriptedAgent(Agent):
    def __init__(self, voice: _Voice) -> None:
        super().__init__(instructions="A scripted agent.")
        self._voice = voice

    async def tts_node(
        self, text: AsyncIterable[str], model_settings: Any
    ) -> AsyncIterator[rtc.AudioFrame]:
        async for _ in text:
            pass
        async for frame in self._voice.speak():
            yield frame


class Call:
    """A scripted call.

    Raises: `ScenarioError` where the installed release can't run the scenario.
    """

    def __init__(
        self, scenario: Scenario, *, progress: Callable[[str], None] | None = None
    ) -> None:
        releases.require(scenario)
        self._scenario = scenario
        self._progress = progress or (lambda _: None)
        self._signals = _Signals()
        self._counts = _Counts(self._signals)
        self._voice = _Voice(scenario, self._signals)
        self._caller = Caller(self._signals.notify)
        self._stt = ScriptedSTT()
        self._model: Any = None
        self._room = _Room()
        if scenario.subscribed:
            self._room.subscribed.set()
        self._recording: Recording | None = None
        self._reply: Any = None
        self._control: Any = None
        self._control_due = False
        self._told_to_stop = False
        self._crash: str | None = None
        # A reply the script waits for may first have to sit out the options' own delays.
        self._limit_s = STEP_LIMIT_S + (scenario.options.false_interruption_timeout_s or 0.0)
        self.session: Any = AgentSession(
            vad=ScriptedVAD(),
            stt=self._stt,
            llm=ScriptedLLM(),
            **releases.session_arguments(scenario.options),
        )
        """The session, not started yet: the moment to attach a probe."""

    async def run(self, recording: Recording | None = None) -> None:
        """Runs script and control, and closes the session, however it went.

        Raises: `ScenarioError` where a step waited in vain, or the session broke down.
        """
        self._recording = recording
        session = self.session
        output = _room_output(self._room, self._counts)
        session.input.audio = self._caller
        session.output.audio = output
        session.on("speech_created", self._on_speech_created)
        session.on("close", self._on_close)
        session.on("error", self._on_error)
        tasks = [asyncio.create_task(output.start()), asyncio.create_task(self._caller.run())]
        for task in tasks:
            task.add_done_callback(self._on_task_done)
        try:
            await self._start()
            self._reply = session.generate_reply(user_input="Tell me everything.")
            for step in self._scenario.steps:
                self._progress(step.do)
                await self._take(step)
            self._progress("control")
            await self._run_control()
        finally:
            session.off("close", self._on_close)
            self._voice.go_on()
            with suppress(asyncio.TimeoutError, Exception):
                await asyncio.wait_for(session.aclose(), CLOSE_LIMIT_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(asyncio.TimeoutError, Exception):
                await asyncio.wait_for(output.aclose(), CLOSE_LIMIT_S)

    async def _start(self) -> None:
        with releases.interruption_model(self._make_model()):
            start = self.session.start(agent=_ScriptedAgent(self._voice))
            try:
                await asyncio.wait_for(start, STEP_LIMIT_S)
            except asyncio.TimeoutError:
                raise ScenarioError(
                    f"{self._scenario.name}: the session did not start within {STEP_LIMIT_S:g} s"
                ) from None

    def _make_model(self) -> Callable[[], Any] | None:
        if not self._scenario.options.interruption_model:
            return None
        verdict_model = releases.make_verdict_model()

        class CallModel(verdict_model):  # type: ignore[misc,valid-type]  # made for this release
            def __init__(model, **_: Any) -> None:  # noqa: N805  # `self` is the call
                super().__init__()
                self._model = model

        return CallModel

    def _on_speech_created(self, event: Any) -> None:
        if self._control_due and self._control is None:
            self._control = event.speech_handle
            if self._recording is not None:
                self._recording.put(
                    ControlStarted(at_ns=time.monotonic_ns(), speech=self._control.id)
                )
            self._signals.notify()

    def _on_close(self, event: Any) -> None:
        error = getattr(event, "error", None)
        self._crash = f"the session closed by itself ({error or getattr(event, 'reason', '?')})"
        self._signals.notify()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash = f"the room output or the microphone failed ({error!r})"
            self._signals.notify()

    def _on_error(self, event: Any) -> None:
        error = getattr(event, "error", event)
        if getattr(error, "recoverable", False):
            return
        self._crash = f"the session broke down ({getattr(error, 'error', error)!r})"
        self._signals.notify()

    async def _until(
        self, condition: Callable[[], bool], waited_for: str, length_ms: int = 0
    ) -> None:
        limit_s = self._limit_s + length_ms / 1000
        held = await self._signals.until(lambda: self._crash is not None or condition(), limit_s)
        if self._crash is not None:
            raise ScenarioError(f"{self._scenario.name}: {self._crash}")
        if not held:
            raise ScenarioError(
                f"{self._scenario.name}: waited {limit_s:g} s for {waited_for}, in vain"
            )

    async def _take(self, step: Step) -> None:
        steps: dict[str, Callable[[Step], Awaitable[None]]] = {
            "land": self._land,
            "speak": self._speak,
            "hush": self._hush,
            "await-paused": self._await_paused,
            "await-parked": self._await_parked,
            "await-resumed": self._await_resumed,
            "await-interrupted": self._await_interrupted,
            "await-captured": self._await_captured,
            "await-end": self._await_end,
            "verdict": self._verdict,
            "transcript": self._transcript,
            "interrupt": self._interrupt,
            "subscribe": self._subscribe,
            "wait": self._wait,
        }
        await steps[step.do](step)

    async def _land(self, _: Step) -> None:
        axes, counts = self._scenario.axes, self._counts
        if axes.at == BEFORE_FIRST_FRAME:
            await self._until(lambda: self._voice.stalled, "the reply's audio to be due")
            return
        if axes.pacing == "stalled":
            await self._until(lambda: self._voice.stalled, "the TTS to stall")
            await self._until(self._all_inside, "everything delivered to be in the source's queue")
            return
        samples = axes.at * SOURCE_RATE_HZ // 1000
        await self._until(
            lambda: counts.pushed_samples >= samples,
            f"{axes.at} ms of the reply to be handed to the source",
            axes.at,
        )

    def _all_inside(self) -> bool:
        # The room output keeps what is shorter than its frame, and a resampler a little as well.
        whole = int(self._voice.delivered_ms) // _CHUNK_MS * _CHUNK_MS
        if self._scenario.axes.rate_hz != SOURCE_RATE_HZ:
            whole -= _CHUNK_MS
        pushed_ms = self._counts.pushed_samples * 1000 // SOURCE_RATE_HZ
        return self._counts.pushing == 0 and pushed_ms >= whole

    async def _speak(self, step: Step) -> None:
        self._caller.speak(step.ms or 0)

    async def _hush(self, _: Step) -> None:
        self._caller.hush()
        if not self._counts.paused:
            self._voice.go_on()

    async def _await_paused(self, _: Step) -> None:
        await self._until(lambda: self._counts.paused, "the sink to be paused")
        if self._scenario.axes.pacing != "stalled":
            self._voice.go_on()

    async def _await_parked(self, _: Step) -> None:
        if self._voice.stalled:
            return  # that is the stall: nothing comes to stand at the gate
        counts = self._counts
        await self._until(
            # The gate empties the source's queue as it stops its first frame.
            lambda: counts.queue_clears > counts.clears_before_pause,
            "a frame to stand at the closed gate",
        )

    async def _await_resumed(self, _: Step) -> None:
        resumes = self._counts.resumes
        await self._until(
            lambda: self._counts.resumes > resumes or not self._counts.paused,
            "the sink to be resumed",
        )
        self._voice.go_on()

    async def _await_interrupted(self, _: Step) -> None:
        await self._until(lambda: bool(self._reply.interrupted), "the speech to be interrupted")

    async def _await_captured(self, _: Step) -> None:
        self._voice.go_on()
        await self._until(lambda: self._counts.captures > 0, "the first capture to begin")

    async def _await_end(self, _: Step) -> None:
        reply = self._reply
        if self._told_to_stop:
            # A TTS that stalled does not come back at the very moment its reply is cut.
            await self._signals.until(lambda: reply.interrupted or reply.done(), self._limit_s)
        if not reply.interrupted:
            self._voice.go_on()
        await self._ended(self._reply, "the reply to end", self._scenario.axes.reply_ms)

    async def _ended(self, handle: Any, what: str, length_ms: int) -> None:
        await self._until(handle.done, what, length_ms)

    async def _verdict(self, step: Step) -> None:
        if self._model is None:
            raise ScenarioError(
                f"{self._scenario.name}: the session asked for no interruption model"
            )
        self._model.judge(step.interruption)

    async def _transcript(self, _: Step) -> None:
        self._told_to_stop = self._control_due = self._scenario.caller_gets_reply
        caller = self._caller
        self._stt.deliver(_WORDS, caller.spoke_from_unix_s, caller.spoke_until_unix_s)

    async def _interrupt(self, _: Step) -> None:
        # The script goes on at once, as after a press of a button; `await-end` waits.
        self._told_to_stop = True
        self.session.interrupt()

    async def _subscribe(self, _: Step) -> None:
        self._room.subscribed.set()

    async def _wait(self, step: Step) -> None:
        due = self._caller.frames + (step.ms or 0) // MIC_FRAME_MS
        await self._until(lambda: self._caller.frames >= due, "the microphone to go on")

    async def _run_control(self) -> None:
        self._voice.go_on()
        if not self._control_due:
            self._control_due = True
            self.session.generate_reply(user_input="And once more.")
        await self._until(lambda: self._control is not None, "a reply to what the caller said")
        if self._scenario.ends:
            await self._ended(self._control, "the control reply to end", CONTROL_MS)
        else:
            over = await self._signals.until(
                self._control.done, CONTROL_MS / 1000 + STEP_LIMIT_S / 4
            )
            if not over and self._recording is not None:
                self._recording.mark("the control reply did not end")
        # What the source still holds is played before anything is closed.
        await self._wait(Step("wait", ms=400))
