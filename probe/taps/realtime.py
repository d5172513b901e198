"""The tap on realtime models: responses, their messages, cancels, and both sides' conversations.

A provider commits a message when it creates it; the agent plays it later, or never. So everything
is taken from what passes anyway: the events of the model's session, the calls made on it, and the
streams of a response as the agent reads them. Nothing is read that the agent has not read. What
lies unread is counted where the stream lets its length be seen.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic_ns
from typing import Any

from probe import compat
from probe.taps.patches import InstancePatch
from probe.taps.realtime_streams import watch_of, watched
from probe.trace.events import (
    CallEnd,
    CancelSent,
    ContextSeen,
    ContextSent,
    ContextSide,
    CountedAt,
    GenerationCounted,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    MessagePulled,
    MessageSeen,
    RealtimeEnd,
    RealtimeTapped,
    RealtimeUntapped,
    ResponseCreated,
    ResponseEnded,
    TruncateSent,
)

__all__ = ["RealtimeTap"]

Put = Callable[[Any], None]
Fault = Callable[[str, str], None]

RUN_NS = 200_000_000
"""Longest stretch of audio told in one event."""

_OVER_KEPT = 64
"""Responses that are over and whose metrics may still come."""


class RealtimeTap:
    """All realtime sessions of one agent session, one after the other as agents take over.

    Every method is called on the session's loop, but for `remove`.
    """

    def __init__(self, session: Any, put: Put, fault: Fault) -> None:
        self._session = session
        self._put = put
        self._fault = fault
        self._realtime: Any = None
        self._taps: dict[int, _Tapped] = {}
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._responses = itertools.count(1)
        self._flowing: dict[_Message, None] = {}
        self._local = _Side()
        self._brought: list[tuple[str, str]] = []
        self.created: set[str] = set()
        """Messages that one of the providers created."""
        self.own: set[str] = set()
        """Items of the providers' conversations that they did not create."""
        self.removed = False

    # -- on and off --

    def look(self) -> None:
        """Tap the realtime session that is in use now, if there is one and it is not tapped."""
        realtime = compat.realtime_session(self._session)
        if realtime is not self._realtime and not self.removed:
            self._realtime = realtime
            if realtime is not None:
                self.attempt("install", self._install, realtime)

    def _install(self, realtime: Any) -> None:
        if realtime in self._numbers:
            return
        number = self._numbers.setdefault(realtime, len(self._numbers) + 1)
        tapped = self._taps[id(realtime)] = _Tapped(self, realtime, number)
        at_ns = monotonic_ns()
        self.put(RealtimeTapped(at_ns, number, **compat.realtime_traits(realtime)))
        tapped.install()
        tapped.look_at_server(at_ns)
        self.look_at_history(at_ns)

    def release(self, tapped: _Tapped, reason: str) -> None:
        """Take one of them off."""
        at_ns = monotonic_ns()
        self._taps.pop(id(tapped.realtime), None)
        tapped.remove()
        for response in tapped.live:
            self.attempt("count", tapped.count, response, at_ns, "detached")
        self.attempt("context", tapped.look_at_server, at_ns)
        self.put(RealtimeUntapped(at_ns, tapped.number, reason))

    def remove(self) -> None:
        """Take everything off; idempotent, from any thread. Streams that are being read stay
        readable."""
        if self.removed:
            return
        any_tapped = bool(self._numbers)
        for tapped in list(self._taps.values()):
            self.attempt("remove", tapped.announce_all)
            self.attempt("remove", self.release, tapped, "detached")
        for message in list(self._flowing):
            message.flush()
        if any_tapped:
            self.attempt("history", self.look_at_history, monotonic_ns())
        self.removed = True

    # -- what the session's own tap saw --

    def beat(self) -> None:
        """A hundred times a second: what ends or comes without a call."""
        self.look()
        for tapped in list(self._taps.values()):
            if tapped.live:
                self.attempt("beat", tapped.beat)
        if self._flowing:
            due_ns = monotonic_ns() - RUN_NS
            for message in [known for known in self._flowing if known.began_ns <= due_ns]:
                message.flush()

    def speech_created(self, speech: str) -> None:
        """The session made a speech handle."""
        for tapped in self._taps.values():
            tapped.speech_created(speech)

    def speech_committed(self, speech: str, at_ns: int) -> None:
        """A speech is about to be told as interrupted; ``at_ns`` is its commit."""
        for tapped in list(self._taps.values()):
            self.attempt("commit", tapped.count_all, at_ns, "interrupt")

    def speech_done(self, speech: str, at_ns: int) -> None:
        """A speech is done, and was told."""
        for tapped in list(self._taps.values()):
            self.attempt("speech done", tapped.speech_done, speech, at_ns)
            current = tapped.realtime is self._realtime
            self.attempt(
                "context", functools.partial(tapped.look_at_server, at_ns, speech, always=current)
            )
        if self._numbers:
            self.attempt(
                "context", functools.partial(self.look_at_history, at_ns, speech, always=True)
            )

    # -- for the parts --

    def put(self, event: Any) -> None:
        """Write an event, unless the tap is off."""
        if not self.removed:
            self._put(event)

    def attempt(self, where: str, step: Callable[..., Any], *args: Any) -> Any:
        """``step(*args)``, or None where it fails: that is a fault and never an exception."""
        try:
            return step(*args)
        except Exception as error:
            self.failed(where, error)
            return None

    def failed(self, where: str, error: BaseException) -> None:
        """Note that the tap failed at something."""
        self._fault("tap_raised", f"realtime {where}: {type(error).__name__}")

    def next_response(self) -> int:
        """Number for a response, from 1 over all realtime sessions."""
        return next(self._responses)

    def asking_speech(self) -> str | None:
        """Id of the speech that calls the model now."""
        speech: str | None = self.attempt("speech", compat.asking_speech, self._session)
        return speech

    def flows(self, message: _Message) -> None:
        """Audio of the message waits to be written."""
        self._flowing[message] = None

    def settled(self, message: _Message) -> None:
        """No audio of the message waits any more."""
        self._flowing.pop(message, None)

    def has_locally(self, item: str) -> bool:
        """Whether the agent's side has an item of that id, in whatever place."""
        history = compat.local_items(self._session) or []
        agents = compat.agent_items(self._session) or []
        return any(known == item for known, _ in [*history, *agents])

    def look_at_history(
        self, at_ns: int, speech: str | None = None, *, always: bool = False
    ) -> None:
        """Write what changed on the agent's side: in the history, and before it in what an agent
        brought along, which no history has."""
        items = compat.local_items(self._session)
        agents = compat.agent_items(self._session)
        if agents is not None:
            self._brought = [entry for entry in agents if entry[0] in self.own]
        if items is not None:
            known = dict(items)
            items = [*(entry for entry in self._brought if entry[0] not in known), *items]
        seen = self._local.look(at_ns, "local", items, speech, always)
        if seen is not None:
            self.put(seen)


