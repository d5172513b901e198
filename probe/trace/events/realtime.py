"""The provider's side of a realtime model: responses, messages, and both conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from probe.trace.events.sink import CallEnd

RealtimeEnd = Literal["stream", "closed", "metrics"]
MessageSeen = Literal["event", "context", "stream"]
ContextSide = Literal["server", "local"]
CountedAt = Literal["interrupt", "cancel", "ended", "speech_done", "detached"]


@dataclass(frozen=True, slots=True)
class RealtimeTapped:
    """The tap went on a session of a realtime model."""

    NAME: ClassVar[str] = "realtime"

    at_ns: int
    session: int
    """Number of the realtime session in this trace, from 1."""
    model: str = ""
    """Label of the model."""
    can_truncate: bool | None = None
    can_edit_context: bool | None = None
    detects_turns: bool | None = None
    """Whether the provider itself finds out that the caller speaks."""


@dataclass(frozen=True, slots=True)
class RealtimeUntapped:
    """The tap came off a realtime session."""

    NAME: ClassVar[str] = "realtime_untapped"

    at_ns: int
    session: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResponseCreated:
    """The provider began a response, as its session reports it."""

    NAME: ClassVar[str] = "response_created"

    at_ns: int
    response: int
    """Number of the response in this trace, from 1."""
    session: int
    id: str | None = None
    """The provider's own id, where the release carries it."""
    speech: str | None = None
    """Speech that plays it; ``None``: the session took no notice of it."""
    user_initiated: bool | None = None


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """The provider ended a response."""

    NAME: ClassVar[str] = "response_ended"

    at_ns: int
    response: int
    by: RealtimeEnd
    """How it was seen: ``stream``, its message stream ended for who reads it; ``closed``, the
    stream was found closed, at most 10 ms late while the loop runs; ``metrics``, the plugin's
    metrics of it came."""
    cancelled: bool | None = None
    """What the metrics say; ``None`` where none came."""


@dataclass(frozen=True, slots=True)
class MessageCreated:
    """A message of the assistant exists on the provider's side."""

    NAME: ClassVar[str] = "message_created"

    at_ns: int
    message: str
    response: int | None = None
    """``None`` where it can't be told which of several it belongs to."""
    by: MessageSeen = "event"
    """How it was seen first: the session's own event, a look at the server-side context, or in the
    response's stream, where it was pulled or found lying unread. The last two are late; where the
    stream can be looked into, by at most 10 ms."""


@dataclass(frozen=True, slots=True)
class MessagePulled:
    """The agent took a message from the response's stream."""

    NAME: ClassVar[str] = "message_pulled"

    at_ns: int
    message: str
    response: int


@dataclass(frozen=True, slots=True)
class MessageOpened:
    """The agent asked for the message's audio: it is about to be played."""

    NAME: ClassVar[str] = "message_opened"

    at_ns: int
    message: str
    speech: str | None = None


@dataclass(frozen=True, slots=True)
class MessageAudio:
    """Audio of a message that the agent read from its stream; its first frame comes alone."""

    NAME: ClassVar[str] = "message_audio"

    at_ns: int
    """When the first of these frames was read."""
    until_ns: int
    """When the last was."""
    message: str
    frames: int
    samples: int
    rate_hz: int
    channels: int = 1
    ended: bool = False
    """Whether the stream ended after these frames. Then ``frames`` may be 0."""


@dataclass(frozen=True, slots=True)
class GenerationCounted:
    """How much audio of a message the provider had generated at an instant, without reading it."""

    NAME: ClassVar[str] = "generation_counted"

    at_ns: int
    response: int
    message: str
    read_samples: int
    """Read by the agent up to here."""
    unread_samples: int | None
    """Lying in the stream; ``None`` where that can't be asked."""
    rate_hz: int | None = None
    why: CountedAt = "ended"


@dataclass(frozen=True, slots=True)
class CancelSent:
    """The session was told to cancel: session-wide, whichever response is being generated."""

    NAME: ClassVar[str] = "cancel_sent"

    at_ns: int
    session: int
    speech: str | None = None
    """Speech whose task asked, or the current one; ``None``: neither."""
    hits: list[int] = field(default_factory=list)
    """Responses created and not ended at that instant: what the cancel hits."""
    end: CallEnd = "returned"


@dataclass(frozen=True, slots=True)
class TruncateSent:
    """The provider was told how much of a message was played."""

    NAME: ClassVar[str] = "truncate_sent"

    at_ns: int
    session: int
    message: str
    audio_end_ms: int
    end: CallEnd = "returned"


@dataclass(frozen=True, slots=True)
class ContextSent:
    """The provider was sent a context to hold: ids only."""

    NAME: ClassVar[str] = "context_sent"

    at_ns: int
    session: int
    items: int
    """How many it has."""
    adds: list[str] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)
    """Against the server's side as it was known before the call."""
    end: CallEnd = "returned"
    ended_ns: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ContextSeen:
    """What changed on one side since the last look: (id, role) of items added, ids removed.

    The local side is the session's history, and before it what the agent's own context has of
    items that the provider did not create.

    Looks are taken when the tap goes on, at the end of each speech, when a response is created,
    around a context that is sent, and when the tap comes off; a look that finds nothing new is
    written at the end of a speech only.
    """

    NAME: ClassVar[str] = "context_seen"

    at_ns: int
    side: ContextSide
    added: list[tuple[str, str]] = field(default_factory=list)
    """In the order of that side. Role of a message, else the kind of the item."""
    removed: list[str] = field(default_factory=list)
    session: int | None = None
    """Of the server's side."""
    speech: str | None = None
    """Speech that had just ended."""
