"""The scripted calls: what happens in each, and what a healthy build shows for it.

A scenario is data. The runner interprets its steps, one after the other, while the framework's own
code decides what becomes of the reply; nothing in here knows livekit. The same shapes are what a
user's own file describes (`probe.scenarios.files`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from probe.errors import ScenarioError

Pacing = Literal["burst", "realtime", "stalled"]
PACINGS: Final[tuple[Pacing, ...]] = ("burst", "realtime", "stalled")

BEFORE_FIRST_FRAME: Final = "before-first-frame"
"""Value of ``at`` for a barge-in that lands before the reply's first frame."""

SOURCE_RATE_HZ: Final = 24_000
"""Rate of the room output's source, LiveKit's own default."""

CONTROL_MS: Final = 1003
"""Length of the control reply. Not a whole number of blocks, so that its tail shows."""

Feature = Literal["interruption-model", "vad-before-model", "pause"]
"""What a scenario needs of a release; `probe.scenarios.releases` finds out whether it has it."""

StepName = Literal[
    "land",
    "speak",
    "hush",
    "await-paused",
    "await-parked",
    "await-resumed",
    "await-interrupted",
    "await-captured",
    "await-end",
    "verdict",
    "transcript",
    "interrupt",
    "subscribe",
    "wait",
]

STEPS: Final[dict[StepName, str]] = {
    "land": "wait until the reply has come as far as the barge-in's place (`at`)",
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
}
"""Every step a script may take, with what it does."""

