"""The realtime model of a scripted call: an agent's side of a session, and a server inside it.

The server keeps a conversation of its own and commits each message to it when it creates it, as
hosted models do, long before the agent plays it. Everything is a public base class of LiveKit with
the network left out; what the session makes of it is the session's own decision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, ClassVar, Final

from livekit import rtc
from livekit.agents import Agent, AgentTask, llm, utils, vad

from probe.scenarios import releases
from probe.scenarios.models import Activity
from probe.scenarios.scenario import RealtimeOptions
from probe.scenarios.voice import Reply, Voice

_HELD: Final = ("message", "function_call", "function_call_output")
"""Kinds of items a server keeps; the others are the agent's own notes."""

Listener = Callable[["Response"], None]


class Message:
    """A message of a response: what the server has of it."""

    def __init__(self, number: int) -> None:
        self.id = f"message_{number}"
        self.words = f"This is message {number} of the call."
        self.text: Any = utils.aio.Chan()
        self.audio: Any = utils.aio.Chan()
        self.frames = 0
        """Generated so far."""

    @property
    def untouched(self) -> bool:
        """Whether nobody has taken any of its audio."""
        return bool(self.frames == self.audio.qsize())

    def close(self) -> None:
        for stream in (self.text, self.audio):
            stream.close()


class Response:
    """A response of the server."""

    def __init__(self, number: int, *, asked: bool) -> None:
        self.id = f"response_{number}"
        self.asked = asked
        """Whether the agent asked for it; else the server began it of its own accord."""
        self.began_unix_s = time.time()
        self.created: list[Message] = []
        self.messages: Any = utils.aio.Chan()
        self.functions: Any = utils.aio.Chan()
        self.task: asyncio.Task[None] | None = None
        self.cancelled = False
        self.ended = False

    def end(self) -> None:
        self.ended = True
        self.messages.close()
        self.functions.close()


class ScriptedModel(llm.RealtimeModel):
    """The model. Its sessions share the voice, so what they say has one order."""

    session_class: ClassVar[type[ScriptedSession]]

    def __init__(
        self,
        options: RealtimeOptions,
        voice: Voice,
        changed: Callable[[], None],
        began: Listener,
        *,
        hears: bool = True,
    ) -> None:
        """``changed`` is called as a message is created and as a response ends, ``began`` once the
        agent was told of a response. ``hears``: whether the server reports by itself that the
        caller speaks; else only when `ScriptedSession.report_speech` is called."""
        capabilities = releases.realtime_capabilities(detects_turns=options.detects_turns)
        super().__init__(capabilities=capabilities)
        self.options = options
        self.voice = voice
        self.changed = changed
        self.began = began
        self.hears = hears and options.detects_turns
        self.sessions: list[Any] = []
        self.calls: list[tuple[Any, ...]] = []
        """What the agent called, in order: name and what matters of the arguments."""
        self._numbers = {"message": 0, "response": 0}

    def number(self, kind: str) -> int:
        """The next number of a message or a response, from 1."""
        self._numbers[kind] += 1
        return self._numbers[kind]

    def session(self, **_: Any) -> Any:
        session = type(self).session_class(self)
        self.sessions.append(session)
        return session

    async def aclose(self) -> None:
        return None


