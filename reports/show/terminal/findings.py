"""Findings at a terminal: what was found, what shows it, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.results import Range
from reports.show.page import Page
from reports.show.view import Call
from reports.show.view.findings import Entry, Findings, by_rule, unjudged
from reports.units import time_ms

__all__ = ["count", "show"]

SHOWN_FINDINGS: Final = 3
"""Of one rule."""
SHOWN_MOMENTS: Final = 8
SHOWN_RANGES: Final = 3

_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def show(page: Page, found: Findings) -> None:
    """Worst first, each cause and remedy once."""
    page.title(f"Findings: {found.counted}")
    page.paragraph(found.none, 2, "" if found.not_judged else "green")
    told: set[tuple[str, str, str]] = set()
    for group in found.groups:
        room = SHOWN_FINDINGS
        more = sum(len(reason.entries) for reason in group.reasons) - room
        for reason in group.reasons:
            shown = reason.entries[:room]
            for entry in shown:
                _finding(page, entry)
            room -= len(shown)
            if shown and not room:
                page.left_out(more, indent=4)
            # What a worse finding of the rule had is not repeated.
            why = (group.rule, reason.cause, reason.remedy)
            if shown and why not in told:
                told.add(why)
                page.paragraph(f"{reason.usual}: {reason.cause}", 4, "dim")
                page.paragraph(f"remedy: {reason.remedy}", 4, "dim")
    for because, rules in found.not_judged.items():
        page.paragraph(f"not judged ({because}): {', '.join(rules)}", 2, "yellow")
    page.paragraph(found.thresholds, 2, "dim")


def _finding(page: Page, entry: Entry) -> None:
    finding = entry.finding
    where = f", {entry.where}" if entry.where else ""
    page.line(f"  {finding.severity.upper():<8} {finding.rule}{where}", _STYLES[finding.severity])
    page.paragraph(finding.message, 4)
    for line in (entry.shares, _moments(entry), _ranges(finding.evidence.ranges), *entry.stalls):
        page.paragraph(line, 4, "dim")


def _moments(entry: Entry) -> str:
    """When what it rests on happened: the first and the last of it."""
    moments = [f"{time_ms(m.at_ns):.1f} {m.event}" for m in entry.finding.evidence.moments]
    if len(moments) > SHOWN_MOMENTS:
        half = SHOWN_MOMENTS // 2
        moments[half:-half] = ["…"]
    return f"at ms: {', '.join(moments)}" if moments else ""


def _ranges(ranges: Sequence[Range]) -> str:
    """Where the audio is; ranges without a hole between them are one."""
    joined: list[tuple[str, int, int]] = []
    for r in ranges:
        if joined and joined[-1][0] == r.boundary and joined[-1][2] == r.start_sample:
            joined[-1] = (r.boundary, joined[-1][1], r.stop_sample)
        else:
            joined.append((r.boundary, r.start_sample, r.stop_sample))
    named = [f"{name} {start} to {stop}" for name, start, stop in joined[:SHOWN_RANGES]]
    if len(joined) > SHOWN_RANGES:
        named.append(f"and {len(joined) - SHOWN_RANGES} more")
    return f"samples: {', '.join(named)}" if named else ""


def count(page: Page, told: Sequence[Call]) -> None:
    """Of several traces: how often each rule fired, in how many of them."""
    analyses = [call.analysis for call in told]
    page.title("Findings by rule")
    counts = by_rule(analyses)
    if not counts:
        page.line("  none", "green")
    for one in counts:
        page.line(
            f"  {one.rule:<26}{one.findings:>5} in {one.traces} of {len(told)} traces, "
            f"{one.severity}"
        )
    if rules := unjudged(analyses):
        page.paragraph(f"not judged in every trace: {', '.join(rules)}", 2, "dim")
    page.paragraph(told[0].findings.thresholds, 2, "dim")
