"""A scripted call as data: what happens in it, and what a healthy build shows for it.

The runner interprets its steps, one after the other, while the framework's own code decides what
becomes of the reply; nothing in here knows livekit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, get_args

from probe.errors import ScenarioError
from probe.scenarios.axes import BEFORE_FIRST_FRAME, PLACES, Axes, Place, check_one_of, check_range
from probe.scenarios.script import STEPS_OF_REALTIME, Step, steps

__all__ = ["FEATURES", "Feature", "RealtimeOptions", "Scenario", "SessionOptions"]

Feature = Literal[
    "interruption-model", "vad-before-model", "pause", "echo-warmup", "stereo", "realtime"
]
"""What a scenario needs of a release; `probe.scenarios.releases` finds out whether it has it."""
FEATURES: Final[tuple[Feature, ...]] = get_args(Feature)


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
        check_range("cancel_ms", self.cancel_ms, 0, 10_000)
        check_one_of("streams", self.streams, get_args(Streams))


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
        if not self.options.interruption_model and any(s.do == "verdict" for s in self.steps):
            raise ScenarioError(
                "options.interruption_model: expected true, there is a `verdict` in the steps"
            )

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
    def header(self) -> dict[str, Any]:
        """What a trace of it says about itself."""
        return {"scenario": self.name, **asdict(self.axes)}

    @property
    def reply_takes_ms(self) -> int:
        """How long a reply takes: one that is generated more slowly than it plays takes longer."""
        speed = 1.0 if self.realtime is None else min(self.realtime.speed, 1.0)
        return int(self.axes.reply_ms / speed)

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
    def barges_in(self) -> bool:
        """Whether somebody interrupts a reply that is under way."""
        names = [step.do for step in self.steps]
        begun = next((nth for nth, name in enumerate(names) if name in _BEGINS), None)
        return begun is not None and "await-end" not in names[:begun]

    @property
    def replies(self) -> int:
        """Replies the script goes through before the control."""
        return 1 + sum(step.do in ("reply", "await-reply") for step in self.script)


_SPEAK: Final = Step("speak", ms=600)
_MOMENT: Final = Step("wait", ms=60)

_BEFORE_LANDING: Final[Mapping[int | str, tuple[Step, ...]]] = {
    # The noise is over for the VAD after 200 ms of silence, and the pause long after that.
    "in-pause": steps(
        "land", _SPEAK, "await-paused", _MOMENT, "hush", Step("wait", ms=300)
    ),
    "twice": steps("land", _SPEAK, "await-paused", _MOMENT, "hush", "await-resumed"),
    "follow-up": steps("land", "interrupt", "await-end", "reply", "land"),
}  # fmt: skip
"""By place, what stands for a script's ``land``."""

_BEGINS: Final = ("speak", "detect", "interrupt", "interrupt-handle")
"""Steps that begin a barge-in, if a reply is under way."""