class ScriptedSession(llm.RealtimeSession[Any]):
    """A session with the model, and its server."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self._model = model
        self._conversation = llm.ChatContext.empty()
        self._tools = llm.ToolContext.empty()
        self._responses: list[Response] = []
        self._activity = Activity()
        self._deferred: list[asyncio.TimerHandle] = []

    # -- what the agent calls --

    @property
    def chat_ctx(self) -> llm.ChatContext:
        return self._conversation.copy()

    @property
    def tools(self) -> llm.ToolContext:
        return self._tools.copy()

    async def update_instructions(self, instructions: str) -> None:
        self._called("update_instructions")

    async def update_tools(self, tools: list[Any]) -> None:
        self._called("update_tools")
        self._tools = llm.ToolContext(tools)

    def update_options(self, **_: Any) -> None:
        self._called("update_options")

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        wanted = [item for item in chat_ctx.items if _is_held(item)]
        self._called("update_chat_ctx", tuple(_told(item) for item in wanted))
        await asyncio.sleep(0)  # the way to the server and back
        held = {item.id: item for item in self._conversation.items}
        self._conversation.items[:] = [held.get(item.id, item) for item in wanted]
        for place, item in enumerate(wanted):
            if item.id not in held:
                self._report_added(item, wanted[place - 1].id if place else None)

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        if not self._model.hears:
            return
        for event in self._activity.take(frame):
            if event.type == vad.VADEventType.START_OF_SPEECH:
                self.report_speech()
            elif event.type == vad.VADEventType.END_OF_SPEECH:
                self.report_silence()

    def push_video(self, frame: rtc.VideoFrame) -> None:
        return None

    def generate_reply(self, **_: Any) -> asyncio.Future[llm.GenerationCreatedEvent]:
        self._called("generate_reply")
        loop = asyncio.get_running_loop()
        told: asyncio.Future[llm.GenerationCreatedEvent] = loop.create_future()
        loop.call_soon(self._begin, told)
        return told

    def commit_audio(self) -> None:
        self._called("commit_audio")

    def clear_audio(self) -> None:
        self._called("clear_audio")

    def interrupt(self) -> None:
        self._called("interrupt")
        hit = [response for response in self._responses if not response.ended]
        self._later(self._model.options.cancel_ms, lambda: self._cancel(hit))

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Any],
        audio_end_ms: int,
        audio_transcript: Any = "",
    ) -> None:
        self._called("truncate", message_id, audio_end_ms)
        item = self._conversation.get_by_id(message_id)
        if isinstance(item, llm.ChatMessage):
            item.content = [audio_transcript or ""]

    async def aclose(self) -> None:
        for deferred in self._deferred:
            deferred.cancel()
        tasks = [response.task for response in self._responses if response.task is not None]
        await utils.aio.cancel_and_wait(*tasks)

    # -- what the server does --

    def respond(self) -> None:
        """The server begins a response of its own accord."""
        self._begin(None)

    def report_speech(self) -> None:
        """The server reports that the caller speaks."""
        self.emit("input_speech_started", llm.InputSpeechStartedEvent())

    def report_silence(self) -> None:
        """The server reports that the caller has stopped."""
        event = llm.InputSpeechStoppedEvent(user_transcription_enabled=False)
        self.emit("input_speech_stopped", event)

    def report_words(self, words: str) -> None:
        """The server commits what the caller said, and reports it."""
        item = llm.ChatMessage(role="user", content=[words])
        self._append(item)
        event = llm.InputTranscriptionCompleted(item_id=item.id, transcript=words, is_final=True)
        self.emit("input_audio_transcription_completed", event)

    def _begin(self, told: asyncio.Future[Any] | None) -> None:
        if told is not None and told.cancelled():
            return  # the agent no longer wants it
        response = Response(self._model.number("response"), asked=told is not None)
        self._responses.append(response)
        event = llm.GenerationCreatedEvent(
            message_stream=self._stream(response.messages),
            function_stream=self._stream(response.functions),
            user_initiated=response.asked,
            response_id=response.id,
        )
        self.emit("generation_created", event)
        if told is not None and not told.done():
            told.set_result(event)
        self._model.began(response)
        # What it says is settled now: the next reply may begin while it is being generated.
        response.task = asyncio.create_task(self._generate(response, self._model.voice.reply))
        # Not in the task itself: one that is cancelled at once never runs.
        response.task.add_done_callback(lambda _: self._end(response))

    async def _generate(self, response: Response, reply: Reply) -> None:
        while reply.lengths_ms:
            message = self._create_message(response)
            async with aclosing(self._model.voice.speak(reply)) as frames:
                async for frame in frames:
                    message.frames += 1
                    message.audio.send_nowait(frame)
            self._finish(message)

    def _create_message(self, response: Response) -> Message:
        message = Message(self._model.number("message"))
        response.created.append(message)
        # Committed as it begins, and empty as yet.
        self._append(llm.ChatMessage(id=message.id, role="assistant", content=[]))
        if words := self._words(message):
            message.text.send_nowait(words)
        modalities: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        modalities.set_result(["audio", "text"])
        response.messages.send_nowait(
            llm.MessageGeneration(
                message_id=message.id,
                text_stream=self._stream(message.text),
                audio_stream=self._stream(message.audio),
                modalities=modalities,
            )
        )
        self._model.changed()
        return message

    def _cancel(self, responses: list[Response]) -> None:
        for response in responses:
            if not response.ended and response.task is not None:
                response.cancelled = True
                response.task.cancel()

    def _words(self, message: Message) -> str:
        """What the message says."""
        return message.words

    def _finish(self, message: Message) -> None:
        message.close()
        item = self._conversation.get_by_id(message.id)
        if isinstance(item, llm.ChatMessage) and not item.content:
            item.content = [self._words(message)]

    def _end(self, response: Response) -> None:
        for message in response.created:
            self._finish(message)
        response.end()
        metrics = releases.realtime_metrics(
            label=self._model.label,
            request_id=response.id,
            timestamp=response.began_unix_s,
            duration=time.time() - response.began_unix_s,
            cancelled=response.cancelled,
        )
        if metrics is not None:
            self.emit("metrics_collected", metrics)
        self._model.changed()

    def _append(self, item: Any) -> None:
        items = self._conversation.items
        before = items[-1].id if items else None
        items.append(item)
        self._report_added(item, before)

    def _report_added(self, item: Any, before: str | None) -> None:
        event = llm.RemoteItemAddedEvent(previous_item_id=before, item=item)
        self.emit("remote_item_added", event)

    def _drop(self, item_id: str) -> None:
        items = self._conversation.items
        items[:] = [item for item in items if item.id != item_id]

    def _stream(self, channel: Any) -> Any:
        return channel if self._model.options.streams == "channel" else _read(channel)

    def _later(self, ms: int, act: Callable[[], None]) -> None:
        self._deferred.append(asyncio.get_running_loop().call_later(ms / 1000, act))

    def _called(self, name: str, *told: Any) -> None:
        self._model.calls.append((name, *told))


ScriptedModel.session_class = ScriptedSession


async def _read(channel: Any) -> AsyncIterator[Any]:
    async for item in channel:
        yield item


def _is_held(item: Any) -> bool:
    return item.type in _HELD and getattr(item, "role", "") not in ("system", "developer")


def _told(item: Any) -> str:
    """An item by what is the same in every run of a call."""
    named = item.id if item.id.startswith("message_") else getattr(item, "role", item.type)
    return str(named)


class ScriptedTask(AgentTask[None]):
    """Has the floor until it is told to give it back."""

    def __init__(self) -> None:
        super().__init__(instructions="A scripted task.")


class RealtimeAgent(Agent):
    """Says what the realtime model says, inside a task if the call wants one."""

    def __init__(self, *, in_task: bool) -> None:
        super().__init__(instructions="A scripted agent.")
        self._in_task = in_task
        self.task: ScriptedTask | None = None
        self.back = False
        """Whether it has the floor again after the task."""

    async def on_enter(self) -> None:
        if self._in_task and self.task is None:
            self.task = ScriptedTask()
            await self.task
            self.back = True
