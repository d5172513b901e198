"""Assertions held against an analysis, and what came of them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Final

from reports.account.boundary import FOREVER
from reports.assertions.language import (
    Absence,
    Assertion,
    Sum,
    absence_of,
    name_of,
    parse,
    sum_of,
    word_of,
)
from reports.assertions.moments import LAST_SENT, Label, MarkedMoment, moments, zero_of
from reports.assertions.reading import Name, Reading
from reports.assertions.vocabulary import AUDIO_EVENTS, AUDIO_INSTANTS, MARKS, NAMES
from reports.findings import RULES
from reports.grammar import Expression, Quantity
from reports.results import Analysis, BargeIn, Leak
from reports.units import ns_text

__all__ = ["Check", "Result", "check"]

SHOWN_MARKS: Final = 3
"""Marks of one kind that are shown; a gate may be closed many times in a row."""

Compare = Callable[[int, int], bool]
_COMPARES: Final[Mapping[type[ast.cmpop], Compare]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


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
    e = assertion.expression
    if not assertion.per_barge_in:
        return [_checked(analysis, None, None, _judge(analysis, None, e))]
    chosen = [
        (number, barge_in)
        for number, barge_in in enumerate(analysis.barge_ins, 1)
        if assertion.selector in (None, number, barge_in.verdict_kind, barge_in.outcome)
    ]
    if not chosen:
        return [_no_such(analysis, assertion.selector)]
    return [
        _checked(analysis, number, barge_in, _judge(analysis, barge_in, e))
        for number, barge_in in chosen
    ]


def _no_such(analysis: Analysis, selector: int | str | None) -> Check:
    which = {int: f"barge-in {selector}", str: f"barge-in that is {selector}"}
    count = len(analysis.barge_ins)
    reason = f"there is no {which.get(type(selector), 'barge-in')} in this trace"
    if selector is not None:
        reason += f", which has {count} barge-in{'' if count == 1 else 's'}"
    holds: bool | None = False
    if not analysis.trace.complete:
        holds, reason = None, f"{reason}, but the trace is incomplete"
    return Check(None, None, holds, reason, None, ())


def _checked(
    analysis: Analysis, number: int | None, barge_in: BargeIn | None, judged: _Judgement
) -> Check:
    reason = judged.reason
    if barge_in is None:
        return Check(None, judged.segment, judged.holds, reason, None, ())
    zero = zero_of(barge_in)
    around: tuple[MarkedMoment, ...] = ()
    if judged.holds is not True and zero is not None:
        around = moments(analysis, barge_in, zero[1], judged.names, judged.labels)
        if barge_in.stalled_ns and any(name.type == "instant" for name in judged.names):
            reason += (
                f" (the session's loop stood still for {ns_text(barge_in.stalled_ns)} around it: "
                "times of calls are late by up to that)"
            )
    return Check(number, barge_in.segment, judged.holds, reason, zero and zero[0], around)


# --- Judging -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judgement:
    holds: bool | None
    reason: str
    names: tuple[Name, ...] = ()
    """What it is about, where it does not hold."""
    labels: tuple[Label, ...] = ()
    segment: int | None = None
    """Of the trace, where it is about no barge-in."""


def _judge(analysis: Analysis, barge_in: BargeIn | None, e: Expression) -> _Judgement:
    match e.tree:
        case ast.Call() as call:
            absence = absence_of(e, call)
            if absence.event in RULES:
                return _judge_rule(analysis, absence.event)
            if barge_in is None:
                return _judge_trace(analysis, absence.event)
            return _judge_absence(analysis, barge_in, absence)
        case ast.Compare(left=ast.Name() as node) as compare if name_of(e, node).type == "word":
            name = name_of(e, node)
            reading = name.read(analysis, barge_in)
            if reading.absent:
                return _absent(reading)
            is_it = reading.word == word_of(e)
            holds = is_it if isinstance(compare.ops[0], ast.Eq) else not is_it
            return _Judgement(holds, f"{name.name} is {reading.word}")
        case ast.Compare() as compare:
            return _judge_chain(analysis, barge_in, e, compare)
        case ast.UnaryOp(operand=ast.expr() as node):
            return _judge_flag(analysis, barge_in, name_of(e, node), wanted=False)
        case node:
            return _judge_flag(analysis, barge_in, name_of(e, node), wanted=True)


def _judge_flag(
    analysis: Analysis, barge_in: BargeIn | None, name: Name, *, wanted: bool
) -> _Judgement:
    reading = name.read(analysis, barge_in)
    if reading.absent:
        return _absent(reading)
    said = f"{name.name} is {'true' if reading.flag else 'false'}"
    return _Judgement(reading.flag is wanted, said)


def _absent(reading: Reading, names: tuple[Name, ...] = ()) -> _Judgement:
    if reading.unknown:
        return _Judgement(None, reading.unknown, names)
    return _Judgement(False, reading.never, names)


def _judge_chain(
    analysis: Analysis, barge_in: BargeIn | None, e: Expression, compare: ast.Compare
) -> _Judgement:
    sums = [sum_of(e, node) for node in (compare.left, *compare.comparators)]
    judged = [
        _judge_pair(analysis, barge_in, left, _COMPARES[type(op)], right)
        for left, op, right in zip(sums, compare.ops, sums[1:], strict=False)
    ]
    worst = min(judged, key=lambda judgement: (False, None, True).index(judgement.holds))
    if worst.holds is not True:
        return worst
    return _Judgement(True, "; ".join(dict.fromkeys(judgement.reason for judgement in judged)))


def _judge_pair(
    analysis: Analysis, barge_in: BargeIn | None, left: Sum, compare: Compare, right: Sum
) -> _Judgement:
    names = tuple(dict.fromkeys((*left.names, *right.names)))
    one, other = (_read(analysis, barge_in, sum_) for sum_ in (left, right))
    absent = [reading for reading in (one, other) if reading.absent]
    # What never came is certain, whatever else the trace can't tell.
    for reading in sorted(absent, key=lambda reading: not reading.never):
        return _absent(reading, names)
    measured = _difference(one, other, left, right)
    if measured is None:
        reason = f"{left.text} and {right.text} hold audio of several rates, which have no length"
        return _Judgement(None, reason, names)
    difference, tolerance = measured
    reason = _figures(left, one, right, other)
    less, more = one.less or other.more, one.more or other.less
    holds = _certain(difference, compare, less=less, more=more)
    within = compare is not operator.ne and abs(difference) <= tolerance and tolerance > 0
    if holds is None or (holds is False and within and (less or more)):
        holds = None
        reason += ", but the trace is incomplete: it may be more"
    elif holds is False and within:
        holds = True
        reason += _within_resolution(one, other)
    return _Judgement(holds, reason, names)


def _read(analysis: Analysis, barge_in: BargeIn | None, sum_: Sum) -> Reading:
    """What a sum comes to."""
    total = Reading(ns=0)
    for sign, term in sum_.terms:
        reading = _number(term) if isinstance(term, Quantity) else term.read(analysis, barge_in)
        if reading.absent or len(sum_.terms) == 1:
            return reading
        assert total.ns is not None
        assert reading.ns is not None
        less, more = reading.less, reading.more
        total = Reading(
            ns=total.ns + sign * reading.ns,
            tolerance_ns=total.tolerance_ns + reading.tolerance_ns,
            less=total.less or (less if sign > 0 else more),
            more=total.more or (more if sign > 0 else less),
        )
    return total


def _number(number: Quantity) -> Reading:
    # Rounded to what times are given in. Zero is zero in whatever it is held against.
    value = round(number.value)
    if number.value == 0:
        return Reading(ns=0, samples=0, number=0)
    if number.unit == "ns":
        return Reading(ns=value)
    return Reading(samples=value) if number.unit == "samples" else Reading(number=value)


def _difference(one: Reading, other: Reading, left: Sum, right: Sum) -> tuple[int, int] | None:
    """Left minus right, and how far it may be off; in one unit. ``None``: they have none."""
    if one.number is not None and other.number is not None and "count" in (left.type, right.type):
        return one.number - other.number, 0
    in_samples = any(s.literal is not None and s.literal.unit != "ns" for s in (left, right))
    in_samples = in_samples or one.ns is None or other.ns is None
    if in_samples and one.samples is not None and other.samples is not None:
        tolerance = one.tolerance_samples + other.tolerance_samples
        return one.samples - other.samples, tolerance
    if one.ns is None or other.ns is None:
        return None
    return one.ns - other.ns, one.tolerance_ns + other.tolerance_ns


def _certain(difference: int, compare: Compare, *, less: bool, more: bool) -> bool | None:
    """Whether it holds for every difference that there may be; ``None``: for some."""
    low, high = -FOREVER if less else difference, FOREVER if more else difference
    answers = {compare(each, 0) for each in (low, difference, high)}
    if low <= 0 <= high:
        answers.add(compare(0, 0))
    return answers.pop() if len(answers) == 1 else None


def _within_resolution(*readings: Reading) -> str:
    tolerance_ns = sum(reading.tolerance_ns for reading in readings)
    return f", which is within the resolution of {_ms_text(tolerance_ns)}"


# --- Absences ------------------------------------------------------------------------------------


def _judge_trace(analysis: Analysis, event: str) -> _Judgement:
    """``no MARK`` or ``no INSTANT``, of the whole trace."""
    found: list[tuple[int, int | None]] = []
    if event in MARKS:
        if "captured" not in analysis.trace.boundaries:
            return _Judgement(None, "the marks of the sink were not seen")
        found = [
            (mark.at_ns, segment.index)
            for segment in analysis.segments
            for mark in segment.order
            if mark.mark == event
        ]
    else:
        for barge_in in analysis.barge_ins:
            reading = NAMES[event].read(analysis, barge_in)
            if reading.ns is not None:
                found.append((reading.ns, barge_in.segment))
            elif reading.unknown and analysis.trace.complete:
                return _Judgement(None, reading.unknown)
    if not found:
        return _nothing(analysis, f"no {event} came")
    (at_ns, segment), *others = found
    reason = f"{event} came at {ns_text(at_ns)} into the trace, in segment {segment}"
    return _Judgement(False, reason + _more(others), segment=segment)


def _nothing(analysis: Analysis, reason: str, names: tuple[Name, ...] = ()) -> _Judgement:
    """What is looked for is not in the trace, which may be cut."""
    if analysis.trace.complete:
        return _Judgement(True, reason)
    return _Judgement(None, f"{reason}, but the trace is incomplete", names)


def _more(others: Sized) -> str:
    return f", and {len(others)} more" if others else ""


def _judge_rule(analysis: Analysis, rule: str) -> _Judgement:
    found = [finding for finding in analysis.findings if finding.rule == rule]
    if found:
        first, *others = found
        return _Judgement(False, f"{first.message}{_more(others)}", segment=first.segment)
    for unjudged in analysis.not_judged:
        if unjudged.rule == rule:
            return _Judgement(None, unjudged.reason)
    return _Judgement(True, "it did not fire")


def _judge_absence(analysis: Analysis, barge_in: BargeIn, absence: Absence) -> _Judgement:
    if not absence.side and absence.event not in MARKS:
        reading = NAMES[absence.event].read(analysis, barge_in)
        if reading.unknown:
            return _absent(reading)
        if reading.never:
            return _Judgement(True, reading.never)
        return _Judgement(False, f"{absence.event} came", (NAMES[absence.event],))
    instant = NAMES.get(absence.instant)
    if absence.event in AUDIO_EVENTS:
        assert instant is not None
        return _judge_audio(analysis, barge_in, absence.event, instant)
    if instant is not None:
        reading = instant.read(analysis, barge_in)
        if reading.absent:
            return _absent(reading, (instant,))
    return _judge_marks(analysis, barge_in, absence, instant)


def _judge_audio(analysis: Analysis, barge_in: BargeIn, event: str, instant: Name) -> _Judgement:
    boundary, field = AUDIO_EVENTS[event], AUDIO_INSTANTS[instant.name]
    reading = NAMES[f"{field}.{boundary}"].read(analysis, barge_in)
    if reading.absent:
        return _absent(reading, (instant,))
    assert reading.samples is not None
    if not reading.samples:
        return _nothing(analysis, f"nothing was {boundary} after {instant.name}", (instant,))
    length = "" if reading.ns is None else f"{_ms_text(reading.ns)} "
    reason = f"{length}({reading.samples} samples) {boundary} after {instant.name}".lstrip()
    if reading.samples <= reading.tolerance_samples:
        return _Judgement(True, f"{reason}{_within_resolution(reading)}")
    labels = []
    leak: Leak = getattr(barge_in, field)[boundary]
    if leak.spans:
        labels.append((leak.spans[0].start_ns, f"first of it {boundary}", event))
        if boundary == "sent" and barge_in.last_sent_ns is not None:
            labels.append((barge_in.last_sent_ns, LAST_SENT, event))
    return _Judgement(False, reason, (instant,), tuple(labels))


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
        return _nothing(analysis, f"no {absence.event} came{where}", names)
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
