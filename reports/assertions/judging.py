"""Claims judged on an analysis, or on a barge-in of it: whether they hold, and by what figures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Final, Literal

from reports.account.boundary import FOREVER
from reports.assertions.moments import LAST_SENT, Label
from reports.assertions.reading import Name, Reading, Type
from reports.assertions.vocabulary import AUDIO_EVENTS, AUDIO_INSTANTS, MARKS, NAMES
from reports.grammar import Quantity
from reports.results import Analysis, BargeIn, Leak
from reports.units import ns_text

__all__ = [
    "Compare",
    "Judge",
    "Judgement",
    "Sum",
    "judge_audio",
    "judge_chain",
    "judge_marks",
    "judge_never",
    "judge_rule",
    "judge_trace",
    "judge_value",
]

SHOWN_MARKS: Final = 3
"""Marks of one kind that are shown; a gate may be closed many times in a row."""

Compare = Callable[[int, int], bool]
"""Of `operator`."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of a claim."""

    holds: bool | None
    """``None``: not judged, because the trace can't tell."""
    reason: str
    names: tuple[Name, ...] = ()
    """What it is about, where it does not hold."""
    labels: tuple[Label, ...] = ()
    segment: int | None = None
    """Of the trace, where it is about no barge-in."""


Judge = Callable[[Analysis, BargeIn | None], Judgement]


@dataclass(frozen=True, slots=True)
class Sum:
    """Names and numbers, added up."""

    terms: tuple[tuple[Literal[1, -1], Name | Quantity], ...]
    type: Type
    text: str

    @property
    def literal(self) -> Quantity | None:
        """The number it consists of, if it is one."""
        (_, term), *more = self.terms
        return term if not more and isinstance(term, Quantity) else None

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(term for _, term in self.terms if isinstance(term, Name))


def _absent(reading: Reading, *names: Name) -> Judgement:
    if reading.unknown:
        return Judgement(None, reading.unknown, names)
    return Judgement(False, reading.never, names)


def judge_value(
    name: Name, wanted: str | bool, equal: bool, analysis: Analysis, barge_in: BargeIn | None
) -> Judgement:
    """Whether a word or a flag is what is wanted, or is not."""
    reading = name.read(analysis, barge_in)
    if reading.absent:
        return _absent(reading)
    value = reading.word if reading.flag is None else reading.flag
    return Judgement((value == wanted) is equal, f"{name.name} is {str(value).lower()}")


# --- Comparisons ---------------------------------------------------------------------------------


def judge_chain(
    sums: Sequence[Sum],
    compares: Sequence[Compare],
    analysis: Analysis,
    barge_in: BargeIn | None,
) -> Judgement:
    """``a < b <= c``: each neighbour compared with the next."""
    judged = [
        _judge_pair(analysis, barge_in, left, compare, right)
        for left, compare, right in zip(sums, compares, sums[1:], strict=False)
    ]
    worst = min(judged, key=lambda judgement: (False, None, True).index(judgement.holds))
    if worst.holds is not True:
        return worst
    return Judgement(True, "; ".join(dict.fromkeys(judgement.reason for judgement in judged)))


def _judge_pair(
    analysis: Analysis, barge_in: BargeIn | None, left: Sum, compare: Compare, right: Sum
) -> Judgement:
    names = tuple(dict.fromkeys((*left.names, *right.names)))
    one, other = (_read(analysis, barge_in, sum_) for sum_ in (left, right))
    absent = [reading for reading in (one, other) if reading.absent]
    # What never came is certain, whatever else the trace can't tell.
    for reading in sorted(absent, key=lambda reading: not reading.never):
        return _absent(reading, *names)
    measured = _difference(one, other, left, right)
    if measured is None:
        reason = f"{left.text} and {right.text} hold audio of several rates, which have no length"
        return Judgement(None, reason, names)
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
    return Judgement(holds, reason, names)


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


# --- Absences ------------------------------------------------------------------------------------


_UNSEEN: Final = Judgement(None, "the marks of the sink were not seen")


