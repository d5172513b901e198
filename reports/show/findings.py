"""Findings in the terminal report: what was found, what shows it, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from reports.findings import RULES, SEVERITIES
from reports.results import Analysis, Finding, Range
from reports.show import wording
from reports.show.page import Page
from reports.units import ns_text, time_ms
from reports.verdicts.explanations import measured

__all__ = ["count", "show"]

SHOWN_FINDINGS: Final = 3
"""Of one rule."""
SHOWN_MOMENTS: Final = 8
SHOWN_RANGES: Final = 3

_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def show(page: Page, analysis: Analysis, findings: Sequence[Finding]) -> None:
    """Findings of one trace, worst first, each cause and remedy once."""
    page.title(f"Findings: {wording.findings_counted(findings)}")
    if not findings:
        page.paragraph(wording.none_found(analysis), 2, "" if analysis.not_judged else "green")
    told: set[tuple[str, str, str]] = set()
    for _, group in groupby(findings, key=lambda f: (f.severity, f.rule)):
        of_rule = list(group)
        shown = of_rule[:SHOWN_FINDINGS]
        for nth, finding in enumerate(shown):
            _finding(page, finding)
            last = nth + 1 == len(shown)
            if last and len(of_rule) > len(shown):
                page.paragraph(f"and {len(of_rule) - len(shown)} more (--format json)", 4)
            # Behind the findings that share it; what a worse one of the rule had is not repeated.
            why = (finding.rule, finding.cause, finding.remedy)
            if why in told or (not last and shown[nth + 1].cause == finding.cause):
                continue
            told.add(why)
            usual = "usual cause" if finding.cause == RULES[finding.rule].cause else "cause"
            page.paragraph(f"{usual}: {finding.cause}", 4, "dim")
            page.paragraph(f"remedy: {finding.remedy}", 4, "dim")
    for reason, rules in wording.not_judged(analysis).items():
        page.paragraph(f"not judged ({reason}): {', '.join(rules)}", 2, "yellow")
    _thresholds(page, analysis)


def count(page: Page, analyses: Sequence[Analysis]) -> None:
    """Of several traces: how often each rule fired, in how many of them."""
    page.title("Findings by rule")
    every = [f for analysis in analyses for f in analysis.findings]
    if not every:
        page.line("  none", "green")
    for rule in RULES:
        mine = [f for f in every if f.rule == rule]
        if not mine:
            continue
        traces = sum(any(f.rule == rule for f in a.findings) for a in analyses)
        worst = max((f.severity for f in mine), key=SEVERITIES.index)
        page.line(f"  {rule:<26}{len(mine):>5} in {traces} of {len(analyses)} traces, {worst}")
    unjudged = {n.rule for a in analyses for n in a.not_judged}
    if unjudged:
        names = ", ".join(rule for rule in RULES if rule in unjudged)
        page.paragraph(f"not judged in every trace: {names}", 2, "dim")
    _thresholds(page, analyses[0])


def _finding(page: Page, finding: Finding) -> None:
    where = "" if finding.segment is None else f", segment {finding.segment}"
    page.line(f"  {finding.severity.upper():<8} {finding.rule}{where}", _STYLES[finding.severity])
    page.paragraph(finding.message, 4)
    for line in _evidence(finding):
        page.paragraph(line, 4, "dim")


def _evidence(finding: Finding) -> Iterator[str]:
    evidence = finding.evidence
    if len(evidence.parts) > 1:
        parts = [f"{p.cause} {measured(p)}" for p in evidence.parts]
        yield f"parts: {'; '.join(parts)}"
    if evidence.moments:
        shown = evidence.moments
        if len(shown) > SHOWN_MOMENTS:
            half = SHOWN_MOMENTS // 2
            shown = (*shown[:half], *shown[-half:])
        moments = [f"{time_ms(m.at_ns):.1f} {m.event}" for m in shown]
        if len(shown) < len(evidence.moments):
            moments.insert(len(shown) // 2, "…")
        yield f"at ms: {', '.join(moments)}"
    if evidence.ranges:
        joined = _joined(evidence.ranges)
        ranges = [f"{name} {start} to {stop}" for name, start, stop in joined[:SHOWN_RANGES]]
        more = len(joined) - SHOWN_RANGES
        yield f"samples: {', '.join(ranges)}{f', and {more} more' if more > 0 else ''}"
    for stall in evidence.stalls:
        yield (
            f"the session's loop stood still for {ns_text(stall.ns, 0)} from "
            f"{ns_text(stall.at_ns)}: times around it are late by up to that"
        )


def _joined(ranges: Sequence[Range]) -> list[tuple[str, int, int]]:
    """Boundary, start and stop; ranges without a hole between them are one."""
    joined: list[tuple[str, int, int]] = []
    for r in ranges:
        if joined and joined[-1][0] == r.boundary and joined[-1][2] == r.start_sample:
            joined[-1] = (r.boundary, joined[-1][1], r.stop_sample)
        else:
            joined.append((r.boundary, r.start_sample, r.stop_sample))
    return joined


def _thresholds(page: Page, analysis: Analysis) -> None:
    changed = [
        f"{t.rule}.{t.name} = {t.value:g} {t.unit} (default {t.default:g})"
        for t in analysis.thresholds
        if t.value != t.default
    ]
    page.paragraph(f"thresholds: {'; '.join(changed) or 'all at their defaults'}", 2, "dim")
