"""The words of the language: what each stands for, and where it is found in an analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from reports.account.boundary import BOUNDARIES
from reports.assertions.reading import Name, Reading, never, unknown
from reports.results import (
    Analysis,
    BargeIn,
    GenerationStop,
    Leak,
    LeakCause,
    Length,
    Measured,
    Outcome,
    Realtime,
    VerdictKind,
)
from reports.units import one_rate

__all__ = ["AUDIO_EVENTS", "AUDIO_INSTANTS", "EVENTS", "MARKS", "NAMES", "WORDS"]

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": get_args(VerdictKind),
    "outcome": get_args(Outcome),
}
"""What each word can be."""

MARKS: Final = ("pause", "resume", "clear", "flush")
"""Marks of the sink; `no MARK` looks for them."""

AUDIO_EVENTS: Final = {"capture": "captured", "push": "pushed", "send": "sent"}
"""Audio of the interrupted speech crossing a boundary, as `no EVENT` names it."""

EVENTS: Final = (*AUDIO_EVENTS, *MARKS)

AUDIO_INSTANTS: Final = {
    "onset": "after_onset",
    "pause": "after_pause",
    "verdict": "leaked",
    "commit": "after_commit",
    "clear": "after_clear",
    "source_clear": "after_source_clear",
    "resume": "after_resume",
}
"""Instants from which on the audio of a speech is counted, and the name of what is."""

_FLOW: Final = tuple(boundary.name for boundary in BOUNDARIES)

_Find = Callable[[Analysis, Any], Any]
"""See `Name.find`."""


# --- Where they are found ------------------------------------------------------------------------


def _instant(name: str) -> _Find:
    return lambda _, barge_in: getattr(barge_in, f"{name}_ns")


def _started(analysis: Analysis, barge_in: BargeIn) -> int | None:
    mine = [s for s in analysis.segments if s.speech_id == barge_in.speech_id]
    return min((s.started_ns for s in mine), default=None)


def _finished(analysis: Analysis, barge_in: BargeIn) -> int | None:
    mine = [s for s in analysis.segments if s.speech_id == barge_in.speech_id]
    return next((s.finished_ns for s in mine if s.index == barge_in.segment), None)


def _untold(how: str = "sent") -> Reading:
    return unknown(f"the trace can't tell how much of it was {how}")


def _crossed(name: str, boundary: str) -> _Find:
    def find(analysis: Analysis, barge_in: BargeIn) -> Leak | Reading:
        counted: Mapping[str, Leak | None] | None = getattr(barge_in, name)
        if counted is None:
            instants = {field: instant for instant, field in AUDIO_INSTANTS.items()}
            return never(analysis, f"{instants.get(name, 'onset')} never came")
        return counted.get(boundary) or _untold(boundary)

    return find


def _cause(cause: str) -> _Find:
    def find(_: Analysis, barge_in: BargeIn) -> Measured | Reading:
        if barge_in.causes is None:
            return _untold()
        return next((c for c in barge_in.causes if c.cause == cause), Length(0, None))

    return find


def _stop(_: Analysis, barge_in: BargeIn) -> int | Reading:
    return _untold() if barge_in.stop_ns is None else barge_in.stop_ns


def _swallowed(analysis: Analysis, _: None) -> Measured | Reading:
    samples = analysis.totals.swallowed_samples
    if samples is None:
        return unknown("the trace can't tell what was swallowed")
    lost = [segment for segment in analysis.segments if segment.swallowed_samples]
    return Length(samples, one_rate(g.rate_hz for s in lost for g in s.geometry["captured"]))


def _unaccounted(analysis: Analysis, _: None) -> Reading:
    samples = analysis.unaccounted_samples
    if samples is None:
        return unknown("the trace is incomplete, so there is no balance")
    return Reading(samples=samples)


def _outcome(analysis: Analysis, barge_in: BargeIn) -> str | Reading:
    return barge_in.outcome or never(analysis, "the outcome was never decided")


def _balanced(analysis: Analysis, _: None) -> bool | Reading:
    if analysis.balanced is None:
        return unknown("the trace is incomplete or a boundary was not tapped")
    return analysis.balanced


def _control(analysis: Analysis, _: None) -> bool | Reading:
    control = analysis.run.control if analysis.run is not None else None
    if control is None:
        return never(analysis, "there was no control reply")
    if control.whole is None:
        return unknown("the trace can't tell whether the control arrived whole")
    return control.whole


# --- Realtime models -----------------------------------------------------------------------------


def _of_model(of: Callable[[Realtime], Any]) -> _Find:
    def find(analysis: Analysis, _: None) -> Any:
        if analysis.realtime is None:
            return never(analysis, "there was no realtime model")
        return of(analysis.realtime)

    return find


def _of_stop(of: Callable[[Analysis, GenerationStop], Any]) -> _Find:
    """Of how the generation of the interrupted speech was stopped."""

    def find(analysis: Analysis, barge_in: BargeIn) -> Any:
        if analysis.realtime is None:
            return never(analysis, "there was no realtime model")
        for stop in analysis.realtime.stops:
            if stop.speech_id == barge_in.speech_id:
                return of(analysis, stop)
        return never(analysis, "no response of a realtime model was interrupted")

    return find


def _generating(_: Analysis, stop: GenerationStop) -> int | Reading:
    if stop.generating_ns is None:
        return unknown("the end of the response was not seen")
    return stop.generating_ns


def _generated(analysis: Analysis, stop: GenerationStop) -> Reading:
    made = stop.generated_after
    if made is None:
        return unknown("the model's streams do not say what was generated")
    return Reading(ns=made.ns, samples=made.samples, more=not analysis.trace.complete)


def _same(realtime: Realtime) -> bool | Reading:
    rows = realtime.conversation
    if any(row.difference in ("server only", "history only") for row in rows):
        return False
    if not rows or any(None in (row.server, row.local) for row in rows):
        return unknown("the trace can't tell what both sides hold")
    return True


# --- All of them ---------------------------------------------------------------------------------


def _seen(name: str, meaning: str, tap: str = "", find: _Find | None = None, at: str = "") -> Name:
    """An instant that the tap at a boundary sees, or the session tells."""
    needs = (tap,) if tap else ()
    return Name(name, "instant", meaning, find or _instant(name), needs=needs, at=at)


def _counted(name: str, meaning: str, of: Callable[[Analysis], int]) -> Name:
    return Name(name, "count", meaning, lambda analysis, _: of(analysis), "trace")


def _model_counted(name: str, meaning: str) -> Name:
    find = _of_model(lambda realtime: len(getattr(realtime, name)))
    return Name(name, "count", f"{meaning} the realtime model", find, "trace")


def _amount(name: str, meaning: str, find: _Find, **more: Any) -> Name:
    return Name(name, "amount", meaning, find, **more)


_LEFT: Final[Mapping[str, Any]] = {"needs": ("sent",), "since": "verdict", "at": "sent"}
"""Of what is known from what was sent after the verdict."""

_AMOUNTS: Final = {
    "leaked": "after the verdict",
    "after_onset": "after the onset",
    "after_pause": "after the pause",
    "after_commit": "after the commit",
    "after_clear": "after the sink was cleared",
    "after_source_clear": "after the source was cleared",
    "after_resume": "after the resume",
    "over_caller": "while the caller was speaking",
}

_ALL: Final = (
    _seen("onset", "the caller started to speak"),
    _seen("pause", "the gate was closed", "captured"),
    _seen("verdict", "it was decided that the caller interrupts"),
    _seen("commit", "the speech was interrupted"),
    _seen("clear", "the sink was cleared", "captured"),
    _seen("source_clear", "the source's queue was cleared", "pushed"),
    _seen("resume", "the gate was opened", "captured"),
    _seen("last_sent", "the last sample of the speech left the source", "sent", at="sent"),
    _seen("started", "the first frame of the speech was captured", "captured", _started),
    _seen("finished", "the sink reported the segment as finished", find=_finished),
    _seen(
        "cancel",
        "the realtime model was told to cancel",
        find=_of_stop(lambda _, stop: stop.cancel_ns),
    ),
    Name("stop", "length", "verdict to last sample sent, 0 for none", _stop, **_LEFT),
    Name("stalled", "length", "longest stall of the loop around it", _instant("stalled")),
    Name(
        "generating",
        "length",
        "commit to the end of the realtime model's response",
        _of_stop(_generating),
    ),
    *(
        _amount(f"{name}.{b}", f"of the speech {b} {when}", _crossed(name, b), needs=(b,), at=b)
        for name, when in _AMOUNTS.items()
        for b in _FLOW
    ),
    *(
        _amount(
            f"causes.{cause.replace('-', '_')}",
            f"part of the leak: {cause}",
            _cause(cause),
            **_LEFT,
        )
        for cause in get_args(LeakCause)
    ),
    _amount("generated_after", "made by the realtime model after the commit", _of_stop(_generated)),
    _amount(
        "remaining",
        "of the speech at the verdict, neither sent nor lost by then",
        lambda _, barge_in: barge_in.remaining or _untold(),
        **{**_LEFT, "needs": _FLOW},
    ),
    Name("kind", "word", " | ".join(WORDS["kind"]), lambda _, b: b.verdict_kind, since="verdict"),
    Name("outcome", "word", " | ".join(WORDS["outcome"]), _outcome),
    Name("partial", "flag", "the speech was under way when the probe came", lambda _, b: b.partial),
    _amount("swallowed", "lost though nobody interrupted it", _swallowed, per="trace"),
    _amount("unaccounted", "what does not add up, in samples", _unaccounted, per="trace"),
    _counted("barge_ins", "barge-ins", lambda analysis: len(analysis.counted)),
    _counted("segments", "segments", lambda analysis: len(analysis.segments)),
    _counted("findings", "rules that fired", lambda analysis: len(analysis.findings)),
    _counted("faults", "kinds of fault of the probe", lambda analysis: len(analysis.faults)),
    _model_counted("responses", "responses of"),
    _model_counted("messages", "messages of"),
    _model_counted("cancels", "cancels sent to"),
    Name("balanced", "flag", "every sample has its place", _balanced, "trace"),
    Name("complete", "flag", "the trace is whole", lambda a, _: a.trace.complete, "trace"),
    Name("control.whole", "flag", "the control reply arrived whole", _control, "trace"),
    Name(
        "conversation.same",
        "flag",
        "the realtime model's server and the history hold the same",
        _of_model(_same),
        "trace",
    ),
)

NAMES: Final[Mapping[str, Name]] = {name.name: name for name in _ALL}
"""Every name an assertion may use."""
