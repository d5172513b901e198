"""What the tests of the realtime tap run in a child: ``python -m tests.realtime_scenarios NAME…``.

Each scenario prints what it found as JSON; the tests say what it has to be. Without a name all run.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

from livekit.agents import llm
from livekit.agents.utils import aio
from livekit.agents.utils.aio.itertools import _ACloseable

import probe
from probe import compat
from probe.taps.realtime.streams import watched
from probe.taps.realtime.tap import RealtimeTap
from tests.realtime_harness import Model, generated
from tests.session_harness import Agent, AgentSession, Leaf, Recorder, frame, run
from tests.session_scenarios import Taps, finished, history, settle


def told(recorder: Recorder, *names: str) -> list[dict[str, Any]]:
    """Events of those names in the order of their times, without the times."""
    events = [record for record in recorder.records if not isinstance(record, list)]
    rows = []
    for event in sorted(events, key=lambda event: event.at_ns):
        if event.NAME in names:
            row = {"event": event.NAME, **asdict(event)}
            rows.append({key: value for key, value in row.items() if not key.endswith("_ns")})
    return rows


ALL = (
    "response_created", "response_ended", "message_created", "message_pulled", "message_opened",
    "message_audio", "generation_counted", "cancel_sent", "truncate_sent", "context_sent",
    "context_seen", "realtime", "realtime_untapped", "speech_committed", "speech_done",
)  # fmt: skip


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


class Broken(Exception):  # noqa: N818 - a name to be seen, not a kind of error
    """Something of the user's own went wrong."""


def failure(call: Callable[[], Any]) -> str:
    """Name of what the call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return ""


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


# -- the tap over a session that is none: what nobody reads, and in which order things come --


class Loose:
    """A realtime session nobody plays."""

    def __init__(self, **kwargs: Any) -> None:
        self.realtime = Model(**kwargs).session()
        self.recorder = Recorder()
        self.history = llm.ChatContext.empty()
        self.session = SimpleNamespace(
            _activity=SimpleNamespace(_rt_session=self.realtime),
            history=self.history,
            current_speech=SimpleNamespace(id="speech_1"),
        )
        self.clock: Callable[[], int] = monotonic_ns
        self.tap = RealtimeTap(
            self.session, self.recorder.put, self.recorder.fault, lambda: self.clock()
        )
        self.tap.look()

    def found(self, **more: Any) -> dict[str, Any]:
        return {"told": told(self.recorder, *ALL), "faults": self.recorder.faults, **more}


async def nobody_reads() -> dict[str, Any]:
    """Two responses in flight with unread messages; the first ends, then a cancel is sent."""
    loose = Loose()
    first = loose.realtime.begin()
    first.add(10)
    second = loose.realtime.begin()
    waiting = second.add(4)
    item = llm.ChatMessage(role="assistant", content=["…"], id="elsewhere")
    loose.realtime.emit(
        "remote_item_added", llm.RemoteItemAddedEvent(previous_item_id=None, item=item)
    )
    first.end()
    loose.realtime.interrupt()
    waiting.feed(2)
    loose.tap.beat()
    second.end()
    loose.tap.beat()
    second.measured(cancelled=True)
    unread = [first.channel.qsize(), second.channel.qsize(), waiting.audio.qsize()]
    loose.tap.remove()
    return loose.found(unread=unread)


async def nobody_took_it() -> dict[str, Any]:
    """Responses that no speech plays and no stream tells the end of; one is read after all."""
    loose = Loose(plain=True)
    loose.realtime.begin().end()
    late = loose.realtime.begin()
    loose.tap.beat()
    loose.tap.speech_done("speech_0", monotonic_ns())
    loose.realtime.interrupt()
    late.add(2)
    message = await anext(late.event.message_stream)
    read = asyncio.ensure_future(anext(late.event.message_stream))
    await settle(0)
    loose.realtime.interrupt()
    late.end()
    frames = [item async for item in message.audio_stream]
    await asyncio.wait([read])
    loose.realtime.interrupt()
    loose.tap.remove()
    return loose.found(frames=len(frames))


async def found_in_the_stream() -> dict[str, Any]:
    """Messages that no event tells of: found in the stream, or on the provider's side alone."""
    loose = Loose(reports_items=False)
    response = loose.realtime.begin()
    response.add(3)
    loose.tap.beat()
    loose.realtime.context.add_message(role="assistant", content=["…"], id="committed")
    loose.realtime.context.add_message(role="user", content=["…"], id="asked")
    loose.tap.speech_done("speech_0", monotonic_ns())
    loose.tap.remove()
    return loose.found()


