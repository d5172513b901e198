"""What happens in a scripted call: its steps, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from probe.errors import ScenarioError

__all__ = ["STEPS", "STEPS_OF_REALTIME", "Step", "steps"]

STEPS: Final[Mapping[str, str]] = {
    "land": "wait until the reply has come as far as the barge-in's place (`at`, or its own `ms`)",
    "speak": "the caller starts to speak: `ms` of speech arrive at once, then on in real time",
    "hush": "the caller falls silent",
    "await-paused": "wait until the sink is paused",
    "await-parked": "wait until a frame stands at the closed gate",
    "await-resumed": "wait until the sink is resumed",
    "await-interrupted": "wait until the speech is interrupted",
    "await-captured": "wait until the reply's first capture has begun",
    "await-end": "wait until the reply is over",
    "verdict": "the interruption model gives its verdict (`interruption` = true or false)",
    "transcript": "the STT delivers a final transcript of what the caller said",
    "interrupt": "code interrupts the speech",
    "subscribe": "the subscriber comes (the call starts without one)",
    "wait": "wait for `ms` of the caller's microphone, 20 ms a frame",
    "reply": "code asks for another reply, with which the script goes on",
    "await-reply": "wait for the reply the transcript brings, with which the script goes on",
    "swap": "the session's sink is exchanged for a new one",
    "pause": "code pauses the session's sink",
    "resume": "code resumes the session's sink",
    "block": "code keeps the session's loop from running for `ms`",
    "await-created": "wait until the realtime model's server has message `message` of the reply",
    "await-generated": "wait until the server has ended the reply's response",
    "detect": (
        "the caller starts to speak and the server reports it at once, or the very moment the "
        "playback of message `message` is reported as finished"
    ),
    "respond": "the server begins a response of its own accord; `await-reply` goes on with it",
    "interrupt-handle": "code interrupts the speech's handle itself, past the session",
}
"""Every step a script may take, with what it does."""

_WITH_MS: Final = frozenset({"speak", "wait", "block"})
"""Steps that need ``ms``."""
STEPS_OF_REALTIME: Final = frozenset({"await-created", "await-generated", "detect", "respond"})
"""Steps that need a realtime model."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script."""

    do: str
    """One of `STEPS`."""
    ms: int | None = None
    """speak, wait: milliseconds of the caller's audio. land: milliseconds of the reply handed to
    the source, instead of ``at``. block: milliseconds of time."""
    interruption: bool = True
    """verdict: what the model says."""
    message: int | None = None
    """await-created, detect: number of a message of the reply, from 1. await-created: 1 where it
    is left out."""

    def __post_init__(self) -> None:
        """Raises: `ScenarioError` naming the key and what it may be."""
        if self.do not in STEPS:
            raise ScenarioError(f"do: expected one of {', '.join(STEPS)}, found {self.do!r}")
        if self.do in _WITH_MS and self.ms is None:
            raise ScenarioError(f"ms: expected milliseconds for `{self.do}`")


def steps(*given: Step | str) -> tuple[Step, ...]:
    """Steps of which those that need nothing else are given by their name."""
    return tuple(step if isinstance(step, Step) else Step(step) for step in given)