def judge_trace(event: str, analysis: Analysis, barge_in: BargeIn | None) -> Judgement:
    """``no MARK`` or ``no INSTANT``, of the whole trace."""
    found: list[tuple[int, int | None]] = []
    if event in MARKS:
        if "captured" not in analysis.trace.boundaries:
            return _UNSEEN
        marks = [(mark, segment) for segment in analysis.segments for mark in segment.order]
        found = [(mark.at_ns, segment.index) for mark, segment in marks if mark.mark == event]
    else:
        read = [(NAMES[event].read(analysis, one), one.segment) for one in analysis.counted]
        for reading, _ in read:
            if reading.unknown and analysis.trace.complete:
                return _absent(reading)
        found = [(reading.ns, segment) for reading, segment in read if reading.ns is not None]
    if not found:
        return _nothing(analysis, f"no {event} came")
    (at_ns, segment), *others = found
    reason = f"{event} came at {ns_text(at_ns)} into the trace, in segment {segment}"
    return Judgement(False, reason + _more(others), segment=segment)


def _nothing(analysis: Analysis, reason: str, *names: Name) -> Judgement:
    """What is looked for is not in the trace, which may be cut."""
    if analysis.trace.complete:
        return Judgement(True, reason)
    return Judgement(None, f"{reason}, but the trace is incomplete", names)


def _more(others: Sized) -> str:
    return f", and {len(others)} more" if others else ""


def judge_rule(rule: str, analysis: Analysis, _: BargeIn | None) -> Judgement:
    """``no RULE``: it did not fire, at any severity."""
    found = [finding for finding in analysis.findings if finding.rule == rule]
    if found:
        first, *others = found
        return Judgement(False, f"{first.message}{_more(others)}", segment=first.segment)
    for unjudged in analysis.not_judged:
        if unjudged.rule == rule:
            return Judgement(None, unjudged.reason)
    return Judgement(True, "it did not fire")


def judge_never(name: Name, analysis: Analysis, barge_in: BargeIn | None) -> Judgement:
    """``no INSTANT``, of one barge-in."""
    reading = name.read(analysis, barge_in)
    if reading.unknown:
        return _absent(reading)
    if reading.never:
        return Judgement(True, reading.never)
    return Judgement(False, f"{name.name} came", (name,))


def judge_audio(
    event: str, instant: Name, analysis: Analysis, barge_in: BargeIn | None
) -> Judgement:
    """``no push after INSTANT``."""
    assert barge_in is not None
    boundary, field = AUDIO_EVENTS[event], AUDIO_INSTANTS[instant.name]
    reading = NAMES[f"{field}.{boundary}"].read(analysis, barge_in)
    if reading.absent:
        return _absent(reading, instant)
    assert reading.samples is not None
    if not reading.samples:
        return _nothing(analysis, f"nothing was {boundary} after {instant.name}", instant)
    length = "" if reading.ns is None else f"{_ms_text(reading.ns)} "
    reason = f"{length}({reading.samples} samples) {boundary} after {instant.name}".lstrip()
    if reading.samples <= reading.tolerance_samples:
        return Judgement(True, f"{reason}{_within_resolution(reading)}")
    labels = []
    leak: Leak = getattr(barge_in, field)[boundary]
    if leak.spans:
        labels.append((leak.spans[0].start_ns, f"first of it {boundary}", event))
        if boundary == "sent" and barge_in.last_sent_ns is not None:
            labels.append((barge_in.last_sent_ns, LAST_SENT, event))
    return Judgement(False, reason, (instant,), tuple(labels))


def judge_marks(
    event: str,
    side: str | None,
    instant: Name | None,
    analysis: Analysis,
    barge_in: BargeIn | None,
) -> Judgement:
    """``no MARK after INSTANT``: of the speech's segments, while the barge-in lasts."""
    assert barge_in is not None
    low, high = _window(analysis, barge_in)
    names: list[Name] = []
    if instant is not None:
        reading = instant.read(analysis, barge_in)
        if reading.ns is None:
            return _absent(reading, instant)
        names.append(instant)
        low = max(low, reading.ns + 1) if side == "after" else low
        high = min(high, reading.ns) if side == "before" else high
    if "captured" not in analysis.trace.boundaries:
        return _UNSEEN
    came = [
        mark.at_ns
        for segment in analysis.segments
        if segment.speech_id == barge_in.speech_id
        for mark in segment.order
        if mark.mark == event and low <= mark.at_ns < high
    ]
    where = f" {side} {instant.name}" if instant is not None else ""
    if not came:
        return _nothing(analysis, f"no {event} came{where}", *names)
    reason = f"{event} came{where}" + (f", {len(came)} times" if len(came) > 1 else "")
    labels = tuple((at_ns, event, event) for at_ns in came[:SHOWN_MARKS])
    return Judgement(False, reason, tuple(names), labels)


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
