"""One scripted call, in the running event loop: participants, room output, script, control.

What a script waits for it counts: samples handed to the source, frames of the microphone, calls on
the sink. The clock only bounds the waiting, so that a call that hangs ends as an error that says
what it waited for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from livekit.agents import AgentSession
from livekit.agents.voice.io import AudioOutput

from probe.errors import ScenarioError
from probe.scenarios import releases
from probe.scenarios.axes import (
    AFTER_LAST_FRAME,
    BEFORE_FIRST_FRAME,
    CONTROL_MS,
    FIRST_FRAME,
    SOURCE_RATE_HZ,
)
from probe.scenarios.models import (
    MIC_FRAME_MS,
    Caller,
    ScriptedLLM,
    ScriptedSTT,
    ScriptedVAD,
)
from probe.scenarios.realtime import RealtimeAgent, Response, ScriptedModel
from probe.scenarios.scenario import Scenario
from probe.scenarios.script import Step
from probe.scenarios.sinks import (
    Counts,
    Driven,
    Driver,
    Room,
    Signals,
    SinkFactory,
    room_output,
)
from probe.scenarios.voice import TOOL, ScriptedAgent, Voice
from probe.trace.events import ControlStarted, Event

logger = logging.getLogger(__name__)

ModelFactory = Callable[..., Any]
"""Takes what `ScriptedModel` takes and gives a model like it."""

STEP_LIMIT_S: Final = 10.0
"""How long a step may wait for the framework before the call counts as hung."""
CLOSE_LIMIT_S: Final = 5.0

_PARKED_MS: Final = 200
"""After how long a sink that has a frame to play has it at its closed gate, for certain."""

_CHUNK_MS: Final = 50
"""The room output hands audio on in frames of this length; a shorter rest stays inside it."""

_WORDS: Final = "hold on a second please"


class Recording(Protocol):
    """What a call needs of `probe.Recording`."""

    def put(self, event: Event) -> None: ...
    def mark(self, name: str) -> None: ...


class Before(NamedTuple):
    """What had been counted as a reply began."""

    captures: int = 0
    flushes: int = 0
    pushed_samples: int = 0
    finishes: int = 0


class Call:
    """A scripted call.

    Raises: `ScenarioError` where the installed release can't run the scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        sink: SinkFactory | None = None,
        driver: Driver | None = None,
        model: ModelFactory | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """``sink`` makes the session's sinks, the framework's room output where it is left out;
        ``driver`` stands between the session and its sink; ``model`` makes the realtime model of a
        scenario that has one, a healthy `ScriptedModel` where it is left out."""
        releases.require(scenario)
        self._scenario = scenario
        self._make_sink = sink
        self._driver = driver
        self._make_model = model
        self._progress = progress or (lambda _: None)
        self._signals = Signals()
        self._counts = Counts(self._signals)
        self._voice = Voice(scenario, self._signals)
        self._caller = Caller(self._signals.notify)
        self._stt = ScriptedSTT()
        self._detector: Any = None
        self._server: Any = None
        self._responses: dict[str, Response] = {}
        self._agent: Any = None
        self._room = Room()
        if scenario.subscribed:
            self._room.subscribed.set()
        self._recording: Recording | None = None
        self._sinks: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._begun = 0
        self._reply: Any = None
        self._before_reply = Before()
        self._speeches: list[Any] = []
        self._heard_after = 0
        self._control: Any = None
        self._control_due = False
        self._told_to_stop = False
        self._crash: str | None = None
        # A reply the script waits for may first have to sit out the options' own delays.
        self._limit_s = STEP_LIMIT_S + (scenario.options.false_interruption_timeout_s or 0.0)
        self.session: Any = AgentSession(**self._participants())
        """The session, not started yet: the moment to attach a probe."""

    def _participants(self) -> dict[str, Any]:
        options, realtime = self._scenario.options, self._scenario.realtime
        if realtime is None:
            model: Any = ScriptedLLM(lambda: TOOL if self._voice.wants_tool else None)
        else:
            scripted = any(step.do == "detect" for step in self._scenario.steps)
            model = self._server = (self._make_model or ScriptedModel)(
                realtime, self._voice, self._signals.notify, self._on_response, hears=not scripted
            )
            if realtime.detects_turns:
                # Left out, the VAD would be the framework's own, a model that takes time to load.
                given = releases.session_arguments(options, "realtime_llm")
                return {"llm": model, "vad": None, **given}
        given = releases.session_arguments(options, "vad")
        return {"llm": model, "vad": ScriptedVAD(), "stt": self._stt, **given}

    async def run(self, recording: Recording | None = None) -> None:
        """Runs script and control, and closes the session, however it went.

        Raises: `ScenarioError` where a step waited in vain, or the session broke down.
        """
        self._recording = recording
        session = self.session
        session.input.audio = self._caller
        session.output.audio = self._new_sink()
        session.on("speech_created", self._on_speech_created)
        session.on("close", self._on_close)
        session.on("error", self._on_error)
        self._run_beside(self._caller.run())
        driven = None if self._driver is None else Driven(session.output, self._driver)
        try:
            await self._start()
            self._ask()
            for step in self._scenario.script:
                self._begun += 1
                self._progress(step.do)
                await self._take(step)
            self._progress("control")
            await self._run_control()
        finally:
            session.off("close", self._on_close)
            self._voice.go_on()
            with suppress(asyncio.TimeoutError, Exception):
                await asyncio.wait_for(session.aclose(), CLOSE_LIMIT_S)
            if driven is not None:
                driven.undo()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for sink in self._sinks:
                with suppress(asyncio.TimeoutError, Exception):
                    await asyncio.wait_for(sink.aclose(), CLOSE_LIMIT_S)

    def _new_sink(self) -> Any:
        channels = self._scenario.axes.channels
        if self._make_sink is None:
            sink = room_output(self._room, SOURCE_RATE_HZ, channels)
        else:
            sink = self._make_sink(SOURCE_RATE_HZ, channels)
        if not isinstance(sink, AudioOutput):
            raise ScenarioError(f"the sink: expected an AudioOutput, found {sink!r}")
        self._counts.watch(sink)
        self._sinks.append(sink)
        if hasattr(sink, "start"):
            self._run_beside(sink.start())
        return sink

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_task_done)
        self._tasks.append(task)

    def _ask(self) -> None:
        """Code asks for a reply, with which the script goes on."""
        session = self.session
        if self._scenario.axes.reply == "say":
            reply = session.say("A scripted reply.", audio=self._voice.speak())
        else:
            reply = session.generate_reply(user_input="Tell me everything.")
        self._go_on_with(reply)

    def _go_on_with(self, reply: Any) -> None:
        counts = self._counts
        self._reply = reply
        self._told_to_stop = False
        self._before_reply = Before(
            counts.captures, counts.flushes, counts.pushed_samples, counts.finishes
        )

    @property
    def _captures(self) -> int:
        """Captures of the reply under way, begun so far."""
        return self._counts.captures - self._before_reply.captures

    @property
    def _pushed_samples(self) -> int:
        """Samples handed to the source since the reply under way was asked for."""
        return self._counts.pushed_samples - self._before_reply.pushed_samples

    async def _start(self) -> None:
        scenario = self._scenario
        if scenario.realtime is None:
            self._agent = ScriptedAgent(self._voice, tools=scenario.axes.reply == "tool")
        else:
            self._agent = RealtimeAgent(in_task=scenario.realtime.in_task)
        with releases.interruption_model(self._make_detector()):
            start = self.session.start(agent=self._agent)
            try:
                await asyncio.wait_for(start, STEP_LIMIT_S)
            except asyncio.TimeoutError:
                raise ScenarioError(
                    f"{self._scenario.name}: the session did not start within {STEP_LIMIT_S:g} s"
                ) from None
        if scenario.realtime is not None and scenario.realtime.in_task:
            await self._until(self._in_task, "the agent's task to have the floor")

    def _in_task(self) -> bool:
        task = self._agent.task
        return task is not None and self.session.current_agent is task

    def _make_detector(self) -> Callable[[], Any] | None:
        if not self._scenario.options.interruption_model:
            return None
        verdict_model = releases.make_verdict_model()

        class CallModel(verdict_model):  # type: ignore[misc,valid-type]  # made for this release
            def __init__(model, **_: Any) -> None:  # noqa: N805  # `self` is the call
                super().__init__()
                self._detector = model

        return CallModel

    def _on_speech_created(self, event: Any) -> None:
        self._speeches.append(event.speech_handle)
        self._voice.begin(control=self._control_due)
        self._signals.notify()
        if self._control_due and self._control is None:
            self._control = event.speech_handle
            if self._recording is not None:
                self._recording.put(
                    ControlStarted(at_ns=time.monotonic_ns(), speech=self._control.id)
                )

    def _on_response(self, response: Response) -> None:
        """The agent was told of a response: which speech is it?"""
        speech = self.session.current_speech if response.asked else self._speeches[-1]
        if speech is not None:
            # Only what a speech began with: the session may take no notice of a later one.
            self._responses.setdefault(speech.id, response)
        self._signals.notify()

    def _on_close(self, event: Any) -> None:
        error = getattr(event, "error", None)
        self._crash = f"the session closed by itself ({error or getattr(event, 'reason', '?')})"
        self._signals.notify()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash = f"the sink or the microphone failed ({error!r})"
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
            "reply": self._ask_again,
            "await-reply": self._await_reply,
            "swap": self._swap,
            "pause": self._pause,
            "resume": self._resume,
            "block": self._block,
            "await-created": self._await_created,
            "await-generated": self._await_generated,
            "detect": self._detect,
            "respond": self._respond,
            "interrupt-handle": self._interrupt_handle,
        }
        await steps[step.do](step)

    async def _land(self, step: Step) -> None:
        axes = self._scenario.axes
        ms = axes.landing_ms if step.ms is None else step.ms
        if axes.at == BEFORE_FIRST_FRAME:
            await self._until(lambda: self._voice.stalled, "the reply's audio to be due")
        elif axes.at == FIRST_FRAME:
            await self._until(lambda: self._captures > 0, "the reply's first frame")
        elif axes.at == AFTER_LAST_FRAME:
            await self._until(
                self._all_handed_over, "the reply to be handed to the source", axes.reply_ms
            )
        elif axes.pacing == "stalled" and step.ms is None and self._last_scripted:
            await self._until(lambda: self._voice.stalled, "the TTS to stall")
            await self._until(self._all_inside, "everything delivered to be in the source's queue")
        else:
            ms = ms or 0
            samples = ms * SOURCE_RATE_HZ // 1000
            await self._until(
                lambda: self._pushed_samples >= samples,
                f"{ms} ms of the reply to be handed to the source",
                ms,
            )

    @property
    def _last_scripted(self) -> bool:
        """Whether no other reply comes before the control."""
        later = self._scenario.script[self._begun :]
        return all(step.do not in ("reply", "await-reply") for step in later)

    def _all_handed_over(self) -> bool:
        counts = self._counts
        steps = 2 if self._scenario.axes.reply == "tool" else 1
        if self._scenario.realtime is not None:
            steps = len(self._scenario.realtime.messages)
        return (
            counts.flushes - self._before_reply.flushes >= steps
            and counts.pushing == 0
            and counts.pushed_samples >= counts.captured_samples
        )

    def _all_inside(self) -> bool:
        # The room output keeps what is shorter than its frame, whatever its first frames were cut
        # to, and a resampler more than one of them as well: from 8 kHz it hands on 66 ms at a time.
        kept_ms = _CHUNK_MS
        if self._scenario.axes.rate_hz != SOURCE_RATE_HZ:
            kept_ms += 2 * _CHUNK_MS
        inside_ms = self._voice.reply.delivered_ms - self._pushed_samples * 1000 / SOURCE_RATE_HZ
        # A whole frame, up to what a product of lengths is rounded by, would be handed on.
        return self._counts.pushing == 0 and inside_ms < kept_ms - 1e-6

    async def _speak(self, step: Step) -> None:
        self._caller.speak(step.ms or 0)

    async def _hush(self, _: Step) -> None:
        self._caller.hush()
        if self._hears_itself and not self._server.hears:
            self._server.sessions[-1].report_silence()
        if not self._counts.paused:
            self._voice.go_on()

    async def _await_paused(self, _: Step) -> None:
        await self._until(lambda: self._counts.paused, "the sink to be paused")
        if self._scenario.axes.pacing != "stalled":
            self._voice.go_on()

    async def _await_parked(self, _: Step) -> None:
        if self._voice.stalled:
            return  # that is the stall: nothing comes to stand at the gate
        counts, caller = self._counts, self._caller
        # What a sink of another kind does then can't be seen from outside, so it is given time.
        enough = caller.frames + _PARKED_MS // MIC_FRAME_MS
        await self._until(
            # The room output's gate empties the source's queue as it stops its first frame.
            lambda: (
                counts.queue_clears > counts.clears_before_pause
                or (self._make_sink is not None and caller.frames >= enough)
            ),
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
        await self._until(lambda: self._captures > 0, "the first capture to begin")

    async def _await_end(self, _: Step) -> None:
        reply = self._reply
        if self._told_to_stop:
            # A TTS that stalled does not come back at the very moment its reply is cut.
            await self._signals.until(lambda: reply.interrupted or reply.done(), self._limit_s)
        if not reply.interrupted:
            self._voice.go_on()
        axes = self._scenario.axes
        await self._ended(self._reply, "reply", self._reply_ms + axes.close_ms)

    @property
    def _reply_ms(self) -> int:
        """How long a reply takes: one that is generated more slowly than it plays takes longer."""
        realtime = self._scenario.realtime
        speed = 1.0 if realtime is None else min(realtime.speed, 1.0)
        return int(self._scenario.axes.reply_ms / speed)

    async def _ended(self, handle: Any, name: str, length_ms: int) -> None:
        if self._scenario.ends:
            await self._until(handle.done, f"the {name} to end", length_ms)
            # Whoever else listens for the speech's end hears of it before the call goes on.
            await asyncio.sleep(0)
            return
        over = await self._signals.until(handle.done, length_ms / 1000 + STEP_LIMIT_S / 4)
        if not over and self._recording is not None:
            self._recording.mark(f"the {name} did not end")

    @property
    def _hears_itself(self) -> bool:
        """Whether it is the realtime model's server that hears the caller."""
        realtime = self._scenario.realtime
        return realtime is not None and realtime.detects_turns

    async def _verdict(self, step: Step) -> None:
        if self._detector is None:
            raise ScenarioError(
                f"{self._scenario.name}: the session asked for no interruption model"
            )
        self._detector.judge(step.interruption)

    async def _transcript(self, _: Step) -> None:
        caller = self._caller
        later = {step.do for step in self._scenario.script[self._begun :]}
        answered = self._scenario.options.allow_interruptions is not False
        self._told_to_stop = answered
        # Words that are followed by others, or by another reply of the script, bring no control.
        self._control_due = answered and not later & {"transcript", "reply", "await-reply"}
        self._heard_after = len(self._speeches)
        if self._hears_itself:
            self._server.sessions[-1].report_words(_WORDS)
            if self._control_due:
                self._server.sessions[-1].respond()
        else:
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

    async def _ask_again(self, _: Step) -> None:
        self._ask()

    async def _await_reply(self, _: Step) -> None:
        await self._until(
            lambda: len(self._speeches) > self._heard_after, "a reply to what the caller said"
        )
        self._go_on_with(self._speeches[self._heard_after])

    async def _swap(self, _: Step) -> None:
        self.session.output.audio = self._new_sink()

    async def _pause(self, _: Step) -> None:
        self.session.output.audio.pause()

    async def _resume(self, _: Step) -> None:
        self.session.output.audio.resume()

    async def _block(self, step: Step) -> None:
        time.sleep((step.ms or 0) / 1000)  # noqa: ASYNC251  # that is what the step is for

    @property
    def _response(self) -> Response | None:
        """The response of the reply under way, ``None`` where there is none yet."""
        return self._responses.get(self._reply.id)

    async def _await_created(self, step: Step) -> None:
        number = step.message or 1
        if number > 1:
            self._voice.go_on()  # a stall in an earlier message would keep it from being made

        def created() -> bool:
            response = self._response
            return response is not None and len(response.created) >= number

        await self._until(created, f"message {number} to exist on the server", self._reply_ms)

    async def _await_generated(self, _: Step) -> None:
        self._voice.go_on()

        def generated() -> bool:
            response = self._response
            return response is not None and response.ended

        await self._until(generated, "the server to end the response", self._reply_ms)

    async def _detect(self, step: Step) -> None:
        if step.message is None:
            self._report_speech()
            return
        due = self._before_reply.finishes + step.message
        reported = self._counts.at_finish(due, self._report_speech)
        await self._until(reported.is_set, "the message to have been played", self._reply_ms)

    def _report_speech(self) -> None:
        self._caller.speak(0)
        self._server.sessions[-1].report_speech()

    async def _respond(self, _: Step) -> None:
        self._heard_after = len(self._speeches)
        self._server.sessions[-1].respond()

    async def _interrupt_handle(self, _: Step) -> None:
        self._told_to_stop = True
        self._reply.interrupt()

    async def _run_control(self) -> None:
        self._voice.go_on()
        realtime = self._scenario.realtime
        if realtime is not None and realtime.in_task:
            self._agent.task.complete(None)
            await self._until(lambda: self._agent.back, "the agent to have the floor again")
        if not self._control_due:
            self._control_due = True
            self.session.generate_reply(user_input="And once more.")
        await self._until(lambda: self._control is not None, "a reply to what the caller said")
        await self._ended(self._control, "control reply", CONTROL_MS)
        # What the source still holds is played before anything is closed.
        await self._wait(Step("wait", ms=400))
