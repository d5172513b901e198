"""A response: its messages, and whether the provider is done with it."""

from __future__ import annotations

from typing import Any, Protocol

from probe import compat
from probe.taps.guard import Guard
from probe.taps.realtime.message import Message
from probe.taps.realtime.streams import watched

__all__ = ["Response"]


class _Owner(Protocol):
    """Who is told what happens to the response's stream."""

    def pulled(self, response: Response, item: Any) -> None:
        """The agent took a message from it."""

    def stream_ended(self, response: Response) -> None:
        """It ended for who reads it."""


class Response:
    """One response, seen through the stream its messages are read from."""

    def __init__(self, owner: _Owner, guard: Guard, event: Any, number: int, at_ns: int) -> None:
        self.owner = owner
        self._guard = guard
        self.event = event
        self.stream = event.message_stream
        self.number = number
        self.at_ns = at_ns
        self.id: str | None = getattr(event, "response_id", None)
        self.user_initiated: bool | None = getattr(event, "user_initiated", None)
        self.speech: str | None = None
        self.messages: dict[str, Message] = {}
        self.known_unread = 0
        """Messages that lay unread in the stream at the last look."""
        self.announced = False
        self.ended = False
        self.speech_over = False
        self._readers = 0

    def watch(self) -> None:
        """Look on as its messages are read."""
        self.event.message_stream = watched(self.stream, self)

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

    def has(self, message: str) -> bool:
        """Whether a message of that id is one of its own, or lies unread in its stream."""
        return message in self.messages or any(item.message_id == message for item in self.unread())

    def unread(self) -> list[Any]:
        """Messages that lie in its stream, as far as that can be looked into."""
        waiting = list(compat.unread(self.stream) or ())
        return [item for item in waiting if getattr(item, "message_id", None) is not None]

    def opened(self) -> None:
        """Nothing: some releases begin to read long before they play."""

    def reading(self) -> None:
        self._readers += 1

    def passed(self, item: Any) -> None:
        self._readers -= 1
        self._guard.attempt("pull", self.owner.pulled, self, item)

    def stopped(self, error: BaseException) -> None:
        self._readers -= 1
        if compat.ends_stream(error):
            self._guard.attempt("end", self.owner.stream_ended, self)
