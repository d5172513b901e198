"""Where every sample went, at a terminal: the balance, what was lost, and what was claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.results import Segment
from reports.show.page import Page
from reports.show.view import Call
from reports.show.view import account as view
from reports.units import ns_text, time_ms

__all__ = ["balance", "claims", "control", "losses", "order", "swallowed"]

SHOWN_SEGMENTS: Final = 6
SHOWN_LINES: Final = 6
ANY_SEGMENT: Final = "--segment N, or --format json"


def swallowed(page: Page, segments: Sequence[Segment]) -> None:
    lost = view.swallowed(segments)
    if lost:
        page.title("Swallowed: nobody interrupted it, and it was never sent")
    for index, amount in page.first(lost, SHOWN_LINES):
        page.line(f"  segment {index}: {amount}", "yellow")


def control(page: Page, call: Call) -> None:
    if call.control is not None:
        page.title("Control: the reply after it")
        style = {True: "green", False: "bold red", None: ""}[call.control.whole]
        page.paragraph(call.control.figures + call.control.verdict, style=style)


def balance(page: Page, call: Call, segments: Sequence[Segment]) -> None:
    analysis = call.analysis
    verdict = view.balance_said(analysis)
    page.title(f"Where every sample went ({verdict})")
    if not segments:
        page.paragraph("no frame was captured")
    shown = list(segments)
    if len(shown) > SHOWN_SEGMENTS:
        shown = view.concerned(analysis)[:SHOWN_SEGMENTS]
        page.paragraph(
            f"{len(segments)} segments; shown are {len(shown)} of those with a barge-in. "
            "Any other with --segment N."
        )
    per_table = max((page.width - 16) // 16, 1)
    columns: list[Segment | None] = [*shown]
    if len(segments) != 1:
        columns.append(None)
    for begin in range(0, len(columns), per_table):
        _table(page, view.balance(analysis, columns[begin : begin + per_table]))
    for note in view.balance(analysis, columns).notes:
        page.paragraph(note, 2, "dim")


def _table(page: Page, balance: view.Balance) -> None:
    pad = " " * 16
    page.line(pad + "".join(f"{head:>16}" for head in balance.heads), "bold")
    page.line(pad + f"{'samples':>8}{'ms':>8}" * len(balance.heads), "dim")
    for row in balance.rows:
        label = "  " * row.depth + row.name
        cells = "".join(f"{cell.samples:>8}{cell.ms:>8}" for cell in row.cells)
        page.line(f"  {label:<14}{cells}", "bold red" if row.wrong else "")


def losses(page: Page, segments: Sequence[Segment]) -> None:
    losses = view.losses(segments)
    if losses:
        page.title("What was lost, and where")
    for lost in page.first(losses, SHOWN_LINES, ANY_SEGMENT):
        loss = lost.loss
        page.paragraph(
            f"segment {lost.segment}: {lost.amount.length} ({loss.samples} samples) {lost.why} at "
            f"{lost.at}; {lost.axis} positions {loss.start_sample} to {loss.stop_sample}"
        )


def claims(page: Page, call: Call, segments: Sequence[Segment]) -> None:
    claims = view.claims(call.analysis, segments)
    if claims:
        page.title("What the framework says was played, and what was sent")
    for claim in page.first(claims, SHOWN_LINES, ANY_SEGMENT):
        page.paragraph(
            f"segment {claim.segment}: claimed {claim.claimed.length}, sent {claim.sent.length}, "
            f"last sent sample at {claim.last_sent.length} of the captured audio"
        )
        page.paragraph(claim.under_way, style="yellow")


def order(page: Page, segment: Segment) -> None:
    page.title("Marks of the sink, ms since the trace began")
    marks = [(segment.started_ns, "first frame captured")]
    marks += [(mark.at_ns, mark.mark) for mark in segment.order]
    if segment.finished_ns is not None:
        marks.append((segment.finished_ns, "reported as finished"))
    marks += [(gap.at_ns, f"gap in the sent audio, {ns_text(gap.ns)}") for gap in segment.gaps]
    for at_ns, text in sorted(marks, key=lambda mark: mark[0]):
        page.line(f"  {time_ms(at_ns):>12.1f}  {text}")
