"""What the scripted realtime model does, apart from any session: run as a program, because it loads
livekit's native library. Prints one JSON object, or what went wrong.

With names of scenarios as arguments it makes those calls instead, without and with the probe, and
prints what was called on the model.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from livekit.agents import llm

import probe
from probe.scenarios.axes import Axes
from probe.scenarios.call import Call
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.realtime import ScriptedModel
from probe.scenarios.scenario import RealtimeOptions, Scenario
from probe.scenarios.sinks import Signals
from probe.scenarios.voice import Voice

REPLY_MS = 400


class Bench:
    """A model, a session of it, and what that session reported."""

    def __init__(self, **options: Any) -> None:
        self.signals = Signals()
        axes = Axes(pacing="realtime", reply_ms=REPLY_MS, at=0)
        given = RealtimeOptions(**options)
        scenario = Scenario("bench", "", "", (), axes=axes, realtime=given)
        self.voice = Voice(scenario, self.signals)
        self.events: list[tuple[str, Any]] = []
        self.model = ScriptedModel(given, self.voice, self.signals.notify, lambda _: None)
        self.session = self.model.session(anything_a_later_release_asks=True)
        for name in (
            "generation_created",
            "remote_item_added",
            "metrics_collected",
            "input_audio_transcription_completed",
        ):
            self.session.on(name, lambda event, name=name: self.events.append((name, event)))

    def of(self, name: str) -> list[Any]:
        return [event for kind, event in self.events if kind == name]

    async def ask(self) -> Any:
        self.voice.begin(control=False)
        return await self.session.generate_reply()

    async def until(self, condition: Any) -> None:
        assert await self.signals.until(condition, 5.0)

    def ids(self) -> list[str]:
        return [item.id for item in self.session.chat_ctx.items]


async def commits() -> dict[str, Any]:
    bench = Bench(messages=(1, 1))
    event = await bench.ask()
    messages = []
    first_on_server = None
    async for message in event.message_stream:
        first_on_server = first_on_server or bench.ids()
        samples = 0
        async for frame in message.audio_stream:
            samples += frame.samples_per_channel
        texts = [text async for text in message.text_stream]
        messages.append([message.message_id, samples, len(texts), await message.modalities])
    metrics = bench.of("metrics_collected")
    return {
        "user_initiated": event.user_initiated,
        "same_event": bench.of("generation_created") == [event],
        "messages": messages,
        "first_on_server": first_on_server,
        "added": [added.item.id for added in bench.of("remote_item_added")],
        "previous": [added.previous_item_id for added in bench.of("remote_item_added")],
        "metrics": [[each.request_id == event.response_id, each.cancelled] for each in metrics],
    }


async def cancels() -> dict[str, Any]:
    bench = Bench(messages=(1,), speed=1.0, cancel_ms=60)
    await bench.ask()
    bench.voice.begin(control=False)
    bench.session.respond()
    bench.session.interrupt()
    bench.voice.begin(control=False)
    bench.session.respond()
    first, second, third = bench.session._responses
    at_once = [response.ended for response in (first, second, third)]
    await bench.until(lambda: first.ended and second.ended)
    then = [response.ended for response in (first, second, third)]
    await bench.until(lambda: third.ended)
    return {
        "at_once": at_once,
        "then": then,
        "cancelled": [response.cancelled for response in (first, second, third)],
        "metrics": [each.cancelled for each in bench.of("metrics_collected")],
        "server_initiated": [each.user_initiated for each in bench.of("generation_created")],
    }


async def edits() -> dict[str, Any]:
    bench = Bench(messages=(1,), speed=100.0)
    context = llm.ChatContext.empty()
    context.add_message(role="system", content="Be brief.", id="instruction")
    context.add_message(role="user", content="Hello.", id="hello")
    await bench.session.update_chat_ctx(context)
    after_first = bench.ids()
    await bench.ask()
    await bench.until(lambda: bench.session._responses[0].ended)
    bench.session.truncate(
        message_id="message_1", modalities=["audio"], audio_end_ms=100, audio_transcript="This"
    )
    truncated = bench.session.chat_ctx.get_by_id("message_1")
    copy = bench.session.chat_ctx
    copy.items.clear()
    untouched = bench.ids()
    context.add_message(role="user", content="Again.", id="again")
    await bench.session.update_chat_ctx(context)
    bench.session.report_words("And again.")
    return {
        "after_first": after_first,
        "truncated": truncated.content,
        "untouched": untouched,
        "after_second": bench.ids()[:2],
        "added": [added.item.id for added in bench.of("remote_item_added")][:3],
        "heard": [each.transcript for each in bench.of("input_audio_transcription_completed")],
        "calls": bench.model.calls,
    }


async def streams() -> dict[str, Any]:
    found = {}
    for kind in ("channel", "generator"):
        bench = Bench(messages=(1,), speed=100.0, streams=kind)
        event = await bench.ask()
        message = await anext(aiter(event.message_stream))
        audio = message.audio_stream
        found[kind] = [
            [hasattr(stream, "qsize") for stream in (event.message_stream, audio)],
            sum([frame.samples_per_channel async for frame in audio]),
        ]
    return found


async def abandoned() -> dict[str, Any]:
    bench = Bench()
    bench.voice.begin(control=False)
    bench.session.generate_reply().cancel()
    await asyncio.sleep(0.05)
    asked_and_dropped = len(bench.session._responses)
    await bench.ask()
    response = bench.session._responses[0]
    bench.session.interrupt()
    await bench.session.aclose()
    await asyncio.sleep(0)
    return {"dropped": asked_and_dropped, "ended": response.ended, "cancels": response.cancelled}


async def models() -> dict[str, Any]:
    return {made.__name__: await made() for made in (commits, cancels, edits, streams, abandoned)}


async def calls(names: list[str]) -> dict[str, Any]:
    """All of them without the probe, and then all of them with it."""
    bare = await asyncio.gather(*(_bare(name) for name in names))
    watched = await asyncio.gather(*(_watched(name) for name in names))
    return dict(zip(names, zip(bare, watched, strict=True), strict=True))


async def _bare(name: str) -> list[Any]:
    call = Call(CATALOGUE[name])
    await call.run()
    return _told(call)


async def _watched(name: str) -> list[Any]:
    call = Call(CATALOGUE[name])
    with tempfile.TemporaryDirectory() as folder:
        recording = probe.attach(call.session, Path(folder) / "call.jsonl")
        try:
            await call.run(recording)
        finally:
            recording.close()
    return _told(call)


def _told(call: Call) -> list[Any]:
    # How far a message was played is another amount every time.
    return [told[:2] if told[0] == "truncate" else told for told in call.stage.server.calls]


def main() -> None:
    logging.disable(logging.CRITICAL)
    names = sys.argv[1:]
    print(json.dumps(asyncio.run(calls(names) if names else models())), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
