"""Assertions held against an analysis, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from reports.account.boundary import FOREVER
from reports.assertions.language import (
    Absence,
    Assertion,
    Chain,
    Choice,
    Claim,
    Compare,
    Flag,
    Number,
    Sum,
    Unfound,
    parse,
)
from reports.assertions.vocabulary import (
    AUDIO_EVENTS,
    MARKS,
    NAMES,
    Name,
    Reading,
    audio_after,
)
from reports.results import Analysis, BargeIn
from reports.units import ns_text

__all__ = ["Check", "MarkedMoment", "Result", "check"]

LAST_SENT: Final = "last sample of the speech sent"
SHOWN_MARKS: Final = 3
"""Marks of one kind that are shown; a gate may be closed many times in a row."""

_SAYS: Final = {
    "started": "first frame of the speech captured",
    "finished": "the sink reports the segment as finished",
}
"""Of instants that a barge-in's story does not tell."""


@dataclass(frozen=True, slots=True)
class MarkedMoment:
    """A moment around a barge-in, with the names the assertion has for it."""

    event: str
    from_zero_ns: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """An assertion on one barge-in, or on the whole trace."""

    barge_in: int | None
    """Its number, from 1; ``None``: the trace as a whole."""
    segment: int | None
    holds: bool | None
    """``None``: not judged, because the trace can't tell."""
    reason: str
    """The figures it was judged by, or why it was not."""
    zero: str | None
    """What the moments count from: ``verdict``, or ``pause`` or ``onset`` where none came."""
    moments: tuple[MarkedMoment, ...]
    """What happened around it, in order; empty where it holds."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an assertion."""

    assertion: str
    holds: bool | None
    """False: it fails on at least one barge-in. ``None``: it fails on none, and could not be
    judged on at least one."""
    checks: tuple[Check, ...]


def check(analysis: Analysis, assertion: str | Assertion) -> Result:
    """Hold an assertion against an analysis.

    An instant that never came makes an assertion about it fail, and so does a barge-in that is
    not there. What a trace can't tell, because a boundary was not tapped, the trace is cut or it
    does not balance, is not judged. Times at *sent* are as exact as that boundary's resolution: a
    comparison that is missed by no more than that holds, and its reason says so.

    Raises:
        AssertionSyntaxError: the text is no assertion.
    """
    parsed = parse(assertion) if isinstance(assertion, str) else assertion
    checks = _checks(analysis, parsed)
    verdicts = {c.holds for c in checks}
    holds = False if False in verdicts else None if None in verdicts else True
    return Result(parsed.text, holds, tuple(checks))


def _checks(analysis: Analysis, assertion: Assertion) -> list[Check]:
    claim = assertion.claim
    if not assertion.per_barge_in:
        if isinstance(claim, Absence):
            return [_trace_without(analysis, claim)]
        if isinstance(claim, Unfound):
            return [_unfound(analysis, claim.rule)]
        return [_checked(analysis, None, None, _judge(analysis, None, claim))]
    chosen = [
        (number, barge_in)
        for number, barge_in in enumerate(analysis.counted, 1)
        if assertion.selector in (None, number, barge_in.verdict_kind, barge_in.outcome)
    ]
    if not chosen:
        return [_no_such(analysis, assertion.selector)]
    return [
        _checked(analysis, number, barge_in, _judge(analysis, barge_in, claim))
        for number, barge_in in chosen
    ]


def _no_such(analysis: Analysis, selector: int | str | None) -> Check:
    which = {int: f"barge-in {selector}", str: f"barge-in that is {selector}"}
    count = len(analysis.counted)
    reason = f"there is no {which.get(type(selector), 'barge-in')} in this trace"
    if selector is not None:
        reason += f", which has {count} barge-in{'' if count == 1 else 's'}"
    holds: bool | None = False
    if not analysis.trace.complete:
        holds, reason = None, f"{reason}, but the trace is incomplete"
    return Check(None, None, holds, reason, None, ())


