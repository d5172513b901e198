"""What provokes each rule: the call, and the sink, the framework or the realtime model with just
that defect.

Descriptions only: nothing in here loads livekit. `tests` of this project run all of them, and so
can whoever wants to see what a finding looks like:

    from probe.testing import DEFECTS
    for provocation in DEFECTS["leak-after-verdict"]:
        trace = provocation.run("traces")
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from probe.scenarios.axes import BEFORE_FIRST_FRAME, Axes
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.runner import run_in_child
from probe.scenarios.scenario import RealtimeOptions, Scenario
from probe.scenarios.script import Step, steps

__all__ = ["DEFECTS", "REFERENCE", "Provocation"]

REFERENCE: Final = "probe.testing:ReferenceAudioOutput"
"""The mended sink of all defective ones."""


@dataclass(frozen=True, slots=True)
class Provocation:
    """A call that makes a rule fire."""

    rule: str
    name: str
    """What is wrong, in a few words."""
    scenario: Scenario
    sink: str = REFERENCE
    """``module:attribute`` of the sink."""
    driver: str | None = None
    """``module:attribute`` of what uses the sink wrongly."""
    model: str | None = None
    """``module:attribute`` of the realtime model."""
    mended: Scenario | None = None
    """The call that goes right, where not the sink but the call is what is wrong. ``None``: the
    same call on the reference sink, without a driver."""
    mended_model: str | None = None
    """The realtime model of the call that goes right; ``None``: the scripted one as it is."""

    def run(self, directory: Path | str, *, python: str = sys.executable) -> Path:
        """Runs it in a child process; the trace it left in ``directory``.

        Raises: `ScenarioError` where the release can't run it.
        """
        outcome = run_in_child(
            self.scenario,
            Path(directory),
            sink=self.sink,
            driver=self.driver,
            model=self.model,
            python=python,
        )
        return outcome.trace

    @property
    def cure(self) -> Provocation:
        """The same with what is wrong put right: the rule is silent."""
        return replace(
            self,
            scenario=self.mended or self.scenario,
            sink=REFERENCE,
            driver=None,
            model=self.mended_model,
            mended=None,
        )


def _sink(name: str) -> str:
    return f"probe.testing:{name}"


def _call(name: str, **axes: Any) -> Scenario:
    scenario = CATALOGUE[name]
    return scenario.with_axes(replace(scenario.axes, **axes))


_UNINTERRUPTED: Final = _call("uninterrupted", reply_ms=795, at=0)
_CUT: Final = _call("barge-in-cut", reply_ms=995, at=300)
_PAUSED: Final = _call("barge-in-activity", reply_ms=1495, at=300)
_RESUMED: Final = _call("false-interruption", reply_ms=995, at=300)

_OPTIONS: Final = CATALOGUE["barge-in-activity"].options


def _spoken_over(name: str, *before_hush: Step, **options: Any) -> Scenario:
    """The caller speaks for 1.3 s over a reply of 2 s that goes on."""
    return Scenario(
        name=f"caller-ignored-{name}",
        summary="the caller speaks over a reply that goes on",
        healthy="outcome ignored",
        options=replace(_OPTIONS, **options),
        axes=Axes(reply_ms=1995, at=200),
        steps=steps(
            "land",
            Step("speak", ms=200),
            Step("wait", ms=1100),
            *before_hush,
            "hush",
            Step("wait", ms=300),
            "await-end",
        ),
    )


_TTS_STALL: Final = replace(
    _call("uninterrupted", pacing="stalled", reply_ms=795, at=400),
    name="tts-stall",
    summary="the TTS stalls in the middle of a reply",
    healthy="a silence in the middle, starved",
    steps=steps("land", Step("wait", ms=1500), "await-end"),
)
_OVER_CALLER: Final = replace(
    CATALOGUE["reply-over-caller"],
    options=replace(_OPTIONS, allow_interruptions=False, discard_audio_if_uninterruptible=False),
)
_BLOCKED: Final = replace(
    _PAUSED,
    name="blocked",
    summary="like barge-in-activity, with the session's loop blocked while the reply is paused",
    steps=steps(
        "land", Step("speak", ms=600), "await-paused", Step("block", ms=300), "hush",
        Step("wait", ms=60), "transcript", "await-end",
    ),
)  # fmt: skip
_BURST: Final = replace(
    _RESUMED,
    name="resume-burst",
    summary="a reply that was paused and resumed is interrupted by code right after",
    axes=replace(_RESUMED.axes, reply_ms=1995),
    steps=steps(
        "land", Step("speak", ms=600), "await-paused", Step("wait", ms=60), "hush",
        "await-resumed", Step("wait", ms=200), "interrupt", "await-end",
    ),
)  # fmt: skip


_MID_MESSAGE: Final = _call("realtime-mid-message", reply_ms=3995, at=300)
_SLOW_CANCEL: Final = replace(
    _MID_MESSAGE, realtime=RealtimeOptions(messages=(1, 3), cancel_ms=400)
)


def _by_rule(provocations: Iterable[Provocation]) -> Mapping[str, tuple[Provocation, ...]]:
    found: dict[str, tuple[Provocation, ...]] = {}
    for provocation in provocations:
        found[provocation.rule] = (*found.get(provocation.rule, ()), provocation)
    return MappingProxyType(found)


_P = Provocation

DEFECTS: Final = _by_rule((
    _P(
        "leak-after-verdict", "not stopped: the audio stream is slow to close",
        _call("barge-in-cut", pacing="realtime", reply="say", reply_ms=1495, at=300, close_ms=400),
        mended=_call("barge-in-cut", pacing="realtime", reply="say", reply_ms=1495, at=300),
    ),
    _P(
        "leak-after-verdict", "the queue plays on after a pause",
        _call("barge-in-activity", pacing="stalled", reply_ms=1495, at=300),
        sink=_sink("HaltsGateOnly"),
    ),
    _P("leak-after-verdict", "the pause is ignored", _PAUSED, sink=_sink("IgnoresPause")),
    _P("leak-after-verdict", "the source is never cleared", _CUT, sink=_sink("LeavesSourceFull")),
    _P("leak-after-verdict", "the source is cleared late", _CUT, sink=_sink("ClearsSourceLate")),
    _P("leak-after-verdict", "pushed after the clear", _CUT, sink=_sink("PushesAfterClear")),
    _P(
        "leak-after-verdict", "the rest of a long frame",
        _call("barge-in-cut", reply_ms=1495, at=300), sink=_sink("FeedsLongFrames"),
    ),
    _P("resume-before-clear", "resumed before cleared", _PAUSED,
       driver=_sink("ResumesFirst")),
    _P("never-cleared", "nobody clears", _CUT, driver=_sink("ForgetsClear")),
    _P(
        "resumed-after-verdict", "no transcript confirms the model's verdict",
        _call("barge-in-no-transcript", reply_ms=1495, at=300),
        mended=_call("barge-in", reply_ms=1495, at=300),
    ),
    _P("old-audio-in-new-segment", "the sink keeps its buffer", _CUT, sink=_sink("KeepsBuffer")),
    _P("late-frames", "captured after the clear", _CUT, driver=_sink("CapturesLate")),
    _P("late-frames", "the sink swallows the cancellation", _CUT,
       sink=_sink("SwallowsCancellation")),
    _P("swallowed-audio", "the source is cleared in the middle", _UNINTERRUPTED,
       sink=_sink("ClearsMidway")),
    _P("swallowed-audio", "a resume drops frames", _RESUMED, sink=_sink("DropsAtResume"),
       mended=_UNINTERRUPTED),
    _P("sink-refuses", "a cancelled future", _CUT, sink=_sink("RefusesAfterClear")),
    _P("sink-refuses", "another rate than the source's",
       _call("uninterrupted", reply_ms=795, at=0, rate_hz=16_000), sink=_sink("TakesAnyRate")),
    _P("relabelled-rate", "16 kHz played as 24 kHz",
       _call("uninterrupted", reply_ms=795, at=0, rate_hz=16_000), sink=_sink("RelabelsRate")),
    _P("swallowed-reply", "muted after a clear", _CUT, sink=_sink("MutesAfterClear")),
    _P("speaking-but-silent", "the sink holds audio back", _UNINTERRUPTED,
       sink=_sink("HoldsBack")),
    _P("speaking-but-silent", "the TTS stalls", _TTS_STALL, mended=_UNINTERRUPTED),
    _P("gate-left-closed", "nobody resumes", replace(_PAUSED, ends=False),
       driver=_sink("ForgetsResume")),
    _P("gap-in-speech", "held in the sink", _UNINTERRUPTED, sink=_sink("StarvesSource")),
    _P("gap-in-speech", "starved: the TTS stalls", _TTS_STALL, mended=_UNINTERRUPTED),
    _P("position-off", "claims more than was sent", _UNINTERRUPTED, sink=_sink("ClaimsMore")),
    _P("finished-uninterrupted", "cut, reported as not interrupted", _CUT,
       sink=_sink("ReportsUninterrupted")),
    _P("finished-uninterrupted", "whole, reported as interrupted", _UNINTERRUPTED,
       sink=_sink("ReportsInterrupted")),
    _P("committed-unheard", "nothing is played", _UNINTERRUPTED, sink=_sink("PlaysNothing")),
    _P("segment-never-finished", "no finish", replace(_UNINTERRUPTED, ends=False),
       sink=_sink("NeverFinishes")),
    _P("extra-finish", "finished twice", _UNINTERRUPTED, sink=_sink("FinishesTwice")),
    _P("started-twice", "started again by a resume", _RESUMED, sink=_sink("StartsTwice")),
    _P("started-before-captured", "started as the one before ends", _UNINTERRUPTED,
       sink=_sink("StartsEarly")),
    _P("finish-before-sent", "finished when handed over", _UNINTERRUPTED,
       sink=_sink("FinishesEarly")),
    _P("caller-ignored", "interruptions not allowed",
       _spoken_over("not-allowed", allow_interruptions=False,
                    discard_audio_if_uninterruptible=False), mended=_PAUSED),
    _P("caller-ignored", "echo warm-up", _spoken_over("warm-up", aec_warmup_s=10.0),
       mended=_PAUSED),
    _P("caller-ignored", "too few words", _spoken_over("words", min_words=9), mended=_PAUSED),
    _P("caller-ignored", "too short", _spoken_over("duration", min_duration_s=5.0),
       mended=_PAUSED),
    _P("caller-ignored", "a backchannel for the model",
       _spoken_over("backchannel", Step("verdict", interruption=False),
                    interruption_model=True, backchannel_boundary_s=0.0), mended=_PAUSED),
    _P("loop-blocked", "blocked between verdict and clear", _BLOCKED, mended=_PAUSED),
    _P("reply-over-caller", "a reply nobody may interrupt", _OVER_CALLER,
       mended=_UNINTERRUPTED),
    _P("resume-burst", "interrupted right after a resume", _BURST, mended=_RESUMED),
    _P("stale-verdict", "the verdict is about the reply before", CATALOGUE["stale-verdict"],
       mended=_call("barge-in-model", reply_ms=995, at=300)),
    _P("capture-stalled", "the sink waits in a capture", _UNINTERRUPTED,
       sink=_sink("BlocksCapture")),
    _P("bad-geometry", "empty frames", _UNINTERRUPTED, driver=_sink("EmptyFrames")),
    _P("bad-geometry", "more data than samples", _UNINTERRUPTED, driver=_sink("PadsFrames")),
    _P("bad-geometry", "the rate changes", _UNINTERRUPTED, driver=_sink("ChangesRate")),
    _P("ghost-message", "a second message nobody played", _MID_MESSAGE,
       mended_model=_sink("TidiesUp")),
    _P("ghost-message", "interrupted before its first frame",
       _call("realtime-before-first-frame", reply_ms=1995, at=BEFORE_FIRST_FRAME),
       mended_model=_sink("TidiesUp")),
    _P("lost-message", "deleted as it is truncated", _MID_MESSAGE, model=_sink("DropsTruncated")),
    _P("lost-message", "without text", _call("realtime-uninterrupted", reply_ms=1495, at=300),
       model=_sink("SaysNoWords")),
    _P("truncation-off", "truncated elsewhere", _MID_MESSAGE, model=_sink("TruncatesElsewhere")),
    _P("cancel-missing", "never cancelled", _MID_MESSAGE, model=_sink("NeverCancels")),
    _P("cancel-misdirected", "cancelled when the next has begun",
       CATALOGUE["realtime-late-interrupt"], model=_sink("CancelsAnyway")),
    _P("generation-overrun", "the server takes its time", _SLOW_CANCEL, mended=_MID_MESSAGE),
    _P("generation-overrun", "never cancelled", _MID_MESSAGE, model=_sink("NeverCancels")),
))  # fmt: skip
"""By rule, in the order of the rules."""
