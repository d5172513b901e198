"""Amounts of audio and stretches of it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.units import samples_ms, samples_ns


class Measured:
    """Audio counted in samples; how long it is follows from them and the rate.

    Samples are what is added up. ``ms`` and ``ns`` are for display and for holding against a time.
    """

    __slots__ = ()

    samples: int
    rate_hz: int | None

    @property
    def ms(self) -> float | None:
        """Milliseconds, rounded to the microsecond; ``None``: of several rates."""
        return samples_ms(self.samples, self.rate_hz)

    @property
    def ns(self) -> int | None:
        """Nanoseconds, rounded; ``None``: of several rates."""
        return samples_ns(self.samples, self.rate_hz)


@dataclass(frozen=True, slots=True)
class Length(Measured):
    """A length or a place in audio, from its beginning. Exact."""

    samples: int
    rate_hz: int | None
    """``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Amount(Measured):
    """Audio that crossed a boundary. Exact."""

    frames: int
    """Frames of which a sample crossed; at *sent* these are pushed frames."""
    samples: int
    rate_hz: int | None
    """``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of audio without a hole, in samples and, at *sent*, in time as well."""

    start_ns: int
    """When its first sample crossed."""
    stop_ns: int
    """Captured and pushed: when its last frame crossed. Sent: when its last block had been sent."""
    start_sample: int
    stop_sample: int
    """Positions at its boundary over the whole trace, half open."""


@dataclass(frozen=True, slots=True)
class Leak(Measured):
    """Audio of one speech that crossed a boundary from an instant on.

    Exact in samples; which side of the instant a sample falls on is as exact as the boundary's
    ``resolution_ns``.
    """

    frames: int
    samples: int
    rate_hz: int | None
    """``None``: of several rates."""
    spans: tuple[Span, ...]
    """Where it is, in order. Their samples add up to ``samples``."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A length of audio that can only be told in time. An estimate, to be marked as one."""

    ns: int
    error_ns: int
    """How far it may be off either way, if a clear empties the sink."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Over 15 ms between a segment's first and last sent sample in which nothing of it was sent.

    What was due in the meantime was somewhere; the parts add up to the gap.
    """

    at_ns: int
    ns: int
    starved_ns: int
    """For so long it had not been captured."""
    held_ns: int
    """In the sink."""
    blocked_ns: int
    """In the source."""
    stalled_ns: int
    """It had still to be captured or pushed, and the session's loop stood still."""
    paused_ns: int
    """The gate was shut, wherever it was."""
