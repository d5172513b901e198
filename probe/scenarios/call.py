"""One scripted call, in the running event loop: session, script, control."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from probe.errors import ScenarioError
from probe.scenarios import releases
from probe.scenarios.acts import ACTS, wait
from probe.scenarios.axes import CONTROL_MS
from probe.scenarios.realtime import RealtimeAgent
from probe.scenarios.scenario import Scenario
from probe.scenarios.script import Step
from probe.scenarios.sinks import Driven, Driver, SinkFactory
from probe.scenarios.stage import STEP_LIMIT_S, ModelFactory, Recording, Stage
from probe.scenarios.voice import ScriptedAgent
from probe.trace.events import ControlStarted

__all__ = ["Call"]

CLOSE_LIMIT_S: Final = 5.0


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
        self._driver = driver
        self._progress = progress or (lambda _: None)
        self.stage = Stage(scenario, sink, model)
        self.session: Any = self.stage.session
        """The session, not started yet: the moment to attach a probe."""

    async def run(self, recording: Recording | None = None) -> None:
        """Runs script and control, and closes the session, however it went.

        Raises: `ScenarioError` where a step waited in vain, or the session broke down.
        """
        stage, session = self.stage, self.session
        stage.recording = recording
        session.input.audio = stage.caller
        session.output.audio = stage.new_sink()
        session.on("speech_created", self._on_speech_created)
        session.on("close", self._on_close)
        session.on("error", self._on_error)
        stage.run_beside(stage.caller.run())
        driven = None if self._driver is None else Driven(session.output, self._driver)
        try:
            await self._start()
            stage.ask()
            while stage.left:
                step, *left = stage.left
                stage.left = tuple(left)
                self._progress(step.do)
                await ACTS[step.do](stage, step)
            self._progress("control")
            await self._run_control()
        finally:
            session.off("close", self._on_close)
            stage.voice.go_on()
            with suppress(asyncio.TimeoutError, Exception):
                await asyncio.wait_for(session.aclose(), CLOSE_LIMIT_S)
            if driven is not None:
                driven.undo()
            for task in stage.tasks:
                task.cancel()
            await asyncio.gather(*stage.tasks, return_exceptions=True)
            for sink in stage.sinks:
                with suppress(asyncio.TimeoutError, Exception):
                    await asyncio.wait_for(sink.aclose(), CLOSE_LIMIT_S)

    async def _start(self) -> None:
        scenario, stage = self._scenario, self.stage
        if scenario.realtime is None:
            stage.agent = ScriptedAgent(stage.voice, tools=scenario.axes.reply == "tool")
        else:
            stage.agent = RealtimeAgent(in_task=scenario.realtime.in_task)
        with releases.interruption_model(self._make_detector()):
            start = self.session.start(agent=stage.agent)
            try:
                await asyncio.wait_for(start, STEP_LIMIT_S)
            except asyncio.TimeoutError:
                raise ScenarioError(
                    f"{scenario.name}: the session did not start within {STEP_LIMIT_S:g} s"
                ) from None
        if scenario.realtime is not None and scenario.realtime.in_task:
            await stage.until(self._in_task, "the agent's task to have the floor")

    def _in_task(self) -> bool:
        task = self.stage.agent.task
        return task is not None and self.session.current_agent is task

    def _make_detector(self) -> Callable[[], Any] | None:
        if not self._scenario.options.interruption_model:
            return None
        verdict_model, stage = releases.make_verdict_model(), self.stage

        class CallModel(verdict_model):  # type: ignore[misc,valid-type]  # made for this release
            def __init__(self, **_: Any) -> None:
                super().__init__()
                stage.detector = self

        return CallModel

    def _on_speech_created(self, event: Any) -> None:
        stage = self.stage
        stage.speeches.append(event.speech_handle)
        stage.voice.begin(control=stage.control_due)
        stage.signals.notify()
        if stage.control_due and stage.control is None:
            stage.control = event.speech_handle
            if stage.recording is not None:
                stage.recording.put(
                    ControlStarted(at_ns=time.monotonic_ns(), speech=stage.control.id)
                )

    def _on_close(self, event: Any) -> None:
        reason = getattr(event, "error", None) or getattr(event, "reason", "?")
        self.stage.break_down(f"the session closed by itself ({reason})")

    def _on_error(self, event: Any) -> None:
        error = getattr(event, "error", event)
        if not getattr(error, "recoverable", False):
            self.stage.break_down(f"the session broke down ({getattr(error, 'error', error)!r})")

    async def _run_control(self) -> None:
        stage = self.stage
        stage.voice.go_on()
        realtime = self._scenario.realtime
        if realtime is not None and realtime.in_task:
            stage.agent.task.complete(None)
            await stage.until(lambda: stage.agent.back, "the agent to have the floor again")
        if not stage.control_due:
            stage.control_due = True
            self.session.generate_reply(user_input="And once more.")
        await stage.until(lambda: stage.control is not None, "a reply to what the caller said")
        await stage.ended(stage.control, "control reply", CONTROL_MS)
        # What the source still holds is played before anything is closed.
        await wait(stage, Step("wait", ms=400))
