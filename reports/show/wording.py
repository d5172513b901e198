"""Words that every report for people writes in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "CAUSES",
    "DASH",
    "LOSSES",
    "NO_BARGE_INS",
    "PACKAGES",
    "count_text",
    "packages",
    "plural",
    "shown",
]

DASH: Final = "–"
"""Stands for what is not known."""

CAUSES: Final = {
    "not-stopped": "no pause and no clear had come yet",
    "queue-played-on": "gate closed, but the source's queue was not cleared",
    "clear-pending": "sink cleared, source not yet",
    "after-clear": "sent although the source had been cleared",
    "resumed": "the gate had been opened again",
    "not-known": "the trace does not say which sink was paused or cleared",
}
"""Why audio was sent after the verdict."""

LOSSES: Final = {
    ("dropped", "refused"): "refused by the source",
    ("dropped", "skipped"): "passed over by the sink of its own accord",
    ("dropped", "raised"): "its capture raised",
    ("dropped", "cancelled"): "its capture was cancelled",
    ("dropped", "clear"): "the sink was cleared",
    ("dropped", "pause"): "discarded by a pause",
    ("dropped", "source-cleared"): "gone when the source was cleared",
    ("dropped", "source-closed"): "the source was closed",
    ("cleared", "clear"): "the source's queue was cleared",
    ("cleared", "source-closed"): "the source was closed",
}
"""What lost audio, by what became of it and the cause."""

NO_BARGE_INS: Final = {
    "closed": "the session was closed",
    "hung-up": "the caller had left",
    "handed-over": "another agent took over",
}
"""What stopped a speech that nobody barged into, by the outcome."""

PACKAGES: Final = {
    "python": {"livekit_agents": "livekit-agents", "livekit": "livekit"},
    "node": {"livekit_agents": "@livekit/agents", "livekit": "@livekit/rtc-node"},
}
"""By language, what a trace's runtime calls the packages that people know by another name."""


def packages(runtime: Mapping[str, str]) -> list[str]:
    """``livekit-agents 1.8.9``, ``livekit 1.1.21``, as far as they are known."""
    named = PACKAGES["node" if runtime.get("language") == "node" else "python"]
    return [f"{package} {runtime[key]}" for key, package in named.items() if key in runtime]


def count_text(value: int | None) -> str:
    """The number; a dash where it is not known."""
    return DASH if value is None else str(value)


def plural(count: int, name: str) -> str:
    """``1 trace``, ``2 traces``."""
    return f"{count} {name}{'' if count == 1 else 's'}"


def shown(text: object) -> str:
    """A text from a trace, with what can't be seen, or would reorder the line, spelled out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text))
