"""The events of a trace, schema 1: the one thing the probe and the reports both know.

A trace is JSON Lines, UTF-8, one event a line, the `Header` first and the `Trailer` last. An
event is written as ``{"event": <NAME>, <field>: <value>, …}``; fields that hold their default are
left out. ``FORMAT.md`` beside this folder says the same for people who write traces in another
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

from typing import Union, get_args

from probe.trace.events.own import (
    Bookmarked,
    Boundary,
    ControlStarted,
    Faulted,
    Header,
    SizeBounded,
    SumsKept,
    Tapped,
    Trailer,
    Untapped,
)
from probe.trace.events.realtime import (
    CancelSent,
    ContextSeen,
    ContextSent,
    ContextSide,
    CountedAt,
    GenerationCounted,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    MessagePulled,
    MessageSeen,
    RealtimeEnd,
    RealtimeTapped,
    RealtimeUntapped,
    ResponseCreated,
    ResponseEnded,
    TruncateSent,
)
from probe.trace.events.session import (
    CallerLeft,
    HandedOver,
    LoopStalled,
    OptionsChanged,
    SessionClosed,
)
from probe.trace.events.sink import (
    CallEnd,
    CaptureEnded,
    FrameCaptured,
    MarkName,
    PlaybackReported,
    SinkMarked,
)
from probe.trace.events.source import (
    AudioSkipped,
    FramePushed,
    PushEnded,
    PushMatched,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkHabit,
    SourceClosed,
)
from probe.trace.events.speech import (
    FalseInterruption,
    InterruptCalled,
    InterruptedBy,
    ItemCommitted,
    OverlapJudged,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
)

__all__ = [
    "EVENTS", "SCHEMA", "AudioSkipped", "Bookmarked", "Boundary", "CallEnd", "CallerLeft",
    "CancelSent", "CaptureEnded", "ContextSeen", "ContextSent", "ContextSide", "ControlStarted",
    "CountedAt", "Event", "FalseInterruption", "Faulted", "FrameCaptured", "FramePushed",
    "GenerationCounted", "HandedOver", "Header", "InterruptCalled", "InterruptedBy",
    "ItemCommitted", "LoopStalled", "MarkName", "MessageAudio", "MessageCreated",
    "MessageOpened", "MessagePulled", "MessageSeen", "OptionsChanged", "OverlapJudged",
    "PlaybackReported", "PushEnded", "PushMatched", "QueueCleared", "RealtimeEnd",
    "RealtimeTapped", "RealtimeUntapped", "ResponseCreated", "ResponseEnded", "RunSent",
    "SessionClosed", "SilenceInserted", "SinkHabit", "SinkMarked", "SizeBounded",
    "SourceClosed", "SpeechCommitted", "SpeechCreated", "SpeechDone", "StateChanged",
    "SumsKept", "Tapped", "Trailer", "TranscriptReceived", "TruncateSent", "Untapped",
]  # fmt: skip

SCHEMA = 1
"""Number of the trace format. It grows when a reader of the older one would misread a trace."""

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