# --- Judging -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judgement:
    holds: bool | None
    reason: str
    names: tuple[Name, ...] = ()
    extra: tuple[tuple[int, str, str], ...] = ()
    """Moments that the story does not tell: when, what, and the assertion's name for it."""


def _judge(analysis: Analysis, barge_in: BargeIn | None, claim: Claim) -> _Judgement:
    if isinstance(claim, Chain):
        return _judge_chain(analysis, barge_in, claim)
    if isinstance(claim, Absence):
        assert barge_in is not None
        return _judge_absence(analysis, barge_in, claim)
    assert isinstance(claim, Choice | Flag)
    reading = claim.name.read(analysis, barge_in)
    if reading.absent:
        return _absent(reading)
    if isinstance(claim, Choice):
        said = f"{claim.name.name} is {reading.word}"
        return _Judgement((reading.word == claim.word) != claim.negated, said)
    said = f"{claim.name.name} is {'true' if reading.flag else 'false'}"
    return _Judgement(bool(reading.flag) != claim.negated, said)


def _absent(reading: Reading, names: tuple[Name, ...] = ()) -> _Judgement:
    if reading.unknown:
        return _Judgement(None, reading.unknown, names)
    return _Judgement(False, reading.never, names)


def _judge_chain(analysis: Analysis, barge_in: BargeIn | None, chain: Chain) -> _Judgement:
    pairs = zip(chain.sums[:-1], chain.compares, chain.sums[1:], strict=True)
    judged = [_judge_pair(analysis, barge_in, *pair) for pair in pairs]
    for holds in (False, None):
        for judgement in judged:
            if judgement.holds is holds:
                return judgement
    reasons = list(dict.fromkeys(judgement.reason for judgement in judged))
    return _Judgement(True, "; ".join(reasons))


def _judge_pair(
    analysis: Analysis, barge_in: BargeIn | None, left: Sum, compare: Compare, right: Sum
) -> _Judgement:
    names = tuple(dict.fromkeys((*left.names, *right.names)))
    one = _read(analysis, barge_in, left)
    other = _read(analysis, barge_in, right)
    absent = [reading for reading in (one, other) if reading.absent]
    # What never came is certain, whatever else the trace can't tell.
    for reading in sorted(absent, key=lambda r: not r.never):
        return _absent(reading, names)
    measured = _difference(one, other, left, right)
    if measured is None:
        reason = f"{left.text} and {right.text} hold audio of several rates, which have no length"
        return _Judgement(None, reason, names)
    difference, tolerance, bound = measured
    reason = _figures(left, one, right, other)
    holds = _certain(difference, compare, bound)
    within = holds is False and _within(difference, compare, tolerance)
    if holds is None or (within and bound):
        holds = None
        reason += ", but the trace is incomplete: it may be more"
    elif within:
        holds = True
        reason += f", which is within the resolution of {_resolution(one, other)}"
    return _Judgement(holds, reason, names)


def _read(analysis: Analysis, barge_in: BargeIn | None, sum_: Sum) -> Reading:
    """What a sum comes to."""
    total = Reading(ns=0)
    for sign, term in sum_.terms:
        reading = _number(term) if isinstance(term, Number) else term.read(analysis, barge_in)
        if reading.absent or len(sum_.terms) == 1:
            return reading
        assert total.ns is not None
        assert reading.ns is not None
        total = replace(
            total,
            ns=total.ns + sign * reading.ns,
            tolerance_ns=total.tolerance_ns + reading.tolerance_ns,
            bound=_bounds(total.bound, sign * reading.bound),
        )
    return total


def _number(number: Number) -> Reading:
    # Rounded to what times are given in. Zero is zero in whatever it is held against.
    value = round(number.value)
    if number.value == 0:
        return Reading(ns=0, samples=0, number=0)
    if number.unit == "ns":
        return Reading(ns=value)
    return Reading(samples=value) if number.unit == "samples" else Reading(number=value)


def _bounds(one: int, other: int) -> int:
    """Of a sum of two bounds; 2 where it is bounded on neither side."""
    if not one or not other or one == other:
        return one or other
    return 2


