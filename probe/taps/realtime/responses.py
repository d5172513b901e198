"""The responses of one realtime session: who plays each, what it is made of, when it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from probe import compat
from probe.taps.realtime.message import Message
from probe.taps.realtime.response import Response
from probe.taps.realtime.shared import Shared
from probe.taps.realtime.streams import watch_of
from probe.trace.events import (
    CountedAt,
    MessageCreated,
    MessagePulled,
    MessageSeen,
    RealtimeEnd,
    ResponseCreated,
    ResponseEnded,
)

__all__ = ["Responses"]

OVER_KEPT: Final = 64
"""Responses that are over and whose metrics may still come."""


class Responses:
    """All of them, from the first sight to the end on both sides."""

    def __init__(self, shared: Shared, session: int) -> None:
        """``session`` is the number of the realtime session."""
        self._shared = shared
        self._session = session
        self.live: list[Response] = []
        """Those under way, and ended ones whose speech is not done."""
        self._over: deque[tuple[str | None, int]] = deque(maxlen=OVER_KEPT)
        self._asked: list[tuple[Any, str | None]] = []
        self._emitting: list[Response] = []
        self._created: set[str] = set()
        self._closed = False
        self.look: Callable[[int], None] = lambda at_ns: None
        """Looks at both sides of the conversation; called before a response is noted."""

    def close(self) -> None:
        """Nothing new is taken up any more; what is being read stays readable."""
        self._closed = True
        for future, _ in self._asked:
            future.remove_done_callback(self._answered)
        self._asked = []

    # -- how they begin --

    def heard(self, event: Any, at_ns: int) -> Response | None:
        """The session of the model reports one; None where it is known already."""
        if self._find(event) is not None:
            return None
        response = self._begin(event, at_ns)
        self._emitting.append(response)
        for future, speech in self._asked:
            if compat.result_of(future) is event:
                response.speech = speech
        return response

    def listened(self, response: Response) -> None:
        """The listeners have heard of it: a speech they made for it is known."""
        self._emitting.remove(response)
        if response.speech is not None or not response.user_initiated:
            self._announce(response)

    def speech_created(self, speech: str) -> None:
        """A speech made while the listeners hear of a response is the one that plays it."""
        for response in self._emitting:
            if response.speech is None and not response.user_initiated:
                response.speech = speech

    def asked(self, future: Any, speech: str | None) -> None:
        """A speech asked for a response; ``future`` brings the event that was emitted, or the only
        one."""
        if not hasattr(future, "add_done_callback"):
            return
        self._asked.append((future, speech))
        if future.done():
            self._answered(future)
        else:
            future.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if not self._closed:
            self._shared.guard.attempt("reply", self._take_answer, future)

    def _take_answer(self, future: Any) -> None:
        speech = next((speech for known, speech in self._asked if known is future), None)
        self._asked = [entry for entry in self._asked if entry[0] is not future]
        event = compat.result_of(future)
        if event is None:
            return
        response = self._find(event) or self._begin(event, self._shared.now_ns())
        if not response.announced:
            response.speech = response.speech or speech
            self._announce(response)

    def _find(self, event: Any) -> Response | None:
        watch = watch_of(event.message_stream)
        if isinstance(watch, Response) and watch.owner is self:
            return watch
        return next((response for response in self.live if response.event is event), None)

    def _begin(self, event: Any, at_ns: int) -> Response:
        self.look(at_ns)
        guard = self._shared.guard
        response = Response(self, guard, event, self._shared.next_response(), at_ns)
        self.live.append(response)
        guard.attempt("message stream", response.watch)
        return response

    def _announce(self, response: Response) -> None:
        if response.announced:
            return
        response.announced = True
        self._shared.put(
            ResponseCreated(
                response.at_ns, response.number, self._session, response.id, response.speech,
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

    # -- how they end --

    def stream_ended(self, response: Response) -> None:
        self._end(response, self._shared.now_ns(), "stream")

    def measured(self, metrics: Any, at_ns: int) -> None:
        """The plugin's metrics of a response came."""
        id_ = getattr(metrics, "request_id", None)
        cancelled = getattr(metrics, "cancelled", None)
        if not id_:
            return
        for response in self.live:
            if response.id == id_ and not response.ended:
                self._end(response, at_ns, "metrics", cancelled)
                return
        known = [(response.id, response.number) for response in self.live]
        number = dict([*self._over, *known]).get(id_)
        if number is not None:
            self._shared.put(ResponseEnded(at_ns, number, "metrics", cancelled))

    def _end(
        self, response: Response, at_ns: int, by: RealtimeEnd, cancelled: bool | None = None
    ) -> None:
        if response.ended:
            return
        self.announce_all()
        response.ended = True
        self._shared.put(ResponseEnded(at_ns, response.number, by, cancelled))
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

    def _see_end(self, response: Response, at_ns: int) -> None:
        if not response.ended and compat.stream_closed(response.stream):
            self._end(response, at_ns, "closed")

    def beat(self) -> None:
        """See what ended and what came, without a call to tell."""
        self.announce_all()
        over = False
        for response in self.live:
            self._see_end(response, self._shared.now_ns())
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

    # -- their messages --

    def pulled(self, response: Response, item: Any) -> None:
        if self._closed:
            return
        at_ns = self._shared.now_ns()
        self.announce_all()
        if not response.ended and response not in self.live:
            # nobody took it, and somebody reads it after all
            self.live.append(response)
        message = self._message(response, item)
        self._create(at_ns, message.id, response.number, "stream")
        self._shared.put(MessagePulled(at_ns, message.id, response.number))
        message.watch(item)

    def message_seen(self, at_ns: int, message: str, by: MessageSeen) -> None:
        """A message of the assistant was seen on the provider's side, in no response's stream."""
        owner = next((response for response in self.live if response.has(message)), None)
        if owner is None:
            under_way = [response for response in self.live if response.under_way]
            owner = under_way[0] if len(under_way) == 1 else None
        self._create(at_ns, message, None if owner is None else owner.number, by)

    def _message(self, response: Response, item: Any) -> Message:
        id_ = str(item.message_id)
        message = response.messages.get(id_)
        if message is None:
            message = Message(self._shared, response, id_, item.audio_stream)
            response.messages[id_] = message
        return message

    def _find_messages(self, response: Response) -> None:
        response.known_unread = len(compat.unread(response.stream) or ())
        for item in response.unread():
            message = self._message(response, item)
            self._create(self._shared.now_ns(), message.id, response.number, "stream")

    def _create(self, at_ns: int, message: str, response: int | None, by: MessageSeen) -> None:
        if message not in self._created:
            self._created.add(message)
            self._shared.created.add(message)
            self._shared.put(MessageCreated(at_ns, message, response, by))

    def count_all(self, at_ns: int, why: CountedAt) -> None:
        """Count the audio of all messages that may still grow, or be told of."""
        self.announce_all()
        for response in self.live:
            self._see_end(response, at_ns)
        for response in self.live:
            self.count(response, at_ns, why)

    def count(self, response: Response, at_ns: int, why: CountedAt) -> None:
        """Count the audio of all messages of the response, those that lie unread too."""
        self._find_messages(response)
        for message in response.messages.values():
            message.flush()
            self._shared.put(message.count(at_ns, why))
