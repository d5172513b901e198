"""The words of the language: what each stands for, and where it is read in an analysis.

A word that the trace has no value for says which of two it is: what it names *never came* (then an
assertion about it fails), or the trace *can't tell* (then the assertion is not judged).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from reports.results import (
    Amount,
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

__all__ = [
    "AUDIO_EVENTS",
    "AUDIO_INSTANTS",
    "EVENTS",
    "MARKS",
    "NAMES",
    "WORDS",
    "Name",
    "Reading",
    "Type",
    "audio_after",
]

Type = Literal["instant", "length", "amount", "count", "word", "flag"]
"""``instant``: a point in time. ``length``: a stretch of time. ``amount``: audio, in samples and
their milliseconds. ``count``: a number of things. ``word``: one of a few. ``flag``: yes or no."""

Per = Literal["barge-in", "trace"]

BOUNDARIES: Final = ("captured", "pushed", "sent")

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "kind": get_args(VerdictKind),
    "outcome": get_args(Outcome),
}
"""What each word can be."""

MARKS: Final = ("pause", "resume", "clear", "flush")
"""Marks of the sink; `no MARK` looks for them."""

AUDIO_EVENTS: Final = {"capture": "captured", "push": "pushed", "send": "sent"}
"""Audio of the interrupted speech crossing a boundary, as `no EVENT` names it."""

EVENTS: Final = (*AUDIO_EVENTS, *MARKS)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a name stands for in one trace or one barge-in; all integers."""

    ns: int | None = None
    """Nanoseconds: of an instant since the trace began, of a length, of an amount."""
    samples: int | None = None
    number: int | None = None
    word: str | None = None
    flag: bool | None = None
    tolerance_ns: int = 0
    """How far it may be off, by the resolution of its boundary."""
    tolerance_samples: int = 0
    bound: int = 0
    """1: a lower bound, because the trace is incomplete; -1: an upper bound; 0: as it is."""
    never: str = ""
    """Why there is nothing: it did not come about."""
    unknown: str = ""
    """Why there is nothing: the trace can't tell."""

    @property
    def absent(self) -> bool:
        return bool(self.never or self.unknown)


Reader = Callable[[Analysis, BargeIn | None], Reading]


@dataclass(frozen=True, slots=True)
class Name:
    """A word of the language."""

    name: str
    type: Type
    per: Per
    meaning: str
    """One line, for the reference."""
    read: Reader


def _resolution_ns(analysis: Analysis, boundary: str) -> int:
    return analysis.trace.resolution_ns.get(boundary) or 0


def _not_counted(analysis: Analysis, boundary: str) -> Reading:
    why = analysis.trace.missing.get(boundary, "never tapped")
    return Reading(unknown=f"nothing was counted at {boundary} ({why})")


def _never(analysis: Analysis, what: str) -> Reading:
    """It is not in the trace: it did not happen, or the trace is too damaged to say so."""
    if not analysis.trace.complete:
        return Reading(unknown=f"{what}, but the trace is incomplete")
    return Reading(never=what)


# --- Instants ------------------------------------------------------------------------------------

_NEEDS: Final = {
    "pause": "captured",
    "clear": "captured",
    "source_clear": "pushed",
    "resume": "captured",
    "last_sent": "sent",
    "started": "captured",
}
"""Boundary whose tap sees an instant. The others come from the session."""


def _instant(name: str) -> Reader:
    boundary = _NEEDS.get(name)

    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        if boundary is not None and boundary not in analysis.trace.boundaries:
            return _not_counted(analysis, boundary)
        at_ns = _at(name, analysis, barge_in)
        if at_ns is None:
            return _never(analysis, f"{name} never came")
        late = name == "last_sent"
        return Reading(
            ns=at_ns,
            tolerance_ns=_resolution_ns(analysis, "sent") if late else 0,
            bound=1 if late and not analysis.trace.complete else 0,
        )

    return read


def _at(name: str, analysis: Analysis, barge_in: BargeIn) -> int | None:
    mine = [s for s in analysis.segments if s.speech_id == barge_in.speech_id]
    if name == "started":
        return min((s.started_ns for s in mine), default=None)
    if name == "finished":
        return next((s.finished_ns for s in mine if s.index == barge_in.segment), None)
    at_ns: int | None = getattr(barge_in, f"{name}_ns")
    return at_ns


