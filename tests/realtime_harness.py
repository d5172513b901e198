"""A small realtime model for tests of its tap: a provider that does what the test says, at once.

Run in a child process. It notes every call that is made on it and everything the agent takes from
its streams, so that a call with the probe can be compared with one without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, fields
from types import SimpleNamespace
from typing import Any

from livekit import rtc
from livekit.agents import llm
from livekit.agents.utils import aio

from tests.session_harness import RATE, Recorder, frame

ABILITIES = {
    "message_truncation": True,
    "turn_detection": True,
    "user_transcription": False,
    "auto_tool_reply_generation": False,
    "audio_output": True,
    "manual_function_calls": False,
    "mutable_chat_context": True,
    "mutable_instructions": True,
    "mutable_tools": True,
    "per_response_tool_choice": True,
    "supports_say": True,
}


class Model(llm.RealtimeModel):
    """Makes sessions; the last one is `latest`."""

    def __init__(self, *, plain: bool = False, reports_items: bool = True) -> None:
        known = {field.name for field in fields(llm.RealtimeCapabilities)}
        abilities = {name: value for name, value in ABILITIES.items() if name in known}
        super().__init__(capabilities=llm.RealtimeCapabilities(**abilities))
        self.plain = plain
        self.reports_items = reports_items
        self.calls: list[Any] = []
        self.sessions: list[Session] = []

    @property
    def latest(self) -> Session:
        return self.sessions[-1]

    def session(self, **kwargs: Any) -> Session:
        self.sessions.append(Session(self))
        return self.latest

    async def aclose(self) -> None:
        return None


class Message:
    """A message on the provider's side; the test feeds it."""

    def __init__(self, id_: str, plain: bool) -> None:
        self.id = id_
        self.text: Any = aio.Chan()
        self.audio: Any = aio.Chan()
        modalities: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        modalities.set_result(["audio", "text"])
        self.generation = llm.MessageGeneration(
            message_id=id_,
            text_stream=generated(self.text) if plain else self.text,
            audio_stream=generated(self.audio) if plain else self.audio,
            modalities=modalities,
        )
        self.sent = 0

    def feed(self, frames: int) -> None:
        """Frames of 20 ms; sample k of a message has value k."""
        for _ in range(frames):
            self.audio.send_nowait(frame(self.sent))
            self.sent += 480

    def finish(self) -> None:
        self.text.send_nowait("so it is ")
        self.text.close()
        self.audio.close()


async def generated(channel: Any) -> AsyncIterator[Any]:
    """A channel as plugins without channels have it: nothing can be asked of it."""
    async for item in channel:
        yield item


class Response:
    """A response on the provider's side."""

    def __init__(self, session: Session, id_: str, user_initiated: bool) -> None:
        plain = session.model.plain
        self.session = session
        self.id = id_
        self.channel: Any = aio.Chan()
        self.functions: Any = aio.Chan()
        self.messages: list[Message] = []
        self.event = llm.GenerationCreatedEvent(
            message_stream=generated(self.channel) if plain else self.channel,
            function_stream=self.functions,
            user_initiated=user_initiated,
        )
        if hasattr(self.event, "response_id"):
            self.event.response_id = id_

    def add(self, frames: int = 0, *, done: bool = False) -> Message:
        """A message is created, and with it committed on the provider's side."""
        session = self.session
        message = Message(f"{self.id}-{len(self.messages) + 1}", session.model.plain)
        self.messages.append(message)
        self.channel.send_nowait(message.generation)
        before = session.context.items[-1].id if session.context.items else None
        item = session.context.add_message(role="assistant", content=["…"], id=message.id)
        added = getattr(llm, "RemoteItemAddedEvent", None)
        if session.model.reports_items and added is not None:
            session.emit("remote_item_added", added(previous_item_id=before, item=item))
        message.feed(frames)
        if done:
            message.finish()
        return message

    def end(self) -> None:
        """The provider ends it, with what was generated so far."""
        if self.channel.closed:
            return
        self.channel.close()
        self.functions.close()
        for message in self.messages:
            if not message.audio.closed:
                message.finish()

    def measured(self, *, cancelled: bool = False) -> None:
        """Metrics of the response come."""
        self.session.measured(SimpleNamespace(request_id=self.id, cancelled=cancelled))


class Session(llm.RealtimeSession[Any]):
    """Answers when it is told to."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.model = model
        self.context = llm.ChatContext.empty()
        self.responses: list[Response] = []
        self.asked: list[asyncio.Future[Any]] = []
        self.on_cancel: Any = None
        self.refuses = False

    def note(self, *call: Any) -> None:
        self.model.calls.append(list(call))

    def begin(
        self, *, answers: bool = False, emits: bool = True, emits_first: bool = False
    ) -> Response:
        """A response begins: on its own, or as the answer to the last `generate_reply`."""
        response = Response(self, f"r{len(self.responses) + 1}", answers)
        self.responses.append(response)
        if emits and emits_first:
            self.emit("generation_created", response.event)
        if answers:
            self.asked.pop().set_result(response.event)
        if emits and not emits_first:
            self.emit("generation_created", response.event)
        return response

    def measured(self, metrics: Any) -> None:
        """Metrics for the tap alone: the framework's own listener takes its own class only, which
        differs between releases."""
        listeners = self._events.pop("metrics_collected", None)
        try:
            self.emit("metrics_collected", metrics)
        finally:
            if listeners is not None:
                self._events["metrics_collected"] = listeners

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return self.context.copy()

    @property
    def tools(self) -> llm.ToolContext:
        return llm.ToolContext.empty()

    async def update_instructions(self, instructions: str) -> None:
        self.note("instructions", instructions)

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        self.note("context", [item.id for item in chat_ctx.items if item.type == "message"])
        await asyncio.sleep(0)
        if self.refuses:
            raise llm.RealtimeError("refused")
        self.context = chat_ctx.copy()

    async def update_tools(self, tools: list[Any]) -> None:
        self.note("tools", len(tools))

    def update_options(self, **kwargs: Any) -> None:
        self.note("options", sorted(kwargs))

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        return None

    def push_video(self, frame: Any) -> None:
        return None

    def generate_reply(self, **kwargs: Any) -> asyncio.Future[Any]:
        self.note("reply", sorted(kwargs))
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append(future)
        return future

    def commit_audio(self) -> None:
        self.note("commit")

    def clear_audio(self) -> None:
        self.note("clear")

    def interrupt(self) -> None:
        self.note("interrupt")
        if self.on_cancel is not None:
            self.on_cancel()

    def truncate(
        self, *, message_id: str, audio_end_ms: int, modalities: Any = None, **kwargs: Any
    ) -> None:
        self.note("truncate", message_id, audio_end_ms, modalities, sorted(kwargs))

    async def aclose(self) -> None:
        self.note("close")


__all__ = ["RATE", "Message", "Model", "Response", "Session"]


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


class Broken(Exception):  # noqa: N818 - a name to be seen, not a kind of error
    """Something of the user's own went wrong."""


def failure(call: Callable[[], Any]) -> str:
    """Name of what the call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return ""
