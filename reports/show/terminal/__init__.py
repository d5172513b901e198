"""The report for people at a terminal: readable at 80 columns, and without colour.

The figure that matters comes first, then why, then what happened in which order, then where every
sample went. Whatever makes the figures doubtful comes before all of them. Zero is printed, what is
not known is a dash.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from reports.assertions import Result, text
from reports.results import Analysis
from reports.show.page import Page, printable
from reports.show.terminal import account, barge_ins, conversation, findings
from reports.show.view import Call, calls
from reports.show.view.account import under_way
from reports.show.view.findings import told as found_words
from reports.show.wording import DASH

__all__ = ["render"]

SHOWN_REASONS: Final = 6


def render(
    analyses: Sequence[Analysis],
    *,
    segment: int | None = None,
    expected: Sequence[Sequence[Result]] | None = None,
    expected_title: str = "Expected",
    width: int = 80,
    colour: bool = False,
) -> str:
    """The report as text, newline at its end.

    Args:
        analyses: one or more; several, or several barge-ins, are listed worst first.
        segment: show this segment's barge-ins and balance in full (numbered from 1).
        expected: of each analysis, what came of the assertions held against it; stands at the end.
        expected_title: of that part.
        width: columns; no line is longer, down to 60.
        colour: put ANSI colours in.
    """
    page = Page(max(width, 60), colour)
    told = calls(analyses)
    for call in told:
        _doubts(page, call, f"{printable(call.name)}: " if len(told) > 1 else "")
    if segment is not None:
        for call in told:
            _in_full(page, call, segment)
    elif len(told) > 1:
        _several_calls(page, told)
    elif len(told[0].barge_ins) > 1:
        _several_barge_ins(page, told[0])
    else:
        _in_full(page, told[0])
    return page.text() + "".join(
        _expected(call, results, expected_title, width, named=len(told) > 1)
        for call, results in zip(told, expected or (), strict=expected is not None)
    )


def _expected(call: Call, results: Sequence[Result], title: str, width: int, *, named: bool) -> str:
    name = f", {os.path.basename(call.analysis.trace.path)}" if named else ""
    return f"\n{title}{name}\n{text(results, width)}"


def _doubts(page: Page, call: Call, where: str) -> None:
    for doubt in call.doubts:
        mark, style = ("!!", "bold red") if doubt.grave else ("!", "yellow")
        page.paragraph(f"{mark} {where}{doubt.text}", 0, style)
        for reason in doubt.reasons[:SHOWN_REASONS]:
            page.paragraph(f"- {reason}")
        if len(doubt.reasons) > SHOWN_REASONS:
            page.paragraph(f"- and {len(doubt.reasons) - SHOWN_REASONS} more")
        if doubt.amount:
            page.paragraph(f"- {doubt.amount}")


def _heading(page: Page, call: Call) -> None:
    labels = call.analysis.trace.labels.items()
    page.line()
    page.line(printable(call.name), "bold")
    page.paragraph(call.run)
    named = [f"{printable(name)}={printable(value)}" for name, value in labels]
    page.paragraph(", ".join([*call.versions, *named]))
    if call.conversation is not None:
        page.line(f"  realtime model {printable(call.conversation.model) or DASH}")
    gone = f"; not counted: {', '.join(call.not_tapped)}" if call.not_tapped else ""
    page.paragraph(f"counted at: {', '.join(call.tapped) or 'nothing'}{gone}")
    if call.not_shown:
        page.paragraph(f"not shown by this release: {', '.join(call.not_shown)}")
    page.paragraph(call.stalls)
    page.paragraph("times are ms since the trace began, except where a list counts from elsewhere")


def _in_full(page: Page, call: Call, index: int | None = None) -> None:
    """A trace with a barge-in at most, or one of its segments."""
    analysis = call.analysis
    segments, mine, found = analysis.segments, call.barge_ins, call.findings
    _heading(page, call)
    if index is not None:
        segments = tuple(s for s in segments if s.index == index)
        mine = tuple(b for b in mine if b.found.segment == index)
        found = found_words(analysis, [f for f in analysis.findings if f.segment == index])
        if not segments:
            page.title(f"There is no segment {index}: this trace has {len(analysis.segments)}")
            return
    if not mine:
        page.title(f"No barge-in {'in this trace' if index is None else f'on segment {index}'}")
    for barge_in in mine:
        barge_ins.figures(page, call, barge_in)
    if index is not None and segments[0].message_id is not None:
        page.paragraph(f"plays message {printable(segments[0].message_id)}")
    findings.show(page, found)
    for barge_in in mine:
        barge_ins.details(page, call, barge_in)
    barge_ins.unplaced_bookmarks(page, call)
    account.swallowed(page, segments)
    if index is None:
        account.control(page, call)
        conversation.show(page, call)
    account.balance(page, call, segments)
    account.losses(page, segments)
    account.claims(page, call, segments)
    if index is not None:
        account.order(page, segments[0])


def _several_barge_ins(page: Page, call: Call) -> None:
    segments = call.analysis.segments
    _heading(page, call)
    barge_ins.table(page, [call])
    findings.show(page, call.findings)
    account.swallowed(page, segments)
    account.control(page, call)
    conversation.show(page, call)
    account.balance(page, call, segments)
    for segment in segments:
        page.paragraph(under_way(call.analysis, segment), style="yellow")
    account.losses(page, segments)
    barge_ins.list_bookmarks(page, call.analysis.trace.bookmarks)
    _hint(page, "--segment N")


def _several_calls(page: Page, told: Sequence[Call]) -> None:
    barge_ins.table(page, told)
    findings.count(page, told)
    _hint(page, "sinkprobe report TRACE --segment N")


def _hint(page: Page, how: str) -> None:
    page.line()
    page.paragraph(f"Details of one: {how}, N as in the column seg.", 0, "dim")