def _difference(one: Reading, other: Reading, left: Sum, right: Sum) -> tuple[int, int, int] | None:
    """Left minus right, how far it may be off, and what it bounds; in one unit."""
    bound = _bounds(one.bound, -other.bound)
    if one.number is not None and other.number is not None and "count" in (left.type, right.type):
        return one.number - other.number, 0, bound
    in_samples = any(s.literal is not None and s.literal.unit != "ns" for s in (left, right))
    in_samples = in_samples or one.ns is None or other.ns is None
    if in_samples and one.samples is not None and other.samples is not None:
        tolerance = one.tolerance_samples + other.tolerance_samples
        return one.samples - other.samples, tolerance, bound
    if one.ns is None or other.ns is None:
        return None
    return one.ns - other.ns, one.tolerance_ns + other.tolerance_ns, bound


def _compared(difference: int, compare: Compare) -> bool:
    return {
        "<": difference < 0,
        "<=": difference <= 0,
        ">": difference > 0,
        ">=": difference >= 0,
        "==": difference == 0,
        "!=": difference != 0,
    }[compare]


def _certain(difference: int, compare: Compare, bound: int) -> bool | None:
    """Whether it holds for every difference that the bound leaves open; ``None``: for some."""
    if not bound:
        return _compared(difference, compare)
    if bound == 2:
        return None
    # However far it goes on from here, the answer can change only in the end or at once.
    far = bound * (abs(difference) + 1)
    near = _compared(difference, compare)
    if near != _compared(far, compare):
        return None
    passes_zero = difference * bound <= 0
    return None if compare in ("==", "!=") and passes_zero else near


def _within(difference: int, compare: Compare, tolerance: int) -> bool:
    return tolerance > 0 and compare != "!=" and abs(difference) <= tolerance


def _resolution(one: Reading, other: Reading) -> str:
    return f"{_ms_text(one.tolerance_ns + other.tolerance_ns)}"


# --- Absences ------------------------------------------------------------------------------------


def _trace_without(analysis: Analysis, absence: Absence) -> Check:
    """``no MARK`` or ``no INSTANT``, of the whole trace."""
    found: list[tuple[int, int | None, BargeIn | None]] = []
    if absence.event in MARKS:
        if "captured" not in analysis.trace.boundaries:
            return Check(None, None, None, "the marks of the sink were not seen", None, ())
        found = [
            (mark.at_ns, s.index, None)
            for s in analysis.segments
            for mark in s.order
            if mark.mark == absence.event
        ]
    else:
        for barge_in in analysis.counted:
            reading = NAMES[absence.event].read(analysis, barge_in)
            if reading.ns is not None:
                found.append((reading.ns, barge_in.segment, barge_in))
            elif reading.unknown and analysis.trace.complete:
                return Check(None, None, None, reading.unknown, None, ())
    if not found:
        if not analysis.trace.complete:
            reason = f"no {absence.event} came, but the trace is incomplete"
            return Check(None, None, None, reason, None, ())
        return Check(None, None, True, f"no {absence.event} came", None, ())
    at_ns, segment, _ = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    reason = f"{absence.event} came at {ns_text(at_ns)} into the trace, in segment {segment}{more}"
    return Check(None, segment, False, reason, None, ())


def _unfound(analysis: Analysis, rule: str) -> Check:
    found = [finding for finding in analysis.findings if finding.rule == rule]
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        return Check(None, found[0].segment, False, f"{found[0].message}{more}", None, ())
    for unjudged in analysis.not_judged:
        if unjudged.rule == rule:
            return Check(None, None, None, unjudged.reason, None, ())
    return Check(None, None, True, "it did not fire", None, ())


