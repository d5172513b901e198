"""What the tests of the realtime tap run in a child: ``python -m tests.realtime_scenarios NAME…``.

Each scenario prints what it found as JSON; the tests say what it has to be. Without a name all run.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from livekit.agents import llm

import probe
from probe import compat
from tests import loose_scenarios, stream_scenarios
from tests.realtime_harness import ALL, Broken, Model, failure, told
from tests.session_harness import (
    Agent,
    AgentSession,
    Leaf,
    Recorder,
    Taps,
    finished,
    history,
    main,
    settle,
)


class Call:
    """An agent that speaks through the model, over a leaf that plays when it is told to."""

    def __init__(self, model: Model, *, agent: Agent | None = None, attached: bool = True) -> None:
        self.model = model
        self.session = AgentSession(llm=model)
        self.leaf = Leaf()
        self.leaf.hold = True
        self.session.output.audio = self.leaf
        self.taps: Any = SimpleNamespace(recorder=Recorder(), remove=lambda: None)
        if attached:
            self.attach()
        self.agent = agent or Agent(instructions="scripted")

    def attach(self) -> None:
        self.taps = Taps(self.session)

    async def __aenter__(self) -> Call:
        await self.session.start(self.agent)
        await settle()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.session.aclose()
        self.taps.remove()

    @property
    def realtime(self) -> Any:
        return self.model.latest

    async def played(self) -> None:
        """What is in the leaf has been played."""
        await settle()
        self.leaf.finish(interrupted=False)
        await settle()

    def found(self) -> dict[str, Any]:
        return {
            "calls": self.model.calls,
            "leaf": [call for call in self.leaf.calls if call[0] != "resume"],
            "history": history(self.session),
            "faults": self.taps.recorder.faults,
            "told": told(self.taps.recorder, *ALL),
        }


async def interrupted_call(call: Call) -> dict[str, Any]:
    """The first message is played; the second is cut by the caller while it is generated; a reply
    to a request follows, whole."""
    async with call:
        response = call.realtime.begin()
        first = response.add(10)
        await settle()
        first.feed(5)
        first.finish()
        second = response.add(20)
        await call.played()

        def cancelled() -> None:
            call.realtime.on_cancel = None
            asyncio.get_running_loop().call_later(0.05, response.end)

        call.realtime.on_cancel = cancelled
        second.feed(3)
        call.realtime.emit("input_speech_started", llm.InputSpeechStartedEvent())
        second.feed(2)
        await settle(0.2)
        call.realtime.emit(
            "input_speech_stopped", llm.InputSpeechStoppedEvent(user_transcription_enabled=False)
        )
        handle = call.session.generate_reply(instructions="go on")
        await settle()
        answer = call.realtime.begin(answers=True)
        answer.add(5, done=True)
        answer.end()
        answer.measured(cancelled=False)
        await call.played()
        done = await finished(handle)
    return {"done": done, "speech": handle.id, **call.found()}


async def channels() -> dict[str, Any]:
    """The streams are LiveKit's channels."""
    return await interrupted_call(Call(Model()))


async def generators() -> dict[str, Any]:
    """The streams are plain generators, and nothing says which items were added."""
    return await interrupted_call(Call(Model(plain=True, reports_items=False)))


async def handle_interrupted() -> dict[str, Any]:
    """The speech is interrupted through its handle; another response is in flight by then."""
    call = Call(Model())
    async with call:
        handles: list[Any] = []
        call.session.on("speech_created", lambda event: handles.append(event.speech_handle))
        first = call.realtime.begin()
        message = first.add(10)
        await settle()
        second = call.realtime.begin()
        second.add(10)
        await settle()
        handles[0].interrupt()
        await settle()
        ended = await finished(handles[0])
        message.finish()
        first.end()
        second.end()
        await call.played()
        await finished(handles[1])
    return {"ended": ended, "speeches": [handle.id for handle in handles], **call.found()}


async def tap_fails() -> dict[str, Any]:
    """Everything the tap looks things up with raises."""

    def fails(*args: Any) -> Any:
        raise LookupError

    names = (
        "agent_items", "asking_speech", "ends_stream", "local_items", "result_of", "server_items",
        "stream_closed", "unread",
    )  # fmt: skip
    originals = {name: getattr(compat, name) for name in names}
    try:
        for name in names:
            setattr(compat, name, fails)
        return await interrupted_call(Call(Model()))
    finally:
        for name, original in originals.items():
            setattr(compat, name, original)