# --- Audio ---------------------------------------------------------------------------------------

AUDIO_INSTANTS: Final = {
    "onset": "after_onset",
    "pause": "after_pause",
    "verdict": "leaked",
    "commit": "after_commit",
    "clear": "after_clear",
    "source_clear": "after_source_clear",
    "resume": "after_resume",
}
"""Instants from which on the audio of a speech is counted, and the field that holds it."""


def audio_after(
    analysis: Analysis, barge_in: BargeIn, instant: str, boundary: str
) -> tuple[Reading, Leak | None]:
    """What of the speech crossed a boundary from an instant on, up to its next barge-in."""
    if boundary not in analysis.trace.boundaries:
        return _not_counted(analysis, boundary), None
    counted: Mapping[str, Leak | None] | None = getattr(barge_in, AUDIO_INSTANTS[instant])
    if counted is None:
        return _never(analysis, f"{instant} never came"), None
    leak = counted.get(boundary)
    return _from_an_instant(analysis, leak, boundary), leak


def _audio(field: str, boundary: str) -> Reader:
    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        if boundary not in analysis.trace.boundaries:
            return _not_counted(analysis, boundary)
        counted: Mapping[str, Leak | None] | None = getattr(barge_in, field)
        if counted is None:
            instant = "verdict" if field == "leaked" else "onset"
            instant = field.removeprefix("after_") if field.startswith("after_") else instant
            return _never(analysis, f"{instant} never came")
        return _from_an_instant(analysis, counted.get(boundary), boundary)

    return read


def _from_an_instant(analysis: Analysis, audio: Leak | Amount | None, boundary: str) -> Reading:
    """Audio counted from an instant on: exact, but for the samples around the instant."""
    if audio is None:
        return Reading(unknown=f"the trace can't tell how much of it was {boundary}")
    exact = _amount(analysis, audio)
    resolution_ns = _resolution_ns(analysis, boundary)
    if exact.absent or not audio.samples or audio.rate_hz is None or not resolution_ns:
        return exact
    samples = round(audio.rate_hz * resolution_ns / 1e9)
    return replace(exact, tolerance_ns=resolution_ns, tolerance_samples=samples)


def _amount(analysis: Analysis, audio: Measured) -> Reading:
    if analysis.balanced is False:
        return Reading(unknown="the trace does not balance, so its amounts are no result")
    return Reading(
        ns=audio.ns,
        samples=audio.samples,
        bound=0 if analysis.trace.complete else 1,
    )


def _cause(cause: str) -> Reader:
    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        if "sent" not in analysis.trace.boundaries:
            return _not_counted(analysis, "sent")
        if barge_in.verdict_ns is None:
            return _never(analysis, "verdict never came")
        if barge_in.causes is None:
            return Reading(unknown="the trace can't tell how much of it was sent")
        found = next((c for c in barge_in.causes if c.cause == cause), None)
        audio = Leak(0, found.samples, found.rate_hz, ()) if found else Leak(0, 0, None, ())
        return _from_an_instant(analysis, audio, "sent")

    return read