def _judge_absence(analysis: Analysis, barge_in: BargeIn, absence: Absence) -> _Judgement:
    if absence.side is None:
        name = NAMES.get(absence.event)
        if name is None:
            return _judge_marks(analysis, barge_in, absence, None)
        reading = name.read(analysis, barge_in)
        if reading.unknown:
            return _absent(reading)
        if reading.never:
            return _Judgement(True, reading.never)
        return _Judgement(False, f"{name.name} came", (name,))
    assert absence.instant is not None
    instant = NAMES[absence.instant]
    if absence.event in AUDIO_EVENTS:
        return _judge_audio(analysis, barge_in, absence, instant)
    reading = instant.read(analysis, barge_in)
    if reading.absent:
        return _absent(reading, (instant,))
    return _judge_marks(analysis, barge_in, absence, instant)


def _judge_audio(
    analysis: Analysis, barge_in: BargeIn, absence: Absence, instant: Name
) -> _Judgement:
    boundary = AUDIO_EVENTS[absence.event]
    reading, leak = audio_after(analysis, barge_in, instant.name, boundary)
    if reading.absent:
        return _absent(reading, (instant,))
    assert reading.samples is not None
    if not reading.samples:
        reason = f"nothing was {boundary} after {instant.name}"
        if reading.bound:
            return _Judgement(None, f"{reason}, but the trace is incomplete", (instant,))
        return _Judgement(True, reason)
    length = "" if reading.ns is None else f"{_ms_text(reading.ns)} "
    reason = f"{length}({reading.samples} samples) {boundary} after {instant.name}".lstrip()
    extra = []
    if leak is not None and leak.spans:
        extra.append((leak.spans[0].start_ns, f"first of it {boundary}", absence.event))
        if boundary == "sent" and barge_in.last_sent_ns is not None:
            extra.append((barge_in.last_sent_ns, LAST_SENT, absence.event))
    if reading.samples <= reading.tolerance_samples:
        reason += f", which is within the resolution of {_ms_text(reading.tolerance_ns)}"
        return _Judgement(True, reason)
    return _Judgement(False, reason, (instant,), tuple(extra))


def _judge_marks(
    analysis: Analysis, barge_in: BargeIn, absence: Absence, instant: Name | None
) -> _Judgement:
    """Marks of the speech's segments on one side of an instant, while the barge-in lasts."""
    if "captured" not in analysis.trace.boundaries:
        return _Judgement(None, "the marks of the sink were not seen")
    begin, end = _window(analysis, barge_in)
    marks = [
        mark.at_ns
        for segment in analysis.segments
        if segment.speech_id == barge_in.speech_id
        for mark in segment.order
        if mark.mark == absence.event and begin <= mark.at_ns < end
    ]
    names: tuple[Name, ...] = ()
    if instant is not None:
        at_ns = instant.read(analysis, barge_in).ns
        assert at_ns is not None
        names = (instant,)
        if absence.side == "after":
            marks = [mark_ns for mark_ns in marks if mark_ns > at_ns]
        else:
            marks = [mark_ns for mark_ns in marks if mark_ns < at_ns]
    where = "" if instant is None else f" {absence.side} {instant.name}"
    if not marks:
        if not analysis.trace.complete:
            reason = f"no {absence.event} came{where}, but the trace is incomplete"
            return _Judgement(None, reason, names)
        return _Judgement(True, f"no {absence.event} came{where}")
    reason = f"{absence.event} came{where}" + (f", {len(marks)} times" if len(marks) > 1 else "")
    extra = tuple((at_ns, absence.event, absence.event) for at_ns in marks[:SHOWN_MARKS])
    return _Judgement(False, reason, names, extra)


def _window(analysis: Analysis, barge_in: BargeIn) -> tuple[int, int]:
    """From its beginning to the speech's next barge-in."""
    begin = _begins(barge_in)
    later = [
        _begins(other) for other in analysis.barge_ins if other.speech_id == barge_in.speech_id
    ]
    return begin, min((at_ns for at_ns in later if at_ns > begin), default=FOREVER)


def _begins(barge_in: BargeIn) -> int:
    known = (barge_in.onset_ns, barge_in.pause_ns, barge_in.verdict_ns, barge_in.commit_ns)
    return min((at_ns for at_ns in known if at_ns is not None), default=0)


# --- What is shown -------------------------------------------------------------------------------