async def model_raises() -> dict[str, Any]:
    """The provider refuses what it is told."""

    def refuse() -> None:
        raise Broken

    call = Call(Model())
    raised: list[str] = []
    async with call:
        realtime = call.realtime
        realtime.on_cancel = refuse
        realtime.refuses = True
        calls = (
            realtime.interrupt,
            lambda: realtime.truncate(audio_end_ms=20),
            lambda: realtime.say("hello"),
        )
        raised += [failure(refused) for refused in calls]
        realtime.truncate(message_id="m", audio_end_ms=20, modalities=["audio"])
        waiting = asyncio.ensure_future(realtime.update_chat_ctx(llm.ChatContext.empty()))
        await asyncio.wait([waiting])
        raised.append(type(waiting.exception()).__name__)
        waiting = asyncio.ensure_future(realtime.update_chat_ctx(llm.ChatContext.empty()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        raised.append("cancelled" if waiting.cancelled() else "")
        try:
            await realtime.update_chat_ctx(None)
        except AttributeError as error:
            raised.append(type(error).__name__)
        realtime.on_cancel = None
    return {"raised": raised, **call.found()}


async def detached_mid_response() -> dict[str, Any]:
    """The probe comes off while a message is read and another waits."""
    call = Call(Model())
    async with call:
        realtime = call.realtime
        own = set(vars(realtime))
        response = realtime.begin()
        message = response.add(10)
        await settle()
        call.taps.remove()
        told_before = len(call.taps.recorder.records)
        left = sorted(set(vars(realtime)) & {"emit", "generate_reply", "interrupt", "truncate"})
        message.feed(10)
        message.finish()
        response.add(10, done=True)
        response.end()
        await call.played()
        await call.played()
        told_after = len(call.taps.recorder.records)
    return {
        "patched": sorted(own & {"emit", "interrupt"}),
        "left": left,
        "silent": told_before == told_after,
        **call.found(),
    }


async def attached_mid_response() -> dict[str, Any]:
    """The probe comes while a message is read; the next response is whole."""
    call = Call(Model(), attached=False)
    async with call:
        response = call.realtime.begin()
        message = response.add(10)
        await settle()
        call.attach()
        await settle()
        message.feed(10)
        message.finish()
        response.add(10, done=True)
        response.end()
        await call.played()
        await call.played()
        response = call.realtime.begin()
        response.add(10, done=True)
        response.end()
        await call.played()
    return call.found()


async def handed_over() -> dict[str, Any]:
    """Another agent takes over, with a model of its own, and then the recording is closed."""
    first, second = Model(), Model()
    call = Call(first)
    async with call:
        call.session.update_agent(Agent(instructions="other", llm=second))
        await settle(0.2)
        response = second.latest.begin()
        response.add(5, done=True)
        response.end()
        await call.played()
        patched = "emit" in vars(first.latest)
    return {"patched": patched, **call.found()}


async def brought_context() -> dict[str, Any]:
    """The agent brings messages along; later the provider is sent others and loses one."""
    brought = llm.ChatContext.empty()
    brought.add_message(role="assistant", content="welcome back", id="brought")
    call = Call(Model(), agent=Agent(instructions="scripted", chat_ctx=brought))
    async with call:
        realtime = call.realtime
        added = llm.RemoteItemAddedEvent
        realtime.emit(
            "remote_item_added", added(previous_item_id=None, item=brought.items[0].model_copy())
        )
        response = realtime.begin()
        response.add(5, done=True)
        response.end()
        await call.played()
        context = realtime.chat_ctx.copy()
        context.items[:] = [item for item in context.items if item.id != response.messages[0].id]
        context.add_message(role="user", content="again", id="typed")
        await realtime.update_chat_ctx(context)
    return call.found()


async def recorded() -> dict[str, Any]:
    """A whole call in a file."""
    folder = Path(tempfile.mkdtemp())
    call = Call(Model(), attached=False)
    recording = probe.attach(call.session, folder / "call.jsonl")
    try:
        await interrupted_call(call)
    finally:
        recording.close()
    return {"path": str(recording.path), "faults": recording.faults}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        channels,
        generators,
        handle_interrupted,
        tap_fails,
        model_raises,
        detached_mid_response,
        attached_mid_response,
        handed_over,
        brought_context,
        recorded,
        loose_scenarios.nobody_reads,
        loose_scenarios.nobody_took_it,
        loose_scenarios.found_in_the_stream,
        loose_scenarios.carried_over,
        loose_scenarios.audio_in_time,
        loose_scenarios.answers,
        stream_scenarios.streams_are_the_same,
        stream_scenarios.streams_fail_the_same,
        loose_scenarios.frames_are_the_same_objects,
    )
}

if __name__ == "__main__":
    main(SCENARIOS)