async def carried_over() -> dict[str, Any]:
    """What a provider created and nobody heard is sent to the next one, out of the context of an
    agent that holds a stand-in for it."""
    loose = Loose()
    loose.realtime.begin().add(3)
    standing_in = llm.ChatContext.empty()
    standing_in.add_message(role="assistant", content=["…"], id="r1-1")
    standing_in.add_message(role="assistant", content=["…"], id="brought")
    following = Model().session()
    loose.session._activity = SimpleNamespace(
        _rt_session=following, _agent=SimpleNamespace(_chat_ctx=standing_in)
    )
    loose.tap.beat()
    await following.update_chat_ctx(standing_in)
    loose.tap.speech_done("speech_1", monotonic_ns())
    loose.tap.remove()
    return loose.found()


async def audio_in_time() -> dict[str, Any]:
    """Thirty frames are read one every 20 ms of a clock of the test's own, then none."""
    loose = Loose()
    clock_ns = monotonic_ns()
    loose.clock = lambda: clock_ns
    response = loose.realtime.begin()
    message = response.add(30)
    generation = await anext(response.event.message_stream)
    stream = aiter(generation.audio_stream)
    for _ in range(30):
        await anext(stream)
        clock_ns += 20_000_000
    read = message.sent
    written = [sum(row["samples"] for row in told(loose.recorder, "message_audio"))]
    loose.tap.beat()
    clock_ns += 200_000_000
    loose.tap.beat()
    written.append(sum(row["samples"] for row in told(loose.recorder, "message_audio")))
    loose.tap.remove()
    return loose.found(read=read, written=written)


async def answers() -> dict[str, Any]:
    """Requests are answered in each of the orders a plugin may choose; one is cancelled."""
    loose = Loose()
    realtime = loose.realtime
    identical = []

    async def ask(speech: str) -> asyncio.Future[Any]:
        loose.session.current_speech = SimpleNamespace(id=speech)
        future: asyncio.Future[Any] = realtime.generate_reply(instructions="go on")
        loose.session.current_speech = None
        return future

    future = await ask("answered first")
    response = realtime.begin(answers=True)
    identical.append(await future is response.event)
    future = await ask("emitted first")
    response = realtime.begin(answers=True, emits_first=True)
    identical.append(await future is response.event)
    future = await ask("not emitted")
    response = realtime.begin(answers=True, emits=False)
    identical.append(await future is response.event)
    (await ask("cancelled")).cancel()
    await asyncio.sleep(0)
    realtime.begin()
    failing = await ask("refused")
    failing.set_exception(llm.RealtimeError("no"))
    await asyncio.sleep(0)
    loose.tap.remove()
    return loose.found(identical=identical, unseen=failing._log_traceback, refused=_error(failing))


def _error(future: asyncio.Future[Any]) -> str:
    return type(future.exception()).__name__


# -- streams --


class Looker:
    """Notes what passes."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def opened(self) -> None:
        self.seen.append("opened")

    def reading(self) -> None:
        return None

    def passed(self, item: Any) -> None:
        self.seen.append(item)

    def stopped(self, error: BaseException) -> None:
        self.seen.append(type(error).__name__)


class Iterable:
    """Can be iterated over, and is no iterator itself."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.label = "mine"

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self.items:
            yield item

    def __len__(self) -> int:
        return len(self.items)


def filled(*items: Any, closed: bool = True) -> Any:
    channel: Any = aio.Chan()
    for item in items:
        channel.send_nowait(item)
    if closed:
        channel.close()
    return channel