def _figures(left: Sum, one: Reading, right: Sum, other: Reading) -> str:
    if left.type == right.type == "instant" and one.ns is not None and other.ns is not None:
        apart = other.ns - one.ns
        if not apart:
            return f"{right.text} is at the same time as {left.text}"
        side = "after" if apart > 0 else "before"
        return f"{right.text} is {_ms_text(abs(apart))} {side} {left.text}"
    figures = [f"{s.text} is {_value(s, r)}" for s, r in ((left, one), (right, other)) if s.names]
    return ", ".join(figures)


def _value(sum_: Sum, reading: Reading) -> str:
    if sum_.type == "count":
        return str(reading.number)
    if sum_.type == "amount":
        samples = f"{reading.samples} samples"
        return samples if reading.ns is None else f"{_ms_text(reading.ns)} ({samples})"
    return _ms_text(reading.ns or 0)


def _ms_text(ns: int) -> str:
    """To a tenth, or as exact as it is where that would look like nothing."""
    return ns_text(ns, 1 if abs(ns) >= 50_000 or not ns else 3)


def _checked(
    analysis: Analysis, number: int | None, barge_in: BargeIn | None, judgement: _Judgement
) -> Check:
    reason = judgement.reason
    if barge_in is None:
        return Check(None, None, judgement.holds, reason, None, ())
    zero = next((n for n in ("verdict", "pause", "onset") if _at(barge_in, n) is not None), None)
    moments: tuple[MarkedMoment, ...] = ()
    if judgement.holds is not True and zero is not None:
        moments = _moments(analysis, barge_in, judgement, zero)
        if barge_in.stalled_ns and any(name.type == "instant" for name in judgement.names):
            reason += (
                f" (the session's loop stood still for {ns_text(barge_in.stalled_ns)} around it: "
                "times of calls are late by up to that)"
            )
    return Check(number, barge_in.segment, judgement.holds, reason, zero, moments)


def _at(barge_in: BargeIn, name: str) -> int | None:
    at_ns: int | None = getattr(barge_in, f"{name}_ns")
    return at_ns


def _moments(
    analysis: Analysis, barge_in: BargeIn, judgement: _Judgement, zero: str
) -> tuple[MarkedMoment, ...]:
    """The story from just before to just after what the assertion is about, its names put in."""
    zero_ns = _at(barge_in, zero) or 0
    told = [(m.at_ns, m.event, ["verdict"] if m.verdict else []) for m in barge_in.story]
    missing = False
    for name in judgement.names:
        if name.type != "instant":
            continue
        named_ns = name.read(analysis, barge_in).ns
        if named_ns is None:
            missing = True
        else:
            _mark(told, named_ns, name.name, _SAYS.get(name.name, name.meaning))
    for at_ns, event, label in judgement.extra:
        _mark(told, at_ns, label, event)
    told.sort(key=lambda moment: moment[0])
    about = {name.name for name in judgement.names} | {label for *_, label in judgement.extra}
    touched = [i for i, moment in enumerate(told) if about & set(moment[2])]
    if touched and not missing:
        told = told[max(touched[0] - 1, 0) : touched[-1] + 2]
    return tuple(
        MarkedMoment(event, at_ns - zero_ns, tuple(n for n in names if n in about))
        for at_ns, event, names in told
    )


_TOLD: Final = {
    "onset": "the caller starts",
    "pause": "pause",
    "verdict": "",
    "commit": "commit",
    "clear": "clear of the sink",
    "source_clear": "the source's queue",
    "resume": "resume",
    "last_sent": "last sample",
}
"""How the story's line for an instant begins."""


def _mark(told: list[tuple[int, str, list[str]]], at_ns: int, name: str, event: str) -> None:
    """Write a name beside the story's moment it stands for; add the moment where it has none."""
    begins = event if event == LAST_SENT else _TOLD.get(name)
    if begins is not None:
        for moment_ns, text, names in told:
            if moment_ns == at_ns and (text.startswith(begins) if begins else name in names):
                if name not in names:
                    names.append(name)
                return
    told.append((at_ns, event, [name]))
