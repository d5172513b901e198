"""What changed on the two sides of a conversation, the agent's and the provider's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from probe import compat
from probe.taps.failures import Failure
from probe.taps.realtime.responses import Responses
from probe.taps.realtime.shared import Shared
from probe.trace.events import ContextSeen, ContextSent, ContextSide

__all__ = ["AgentSide", "ServerSide"]

Items = list[tuple[str, str]]
"""Id and role of each item, in the order of its side."""


class _Side:
    """One side of the conversation as it was at the last look."""

    def __init__(self, side: ContextSide, session: int | None = None) -> None:
        self._side: ContextSide = side
        self._session = session
        self.items: dict[str, str] = {}

    def look(
        self, at_ns: int, items: Items | None, speech: str | None, always: bool
    ) -> ContextSeen | None:
        """What changed; None where there is nothing to tell, or nothing could be seen."""
        if items is None:
            return None
        before, self.items = self.items, dict(items)
        added = [(item, role) for item, role in self.items.items() if item not in before]
        removed = [item for item in before if item not in self.items]
        if not added and not removed and not always:
            return None
        return ContextSeen(at_ns, self._side, added, removed, self._session, speech)


class AgentSide:
    """The session's history, and before it what an agent brought along, which no history has."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._side = _Side("local")
        self._brought: Items = []

    def look(self, at_ns: int, speech: str | None = None, *, always: bool = False) -> None:
        """Write what changed since the last look."""
        items = compat.local_items(self._shared.session)
        agents = compat.agent_items(self._shared.session)
        if agents is not None:
            self._brought = [entry for entry in agents if entry[0] in self._shared.own]
        if items is not None:
            known = dict(items)
            items = [*(entry for entry in self._brought if entry[0] not in known), *items]
        seen = self._side.look(at_ns, items, speech, always)
        if seen is not None:
            self._shared.put(seen)

    def has(self, item: str) -> bool:
        """Whether the agent's side has an item of that id, in whatever place."""
        history = compat.local_items(self._shared.session) or []
        agents = compat.agent_items(self._shared.session) or []
        return any(known == item for known, _ in [*history, *agents])


class ServerSide:
    """The conversation as the provider of one realtime session holds it."""

    def __init__(self, shared: Shared, realtime: Any, number: int, responses: Responses) -> None:
        self._shared = shared
        self._realtime = realtime
        self._number = number
        self._responses = responses
        self._side = _Side("server", number)
        self._looked = False

    def look(self, at_ns: int, speech: str | None = None, *, always: bool = False) -> None:
        """Write what changed since the last look."""
        items = compat.server_items(self._realtime)
        seen = self._side.look(at_ns, items, speech, always)
        if not self._looked and items is not None:
            self._looked = True
            for item, _ in items:
                self._shared.brought(item)
        if seen is None:
            return
        for item, role in seen.added:
            if role == "assistant" and not self._shared.knows(item):
                self._responses.message_seen(at_ns, item, "context")
        self._shared.put(seen)

    def sending(self, chat_ctx: Any) -> Callable[..., ContextSent] | None:
        """A context is about to be sent: its event, but for how the call ends. None where the call
        is about to fail, for whoever made it."""
        at_ns = self._shared.now_ns()
        self.look(at_ns)
        items = getattr(chat_ctx, "items", None)
        if items is None:
            return None
        sent = [str(item.id) for item in items]
        wanted, known = set(sent), self._side.items
        adds = [item for item in sent if item not in known]
        removes = [item for item in known if item not in wanted]
        for item in adds:
            self._shared.brought(item)
        return functools.partial(ContextSent, at_ns, self._number, len(sent), adds, removes)

    def sent(self, sending: Callable[..., ContextSent], failed: Failure | None) -> None:
        """The call that sent it has ended."""
        ended_ns = self._shared.now_ns()
        end = ("returned", ended_ns) if failed is None else (failed.end, ended_ns, failed.error)
        self._shared.put(sending(*end))
        self.look(ended_ns)