async def streams_are_the_same() -> dict[str, Any]:
    """What can be asked of a stream in place of another."""
    found: dict[str, Any] = {}
    for name, make in (
        ("channel", lambda: filled(1, 2, 3)),
        ("generator", lambda: generated(filled(1, 2, 3))),
        ("iterable", lambda: Iterable([1, 2, 3])),
    ):
        plain = make()
        looker = Looker()
        stream = watched(plain, looker)
        names = {key for key in dir(plain) if not key.startswith("__")} | {"__len__", "__anext__"}
        found[name] = {
            "missing": [key for key in names if hasattr(stream, key) != hasattr(plain, key)],
            "static": [
                key
                for key in ("aclose", "recv", "qsize", "closed", "athrow")
                if (inspect.getattr_static(stream, key, None) is None)
                != (inspect.getattr_static(plain, key, None) is None)
            ],
            "closeable": isinstance(stream, _ACloseable) == isinstance(plain, _ACloseable),
            "class": isinstance(stream, type(plain)),
            "items": [item async for item in stream],
            "seen": looker.seen,
        }
    channel = filled(closed=False)
    stream = watched(channel, looker := Looker())
    stream.note = "kept"
    found["set"] = channel.note == "kept" and stream.note == "kept"
    errors = [failure(stream.recv_nowait)]
    channel.send_nowait(4)
    received = [stream.recv_nowait()]
    waiting = asyncio.ensure_future(stream.recv())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    channel.send_nowait(5)
    received.append(await stream.recv())
    found["asked"] = [stream.qsize(), stream.closed]
    stream.close()
    try:
        await stream.recv()
    except Exception as error:
        errors.append(type(error).__name__)
    return {**found, "received": received, "errors": errors, "seen": looker.seen}


async def breaks() -> AsyncIterator[int]:
    yield 1
    raise Broken("half way")


async def streams_fail_the_same() -> dict[str, Any]:
    """Exceptions, cancellation and closing go through, and nothing waits that did not before."""
    found: dict[str, Any] = {"items": []}
    twice = watched(watched(filled(1, 2), Looker()), Looker())
    found["twice"] = [item async for item in twice]
    stream = watched(breaks(), Looker())
    try:
        async for item in stream:
            found["items"].append(item)
    except Broken as error:
        found["raised"] = str(error)
    closed: list[str] = []

    async def closes() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(10)
        except BaseException as error:
            closed.append(type(error).__name__)
            raise

    stream = watched(closes(), Looker())
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    found["cancelled"] = waiting.cancelled()
    stream = watched(closes(), Looker())
    await anext(stream)
    await stream.aclose()
    found["closed"] = closed

    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    items = [item async for item in watched(filled(*range(1000)), Looker())]
    found["turns"] = turns
    found["whole"] = items == list(range(1000))
    return found


async def frames_are_the_same_objects() -> dict[str, Any]:
    """What the agent takes from a message are the very frames the provider made."""
    loose = Loose()
    response = loose.realtime.begin()
    message = response.add()
    made = [frame(k * 480) for k in range(30)]
    for item in made:
        message.audio.send_nowait(item)
    message.finish()
    response.end()
    taken: list[Any] = []
    messages = []
    async for generation in response.event.message_stream:
        messages.append(generation is message.generation)
        taken += [item async for item in generation.audio_stream]
    loose.tap.remove()
    return loose.found(
        same=[a is b for a, b in zip(taken, made, strict=True)].count(True), messages=messages
    )


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
        nobody_reads,
        nobody_took_it,
        found_in_the_stream,
        carried_over,
        audio_in_time,
        answers,
        streams_are_the_same,
        streams_fail_the_same,
        frames_are_the_same_objects,
    )
}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    # one process for all of them: importing livekit-agents takes longer than every scenario
    for name in sys.argv[1:] or SCENARIOS:
        run(name, SCENARIOS[name])
    # the native library may abort while the interpreter shuts down
    os._exit(0)
