"""What a scripted call is played on: participants, session, sinks, and the reply under way.

What a step waits for it counts: samples handed to the source, frames of the microphone, calls on
the sink. The clock only bounds the waiting, so that a call that hangs ends as an error that says
what it waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol

from livekit.agents import AgentSession
from livekit.agents.voice.io import AudioOutput

from probe.errors import ScenarioError
from probe.scenarios import releases
from probe.scenarios.axes import SOURCE_RATE_HZ
from probe.scenarios.models import Caller, ScriptedLLM, ScriptedSTT, ScriptedVAD
from probe.scenarios.realtime import Response, ScriptedModel
from probe.scenarios.scenario import Scenario
from probe.scenarios.script import Step
from probe.scenarios.sinks import Counts, Room, Signals, SinkFactory, room_output
from probe.scenarios.voice import TOOL, Voice
from probe.trace.events import Event

__all__ = ["STEP_LIMIT_S", "ModelFactory", "Recording", "Stage"]

ModelFactory = Callable[..., Any]
"""Takes what `ScriptedModel` takes and gives a model like it."""

STEP_LIMIT_S: Final = 10.0
"""How long a step may wait for the framework before the call counts as hung."""


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


class Stage:
    """The state of a call, on which its steps act."""

    def __init__(
        self, scenario: Scenario, sink: SinkFactory | None, model: ModelFactory | None
    ) -> None:
        """Takes what `probe.scenarios.call.Call` takes."""
        self.scenario = scenario
        self.makes_sink = sink
        self.signals = Signals()
        self.counts = Counts(self.signals)
        self.voice = Voice(scenario, self.signals)
        self.caller = Caller(self.signals.notify)
        self.stt = ScriptedSTT()
        self.detector: Any = None
        """The interruption model's stand-in, once the session has asked for it."""
        self.server: Any = None
        """The realtime model; ``None``: the agent has an LLM and a TTS."""
        self.agent: Any = None
        self.room = Room()
        if scenario.subscribed:
            self.room.subscribed.set()
        self.recording: Recording | None = None
        self.sinks: list[Any] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.left: tuple[Step, ...] = scenario.script
        """Steps that have not begun."""
        self.reply: Any = None
        """The handle of the reply under way."""
        self.before_reply = Before()
        self.speeches: list[Any] = []
        """Handles of all speeches, in the order they were created."""
        self.responses: dict[str, Response] = {}
        """What the realtime model's server made, by the speech it is."""
        self.heard_after = 0
        """How many speeches there were when the caller last said something."""
        self.control: Any = None
        """The handle of the control reply."""
        self.control_due = False
        """Whether the next reply is the control."""
        self.told_to_stop = False
        """Whether the reply under way will be interrupted."""
        self.crash: str | None = None
        # A reply the script waits for may first have to sit out the options' own delays.
        self.limit_s = STEP_LIMIT_S + (scenario.options.false_interruption_timeout_s or 0.0)
        self.session: Any = AgentSession(**self._participants(model))

    def _participants(self, make_model: ModelFactory | None) -> dict[str, Any]:
        options, realtime = self.scenario.options, self.scenario.realtime
        if realtime is None:
            model: Any = ScriptedLLM(lambda: TOOL if self.voice.wants_tool else None)
        else:
            scripted = any(step.do == "detect" for step in self.scenario.steps)
            model = self.server = (make_model or ScriptedModel)(
                realtime, self.voice, self.signals.notify, self._on_response, hears=not scripted
            )
            if realtime.detects_turns:
                # Left out, the VAD would be the framework's own, a model that takes time to load.
                given = releases.session_arguments(options, "realtime_llm")
                return {"llm": model, "vad": None, **given}
        given = releases.session_arguments(options, "vad")
        return {"llm": model, "vad": ScriptedVAD(), "stt": self.stt, **given}

    def _on_response(self, response: Response) -> None:
        """The agent was told of a response: which speech is it?"""
        speech = self.session.current_speech if response.asked else self.speeches[-1]
        if speech is not None:
            # Only what a speech began with: the session may take no notice of a later one.
            self.responses.setdefault(speech.id, response)
        self.signals.notify()

    # -- sinks and what runs beside them --

    def new_sink(self) -> Any:
        channels = self.scenario.axes.channels
        if self.makes_sink is None:
            sink = room_output(self.room, SOURCE_RATE_HZ, channels)
        else:
            sink = self.makes_sink(SOURCE_RATE_HZ, channels)
        if not isinstance(sink, AudioOutput):
            raise ScenarioError(f"the sink: expected an AudioOutput, found {sink!r}")
        self.counts.watch(sink)
        self.sinks.append(sink)
        if hasattr(sink, "start"):
            self.run_beside(sink.start())
        return sink

    def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_task_done)
        self.tasks.append(task)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.break_down(f"the sink or the microphone failed ({error!r})")

    # -- the reply under way --

    def ask(self) -> None:
        """Code asks for a reply, with which the script goes on."""
        if self.scenario.axes.reply == "say":
            reply = self.session.say("A scripted reply.", audio=self.voice.speak())
        else:
            reply = self.session.generate_reply(user_input="Tell me everything.")
        self.go_on_with(reply)

    def go_on_with(self, reply: Any) -> None:
        counts = self.counts
        self.reply = reply
        self.told_to_stop = False
        self.before_reply = Before(
            counts.captures, counts.flushes, counts.pushed_samples, counts.finishes
        )

    @property
    def captures(self) -> int:
        """Captures of the reply under way, begun so far."""
        return self.counts.captures - self.before_reply.captures

    @property
    def pushed_samples(self) -> int:
        """Samples handed to the source since the reply under way was asked for."""
        return self.counts.pushed_samples - self.before_reply.pushed_samples

    @property
    def response(self) -> Response | None:
        """The response of the reply under way, ``None`` where there is none yet."""
        return self.responses.get(self.reply.id)

    @property
    def hears_itself(self) -> bool:
        """Whether it is the realtime model's server that hears the caller."""
        realtime = self.scenario.realtime
        return realtime is not None and realtime.detects_turns

    # -- waiting --

    def break_down(self, reason: str) -> None:
        """Has whoever waits find out that the call is over."""
        self.crash = reason
        self.signals.notify()

    async def until(
        self, condition: Callable[[], bool], waited_for: str, length_ms: int = 0
    ) -> None:
        """Waits until the condition holds, for ``length_ms`` of audio longer than a step may.

        Raises: `ScenarioError` where it does not come to hold, or the call broke down.
        """
        limit_s = self.limit_s + length_ms / 1000
        held = await self.signals.until(lambda: self.crash is not None or condition(), limit_s)
        if self.crash is not None:
            raise ScenarioError(f"{self.scenario.name}: {self.crash}")
        if not held:
            raise ScenarioError(
                f"{self.scenario.name}: waited {limit_s:g} s for {waited_for}, in vain"
            )

    async def ended(self, handle: Any, name: str, length_ms: int) -> None:
        """Waits for the end of a reply; where it need not end, marks that it did not."""
        if self.scenario.ends:
            await self.until(handle.done, f"the {name} to end", length_ms)
            # Whoever else listens for the speech's end hears of it before the call goes on.
            await asyncio.sleep(0)
            return
        over = await self.signals.until(handle.done, length_ms / 1000 + STEP_LIMIT_S / 4)
        if not over and self.recording is not None:
            self.recording.mark(f"the {name} did not end")
