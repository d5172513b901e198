"""Assertions held against an analysis, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass

from reports.assertions.judging import Judgement
from reports.assertions.language import Assertion, parse
from reports.assertions.moments import MarkedMoment, moments, zero_of
from reports.results import Analysis, BargeIn
from reports.units import ns_text

__all__ = ["Check", "Result", "check"]


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
    if not assertion.per_barge_in:
        judged = assertion.judge(analysis, None)
        return [Check(None, judged.segment, judged.holds, judged.reason, None, ())]
    chosen = [
        _checked(analysis, number, barge_in, assertion.judge(analysis, barge_in))
        for number, barge_in in enumerate(analysis.barge_ins, 1)
        if _is_chosen(assertion.selector, number, barge_in)
    ]
    return chosen or [_no_such(analysis, assertion.selector)]


def _is_chosen(selector: int | str | None, number: int, barge_in: BargeIn) -> bool:
    """Whether an assertion is about it; what interrupted nobody has to be asked for."""
    if selector is None:
        return barge_in.counts
    return selector in (number, barge_in.verdict_kind, barge_in.outcome)


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


def _checked(analysis: Analysis, number: int, barge_in: BargeIn, judged: Judgement) -> Check:
    reason, zero = judged.reason, zero_of(barge_in)
    around: tuple[MarkedMoment, ...] = ()
    if judged.holds is not True and zero is not None:
        around = moments(analysis, barge_in, zero[1], judged.names, judged.labels)
        if barge_in.stalled_ns and any(name.type == "instant" for name in judged.names):
            reason += (
                f" (the session's loop stood still for {ns_text(barge_in.stalled_ns)} around it: "
                "times of calls are late by up to that)"
            )
    return Check(number, barge_in.segment, judged.holds, reason, zero and zero[0], around)
