"""What is varied from run to run of a scripted call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from probe.errors import ScenarioError

Pacing = Literal["burst", "realtime", "stalled"]
PACINGS: Final[tuple[Pacing, ...]] = get_args(Pacing)

ReplyKind = Literal["generated", "say", "tool"]
REPLY_KINDS: Final[tuple[ReplyKind, ...]] = get_args(ReplyKind)

Place = Literal[
    "before-first-frame", "first-frame", "after-last-frame", "in-pause", "twice", "follow-up"
]
PLACES: Final[dict[Place, str]] = {
    "before-first-frame": "before the reply's first frame",
    "first-frame": "as the sink gets the reply's first frame",
    "after-last-frame": "after the reply's last frame was handed to the source",
    "in-pause": "inside a pause that an earlier noise brought",
    "twice": "after an earlier noise paused and resumed the same reply",
    "follow-up": "in the reply that follows one that code interrupted",
}
"""Places a barge-in can land at beside so many milliseconds of the reply."""

BEFORE_FIRST_FRAME: Final = "before-first-frame"
FIRST_FRAME: Final = "first-frame"
AFTER_LAST_FRAME: Final = "after-last-frame"

SOURCE_RATE_HZ: Final = 24_000
"""Rate of the room output's source, LiveKit's own default."""

CONTROL_MS: Final = 1003
"""Length of the control reply. Not a whole number of blocks, so that its tail shows."""


@dataclass(frozen=True, slots=True)
class Axes:
    """What is varied from run to run."""

    pacing: Pacing = "burst"
    """``burst``: the TTS delivers all at once; ``realtime``: as fast as it plays, a realtime model
    `RealtimeOptions.speed` times as fast; ``stalled``: all at once up to the barge-in's place, then
    nothing until the call has dealt with it."""
    frame_ms: float = 20.0
    """Length of the frames the TTS delivers."""
    rate_hz: int = SOURCE_RATE_HZ
    """Rate of the TTS. Where it is not the source's, the session resamples."""
    reply_ms: int = 2995
    at: int | Place = 600
    """Where the barge-in lands: milliseconds of the reply handed to the source, or one of
    `PLACES`."""
    reply: ReplyKind = "generated"
    """``generated``: the session has the LLM and the TTS make it; ``say``: code has a ready-made
    audio stream said; ``tool``: generated, with a tool call between its two halves."""
    channels: int = 1
    """Of TTS and source."""
    close_ms: int = 0
    """How long the reply's audio stream takes to close once it has ended or was cut."""

    def __post_init__(self) -> None:
        """Raises: `ScenarioError` naming the axis and what it may be."""
        check_one_of("pacing", self.pacing, PACINGS)
        check_range("frame-ms", self.frame_ms, 1, 1000)
        check_range("rate", self.rate_hz, 8000, 48_000, " Hz")
        check_range("reply-ms", self.reply_ms, 100, 600_000)
        check_one_of("reply", self.reply, REPLY_KINDS)
        if self.channels not in (1, 2):
            raise ScenarioError(f"channels: expected 1 or 2, found {self.channels}")
        check_range("close-ms", self.close_ms, 0, 10_000)
        if self.at in PLACES:
            return
        if not isinstance(self.at, int) or self.at < 0:
            places = ", ".join(PLACES)
            raise ScenarioError(
                f"at: expected milliseconds from 0 or one of {places}, found {self.at!r}"
            )
        if self.at >= self.reply_ms:
            raise ScenarioError(
                f"at: the reply is {self.reply_ms} ms long, a barge-in can't land at {self.at} ms"
            )

    @property
    def landing_ms(self) -> int | None:
        """Where in the reply the (first) landing is, ``None`` at its first and after its last
        frame."""
        if isinstance(self.at, int):
            return self.at
        if self.at in (BEFORE_FIRST_FRAME, FIRST_FRAME, AFTER_LAST_FRAME):
            return None
        return min(600, self.reply_ms // 3)


def check_one_of(name: str, value: object, words: Sequence[str]) -> None:
    """Raises: `ScenarioError` where it is none of the words."""
    if value not in words:
        raise ScenarioError(f"{name}: expected one of {', '.join(words)}, found {value!r}")


def check_range(name: str, value: float, least: int, most: int, unit: str = "") -> None:
    """Raises: `ScenarioError` where it is not from ``least`` to ``most``."""
    if not least <= value <= most:
        raise ScenarioError(f"{name}: expected {least} to {most}{unit}, found {value:g}")
