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

ReplyKind = Literal["generated", "say", "tool"]
REPLY_KINDS: Final[tuple[ReplyKind, ...]] = ("generated", "say", "tool")

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

Feature = Literal[
    "interruption-model", "vad-before-model", "pause", "echo-warmup", "stereo", "realtime"
]
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
    "reply",
    "await-reply",
    "swap",
    "pause",
    "resume",
    "block",
    "await-created",
    "await-generated",
    "detect",
    "respond",
    "interrupt-handle",
]

STEPS: Final[dict[StepName, str]] = {
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

STEPS_WITH_MS: Final[frozenset[StepName]] = frozenset({"speak", "wait", "block"})
"""Steps that need ``ms``."""
STEPS_OF_REALTIME: Final[frozenset[StepName]] = frozenset(
    {"await-created", "await-generated", "detect", "respond"}
)
"""Steps that need a realtime model."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script."""

    do: StepName
    ms: int | None = None
    """speak, wait: milliseconds of the caller's audio. land: milliseconds of the reply handed to
    the source, instead of ``at``. block: milliseconds of time."""
    interruption: bool = True
    """verdict: what the model says."""
    message: int | None = None
    """await-created, detect: number of a message of the reply, from 1. await-created: 1 where it
    is left out."""


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
    aec_warmup_s: float | None = None
    """How long after the agent began to speak for the first time activity does not interrupt it,
    while echo cancellation settles. Here ``None`` switches it off, whatever the release does."""


Streams = Literal["channel", "generator"]
STREAMS: Final[tuple[Streams, ...]] = ("channel", "generator")


@dataclass(frozen=True, slots=True)
class RealtimeOptions:
    """The realtime model a call has for its agent, and how the model's server behaves."""

    messages: tuple[int, ...] = (1, 1)
    """Messages of a reply, by the share of its length each takes."""
    speed: float = 4.0
    """How much faster than it plays audio is generated, with the pacing ``realtime``; below 1 it is
    slower."""
    cancel_ms: int = 30
    """How long after a cancel was sent the responses it hit end."""
    streams: Streams = "channel"
    """What messages, text and audio come in: ``channel``, LiveKit's own, of which can be asked
    what lies in it; ``generator``, plain asynchronous generators."""
    detects_turns: bool = True
    """Whether the server finds out that the caller speaks. Where not, the session has a VAD."""
    in_task: bool = False
    """Whether the reply is given inside an `AgentTask` that the agent awaits. The control reply is
    the agent's own."""

    def __post_init__(self) -> None:
        """Raises: `ScenarioError` naming the option and what it may be."""
        if not self.messages or not all(share > 0 for share in self.messages):
            raise ScenarioError(f"messages: expected shares from 1, found {list(self.messages)}")
        if not 0 < self.speed <= 1000:
            raise ScenarioError(f"speed: expected more than 0, up to 1000, found {self.speed:g}")
        if not 0 <= self.cancel_ms <= 10_000:
            raise ScenarioError(f"cancel_ms: expected 0 to 10000, found {self.cancel_ms}")
        if self.streams not in STREAMS:
            raise ScenarioError(
                f"streams: expected one of {', '.join(STREAMS)}, found {self.streams!r}"
            )


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
        if self.pacing not in PACINGS:
            expected = ", ".join(PACINGS)
            raise ScenarioError(f"pacing: expected one of {expected}, found {self.pacing!r}")
        if not 1 <= self.frame_ms <= 1000:
            raise ScenarioError(f"frame-ms: expected 1 to 1000, found {self.frame_ms:g}")
        if not 8000 <= self.rate_hz <= 48_000:
            raise ScenarioError(f"rate: expected 8000 to 48000 Hz, found {self.rate_hz}")
        if not 100 <= self.reply_ms <= 600_000:
            raise ScenarioError(f"reply-ms: expected 100 to 600000, found {self.reply_ms}")
        if self.reply not in REPLY_KINDS:
            expected = ", ".join(REPLY_KINDS)
            raise ScenarioError(f"reply: expected one of {expected}, found {self.reply!r}")
        if self.channels not in (1, 2):
            raise ScenarioError(f"channels: expected 1 or 2, found {self.channels}")
        if not 0 <= self.close_ms <= 10_000:
            raise ScenarioError(f"close-ms: expected 0 to 10000, found {self.close_ms}")
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
    realtime: RealtimeOptions | None = None
    """The realtime model; ``None``: the agent has an LLM and a TTS."""
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

    def __post_init__(self) -> None:
        """Raises: `ScenarioError` where the parts do not go together."""
        if self.realtime is not None and self.axes.reply != "generated":
            raise ScenarioError(
                "reply: expected generated, a realtime model speaks for itself, "
                f"found {self.axes.reply!r}"
            )
        if self.realtime is None:
            for step in self.steps:
                if step.do in STEPS_OF_REALTIME:
                    raise ScenarioError(f"steps: `{step.do}` needs a realtime model")

    @property
    def required(self) -> frozenset[Feature]:
        """Everything it needs of a release."""
        required: set[Feature] = set(self.needs)
        if self.options.interruption_model:
            required.add("interruption-model")
        if any(step.do == "await-paused" for step in self.script):
            required.add("pause")
        if self.options.aec_warmup_s is not None:
            required.add("echo-warmup")
        if self.axes.channels > 1:
            required.add("stereo")
        if self.realtime is not None:
            required.add("realtime")
        return frozenset(required)

    @property
    def script(self) -> tuple[Step, ...]:
        """The steps, with what has to happen before the barge-in can land at its place."""
        before = _BEFORE_LANDING.get(self.axes.at)
        landing = next((i for i, step in enumerate(self.steps) if step.do == "land"), None)
        if before is None or landing is None:
            return self.steps
        if self.axes.at == "twice":
            before = (*before, Step("land", ms=2 * (self.axes.landing_ms or 0)))
        return (*self.steps[:landing], *before, *self.steps[landing + 1 :])

    def with_axes(self, axes: Axes) -> Scenario:
        """The same call with other axes.

        Raises: `ScenarioError` where the barge-in can't land there.
        """
        reason = self.cannot_land(axes.at)
        if reason is not None:
            raise ScenarioError(f"{self.name}: {reason}; give --at in ms")
        return replace(self, axes=axes)

    def cannot_land(self, at: int | Place) -> str | None:
        """Why the barge-in can't land there, in one line; ``None``: it can."""
        if isinstance(at, int) or at == self.axes.at:
            return None
        options = self.options
        if at == BEFORE_FIRST_FRAME and not self.lands_before_first_frame:
            return "the barge-in can't land before the first frame, the agent has to be speaking"
        if all(step.do != "land" for step in self.steps):
            return f"its place is fixed, it can't land {PLACES[at]}"
        if at in _BEFORE_LANDING and all(
            step.do not in ("speak", "interrupt") for step in self.steps
        ):
            return "there is no barge-in in it"
        if options.allow_interruptions is False and at in _BEFORE_LANDING:
            return f"it can't land {PLACES[at]}, its replies allow no interruptions"
        if at not in ("in-pause", "twice"):
            return None
        if self.realtime is not None and self.realtime.detects_turns:
            return f"it can't land {PLACES[at]}, what the model's server hears does not pause it"
        if options.resume_false_interruption is False:
            return f"it can't land {PLACES[at]}, its session does not pause"
        if options.interruption_model and options.backchannel_boundary_s == 0:
            return f"it can't land {PLACES[at]}, only the model's verdict pauses it"
        return None

    @property
    def caller_gets_reply(self) -> bool:
        """Whether the caller's last words bring a reply, which then is the control."""
        if self.options.allow_interruptions is False:
            return False
        kinds = [step.do for step in self.steps if step.do in _BRINGS_REPLY]
        return bool(kinds) and kinds[-1] == "transcript"

    @property
    def replies(self) -> int:
        """Replies the script goes through before the control."""
        return 1 + sum(step.do in ("reply", "await-reply") for step in self.script)


_BRINGS_REPLY: Final[frozenset[StepName]] = frozenset({"transcript", "reply", "await-reply"})


def _steps(*steps: Step | StepName) -> tuple[Step, ...]:
    return tuple(step if isinstance(step, Step) else Step(step) for step in steps)


_SPEAK: Final = Step("speak", ms=600)
_MOMENT: Final = Step("wait", ms=60)
_QUEUE: Final = Step("wait", ms=300)
"""Longer than the source's queue: what a pause leaves in it has played when this is over."""

_BEFORE_LANDING: Final[dict[int | str, tuple[Step, ...]]] = {
    # The noise is over for the VAD after 200 ms of silence, and the pause long after that.
    "in-pause": _steps(
        "land", _SPEAK, "await-paused", _MOMENT, "hush", Step("wait", ms=300)
    ),
    "twice": _steps("land", _SPEAK, "await-paused", _MOMENT, "hush", "await-resumed"),
    "follow-up": _steps("land", "interrupt", "await-end", "reply", "land"),
}  # fmt: skip
"""By place, what stands for a script's ``land``."""

_LATE_VERDICT: Final = (
    "LiveKit's own client of the model stops listening when a reply is paused; here the verdict "
    "comes all the same, so that the session's code for a verdict on a paused reply runs"
)

_OPTIONS: Final = SessionOptions(false_interruption_timeout_s=0.6, min_endpointing_delay_s=0.3)
"""Delays shorter than any default, so that a call is over sooner; the rest as it comes."""
_MODEL_BESIDE_VAD: Final = replace(_OPTIONS, interruption_model=True, backchannel_boundary_s=60.0)
"""VAD may pause although the model is on, wherever the barge-in lands."""


_REALTIME: Final = Axes(pacing="realtime")
"""With the other pacings the server has generated all of a reply before it can be interrupted."""
_FAST: Final = (
    "the model generates four times as fast as it plays; with the pacing burst it has generated "
    "all of the reply before the interruption, and there is nothing to cancel"
)

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
    Scenario(
        name="long-reply",
        summary="a reply of a minute is interrupted like barge-in-activity, the sink full of it",
        healthy="kind activity, outcome committed; the leak is no longer than in a short reply",
        options=_OPTIONS,
        axes=Axes(reply_ms=60_000),
        steps=_steps(
            "land", _SPEAK, "await-paused", _QUEUE, "hush", _MOMENT, "transcript", "await-end",
        ),
    ),
    Scenario(
        name="sink-swapped",
        summary="the session gets a new sink while it speaks through the old one; then a barge-in",
        healthy="the speech stops on the sink it is played by; the next reply uses the new one",
        options=_OPTIONS,
        steps=_steps(
            "land", "swap", _SPEAK, "await-paused", _QUEUE, "hush", _MOMENT, "transcript",
            "await-end",
        ),
    ),
    Scenario(
        name="reply-over-caller",
        summary="code asks for a reply while the caller is speaking",
        healthy="nothing of it is sent before the caller has stopped",
        options=_OPTIONS,
        axes=Axes(reply_ms=995),
        steps=_steps(
            "land", "await-end", _QUEUE, Step("speak", ms=200), _MOMENT, "reply",
            Step("wait", ms=600), "hush", "await-end",
        ),
    ),
    Scenario(
        name="stale-verdict",
        summary="the model's verdict about an overlap with one reply comes in the next one",
        healthy="the next reply goes on; the verdict was about another",
        note=(
            "LiveKit's own client of the model stops listening when a reply is over; here an "
            "answer that was on its way arrives all the same. A reply it pauses is resumed "
            "once the caller has spoken again and stopped"
        ),
        options=replace(_OPTIONS, interruption_model=True, backchannel_boundary_s=0.0),
        axes=Axes(reply_ms=995, at=600),
        lands_before_first_frame=False,
        steps=_steps(
            "land", _SPEAK, _MOMENT, "await-end", "hush", _QUEUE, "reply", Step("land", ms=300),
            "verdict", Step("wait", ms=1000), _SPEAK, _MOMENT, "hush", "await-end",
        ),
    ),
    Scenario(
        name="realtime-between-messages",
        summary=(
            "a realtime model's reply is interrupted as its first message has finished playing; "
            "the second exists on the server and is not being played"
        ),
        healthy="the second message is on neither side; the response is cancelled in time",
        expect=(
            "kind == activity",
            "conversation.same",
            "no cancel-missing",
            "control.whole",
        ),
        note="the model generates half again as fast as it plays, so the second is under way",
        options=_OPTIONS,
        axes=replace(_REALTIME, reply_ms=3000),  # whole blocks: no tail stays in the source
        realtime=RealtimeOptions(speed=1.5),
        steps=_steps(
            Step("await-created", message=2), Step("detect", message=1), "await-end", _MOMENT,
            "hush",
        ),
    ),
    Scenario(
        name="realtime-mid-message",
        summary="the caller cuts the first message of a reply; the second exists on the server",
        healthy=(
            "the first message is truncated where it was cut, the second is on neither side; "
            "the response is cancelled in time"
        ),
        expect=(
            "kind == activity",
            "conversation.same",
            "no cancel-missing",
            "control.whole",
        ),
        note=_FAST,
        options=_OPTIONS,
        axes=replace(_REALTIME, reply_ms=5995),
        realtime=RealtimeOptions(messages=(1, 3)),
        steps=_steps(
            "land", Step("await-created", message=2), _SPEAK, "await-interrupted", _MOMENT,
            "hush", _QUEUE, "await-end",
        ),
    ),
    Scenario(
        name="realtime-before-first-frame",
        summary="the caller speaks before the first frame of a reply whose message already exists",
        healthy="the message is on neither side; the response is cancelled in time",
        expect=(
            "kind == activity",
            "conversation.same",
            "no cancel-missing",
            "control.whole",
        ),
        options=_OPTIONS,
        axes=replace(_REALTIME, at=BEFORE_FIRST_FRAME),
        realtime=RealtimeOptions(),
        steps=_steps(
            # A moment, in which the agent asks for the audio of the message it was given.
            "land", _MOMENT, _SPEAK, "await-interrupted", _MOMENT, "hush", _QUEUE,
            "await-end",
        ),
    ),
    Scenario(
        name="realtime-handle-interrupt",
        summary=(
            "inside an agent task code interrupts the handle of a speech in its first message, "
            "past the session"
        ),
        healthy=(
            "the response is cancelled although nobody told the session; the second message is "
            "on neither side"
        ),
        expect=(
            "kind == programmatic",
            "conversation.same",
            "no cancel-missing",
            "control.whole",
        ),
        note=_FAST,
        options=_OPTIONS,
        axes=replace(_REALTIME, reply_ms=5995),
        realtime=RealtimeOptions(messages=(1, 3), in_task=True),
        steps=_steps(
            "land", Step("await-created", message=2), "interrupt-handle", "await-end",
            "await-generated",
        ),
    ),
    Scenario(
        name="realtime-late-interrupt",
        summary=(
            "a reply is interrupted by its handle when the server has ended its response and is "
            "making the next"
        ),
        healthy="no cancel is sent, it would hit the next response; the next reply arrives whole",
        expect=(
            "kind == programmatic",
            "conversation.same",
            "no cancel-misdirected",
            "control.whole",
        ),
        options=_OPTIONS,
        axes=replace(_REALTIME, reply_ms=2995),
        realtime=RealtimeOptions(messages=(1,)),
        steps=_steps(
            "land", "await-generated", "respond", "interrupt-handle", "await-end", "await-reply",
            "await-end",
        ),
    ),
    Scenario(
        name="realtime-uninterrupted",
        summary="nobody interrupts a realtime model's reply of two messages",
        healthy="both messages are sent whole and are on both sides",
        expect=(
            "barge_ins == 0",
            "swallowed == 0",
            "conversation.same",
            "control.whole",
        ),
        options=_OPTIONS,
        axes=_REALTIME,
        realtime=RealtimeOptions(),
        steps=_steps("land", _QUEUE, "await-end"),
    ),
)  # fmt: skip

CATALOGUE: Final[dict[str, Scenario]] = {scenario.name: scenario for scenario in _ALL}
"""Name to scenario, in the order they are listed."""

DEFAULT: Final = "barge-in"
