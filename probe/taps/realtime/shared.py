"""What the taps on all realtime sessions of one agent session have in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Protocol

from probe import compat
from probe.taps.calls import Put
from probe.taps.guard import Fault, Guard

__all__ = ["Flowing", "Shared"]


class Flowing(Protocol):
    """Audio that was seen and waits to be written."""

    began_ns: int
    """When the first of it was."""

    def flush(self) -> None:
        """Write it."""


class Shared:
    """Where events go, and what is numbered or noted over all realtime sessions."""

    def __init__(
        self, session: Any, put: Put, fault: Fault, now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        self.session = session
        self.guard = Guard(fault, "realtime ")
        self.now_ns = now_ns
        self.flowing: dict[Flowing, None] = {}
        self.created: set[str] = set()
        """Messages that one of the providers created."""
        self.own: set[str] = set()
        """Items of the providers' conversations that they did not create."""
        self.removed = False
        self._put = put
        self._responses = itertools.count(1)

    def put(self, event: Any) -> None:
        """Write an event, unless the taps are off."""
        if not self.removed:
            self._put(event)

    def next_response(self) -> int:
        """Number for a response, from 1 over all realtime sessions."""
        return next(self._responses)

    def asking_speech(self) -> str | None:
        """Id of the speech that calls the model now."""
        speech: str | None = self.guard.attempt("speech", compat.asking_speech, self.session)
        return speech

    def knows(self, item: str) -> bool:
        """Whether it is known by now where an item of a provider's conversation came from."""
        return item in self.created or item in self.own

    def brought(self, item: str) -> None:
        """An item came into a provider's conversation from outside, if no provider created it."""
        if item not in self.created:
            self.own.add(item)
