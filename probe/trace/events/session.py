"""The session itself: its options, its loop, who takes it over and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The session was closed: what it interrupts from here on is no barge-in."""

    NAME: ClassVar[str] = "session_closed"

    at_ns: int
    """When the closing was first seen to begin."""
    reason: str = ""
    """As the session calls it: ``user_initiated``, ``participant_disconnected``, ``error`` …"""


@dataclass(frozen=True, slots=True)
class CallerLeft:
    """The caller the session listens to left the room."""

    NAME: ClassVar[str] = "caller_left"

    at_ns: int
    reason: str = ""
    """As the room calls it; empty where it says nothing."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Another agent took over the session. Agents are numbered in order of appearance, from 1."""

    NAME: ClassVar[str] = "handed_over"

    at_ns: int
    old: int | None = None
    """``None``: there was none before."""
    new: int | None = None
    """``None``: none took over."""


@dataclass(frozen=True, slots=True)
class OptionsChanged:
    """The options that decide interruptions, whole, at the start and whenever they change.

    Keys: ``allow_interruptions``, ``min_duration_s``, ``min_words``,
    ``false_interruption_timeout_s``, ``resume_false_interruption``, ``aec_warmup_s``,
    ``turn_detection``, ``interruption_model``, ``can_pause``. A key the release does not have is
    left out.
    """

    NAME: ClassVar[str] = "options"

    at_ns: int
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoopStalled:
    """The session's loop stood still from ``at_ns`` to ``until_ns``; its stamps are late."""

    NAME: ClassVar[str] = "stalled"

    at_ns: int
    until_ns: int