def _remaining(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
    assert barge_in is not None
    for boundary in BOUNDARIES:
        if boundary not in analysis.trace.boundaries:
            return _not_counted(analysis, boundary)
    if barge_in.verdict_ns is None:
        return _never(analysis, "verdict never came")
    return _from_an_instant(analysis, barge_in.remaining, "sent")


def _swallowed(analysis: Analysis, _: BargeIn | None) -> Reading:
    samples = analysis.totals.swallowed_samples
    if samples is None:
        return Reading(unknown="the trace can't tell what was swallowed")
    rates = {
        g.rate_hz for s in analysis.segments if s.swallowed_samples for g in s.geometry["captured"]
    }
    return _amount(analysis, Length(samples, one_rate(rates)))


def _unaccounted(analysis: Analysis, _: BargeIn | None) -> Reading:
    samples = analysis.unaccounted_samples
    if samples is None:
        return Reading(unknown="the trace is incomplete, so there is no balance")
    return Reading(samples=samples)


# --- Realtime models -----------------------------------------------------------------------------


def _realtime(
    of: Callable[[Analysis, Realtime], Reading],
) -> Callable[[Analysis, BargeIn | None], Reading]:
    def read(analysis: Analysis, _: BargeIn | None) -> Reading:
        if analysis.realtime is None:
            return _never(analysis, "there was no realtime model")
        return of(analysis, analysis.realtime)

    return read


def _stop(of: Callable[[Analysis, GenerationStop], Reading]) -> Reader:
    """Reads how the generation of the interrupted speech was stopped."""

    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        if analysis.realtime is None:
            return _never(analysis, "there was no realtime model")
        stops = [s for s in analysis.realtime.stops if s.speech_id == barge_in.speech_id]
        if not stops:
            return _never(analysis, "no response of a realtime model was interrupted")
        return of(analysis, stops[0])

    return read


def _cancel(analysis: Analysis, stop: GenerationStop) -> Reading:
    if stop.cancel_ns is None:
        return _never(analysis, "cancel never came")
    return Reading(ns=stop.cancel_ns)


def _generated_after(analysis: Analysis, stop: GenerationStop) -> Reading:
    sound = stop.generated_after
    if sound is None:
        return Reading(unknown="the model's streams do not say what was generated")
    return Reading(
        ns=sound.ns,
        samples=sound.samples,
        bound=0 if analysis.trace.complete else 1,
    )


def _generating(_: Analysis, stop: GenerationStop) -> Reading:
    if stop.generating_ns is None:
        return Reading(unknown="the end of the response was not seen")
    return Reading(ns=stop.generating_ns)


def _same(_: Analysis, realtime: Realtime) -> Reading:
    rows = realtime.conversation
    if any(row.difference in ("server only", "history only") for row in rows):
        return Reading(flag=False)
    if not rows or any(None in (row.server, row.local) for row in rows):
        return Reading(unknown="the trace can't tell what both sides hold")
    return Reading(flag=True)


def _number(of: Callable[[Realtime], int]) -> Reader:
    return _realtime(
        lambda analysis, realtime: Reading(
            number=of(realtime), bound=0 if analysis.trace.complete else 1
        )
    )


# --- The rest ------------------------------------------------------------------------------------


def _length(field: str) -> Reader:
    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        if field == "stop":
            if "sent" not in analysis.trace.boundaries:
                return _not_counted(analysis, "sent")
            if barge_in.verdict_ns is None:
                return _never(analysis, "verdict never came")
            if barge_in.stop_ns is None:
                return Reading(unknown="the trace can't tell how much of it was sent")
            return Reading(
                ns=barge_in.stop_ns,
                tolerance_ns=_resolution_ns(analysis, "sent"),
                bound=0 if analysis.trace.complete else 1,
            )
        return Reading(ns=barge_in.stalled_ns)

    return read


def _word(field: str) -> Reader:
    def read(analysis: Analysis, barge_in: BargeIn | None) -> Reading:
        assert barge_in is not None
        word = barge_in.verdict_kind if field == "kind" else barge_in.outcome
        if word is None:
            said = "verdict never came" if field == "kind" else "the outcome was never decided"
            return _never(analysis, said)
        return Reading(word=word)

    return read


def _control(analysis: Analysis, _: BargeIn | None) -> Reading:
    control = analysis.run.control if analysis.run is not None else None
    if control is None:
        return _never(analysis, "there was no control reply")
    if control.whole is None:
        return Reading(unknown="the trace can't tell whether the control arrived whole")
    return Reading(flag=control.whole)


def _balanced(analysis: Analysis, _: BargeIn | None) -> Reading:
    if analysis.balanced is None:
        return Reading(unknown="the trace is incomplete or a boundary was not tapped")
    return Reading(flag=analysis.balanced)


def _partial(_: Analysis, barge_in: BargeIn | None) -> Reading:
    assert barge_in is not None
    return Reading(flag=barge_in.partial)


def _count(of: Callable[[Analysis], int]) -> Reader:
    def read(analysis: Analysis, _: BargeIn | None) -> Reading:
        return Reading(number=of(analysis), bound=0 if analysis.trace.complete else 1)

    return read


_AMOUNTS: Final = {
    "leaked": "of the speech {} after the verdict",
    "after_onset": "of the speech {} after the onset",
    "after_pause": "of the speech {} after the pause",
    "after_commit": "of the speech {} after the commit",
    "after_clear": "of the speech {} after the sink was cleared",
    "after_source_clear": "of the speech {} after the source was cleared",
    "after_resume": "of the speech {} after the resume",
    "over_caller": "of the speech {} while the caller was speaking",
}

_INSTANTS: Final = {
    "onset": "the caller started to speak",
    "pause": "the gate was closed",
    "verdict": "it was decided that the caller interrupts",
    "commit": "the speech was interrupted",
    "clear": "the sink was cleared",
    "source_clear": "the source's queue was cleared",
    "resume": "the gate was opened",
    "last_sent": "the last sample of the speech left the source",
    "started": "the first frame of the speech was captured",
    "finished": "the sink reported the segment as finished",
}

_ALL: Final = (
    *(Name(name, "instant", "barge-in", text, _instant(name)) for name, text in _INSTANTS.items()),
    Name("cancel", "instant", "barge-in", "the realtime model was told to cancel", _stop(_cancel)),
    Name("stop", "length", "barge-in", "verdict to last sample sent, 0 for none", _length("stop")),
    Name(
        "stalled", "length", "barge-in", "longest stall of the loop around it", _length("stalled")
    ),
    Name(
        "generating",
        "length",
        "barge-in",
        "commit to the end of the realtime model's response",
        _stop(_generating),
    ),
    *(
        Name(f"{name}.{b}", "amount", "barge-in", text.format(b), _audio(name, b))
        for name, text in _AMOUNTS.items()
        for b in BOUNDARIES
    ),
    *(
        Name(
            f"causes.{cause.replace('-', '_')}",
            "amount",
            "barge-in",
            f"part of the leak: {cause}",
            _cause(cause),
        )
        for cause in get_args(LeakCause)
    ),
    Name(
        "generated_after",
        "amount",
        "barge-in",
        "made by the realtime model after the commit",
        _stop(_generated_after),
    ),
    Name(
        "remaining",
        "amount",
        "barge-in",
        "of the speech at the verdict, neither sent nor lost by then",
        _remaining,
    ),
    Name("kind", "word", "barge-in", " | ".join(WORDS["kind"]), _word("kind")),
    Name("outcome", "word", "barge-in", " | ".join(WORDS["outcome"]), _word("outcome")),
    Name("partial", "flag", "barge-in", "the speech was under way when the probe came", _partial),
    Name("swallowed", "amount", "trace", "lost though nobody interrupted it", _swallowed),
    Name("unaccounted", "amount", "trace", "what does not add up, in samples", _unaccounted),
    Name("barge_ins", "count", "trace", "barge-ins", _count(lambda a: len(a.counted))),
    Name("segments", "count", "trace", "segments", _count(lambda a: len(a.segments))),
    Name("findings", "count", "trace", "rules that fired", _count(lambda a: len(a.findings))),
    Name(
        "faults", "count", "trace", "kinds of fault of the probe", _count(lambda a: len(a.faults))
    ),
    Name(
        "responses",
        "count",
        "trace",
        "responses of the realtime model",
        _number(lambda realtime: len(realtime.responses)),
    ),
    Name(
        "messages",
        "count",
        "trace",
        "messages of the realtime model",
        _number(lambda realtime: len(realtime.messages)),
    ),
    Name(
        "cancels",
        "count",
        "trace",
        "cancels sent to the realtime model",
        _number(lambda realtime: len(realtime.cancels)),
    ),
    Name("balanced", "flag", "trace", "every sample has its place", _balanced),
    Name(
        "complete",
        "flag",
        "trace",
        "the trace is whole",
        lambda analysis, _: Reading(flag=analysis.trace.complete),
    ),
    Name("control.whole", "flag", "trace", "the control reply arrived whole", _control),
    Name(
        "conversation.same",
        "flag",
        "trace",
        "the realtime model's server and the history hold the same",
        _realtime(_same),
    ),
)

NAMES: Final[dict[str, Name]] = {name.name: name for name in _ALL}
"""Every name an assertion may use."""
