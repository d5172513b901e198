"""What was recorded, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.results.barge_ins import Moment


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the probe or the reader failed at."""

    kind: str
    count: int
    first_ns: int | None
    """``None``: it has no place in time."""
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the trace file that is not as it should be."""

    line: int
    kind: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Stall:
    """The session's loop did not run."""

    at_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What was recorded, with what, and how far it can be trusted."""

    path: str
    complete: bool
    """Closed, readable to the end, and recorded without a loss."""
    incomplete_because: tuple[str, ...]
    """Why it is not complete, one line each."""
    duration_ns: int
    runtime: Mapping[str, str]
    """What ran: ``language``, and the versions of ``livekit``, ``livekit_agents`` …"""
    boundaries: tuple[str, ...]
    """Boundaries that were tapped, in flow order."""
    missing: Mapping[str, str]
    """Boundary that was not tapped to the reason."""
    resolution_ns: Mapping[str, int | None]
    """How exact times at a boundary are; ``None``: the trace does not say."""
    labels: Mapping[str, str]
    """As the user gave them."""
    options: Mapping[str, Any]
    """Of the session, as far as they bear on interruptions."""
    problems: tuple[Problem, ...]
    """What is wrong with the file; empty for a sound one."""
    stalls: tuple[Stall, ...]
    """When the session's loop did not run; stamps taken on it are late by that."""
    bookmarks: tuple[Moment, ...]
    """What the user marked."""

    @property
    def unanalysed(self) -> str | None:
        """Why it could not be analysed, so that nothing but its header is known; else ``None``."""
        return next((p.text for p in self.problems if p.kind == "unanalysed"), None)
