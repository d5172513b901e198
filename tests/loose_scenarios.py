"""The realtime tap over a session that is none: what nobody reads, and what comes when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

from livekit.agents import llm

from probe.taps.realtime.tap import RealtimeTap
from tests.realtime_harness import ALL, Model, told
from tests.session_harness import (
    Recorder,
    frame,
    settle,
)


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