STEPS_WITH_MS: Final[frozenset[StepName]] = frozenset({"speak", "wait"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script."""

    do: StepName
    ms: int | None = None
    """speak, wait: milliseconds of the caller's audio."""
    interruption: bool = True
    """verdict: what the model says."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of the session that decide interruptions. ``None`` leaves the release's default."""

    allow_interruptions: bool | None = None
    min_duration_s: float | None = None
    min_words: int | None = None
    false_interruption_timeout_s: float | None = None
    resume_false_interruption: bool | None = None
    discard_audio_if_uninterruptible: bool | None = None
    interruption_model: bool = False
    """Whether the session has the model, with its verdicts from the script."""
    backchannel_boundary_s: float | None = None
    """How long after the agent started to speak VAD still decides beside the model. 0: never."""
    min_endpointing_delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """What is varied from run to run."""

    pacing: Pacing = "burst"
    """``burst``: the TTS delivers all at once; ``realtime``: as fast as it plays; ``stalled``:
    all at once up to the barge-in's place, then nothing until the call has dealt with it."""
    frame_ms: float = 20.0
    """Length of the frames the TTS delivers."""
    rate_hz: int = SOURCE_RATE_HZ
    """Rate of the TTS. Where it is not the source's, the session resamples."""
    reply_ms: int = 2995
    at: int | Literal["before-first-frame"] = 600
    """Where the barge-in lands: milliseconds of the reply handed to the source."""

    def __post_init__(self) -> None:
        """Raises: `ScenarioError` naming the axis and what it may be."""
        if self.pacing not in PACINGS:
            expected = ", ".join(PACINGS)
            raise ScenarioError(f"pacing: expected one of {expected}, found {self.pacing!r}")
        if not 1 <= self.frame_ms <= 1000:
            raise ScenarioError(f"frame-ms: expected 1 to 1000, found {self.frame_ms:g}")
        if not 8000 <= self.rate_hz <= 48_000:
            raise ScenarioError(f"rate: expected 8000 to 48000 Hz, found {self.rate_hz}")
        if not 100 <= self.reply_ms <= 600_000:
            raise ScenarioError(f"reply-ms: expected 100 to 600000, found {self.reply_ms}")
        if self.at == BEFORE_FIRST_FRAME:
            return
        if not isinstance(self.at, int) or self.at < 0:
            raise ScenarioError(
                f"at: expected milliseconds from 0 or {BEFORE_FIRST_FRAME}, found {self.at!r}"
            )
        if self.at >= self.reply_ms:
            raise ScenarioError(
                f"at: the reply is {self.reply_ms} ms long, a barge-in can't land at {self.at} ms"
            )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scripted call."""

    name: str
    summary: str
    """What happens, in one line."""
    healthy: str
    """What a healthy build shows."""
    steps: tuple[Step, ...]
    needs: frozenset[Feature] = frozenset()
    """What it needs of a release beside what its steps and options imply; see `required`."""
    options: SessionOptions = field(default_factory=SessionOptions)
    axes: Axes = field(default_factory=Axes)
    """Where the axes stand unless the caller says otherwise."""
    lands_before_first_frame: bool = True
    """Whether ``at = before-first-frame`` makes sense for it."""
    subscribed: bool = True
    """Whether somebody subscribes to the track as the call starts."""
    ends: bool = True
    """Whether the reply has to end. Where not, one that never ends is a result and no error."""
    note: str = ""
    """What a reader has to know about how it is staged."""
    expect: tuple[str, ...] = ()
    """What has to hold in its trace on a healthy build, as `reports.assertions` reads it."""

    @property
    def required(self) -> frozenset[Feature]:
        """Everything it needs of a release."""
        required: set[Feature] = set(self.needs)
        if self.options.interruption_model:
            required.add("interruption-model")
        if any(step.do == "await-paused" for step in self.steps):
            required.add("pause")
        return frozenset(required)

    def with_axes(self, axes: Axes) -> Scenario:
        """The same call with other axes.

        Raises: `ScenarioError` where the barge-in can't land there.
        """
        if axes.at == BEFORE_FIRST_FRAME and not self.lands_before_first_frame:
            raise ScenarioError(
                f"{self.name}: the barge-in can't land before the first frame, "
                "the agent has to be speaking; give --at in ms"
            )
        return replace(self, axes=axes)

    @property
    def caller_gets_reply(self) -> bool:
        """Whether the caller's words bring a reply, which then is the control."""
        return (
            any(step.do == "transcript" for step in self.steps)
            and self.options.allow_interruptions is not False
        )


def _steps(*steps: Step | StepName) -> tuple[Step, ...]:
    return tuple(step if isinstance(step, Step) else Step(step) for step in steps)


_SPEAK: Final = Step("speak", ms=600)
_MOMENT: Final = Step("wait", ms=60)
_QUEUE: Final = Step("wait", ms=300)
"""Longer than the source's queue: what a pause leaves in it has played when this is over."""

_LATE_VERDICT: Final = (
    "LiveKit's own client of the model stops listening when a reply is paused; here the verdict "
    "comes all the same, so that the session's code for a verdict on a paused reply runs"
)

_OPTIONS: Final = SessionOptions(false_interruption_timeout_s=0.6, min_endpointing_delay_s=0.3)
"""Delays shorter than any default, so that a call is over sooner; the rest as it comes."""
_MODEL_BESIDE_VAD: Final = replace(_OPTIONS, interruption_model=True, backchannel_boundary_s=60.0)
"""VAD may pause although the model is on, wherever the barge-in lands."""


_ALL: Final = (
    Scenario(
        name="barge-in",
        summary=(
            "VAD pauses the reply, the model's verdict falls while frames are parked, "
            "the final transcript commits it"
        ),
        healthy="kind overlap, outcome committed; nothing pushed after the verdict",
        expect=(
            "kind == overlap",
            "outcome == committed",
            "no push after verdict",
            "control.whole",
        ),
        needs=frozenset({"vad-before-model"}),
        note=_LATE_VERDICT,
        options=_MODEL_BESIDE_VAD,
        steps=_steps(
            "land", _SPEAK, "await-paused", "await-parked", _MOMENT, "verdict", _MOMENT,
            "hush", _MOMENT, "transcript", "await-end",
        ),
    ),
    Scenario(
        name="barge-in-no-transcript",
        summary="the same verdict, and no transcript arrives before the timeout",
        healthy=(
            "outcome resumed; the whole tail of the reply goes out after a confirmed verdict, "
            "and the report says that this is what it is"
        ),
        expect=(
            "kind == overlap",
            "outcome == resumed",
            "control.whole",
        ),
        needs=frozenset({"vad-before-model"}),
        note=_LATE_VERDICT,
        options=_MODEL_BESIDE_VAD,
        steps=_steps(
            "land", _SPEAK, "await-paused", "await-parked", _MOMENT, "verdict", _MOMENT,
            "hush", "await-resumed", "await-end",
        ),
    ),
    Scenario(
        name="barge-in-model",
        summary=(
            "the model decides first and its verdict is what pauses; "
            "the final transcript commits it"
        ),
        healthy="kind overlap; nothing pushed after the verdict, at most the queue sent",
        expect=(
            "kind == overlap",
            "no push after verdict",
            "leaked.sent <= 200ms",
            "control.whole",
        ),
        options=replace(_OPTIONS, interruption_model=True, backchannel_boundary_s=0.0),
        lands_before_first_frame=False,
        steps=_steps(
            "land", _SPEAK, _MOMENT, "verdict", "await-paused", _QUEUE,
            "hush", _MOMENT, "transcript", "await-end",
        ),
    ),
    Scenario(
        name="barge-in-activity",
        summary="no model; VAD activity pauses the reply, the final transcript commits it",
        healthy=(
            "kind activity, the verdict is the pause; what the queue played after it is the leak"
        ),
        expect=(
            "kind == activity",
            "verdict == pause",
            "no push after verdict",
            "control.whole",
        ),
        options=_OPTIONS,
        steps=_steps(
            "land", _SPEAK, "await-paused", _QUEUE, "hush", _MOMENT, "transcript", "await-end",
        ),
    ),
    Scenario(
        name="barge-in-cut",
        summary="VAD activity cuts the reply at once: resuming is switched off",
        healthy="kind activity, no pause mark",
        expect=(
            "kind == activity",
            "no pause after onset",
            "control.whole",
        ),
        options=replace(_OPTIONS, resume_false_interruption=False),
        steps=_steps(
            "land", _SPEAK, "await-interrupted", _MOMENT, "hush", _MOMENT, "transcript",
            "await-end",
        ),
    ),
    Scenario(
        name="false-interruption",
        summary="a short noise pauses the reply, which resumes",
        healthy="no verdict, no leak; audio lost by the pause is swallowed audio",
        expect=(
            "no verdict",
            "outcome == resumed",
            "swallowed == 0",
        ),
        options=_OPTIONS,
        steps=_steps("land", _SPEAK, "await-paused", _MOMENT, "hush", "await-resumed", "await-end"),
    ),
    Scenario(
        name="caller-ignored",
        summary="the caller speaks over a reply that does not allow interruptions",
        healthy="outcome ignored, with the ms sent over the caller",
        expect=(
            "outcome == ignored",
            "over_caller.sent > 0",
            "control.whole",
        ),
        options=replace(
            _OPTIONS, allow_interruptions=False, discard_audio_if_uninterruptible=False
        ),
        steps=_steps("land", _SPEAK, Step("wait", ms=500), "hush", "await-end"),
    ),
    Scenario(
        name="programmatic",
        summary="code interrupts the speech",
        healthy="kind programmatic",
        expect=(
            "kind == programmatic",
            "control.whole",
        ),
        options=_OPTIONS,
        steps=_steps("land", "interrupt", "await-end"),
    ),
    Scenario(
        name="interrupted-before-subscribed",
        summary=(
            "the greeting is interrupted while its first frame waits for a subscriber, "
            "who comes later"
        ),
        healthy="later replies arrive whole",
        expect=(
            "control.whole",
        ),
        subscribed=False,
        ends=False,
        options=_OPTIONS,
        axes=Axes(at=BEFORE_FIRST_FRAME),
        steps=_steps(
            "await-captured", _MOMENT, "interrupt", Step("wait", ms=200), "subscribe",
            Step("wait", ms=100),
        ),
    ),
    Scenario(
        name="uninterrupted",
        summary="nobody interrupts",
        healthy="everything captured is sent but the tail, and the tail is shown",
        expect=(
            "barge_ins == 0",
            "swallowed == 0",
            "control.whole",
        ),
        options=_OPTIONS,
        steps=_steps("land", _QUEUE, "await-end"),
    ),
)  # fmt: skip

CATALOGUE: Final[dict[str, Scenario]] = {scenario.name: scenario for scenario in _ALL}
"""Name to scenario, in the order they are listed."""

DEFAULT: Final = "barge-in"
