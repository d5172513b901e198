"""Both sides of a conversation with a realtime model: what the server and the session hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from probe.trace.events import ContextSeen
from reports.results import ConversationItem, RealtimeMessage

__all__ = ["Side", "conversation"]

OWN_KINDS: Final = frozenset({"agent_handoff", "agent_config_update"})
"""Kinds of item that the local side keeps for itself: no provider is ever told of them."""


@dataclass(slots=True)
class Side:
    """One side's conversation: every id it ever held in its order, and what it holds now."""

    roles: dict[str, str] = field(default_factory=dict)
    holds: set[str] = field(default_factory=set)
    looked_ns: int | None = None
    """The last look at it; ``None``: nobody looked."""

    def see(self, event: ContextSeen) -> None:
        self.looked_ns = event.at_ns
        self.holds.difference_update(event.removed)
        for item, role in event.added:
            if role not in OWN_KINDS:
                self.roles.setdefault(item, role)
                self.holds.add(item)

    def knows(self, item: str, since_ns: int = 0) -> bool | None:
        """Whether it holds an item; ``None``: nobody looked from an instant on."""
        if item in self.roles:
            return item in self.holds
        return None if self.looked_ns is None or self.looked_ns < since_ns else False


def conversation(
    local_side: Side, servers: Collection[Side], messages: Sequence[RealtimeMessage]
) -> tuple[ConversationItem, ...]:
    """All items of a conversation in their order, with who holds each."""
    by_id = {message.id: message for message in messages}
    roles = {item: role for side in (local_side, *servers) for item, role in side.roles.items()}
    order = list(dict.fromkeys(item for side in servers for item in side.roles))
    order = _interleaved(order, local_side.roles)
    order = _interleaved(order, [message.id for message in messages])
    looked = any(side.looked_ns is not None for side in servers)
    rows = []
    for item in order:
        message = by_id.get(item)
        server: bool | None
        local: bool | None
        if message is not None:
            server, local = message.on_server, message.in_history
        else:
            server = any(item in side.holds for side in servers) if looked else None
            local = local_side.knows(item)
        rows.append(
            ConversationItem(
                id=item,
                role=roles.get(item, "assistant"),
                server=server,
                local=local,
                message=message,
                difference=_difference(server, local),
            )
        )
    return tuple(rows)


def _interleaved(order: Sequence[str], more: Iterable[str]) -> list[str]:
    """``order`` with what only ``more`` has, each behind that which it follows there."""
    known = set(order)
    behind: dict[str | None, list[str]] = {}
    last: str | None = None
    for item in more:
        if item in known:
            last = item
        else:
            behind.setdefault(last, []).append(item)
    return [
        *behind.get(None, ()),
        *(each for item in order for each in (item, *behind.get(item, ()))),
    ]


def _difference(server: bool | None, local: bool | None) -> str:
    if server is None or local is None or (server and local):
        return ""
    if server:
        return "server only"
    return "history only" if local else "neither"
