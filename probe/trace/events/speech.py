"""From a speech made to a speech done, and what the caller and the session had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from probe.trace.events.sink import CallEnd

InterruptedBy = Literal["activity", "transcript", "programmatic"]


@dataclass(frozen=True, slots=True)
class SpeechCreated:
    """The session made a speech handle."""

    NAME: ClassVar[str] = "speech_created"

    at_ns: int
    speech: str
    origin: str = ""
    """``say``, ``generate_reply`` or ``tool_response``, as the session calls it."""
    user_initiated: bool | None = None
    allow_interruptions: bool | None = None


@dataclass(frozen=True, slots=True)
class InterruptCalled:
    """Somebody asked a speech to stop. ``at_ns`` is read before the call takes effect."""

    NAME: ClassVar[str] = "interrupt_called"

    at_ns: int
    speech: str
    by: InterruptedBy | None = None
    """``activity``: VAD or STT activity; ``transcript``: a user turn or final transcript;
    ``programmatic``: code. ``None`` where this release does not let it be known."""
    end: CallEnd = "returned"


@dataclass(frozen=True, slots=True)
class SpeechCommitted:
    """The speech handle became interrupted: the commit."""

    NAME: ClassVar[str] = "speech_committed"

    at_ns: int
    speech: str


@dataclass(frozen=True, slots=True)
class SpeechDone:
    """The speech handle is done."""

    NAME: ClassVar[str] = "speech_done"

    at_ns: int
    speech: str
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Agent or user state, as the session reports it. User state ``speaking`` is the onset."""

    NAME: ClassVar[str] = "state"

    at_ns: int
    who: Literal["agent", "user"]
    old: str
    new: str
    event_unix_s: float | None = None
    """Stamp carried by the event, where it has one."""


@dataclass(frozen=True, slots=True)
class OverlapJudged:
    """The interruption model gave its verdict on an overlap."""

    NAME: ClassVar[str] = "overlap"

    at_ns: int
    is_interruption: bool
    speech: str | None = None
    event_unix_s: float | None = None
    overlap_started_unix_s: float | None = None
    probability: float | None = None
    agent_ended: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptReceived:
    """The caller's words came back from the STT: their length only."""

    NAME: ClassVar[str] = "transcript"

    at_ns: int
    final: bool
    chars: int
    words: int


@dataclass(frozen=True, slots=True)
class FalseInterruption:
    """The session found that an interruption was none."""

    NAME: ClassVar[str] = "false_interruption"

    at_ns: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class ItemCommitted:
    """A message was added to the session's history: its length only."""

    NAME: ClassVar[str] = "item"

    at_ns: int
    item: str
    role: str
    chars: int
    interrupted: bool = False
    speech: str | None = None
