"""Every rule, and how they are applied to a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from reports.account.boundary import SLACK_NS
from reports.findings import (
    bad_geometry,
    caller_ignored,
    cancel_misdirected,
    cancel_missing,
    capture_stalled,
    committed_unheard,
    extra_finish,
    finish_before_sent,
    finished_uninterrupted,
    gap_in_speech,
    gate_left_closed,
    generation_overrun,
    ghost_message,
    late_frames,
    leak_after_verdict,
    loop_blocked,
    lost_message,
    never_cleared,
    old_audio_in_new_segment,
    position_off,
    relabelled_rate,
    reply_over_caller,
    resume_before_clear,
    resume_burst,
    resumed_after_verdict,
    segment_never_finished,
    sink_refuses,
    speaking_but_silent,
    stale_verdict,
    started_before_captured,
    started_twice,
    swallowed_audio,
    swallowed_reply,
    truncation_off,
)
from reports.findings.case import Case
from reports.findings.rule import Found, Rule, Unjudged
from reports.findings.thresholds import limits_of
from reports.results import (
    Evidence,
    Figure,
    Finding,
    Moment,
    NotJudged,
    Severity,
    Stall,
)

__all__ = ["RULES", "SEVERITIES", "judge"]

RULES: Final[Mapping[str, Rule]] = {
    module.RULE.name: module.RULE
    for module in (
        # audio that stayed too long
        leak_after_verdict,
        resume_before_clear,
        never_cleared,
        resumed_after_verdict,
        old_audio_in_new_segment,
        late_frames,
        # audio that never came
        swallowed_audio,
        sink_refuses,
        swallowed_reply,
        speaking_but_silent,
        gate_left_closed,
        gap_in_speech,
        # reports that do not match what was sent
        position_off,
        finished_uninterrupted,
        committed_unheard,
        segment_never_finished,
        extra_finish,
        started_twice,
        started_before_captured,
        finish_before_sent,
        # behaviour around the caller
        caller_ignored,
        loop_blocked,
        reply_over_caller,
        resume_burst,
        stale_verdict,
        capture_stalled,
        bad_geometry,
        relabelled_rate,
        # what the provider of a realtime model believes, and what it goes on making
        ghost_message,
        lost_message,
        truncation_off,
        cancel_missing,
        cancel_misdirected,
        generation_overrun,
    )
}
"""Name to rule, in the order they are listed."""

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
"""Mildest first."""

SHOWN_MOMENTS: Final = 40
"""Moments of one finding; what lies between the first and the last of them is cut."""


def judge(
    case: Case, settings: Mapping[str, Mapping[str, float]]
) -> tuple[tuple[Finding, ...], tuple[NotJudged, ...]]:
    """Findings of every rule, worst first, and the rules that could not be judged, or not on all of
    the trace. Pure.

    Args:
        case: the trace.
        settings: thresholds that differ from their defaults, by rule and name.
    """
    findings: list[Finding] = []
    not_judged: list[NotJudged] = []
    for rule in RULES.values():
        if "realtime" in rule.needs and case.realtime is None and "realtime" not in case.missing:
            continue
        reason = _lacks(case, rule)
        if reason is not None:
            not_judged.append(NotJudged(rule.name, reason))
            continue
        found: list[Found] = []
        unsure = _unsure(case, rule)
        reasons: dict[str, None] = dict.fromkeys(unsure.values())
        for each in rule.judge(case, limits_of(rule, settings)):
            if isinstance(each, Unjudged):
                reasons[each.reason] = None
            elif not unsure.keys() & {each.segment, *each.beside}:
                found.append(each)
        if reasons:
            not_judged.append(NotJudged(rule.name, "; ".join(reasons)))
        if rule.from_absence:
            found = [f for f in found if all(at <= case.end_ns for at, _ in f.moments)]
        findings += [_finding(case, rule, each) for each in found]
    findings.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    return tuple(findings), tuple(not_judged)


def _lacks(case: Case, rule: Rule) -> str | None:
    """Why a rule can't be judged by this trace; ``None``: it can."""
    for need in rule.needs:
        if need in ("captured", "pushed", "sent"):
            if need not in case.tapped:
                return f"{need} was not tapped: {case.missing.get(need, 'never tapped')}"
        elif need == "balance":
            if case.doubt is not None:
                return case.doubt
        elif need == "every event":
            if case.gaps is not None:
                return case.gaps
        elif need == "session":
            if not case.session.seen:
                return "the trace shows no events of a session"
        elif need in case.missing:
            return f"{need}: {case.missing[need]}"
    return None


def _unsure(case: Case, rule: Rule) -> dict[int, str]:
    """Segments of which a rule that looks behind the sink can't judge, by number, and why."""
    unsure: dict[int, str] = {}
    if "all sent" in rule.needs:
        unsure |= case.unseen
    if {"pushed", "sent"} & set(rule.needs):
        unsure |= case.unjoined
    return unsure


def _finding(case: Case, rule: Rule, found: Found) -> Finding:
    return Finding(
        rule=rule.name,
        severity=next(s for s in SEVERITIES if s == (found.severity or rule.severity)),
        segment=found.segment,
        message=found.message,
        cause=found.cause or rule.cause,
        remedy=found.remedy or rule.remedy,
        evidence=Evidence(
            figure=Figure(found.figure, rule.unit),
            samples=found.samples,
            parts=found.parts,
            ranges=found.ranges,
            moments=_moments(found.moments),
            stalls=tuple(
                Stall(begin, end - begin)
                for begin, end in case.session.stalls_around(found.moments, SLACK_NS)
            ),
            facts=found.facts,
        ),
    )


def _moments(moments: Sequence[tuple[int, str]]) -> tuple[Moment, ...]:
    """In their order; a mark that is repeated is one moment with a count."""
    in_order: list[tuple[int, str, int]] = []
    for at, text in sorted(dict.fromkeys(moments), key=lambda moment: moment[0]):
        if in_order and in_order[-1][1] == text:
            first, _, times = in_order[-1]
            in_order[-1] = (first, text, times + 1)
        else:
            in_order.append((at, text, 1))
    if len(in_order) > SHOWN_MOMENTS:
        half = SHOWN_MOMENTS // 2
        cut = in_order[half:-half]
        left_out = (cut[0][0], f"{len(cut)} more, left out here", 1)
        in_order = [*in_order[:half], left_out, *in_order[-half:]]
    return tuple(
        Moment(text if times == 1 else f"{text} ({times}x)", at) for at, text, times in in_order
    )