class _Side:
    """One side of the conversation as it was at the last look."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    def look(
        self,
        at_ns: int,
        side: ContextSide,
        items: list[tuple[str, str]] | None,
        speech: str | None,
        always: bool,
        session: int | None = None,
    ) -> ContextSeen | None:
        """What changed; None where there is nothing to tell, or nothing could be seen."""
        if items is None:
            return None
        before, self.items = self.items, dict(items)
        added = [(item, role) for item, role in self.items.items() if item not in before]
        removed = [item for item in before if item not in self.items]
        if not added and not removed and not always:
            return None
        return ContextSeen(at_ns, side, added, removed, session, speech)


class _Message:
    """A message of a response: who reads its audio, how much of it there is."""

    def __init__(self, tap: RealtimeTap, response: _Response, id_: str, audio: Any) -> None:
        self._tap = tap
        self._response = response
        self._audio = audio
        self.id = id_
        self.read_samples = 0
        self.rate_hz: int | None = None
        self._opened = False
        self._ended = False
        self._end_told = False
        self._first = True
        self._frames = 0
        self._samples = 0
        self._channels = 1
        self.began_ns = 0
        self._last_ns = 0

    def watch(self, message: Any) -> None:
        """Look on as the audio of ``message`` is read."""
        if watch_of(message.audio_stream) is not self:
            message.audio_stream = watched(message.audio_stream, self)

    def opened(self) -> None:
        if not self._opened and not self._tap.removed:
            self._opened = True
            self._tap.attempt("open", self._open)

    reading = opened

    def _open(self) -> None:
        speech = self._response.speech or self._tap.asking_speech()
        self._tap.put(MessageOpened(monotonic_ns(), self.id, speech))

    def passed(self, item: Any) -> None:
        if self._tap.removed:
            return
        now = monotonic_ns()
        try:
            samples, rate = item.samples_per_channel, item.sample_rate
            if self._frames and (rate != self.rate_hz or item.num_channels != self._channels):
                self.flush()
            self.read_samples += samples
            if not self._frames:
                self.rate_hz = rate
                self._channels = item.num_channels
                self.began_ns = now
                self._tap.flows(self)
            self._frames += 1
            self._samples += samples
            self._last_ns = now
            if self._first or now - self.began_ns >= RUN_NS:
                self._first = False
                self.flush()
        except Exception as error:
            self._tap.failed("audio", error)

    def stopped(self, error: BaseException) -> None:
        self._tap.attempt("audio", self._stop, error)

    def _stop(self, error: BaseException) -> None:
        if not self._ended and compat.ends_stream(error):
            self._ended = True
            self.flush()

    def flush(self) -> None:
        """Write the audio read since the last time, and the end once it was seen."""
        end_told = self._end_told or not self._ended
        if self.rate_hz is not None and (self._frames or not end_told):
            if not self._frames:
                self.began_ns = self._last_ns = monotonic_ns()
            self._end_told = self._ended
            self._tap.put(
                MessageAudio(
                    self.began_ns, self._last_ns, self.id, self._frames, self._samples,
                    self.rate_hz, self._channels, self._ended,
                )
            )  # fmt: skip
        self._frames = self._samples = 0
        self._tap.settled(self)

    def count(self, at_ns: int, why: CountedAt) -> GenerationCounted:
        """How much audio of it there is; the stream's own frames are looked at, none is taken."""
        unread: int | None = 0
        waiting = () if self._ended else compat.unread(self._audio)
        if waiting is None:
            unread = None
        elif waiting:
            frames = list(waiting)
            unread = sum(frame.samples_per_channel for frame in frames)
            self.rate_hz = self.rate_hz or frames[0].sample_rate
        return GenerationCounted(
            at_ns, self._response.number, self.id, self.read_samples, unread, self.rate_hz, why
        )


