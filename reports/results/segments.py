"""Segments, their balance, and what a scripted call adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.results.amounts import Amount, Gap, Length, Measured

LossCause = Literal[
    "refused",
    "skipped",
    "raised",
    "cancelled",
    "clear",
    "pause",
    "source-cleared",
    "source-closed",
]
Unjoined = Literal["resampled", "changed", "buffer-reused", "channels"]
"""Why captured and pushed samples can't be held against each other: the sink resamples or mixes;
it changes the audio beyond recognition; it hands on one buffer again and again; or it lays the same
values out in another number of channels, so that a sample is no longer one sample."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of the sink: ``pause``, ``resume``, ``clear`` or ``flush``."""

    mark: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Loss(Measured):
    """A stretch of lost audio, its cause and its place.

    Causes of ``dropped`` (captured, never pushed): ``refused`` by the source, ``skipped`` by the
    sink of its own accord, ``raised`` or ``cancelled`` captures, a ``clear`` of the sink, a
    ``pause`` with frames at the gate, a cleared source (``source-cleared``) or a closed one
    (``source-closed``). Causes of ``cleared`` (pushed, never sent): ``clear`` of the source's
    queue, or ``source-closed``.
    """

    what: Literal["dropped", "cleared"]
    cause: LossCause
    samples: int
    rate_hz: int | None
    start_sample: int
    stop_sample: int
    """Positions at *captured* for what was dropped, at *pushed* for what was cleared."""
    at_ns: int
    """When that which lost it happened."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Rate and channels of the frames at a boundary; several where they change in a segment."""

    rate_hz: int
    channels: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Audio from the first captured frame after a flush or clear to the next, with its balance.

    ``captured + added = pushed + dropped + held`` and ``pushed = sent + cleared + queued``, in
    samples; what does not add up is in ``unaccounted_samples``. Fields of a boundary that was not
    tapped are ``None``.
    """

    index: int
    """From 1."""
    speech_id: str | None
    """``None`` where code feeds the sink itself."""
    message_id: str | None
    """Message of a realtime model it plays; ``None``: no realtime model, or it can't be told."""
    partial: bool
    """Whether it was under way when the probe came."""
    balanced: bool | None
    """``None``: the trace is incomplete or a boundary is missing."""
    captured: Amount | None
    """Entered the sink."""
    pushed: Amount | None
    """Of it, accepted by the source."""
    sent: Amount | None
    """Of it, left the source's queue, in this segment or later."""
    cleared_samples: int | None
    """Discarded from the source's queue."""
    dropped_samples: int | None
    """Captured and never pushed; ``losses`` says why."""
    held_samples: int | None
    """At the end of the trace inside the sink."""
    queued_samples: int | None
    """At the end of the trace in the source, the tail included."""
    inherited_samples: int
    """Inside sink or source when the probe came; in none of the other figures."""
    inserted_samples: int | None
    """Silence the source put out between the segment's first and last sent sample."""
    tail_samples: int | None
    """Rest shorter than a block that stayed in the source. Part of queued, of cleared, or of what
    was sent in a later segment; in no sum of its own."""
    ambiguous_samples: int
    """Placed by order and time because their content could not tell."""
    unaccounted_samples: int | None
    """``None``: the trace is incomplete, see ``unknown_samples``."""
    unknown_samples: int
    """Samples whose fate the trace does not show: it is damaged or cut, or nobody read the wire of
    their source until they were out."""
    swallowed_samples: int | None
    """Lost although nobody interrupted the speech and it was said to be done; ``None`` as above.
    Zero for an interrupted speech. Neither the tail nor what is still queued is in it."""
    sent_in_later_segments_samples: int | None
    """Sent after the first frame of the next segment was captured."""
    started_ns: int
    """Its first frame was captured."""
    finished_ns: int | None
    """The sink reported it as finished; ``None``: it did not."""
    interrupted: bool | None
    """As the sink reported it, or whether the speech was committed where it reported nothing."""
    claimed_position_ns: int | None
    """How much the framework says was played; ``None``: it said nothing."""
    sent_position: Length | None
    """How much was sent."""
    last_sent_position: Length | None
    """Place of the last sent sample in the captured audio; ``None``: nothing was sent."""
    geometry: Mapping[str, tuple[Geometry, ...]]
    """By boundary, ``captured`` and ``pushed``."""
    geometry_differs: bool
    """Captured and pushed geometry differ: samples are counted as the sink handed them on."""
    resampled: bool
    """The sink changed the geometry and the content: what became of a captured sample can't be
    told."""
    order: tuple[Mark, ...]
    """Marks of the sink in order of time."""
    gaps: tuple[Gap, ...]
    """Holes in what was sent; ``order`` and ``losses`` may tell why."""
    losses: tuple[Loss, ...]
    """Everything dropped or cleared, stretch by stretch."""
    added_samples: int | None = None
    """Of the pushed, put in by the sink itself: silence, or audio it had handed on before;
    ``None``: not tapped."""
    unjoined: Unjoined | None = None
    """Why what entered the sink can't be held against what left it: then ``dropped_samples``,
    ``held_samples``, ``swallowed_samples`` and ``last_sent_position`` are ``None``, and what was
    pushed and sent was given to the segment by its time. ``None``: it can be."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole trace, in samples; a boundary that was not tapped is ``None``."""

    captured_frames: int | None
    captured_samples: int | None
    pushed_frames: int | None
    pushed_samples: int | None
    sent_samples: int | None
    dropped_samples: int | None
    held_samples: int | None
    cleared_samples: int | None
    queued_samples: int | None
    inherited_samples: int
    inserted_samples: int | None
    ambiguous_samples: int
    swallowed_samples: int | None
    unknown_samples: int
    added_samples: int | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The reply after the interrupted one, which has to arrive whole up to its tail."""

    segment: int | None
    """Its first segment; ``None``: nothing of it reached the sink."""
    captured_samples: int | None
    sent_samples: int | None
    whole: bool | None
    """``None``: *sent* was not tapped or the trace is incomplete."""


@dataclass(frozen=True, slots=True)
class Run:
    """Of a scripted call: what was scripted."""

    scenario: str | None
    pacing: str | None
    frame_ns: int | None
    rate_hz: int | None
    reply_ns: int | None
    at: str | float | None
    """When the caller barges in, as it was scripted."""
    control: Control | None
    """``None``: the call has no reply after the interrupted one."""
