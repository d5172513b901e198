"""The events of a trace, schema 1: the one thing the probe and the reports both know.

A trace is JSON Lines, UTF-8, one event a line, the `Header` first and the `Trailer` last. An
event is written as ``{"event": <NAME>, <field>: <value>, …}``; fields that hold their default are
left out. ``FORMAT.md`` beside this file says the same for people who write traces in another
language.

Clocks and units
    Every event but the header carries ``at_ns``: nanoseconds on the monotonic clock since the
    trace began (the header's ``started_monotonic_ns``), an integer. ``_unix_s`` is wall-clock time
    in seconds, kept only where a library stamped it. Lines are ordered roughly, not strictly, by
    ``at_ns``: several threads write, and a reader must sort where order matters.

Positions
    One sample is one instant of all channels. ``start_sample`` counts from 0 over the whole trace
    at its boundary, once for everything captured and once for everything the sources accepted,
    across segments, speeches and swapped sources. Ranges are half open.

Content is matched inside the taps: `FramePushed.captured` says which captured samples a push was
made of, `RunSent.start_sample` says which pushed samples left the source. A trace holds no audio
and no words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Union, get_args

SCHEMA = 1
"""Number of the trace format. It grows when a reader of the older one would misread a trace."""

Boundary = Literal["captured", "pushed", "sent"]
MarkName = Literal["pause", "resume", "clear", "flush"]
CallEnd = Literal["returned", "cancelled", "raised"]
InterruptedBy = Literal["activity", "transcript", "programmatic"]
SinkHabit = Literal["gain", "noise", "added", "buffer-reused", "changed"]
"""What a sink does to the audio it hands on: scaled (a volume, a fade), equal up to noise of some
bits (dither), silence or repeats of its own beside the captured audio, one buffer used again for
every frame, or changed beyond recognition."""


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
class FrameCaptured:
    """A frame entered the sink. ``at_ns`` is read before the call is forwarded."""

    NAME: ClassVar[str] = "captured"

    at_ns: int
    frame: int
    """Number of the frame in this trace, from 1."""
    start_sample: int
    samples: int
    """Samples per channel, as the frame says."""
    rate_hz: int
    channels: int
    speech: str | None = None
    """``session.current_speech`` when the frame came; ``None`` where code feeds the sink itself."""
    end: CallEnd | None = None
    """How the call ended; ``None`` while it runs: a `CaptureEnded` follows, or the trace is cut."""
    ended_ns: int | None = None
    error: str | None = None
    """Name of the exception's type where the call raised."""
    data_bytes: int | None = None
    """Length of the frame's data where it is not ``samples * channels * 2``."""
    detail: str | None = None
    """What the exception said, where its words are LiveKit's own and hold none of the call."""


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """A capture whose `FrameCaptured` was written while it still ran has ended."""

    NAME: ClassVar[str] = "capture_ended"

    at_ns: int
    frame: int
    end: CallEnd
    error: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SinkMarked:
    """A pause, resume, clear or flush that the head of the sink saw."""

    NAME: ClassVar[str] = "mark"

    at_ns: int
    mark: MarkName
    speech: str | None = None
    end: CallEnd = "returned"
    ended_ns: int | None = None
    error: str | None = None
    sink: int | None = None
    """Number of the sink the call went to, from 1; ``None``: not known (older traces)."""


@dataclass(frozen=True, slots=True)
class PlaybackReported:
    """A playback event that came back from the sink: the framework's claim."""

    NAME: ClassVar[str] = "playback"

    at_ns: int
    report: Literal["started", "progressed", "finished"]
    speech: str | None = None
    position_s: float | None = None
    """finished: ``playback_position``; progressed: ``offset``. Seconds, as reported."""
    duration_s: float | None = None
    """progressed: length of the stretch, seconds."""
    interrupted: bool | None = None
    """finished: whether it was reported as interrupted."""
    event_unix_s: float | None = None
    """started: ``created_at``; progressed: ``started_at``."""
    transcript_chars: int | None = None
    """finished: length of the synchronized transcript."""


