"""The trace's own events: what was recorded and with what, what went wrong, where it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Boundary = Literal["captured", "pushed", "sent"]


@dataclass(frozen=True, slots=True)
class Header:
    """First line of a trace: what was recorded, with what, and how its clocks pair."""

    NAME: ClassVar[str] = "header"

    schema: int
    started_monotonic_ns: int
    """Monotonic clock at ``at_ns`` 0."""
    started_unix_s: float
    """Wall clock read together with it; pairs the two clocks, once per trace."""
    boundaries: list[Boundary] = field(default_factory=list)
    """Boundaries the probe was asked to tap; `Tapped` says when each really was."""
    missing: dict[str, str] = field(default_factory=dict)
    """What this release or this attachment cannot show: the signal or boundary, and why."""
    runtime: dict[str, str] = field(default_factory=dict)
    """``language``, ``language_version``, ``platform``, ``livekit``, ``livekit_agents``,
    ``probe``."""
    options: dict[str, Any] = field(default_factory=dict)
    """What decides interruptions, as in `OptionsChanged`; empty if the session is not started."""
    labels: dict[str, str] = field(default_factory=dict)
    """The user's own labels (job, room, …)."""
    run: dict[str, Any] | None = None
    """Of a scripted call: ``scenario``, ``pacing``, ``frame_ms``, ``rate_hz``, ``reply_ms``,
    ``at``."""
    speeches: list[str] | None = None
    """Ids of the speeches the session had when the probe came, playing, paused, queued or
    prepared; ``None``: not known."""


@dataclass(frozen=True, slots=True)
class Tapped:
    """A tap went on at a boundary."""

    NAME: ClassVar[str] = "tapped"

    at_ns: int
    boundary: Boundary
    source: int | None = None
    """Number of the audio source in this trace, from 1; ``None`` at captured."""
    rate_hz: int | None = None
    channels: int | None = None
    queue_ms: int | None = None
    """Capacity of the source's native queue, where it is known."""
    block_samples: int | None = None
    """At sent: samples the source hands on per tick, ``rate_hz // 100``."""
    grouped: bool = False
    """At sent: whether blocks are read several at a time."""
    resolution_ns: int | None = None
    """How exact times at this boundary are. At sent one block where the reading keeps the grid."""
    mid_speech: bool = False
    """Whether the agent was speaking: what is inside already is inherited, the segment partial."""
    sink: int | None = None
    """At pushed: number of the sink the source was found under, from 1."""


@dataclass(frozen=True, slots=True)
class Untapped:
    """A tap came off: the source went away, was swapped, or the probe was detached."""

    NAME: ClassVar[str] = "untapped"

    at_ns: int
    boundary: Boundary
    source: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Bookmarked:
    """The user's own mark (`Recording.mark`); not a mark of the sink."""

    NAME: ClassVar[str] = "bookmark"

    at_ns: int
    name: str


@dataclass(frozen=True, slots=True)
class ControlStarted:
    """Of a scripted call: the reply that serves as the control, which has to arrive whole."""

    NAME: ClassVar[str] = "control"

    at_ns: int
    speech: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The probe itself failed at something; the call was not touched.

    Kinds: ``tap_raised``, ``events_lost`` (buffer full), ``wire_hole`` (the reading missed blocks),
    ``write_failed``, ``write_slow``, ``audio_forgotten`` (content dropped before it could be
    matched).
    """

    NAME: ClassVar[str] = "fault"

    at_ns: int
    kind: str
    count: int = 1
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SizeBounded:
    """The file reached ``max_mb``: from here on only marks, session events and sums are written."""

    NAME: ClassVar[str] = "bounded"

    at_ns: int


@dataclass(frozen=True, slots=True)
class SumsKept:
    """What went past each boundary while the file was bounded; since the last `SumsKept`."""

    NAME: ClassVar[str] = "sums"

    at_ns: int
    captured_frames: int = 0
    captured_samples: int = 0
    pushed_frames: int = 0
    pushed_samples: int = 0
    sent_samples: int = 0
    inserted_samples: int = 0


@dataclass(frozen=True, slots=True)
class Trailer:
    """Last line of a trace that was closed; without it the trace was cut."""

    NAME: ClassVar[str] = "trailer"

    at_ns: int
    events: int
    """Lines written before this one, the header included."""
    reason: str = "closed"
    """``closed`` by the user, ``session_closed``, ``exit``."""
    counts: dict[str, int] | None = None
    """Of these lines, how many of each event; ``None``: not counted by kind (older traces)."""