class _Response:
    """A response: its messages, and whether the provider is done with it."""

    def __init__(self, tapped: _Tapped, event: Any, number: int, at_ns: int) -> None:
        self.tapped = tapped
        self.event = event
        self.stream = event.message_stream
        self.number = number
        self.at_ns = at_ns
        self.id: str | None = getattr(event, "response_id", None)
        self.user_initiated: bool | None = getattr(event, "user_initiated", None)
        self.speech: str | None = None
        self.messages: dict[str, _Message] = {}
        self.known_unread = 0
        self.announced = False
        self.ended = False
        self.speech_over = False
        self._readers = 0

    @property
    def under_way(self) -> bool:
        """Whether it was created and has not ended. Where its stream can't be asked, nobody reads
        it and its speech is over, or no speech took it, nobody will see it end, and it counts as
        ended."""
        if self.ended:
            return False
        seen = self._readers > 0 or compat.stream_closed(self.stream) is not None
        return seen or not (self.speech_over or self.untaken)

    @property
    def untaken(self) -> bool:
        """Whether the session took no notice of it."""
        return self.announced and self.speech is None

    def opened(self) -> None:
        """Nothing: some releases begin to read long before they play."""

    def reading(self) -> None:
        self._readers += 1

    def passed(self, item: Any) -> None:
        self._readers -= 1
        self.tapped.tap.attempt("pull", self.tapped.pulled, self, item)

    def stopped(self, error: BaseException) -> None:
        self._readers -= 1
        self.tapped.tap.attempt("end", self._stop, error)

    def _stop(self, error: BaseException) -> None:
        if compat.ends_stream(error):
            self.tapped.end(self, monotonic_ns(), "stream")