@dataclass(frozen=True, slots=True)
class FramePushed:
    """A frame was handed to the audio source. ``at_ns`` is read before the call is forwarded."""

    NAME: ClassVar[str] = "pushed"

    at_ns: int
    push: int
    """Number of the push in this trace, from 1."""
    source: int
    start_sample: int
    """Position among the *accepted* samples of the trace; of a refused frame, where it would have
    begun."""
    samples: int
    rate_hz: int
    channels: int
    accepted: bool = True
    """False where the source raised or was closed: nothing of the frame got in."""
    captured: list[tuple[int | None, int]] | None = None
    """What it was made of, in order: ``(captured start_sample, samples)``; a start of ``None`` is
    audio that was never seen at captured. Adds up to ``samples``. ``None``: not decided yet, a
    `PushMatched` follows."""
    ambiguous_samples: int = 0
    """How many of its samples were placed by flow order and time because content could not tell."""
    end: CallEnd | None = None
    ended_ns: int | None = None
    error: str | None = None
    added_samples: int = 0
    """Of the ranges without a captured position: what the sink put in itself, silence or audio it
    had handed on before."""
    habit: SinkHabit | None = None
    """What the sink does to the audio, where the ranges rest on that; ``None``: they are equal
    sample for sample."""
    detail: str | None = None
    """What the exception said, where its words are LiveKit's own and hold none of the call."""


@dataclass(frozen=True, slots=True)
class PushEnded:
    """A push whose `FramePushed` was written while it still ran has ended."""

    NAME: ClassVar[str] = "push_ended"

    at_ns: int
    push: int
    end: CallEnd
    error: str | None = None
    accepted: bool = True
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class PushMatched:
    """Where the samples of an earlier `FramePushed` came from, decided later."""

    NAME: ClassVar[str] = "push_matched"

    at_ns: int
    push: int
    captured: list[tuple[int | None, int]]
    ambiguous_samples: int = 0
    added_samples: int = 0
    habit: SinkHabit | None = None


@dataclass(frozen=True, slots=True)
class AudioSkipped:
    """Captured audio that the sink passed over: what was captured behind it was pushed, and what
    was left out is silence, or nothing had told the sink to drop it."""

    NAME: ClassVar[str] = "skipped"

    at_ns: int
    """When the push came that what was left out should have come before."""
    start_sample: int
    """Captured position."""
    samples: int
    silent: bool = True
    """Whether all of it is digital silence."""


@dataclass(frozen=True, slots=True)
class QueueCleared:
    """The source's queue was cleared. ``at_ns`` before the call, ``ended_ns`` after it."""

    NAME: ClassVar[str] = "source_cleared"

    at_ns: int
    source: int
    ended_ns: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SourceClosed:
    """The source was closed: what was inside is gone, what comes later is refused."""

    NAME: ClassVar[str] = "source_closed"

    at_ns: int
    source: int


@dataclass(frozen=True, slots=True)
class RunSent:
    """A run of pushed samples that left the source: contiguous in samples and in time.

    It ends at a gap over 15 ms and at the latest after 200 ms. The source hands on whole blocks,
    so sample ``k`` of the run left at ``at_ns + (block_offset_samples + k) // block * block time``.
    """

    NAME: ClassVar[str] = "sent"

    at_ns: int
    """When its first block left the source's queue."""
    until_ns: int
    """When its last block left, plus the time of one block (half open)."""
    source: int
    start_sample: int | None
    """Position of the first sample among the pushed; ``None``: audio never seen at pushed."""
    samples: int
    block_offset_samples: int = 0
    """Where in its first block the run begins."""
    ambiguous_samples: int = 0


@dataclass(frozen=True, slots=True)
class SilenceInserted:
    """Silence the source put out because it had nothing to send."""

    NAME: ClassVar[str] = "inserted"

    at_ns: int
    until_ns: int
    source: int
    samples: int
    ambiguous_samples: int = 0


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


Event = Union[  # noqa: UP007 - a list of names reads better than a row of bars
    Header, Tapped, Untapped, FrameCaptured, CaptureEnded, SinkMarked, PlaybackReported,
    FramePushed, PushEnded, PushMatched, AudioSkipped, QueueCleared, SourceClosed, RunSent,
    SilenceInserted, SpeechCreated, InterruptCalled, SpeechCommitted, SpeechDone, StateChanged,
    OverlapJudged, TranscriptReceived, FalseInterruption, ItemCommitted, SessionClosed,
    CallerLeft, HandedOver, OptionsChanged, LoopStalled, Bookmarked, ControlStarted,
    RealtimeTapped, RealtimeUntapped, ResponseCreated, ResponseEnded, MessageCreated,
    MessagePulled, MessageOpened, MessageAudio, GenerationCounted, CancelSent, TruncateSent,
    ContextSent, ContextSeen, Faulted, SizeBounded, SumsKept, Trailer,
]  # fmt: skip

EVENTS: dict[str, type[Event]] = {cls.NAME: cls for cls in get_args(Event)}
"""Wire name to class, every event of schema 1."""
