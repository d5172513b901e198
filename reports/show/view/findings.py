"""Findings as they are shown: by rule, a cause and its remedy once for all that share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.findings import RULES, SEVERITIES
from reports.results import Analysis, Finding, Severity
from reports.show.view.quantity import Quantity, audio
from reports.units import ns_text

__all__ = [
    "Entry",
    "Findings",
    "Group",
    "Reason",
    "RuleCount",
    "by_rule",
    "counted",
    "told",
    "unjudged",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """One finding, and what shows it."""

    finding: Finding
    where: str
    """``segment 2``; empty: it is about none in particular."""
    parts: tuple[tuple[str, Quantity], ...]
    """What took or sent the samples, and how many; empty: that can't be told apart."""
    stalls: tuple[str, ...]
    """Why its times may be late."""
    start_ns: int | None
    """The stretch of time it is about; ``None``: it is about none."""
    stop_ns: int | None

    @property
    def shares(self) -> str:
        """The parts in a line; empty where there are not several."""
        if len(self.parts) < 2:
            return ""
        return f"parts: {'; '.join(f'{cause} {amount}' for cause, amount in self.parts)}"


@dataclass(frozen=True, slots=True)
class Reason:
    """Findings of one rule that share their cause."""

    usual: str
    """Whether the cause was found, or is what it usually is: what stands before it."""
    cause: str
    remedy: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one rule and severity."""

    severity: Severity
    rule: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All of one trace, worst first."""

    counted: str
    none: str
    """What there is to say of a trace without any: no more than could be judged; else empty."""
    groups: tuple[Group, ...]
    not_judged: Mapping[str, Sequence[str]]
    """Rules that could not be judged, by the reason."""
    thresholds: str
    """Those that are not at their default."""

    @property
    def entries(self) -> list[Entry]:
        return [e for group in self.groups for reason in group.reasons for e in reason.entries]


def told(analysis: Analysis, findings: Sequence[Finding]) -> Findings:
    """Findings of an analysis, all of them or some."""
    not_judged: dict[str, list[str]] = {}
    for one in analysis.not_judged:
        not_judged.setdefault(one.reason, []).append(one.rule)
    none = "nothing that the rules look for was found"
    if not_judged:
        none = "nothing was found by the rules that could be judged"
    changed = [
        f"{t.rule}.{t.name} = {t.value:g} {t.unit} (default {t.default:g})"
        for t in analysis.thresholds
        if t.value != t.default
    ]
    return Findings(
        counted=counted(findings),
        none="" if findings else none,
        groups=tuple(
            Group(severity, rule, tuple(_reasons(tuple(group))))
            for (severity, rule), group in groupby(findings, key=lambda f: (f.severity, f.rule))
        ),
        not_judged=not_judged,
        thresholds=f"thresholds: {'; '.join(changed) or 'all at their defaults'}",
    )


def counted(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``, worst first; ``none``."""
    counts = []
    for severity in reversed(SEVERITIES):
        number = sum(f.severity == severity for f in findings)
        if number:
            plural = "s" if number > 1 and severity != "info" else ""
            counts.append(f"{number} {severity}{plural}")
    return ", ".join(counts) or "none"


def _reasons(findings: Sequence[Finding]) -> list[Reason]:
    return [
        Reason(
            "usual cause" if cause == RULES[findings[0].rule].cause else "cause",
            cause,
            remedy,
            tuple(_entry(finding) for finding in alike),
        )
        for (cause, remedy), alike in groupby(findings, key=lambda f: (f.cause, f.remedy))
    ]


def _entry(finding: Finding) -> Entry:
    evidence = finding.evidence
    instants = [m.at_ns for m in evidence.moments] + [s.at_ns for s in evidence.stalls]
    instants += [at for r in evidence.ranges for at in (r.start_ns, r.stop_ns) if at is not None]
    return Entry(
        finding=finding,
        where="" if finding.segment is None else f"segment {finding.segment}",
        parts=tuple((part.cause, audio(part)) for part in evidence.parts),
        stalls=tuple(
            f"the session's loop stood still for {ns_text(stall.ns, 0)} from "
            f"{ns_text(stall.at_ns)}: times around it are late by up to that"
            for stall in evidence.stalls
        ),
        start_ns=min(instants, default=None),
        stop_ns=max(instants, default=None),
    )


# --- Of several traces ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often a rule fired."""

    rule: str
    findings: int
    traces: int
    severity: Severity
    """The worst of them."""
    figure: str
    """The most of them, with its unit."""


def by_rule(analyses: Sequence[Analysis]) -> list[RuleCount]:
    """Rules that fired in any trace, in the order of all rules."""
    counts = []
    for rule in RULES:
        of_traces = [[f for f in a.findings if f.rule == rule] for a in analyses]
        mine = [finding for found in of_traces for finding in found]
        if mine:
            figures = [finding.evidence.figure for finding in mine]
            counts.append(
                RuleCount(
                    rule,
                    len(mine),
                    sum(map(bool, of_traces)),
                    max((f.severity for f in mine), key=SEVERITIES.index),
                    f"{max(figure.value for figure in figures):g} {figures[0].unit}",
                )
            )
    return counts


def unjudged(analyses: Sequence[Analysis]) -> list[str]:
    """Rules that could not be judged in one of the traces."""
    found = {one.rule for analysis in analyses for one in analysis.not_judged}
    return [rule for rule in RULES if rule in found]
