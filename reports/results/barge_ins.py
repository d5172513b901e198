"""Barge-ins: what decided, and what went out after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from reports.results.amounts import Amount, Estimate, Leak, Measured

VerdictKind = Literal["overlap", "activity", "transcript", "programmatic"]


Outcome = Literal["committed", "resumed", "finished", "ignored", "closed", "hung-up", "handed-over"]
"""``committed``: it stopped the speech. ``resumed``: the speech went on. ``finished``: nothing was
left to stop. ``ignored``: the caller spoke over the agent and no verdict came. No barge-ins, for
nobody interrupted: ``closed``, the session was closed; ``hung-up``, the caller had left;
``handed-over``, another agent took over."""


NO_BARGE_IN: Final[tuple[Outcome, ...]] = ("closed", "hung-up", "handed-over")
"""Outcomes of what is in no summary and in no comparison."""


LeakCause = Literal[
    "not-stopped", "queue-played-on", "clear-pending", "after-clear", "resumed", "not-known"
]


Unseen = Literal[
    "under-way", "bounded", "unread", "source-unread", "resampled", "changed", "buffer-reused"
]
"""Why it can't be told what of a speech crossed a boundary: the probe came when the audio was in
the source already; the file had reached its bound; nobody read there, or not at every source it
went to; or the sink resamples, changes the audio or uses one buffer again, so that nothing shows
which speech a pushed sample is of."""


LeakSurvival = Literal["survived-clear", "pushed-late", "rest-of-long-frame"]


@dataclass(frozen=True, slots=True)
class Cause(Measured):
    """Why a part of a leak was sent.

    ``not-stopped``: no pause and no clear had come yet, or the sink pushed on behind its pause.
    ``queue-played-on``: the gate was closed, the source's queue was not cleared. ``clear-pending``:
    the sink was cleared, the source not yet. ``after-clear``: sent although the source had been
    cleared. ``resumed``: sent after a resume. ``not-known``: the trace has several sources and does
    not say whose sink was paused, cleared or resumed. Marks count at the sink they went to. The
    samples of all causes of a barge-in add up to its leak at *sent*.
    """

    cause: LeakCause
    samples: int
    rate_hz: int | None
    """``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Survivor(Measured):
    """Leaked audio that was sent after the source had been cleared, and how that came.

    ``survived-clear``: pushed before the clear or while it ran, and not taken by it.
    ``pushed-late``: pushed after the clear. ``rest-of-long-frame``: of a push longer than the
    queue, which the source takes in pieces.
    """

    how: LeakSurvival
    samples: int
    rate_hz: int | None
    """``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened around a barge-in, for the story."""

    event: str
    at_ns: int
    verdict: bool = False
    """Whether this was the verdict."""


@dataclass(frozen=True, slots=True)
class BargeIn:
    """One attempt to interrupt one speech, and what it let through."""

    segment: int | None
    """Segment under way, or the first one of a speech of which nothing had been captured yet;
    ``None``: nothing ever was."""
    speech_id: str | None
    """``None``: code feeds the sink itself."""
    partial: bool
    """Whether the speech was under way when the probe came. Audio of it that was in the source
    already can be counted but not placed: where it went on, ``leaked["sent"]`` is ``None``."""
    onset_ns: int | None
    """The caller started to speak; ``None``: the trace shows no onset for it."""
    pause_ns: int | None
    """The sink's gate was closed on suspicion; ``None``: it was not."""
    verdict_ns: int | None
    """``None``: no verdict came."""
    verdict_kind: VerdictKind | None
    """Who decided; ``None``: no verdict came."""
    commit_ns: int | None
    """The speech became interrupted; ``None``: it did not."""
    clear_ns: int | None
    """The sink was cleared."""
    source_clear_ns: int | None
    """The source's queue was cleared for the first time since the pause or the verdict."""
    resume_ns: int | None
    """The gate was opened again; ``None``: it was not."""
    last_sent_ns: int | None
    """When the last sample of the speech left the source, before its next barge-in."""
    stop_ns: int | None
    """A length: from the verdict to the last sent sample, 0 where nothing was sent after it;
    ``None``: no verdict, or not tapped."""
    outcome: Outcome | None
    """``None``: not decided when the trace ended."""
    leaked: Mapping[str, Leak | None] | None
    """By boundary (``captured``, ``pushed``, ``sent``), from the verdict to the speech's next
    verdict; ``None``: no verdict came."""
    after_onset: Mapping[str, Leak | None] | None
    """The same from the onset on; audio, not leak. ``None``: no onset."""
    after_pause: Mapping[str, Leak | None] | None
    """The same from the pause on."""
    after_commit: Mapping[str, Leak | None] | None
    """The same from the commit on; *captured* is what was still made of a speech already over."""
    after_clear: Mapping[str, Leak | None] | None
    """The same from the clear of the sink on."""
    after_source_clear: Mapping[str, Leak | None] | None
    """The same from the clear of the source on."""
    after_resume: Mapping[str, Leak | None] | None
    """The same from the resume on."""
    over_caller: Mapping[str, Leak | None] | None
    """The same while the caller was speaking, from the onset to the end of the caller's speech."""
    remaining: Amount | None
    """Captured audio of the speech, also what was captured later, that had not been sent at the
    verdict; ``None``: no verdict, or not tapped."""
    causes: tuple[Cause, ...] | None
    """``None``: *sent* was not tapped, or there was no verdict."""
    survivors: tuple[Survivor, ...] | None
    """How the samples of the cause ``after-clear`` escaped the clear; they add up to it. ``None``
    as at ``causes``."""
    stalled_ns: int
    """Longest stall of the session's loop around it: its times are late by up to that."""
    story: tuple[Moment, ...]
    """What happened around it, in order of time."""
    explanation: str
    """What happened, in words."""
    unseen: Unseen | None = None
    """Why it is not known what was sent after the verdict, or over a caller who was ignored;
    ``None``: it is, or there is nothing of the kind."""
    estimated: Mapping[str, Estimate | None] | None = None
    """What ``leaked`` would be, by boundary, where a sink that can't be followed lets only the time
    tell; no finding rests on it. ``None``: it is known to the sample, or not even this is."""

    @property
    def counts(self) -> bool:
        """Whether it is a barge-in at all: something else may have ended the speech."""
        return self.outcome not in NO_BARGE_IN

    @property
    def has_audio(self) -> bool:
        """Whether the speech had any audio that could have been stopped."""
        return self.segment is not None or self.partial