class _Tapped:
    """One realtime session."""

    def __init__(self, tap: RealtimeTap, realtime: Any, number: int) -> None:
        self.tap = tap
        self.realtime = realtime
        self.number = number
        self.live: list[_Response] = []
        """Responses under way, and ended ones whose speech is not done."""
        self._over: deque[tuple[str | None, int]] = deque(maxlen=_OVER_KEPT)
        self._asked: list[tuple[Any, str | None]] = []
        self._emitting: list[_Response] = []
        self._created: set[str] = set()
        self._server = _Side()
        self._looked = False
        self._patches: list[InstancePatch] = []
        self._removed = False

    # -- on and off --

    def install(self) -> None:
        """Put a replacement for each of the calls on the instance."""
        for name, make in (
            ("emit", self._emit),
            ("generate_reply", self._ask),
            ("say", self._ask),
            ("interrupt", self._interrupt),
            ("truncate", self._truncate),
            ("update_chat_ctx", self._update_context),
            ("aclose", self._close),
        ):
            original = getattr(self.realtime, name, None)
            if callable(original):
                self.tap.attempt(name, self._patch, name, original, make)

    def _patch(
        self,
        name: str,
        original: Callable[..., Any],
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        replacement = functools.wraps(original)(make(original))
        self._patches.append(InstancePatch(self.realtime, name, replacement))

    def remove(self) -> None:
        """Give the instance its own methods back."""
        self._removed = True
        for patch in reversed(self._patches):
            patch.undo()
        self._patches = []
        for future, _ in self._asked:
            future.remove_done_callback(self._answered)
        self._asked = []

    def _attempt(self, where: str, step: Callable[..., Any], *args: Any) -> Any:
        return None if self._removed else self.tap.attempt(where, step, *args)

    # -- the calls --

    def _emit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        hear = {
            "generation_created": self._heard_response,
            "remote_item_added": self._heard_item,
            "metrics_collected": self._heard_metrics,
        }

        def emit(*args: Any, **kwargs: Any) -> Any:
            heard = hear.get(args[0]) if len(args) > 1 else None
            if heard is None:
                return original(*args, **kwargs)
            response = self._attempt(str(args[0]), heard, args[1], monotonic_ns())
            try:
                return original(*args, **kwargs)
            finally:
                if response is not None:
                    self._attempt("response", self._listened, response)

        return emit

    def _ask(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*args: Any, **kwargs: Any) -> Any:
            speech = self._attempt("reply", self.tap.asking_speech)
            future = original(*args, **kwargs)
            self._attempt("reply", self._await_answer, future, speech)
            return future

        return ask

    def _interrupt(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def interrupt(*args: Any, **kwargs: Any) -> Any:
            sending = self._attempt("cancel", self._cancelling, monotonic_ns())
            return self._told(original, args, kwargs, sending)

        return interrupt

    def _truncate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def truncate(*args: Any, **kwargs: Any) -> Any:
            at_ns = monotonic_ns()
            sending = self._attempt("truncate", self._truncating, original, args, kwargs, at_ns)
            return self._told(original, args, kwargs, sending)

        return truncate

    def _told(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        sending: Callable[[CallEnd], Any] | None,
    ) -> Any:
        """Forward a call, and write how it ended."""
        end: CallEnd = "returned"
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            end = _end_of(error)
            raise
        finally:
            if sending is not None:
                self._attempt("call", lambda: self.tap.put(sending(end)))

    def _update_context(self, original: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.iscoroutinefunction(original):
            # a plugin that answers with a future: how it ends is then left open
            def update(*args: Any, **kwargs: Any) -> Any:
                sending = self._attempt("context", self._sending_context, args, kwargs)
                return self._told(original, args, kwargs, sending)

            return update

        async def update_chat_ctx(*args: Any, **kwargs: Any) -> Any:
            sending = self._attempt("context", self._sending_context, args, kwargs)
            end: CallEnd = "returned"
            name: str | None = None
            try:
                return await original(*args, **kwargs)
            except BaseException as error:
                end, name = _end_of(error), type(error).__name__
                raise
            finally:
                if sending is not None:
                    self._attempt("context", self._sent_context, sending, end, name)

        return update_chat_ctx

    def _close(self, original: Callable[..., Any]) -> Callable[..., Any]:
        async def aclose(*args: Any, **kwargs: Any) -> Any:
            try:
                return await original(*args, **kwargs)
            finally:
                self._attempt("close", self.tap.release, self, "closed")

        return aclose

    # -- responses --

    def _heard_response(self, event: Any, at_ns: int) -> _Response | None:
        if self._find(event) is not None:
            return None
        response = self._begin(event, at_ns)
        self._emitting.append(response)
        for future, speech in self._asked:
            if compat.result_of(future) is event:
                response.speech = speech
        return response

    def _listened(self, response: _Response) -> None:
        """The listeners have heard of the response: a speech they made for it is known."""
        self._emitting.remove(response)
        if response.speech is not None or not response.user_initiated:
            self._announce(response)

    def speech_created(self, speech: str) -> None:
        """A speech made while the listeners hear of a response is the one that plays it."""
        for response in self._emitting:
            if response.speech is None and not response.user_initiated:
                response.speech = speech

    def _await_answer(self, future: Any, speech: str | None) -> None:
        if not hasattr(future, "add_done_callback"):
            return
        self._asked.append((future, speech))
        if future.done():
            self._answered(future)
        else:
            future.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        """``generate_reply`` has its answer: the same event that was emitted, or the only one."""
        self._attempt("reply", self._take_answer, future)

    def _take_answer(self, future: Any) -> None:
        speech = next((speech for known, speech in self._asked if known is future), None)
        self._asked = [entry for entry in self._asked if entry[0] is not future]
        event = compat.result_of(future)
        if event is None:
            return
        response = self._find(event) or self._begin(event, monotonic_ns())
        if not response.announced:
            response.speech = response.speech or speech
            self._announce(response)

    def _find(self, event: Any) -> _Response | None:
        watch = watch_of(event.message_stream)
        if isinstance(watch, _Response) and watch.tapped is self:
            return watch
        return next((response for response in self.live if response.event is event), None)

    def _begin(self, event: Any, at_ns: int) -> _Response:
        self.look_at_server(at_ns)
        self.tap.look_at_history(at_ns)
        response = _Response(self, event, self.tap.next_response(), at_ns)
        self.live.append(response)
        self.tap.attempt("message stream", self._watch, response)
        return response

    def _watch(self, response: _Response) -> None:
        response.event.message_stream = watched(response.stream, response)

    def _announce(self, response: _Response) -> None:
        if response.announced:
            return
        response.announced = True
        self.tap.put(
            ResponseCreated(
                response.at_ns, response.number, self.number, response.id, response.speech,
                response.user_initiated,
            )
        )  # fmt: skip

    def announce_all(self) -> None:
        """Write of each response that it was created, with what is known of its speech by now."""
        waiting = [response for response in self.live if not response.announced]
        for response in waiting:
            if response in self._emitting:
                # its speech is being made
                continue
            if response.speech is None and len(waiting) == len(self._asked) == 1:
                response.speech = self._asked[0][1]
            self._announce(response)

    def end(
        self, response: _Response, at_ns: int, by: RealtimeEnd, cancelled: bool | None = None
    ) -> None:
        """The provider ended the response."""
        if response.ended:
            return
        self.announce_all()
        response.ended = True
        self.tap.put(ResponseEnded(at_ns, response.number, by, cancelled))
        self.count(response, at_ns, "ended")
        self._let_go()

    def _let_go(self) -> None:
        """Of responses that are over on both sides nothing but the metrics may still come."""
        over = [
            response
            for response in self.live
            if not response.under_way and (response.speech_over or response.untaken)
        ]
        self._over.extend((response.id, response.number) for response in over if response.id)
        self.live = [response for response in self.live if response not in over]

    def _heard_metrics(self, metrics: Any, at_ns: int) -> None:
        id_ = getattr(metrics, "request_id", None)
        cancelled = getattr(metrics, "cancelled", None)
        if not id_:
            return
        for response in self.live:
            if response.id == id_ and not response.ended:
                self.end(response, at_ns, "metrics", cancelled)
                return
        known = [(response.id, response.number) for response in self.live]
        number = dict([*self._over, *known]).get(id_)
        if number is not None:
            self.tap.put(ResponseEnded(at_ns, number, "metrics", cancelled))

    def refresh(self, at_ns: int) -> None:
        """See which responses have ended by now."""
        for response in self.live:
            self._see_end(response, at_ns)

    def _see_end(self, response: _Response, at_ns: int) -> None:
        if not response.ended and compat.stream_closed(response.stream):
            self.end(response, at_ns, "closed")

    def beat(self) -> None:
        """See what ended and what came, without a call to tell."""
        self.announce_all()
        over = False
        for response in self.live:
            self._see_end(response, monotonic_ns())
            waiting = compat.unread(response.stream)
            if waiting is not None and len(waiting) != response.known_unread:
                self._find_messages(response)
            over = over or response.speech_over
        if over:
            self._let_go()

    def speech_done(self, speech: str, at_ns: int) -> None:
        """A speech is done: count, and let go of what is over."""
        self.count_all(at_ns, "speech_done")
        for response in self.live:
            if response.speech == speech:
                response.speech_over = True
        self._let_go()

    # -- messages --

    def pulled(self, response: _Response, item: Any) -> None:
        """The agent took a message from the stream of the response."""
        if self._removed:
            return
        at_ns = monotonic_ns()
        self.announce_all()
        if not response.ended and response not in self.live:
            # nobody took it, and somebody reads it after all
            self.live.append(response)
        message = self._message(response, item)
        self._create(at_ns, message.id, response.number, "stream")
        self.tap.put(MessagePulled(at_ns, message.id, response.number))
        message.watch(item)

    def _message(self, response: _Response, item: Any) -> _Message:
        id_ = str(item.message_id)
        message = response.messages.get(id_)
        if message is None:
            message = _Message(self.tap, response, id_, item.audio_stream)
            response.messages[id_] = message
        return message

    def _find_messages(self, response: _Response) -> None:
        """Look for messages that lie unread in the stream of the response."""
        waiting = list(compat.unread(response.stream) or ())
        response.known_unread = len(waiting)
        for item in waiting:
            if getattr(item, "message_id", None) is not None:
                message = self._message(response, item)
                self._create(monotonic_ns(), message.id, response.number, "stream")

    def _create(self, at_ns: int, message: str, response: int | None, by: MessageSeen) -> None:
        if message not in self._created:
            self._created.add(message)
            self.tap.created.add(message)
            self.tap.put(MessageCreated(at_ns, message, response, by))

    def _owner(self, message: str) -> int | None:
        """Number of the response a message belongs to, or None where it can't be told."""
        for response in self.live:
            waiting = list(compat.unread(response.stream) or ())
            if message in response.messages or any(
                getattr(item, "message_id", None) == message for item in waiting
            ):
                return response.number
        under_way = [response.number for response in self.live if response.under_way]
        return under_way[0] if len(under_way) == 1 else None

    def _heard_item(self, event: Any, at_ns: int) -> None:
        item = event.item
        id_ = str(item.id)
        known = id_ in self.tap.created or id_ in self.tap.own
        if getattr(item, "role", None) != "assistant" or known or self.tap.has_locally(id_):
            return
        self.announce_all()
        self._create(at_ns, id_, self._owner(id_), "event")

    def count_all(self, at_ns: int, why: CountedAt) -> None:
        """Count the audio of all messages that may still grow, or be told of."""
        self.announce_all()
        self.refresh(at_ns)
        for response in self.live:
            self.count(response, at_ns, why)

    def count(self, response: _Response, at_ns: int, why: CountedAt) -> None:
        """Count the audio of all messages of the response, those that lie unread too."""
        self._find_messages(response)
        for message in response.messages.values():
            message.flush()
            self.tap.put(message.count(at_ns, why))

    # -- what is sent --

    def _cancelling(self, at_ns: int) -> Callable[[CallEnd], CancelSent]:
        self.count_all(at_ns, "cancel")
        hits = [response.number for response in self.live if response.under_way]
        return functools.partial(CancelSent, at_ns, self.number, self.tap.asking_speech(), hits)

    def _truncating(
        self,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        at_ns: int,
    ) -> Callable[[CallEnd], TruncateSent] | None:
        given = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        given = {**given, **given.get("kwargs", {})}
        if not {"message_id", "audio_end_ms"} <= given.keys():
            # the call is about to fail, for whoever made it
            return None
        return functools.partial(
            TruncateSent, at_ns, self.number, str(given["message_id"]), int(given["audio_end_ms"])
        )

    def _sending_context(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[..., ContextSent] | None:
        at_ns = monotonic_ns()
        self.look_at_server(at_ns)
        items = getattr(args[0] if args else kwargs.get("chat_ctx"), "items", None)
        if items is None:
            # the call is about to fail, for whoever made it
            return None
        sent = [str(item.id) for item in items]
        wanted, known = set(sent), self._server.items
        adds = [item for item in sent if item not in known]
        removes = [item for item in known if item not in wanted]
        self._not_created(adds)
        return functools.partial(ContextSent, at_ns, self.number, len(sent), adds, removes)

    def _sent_context(
        self, sending: Callable[..., ContextSent], end: CallEnd, error: str | None
    ) -> None:
        ended_ns = monotonic_ns()
        self.tap.put(sending(end, ended_ns, error))
        self.look_at_server(ended_ns)

    def _not_created(self, items: Iterable[str]) -> None:
        self.tap.own.update(item for item in items if item not in self.tap.created)

    def look_at_server(
        self, at_ns: int, speech: str | None = None, *, always: bool = False
    ) -> None:
        """Write what changed in the provider's conversation."""
        items = compat.server_items(self.realtime)
        seen = self._server.look(at_ns, "server", items, speech, always, self.number)
        if not self._looked and items is not None:
            self._looked = True
            self._not_created(item for item, _ in items)
        if seen is None:
            return
        for item, role in seen.added:
            known = item in self.tap.created or item in self.tap.own
            if role == "assistant" and not known:
                self._create(at_ns, item, self._owner(item), "context")
        self.tap.put(seen)


def _end_of(error: BaseException) -> CallEnd:
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "raised"
