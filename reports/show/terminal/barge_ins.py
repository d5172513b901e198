"""Barge-ins at a terminal: one with its story and what was sent in a picture, many in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reports.results import Analysis, Moment
from reports.show.page import Page, printable, shortened
from reports.show.view import Call, worst_first
from reports.show.view.barge_ins import BargeInView
from reports.show.view.call import spreads
from reports.show.wording import count_text
from reports.summary import summarize
from reports.units import ns_text, time_ms
from reports.verdicts.explanations import amount_text

__all__ = ["details", "figures", "list_bookmarks", "table", "unplaced_bookmarks"]

SHOWN_BOOKMARKS: Final = 12
"""Of one barge-in."""
BOOKMARK_CHARACTERS: Final = 48

_MARKS: Final = (
    ("o", "onset", "onset_ns"),
    ("p", "pause", "pause_ns"),
    ("V", "verdict", "verdict_ns"),
    ("c", "clear of the sink", "clear_ns"),
    ("x", "source cleared", "source_clear_ns"),
    ("r", "resume", "resume_ns"),
)
"""Letter, meaning and instant of every mark on the line below what was sent."""


def figures(page: Page, call: Call, barge_in: BargeInView) -> None:
    page.title(barge_in.title)
    page.line(f"  speech {printable(barge_in.speech)}", "dim")
    page.line()
    if barge_in.judged:
        page.line(
            f"  leaked after the verdict: {barge_in.sent} sent, {barge_in.pushed.length} pushed",
            "bold red" if barge_in.sent.is_some else "bold green" if barge_in.known else "bold",
        )
        if call.analysis.balanced is False:
            page.line("    no result: the balance does not add up, see above", "bold red")
        page.paragraph(barge_in.remark, 4)
    else:
        page.line("  leaked after the verdict: no verdict, so no leak is counted", "bold")
    page.line()
    page.paragraph(barge_in.found.explanation)
    page.line()
    for fact in barge_in.facts:
        page.fact(fact.name, fact.amount.text, fact.meaning)


def details(page: Page, call: Call, barge_in: BargeInView) -> None:
    if barge_in.causes:
        page.title("Why it was sent after the verdict")
    for cause in barge_in.causes:
        page.fact(cause.name, cause.amount.text, cause.meaning)
    if barge_in.zero:
        _story(page, call, barge_in)
    _timeline(page, barge_in)


def _story(page: Page, call: Call, barge_in: BargeInView) -> None:
    page.title(f"In order, ms from the {barge_in.zero}")
    bookmarks = [m for m in call.analysis.trace.bookmarks if _told_with(call, m) is barge_in]
    named = [
        replace(m, event=shortened(m.event, BOOKMARK_CHARACTERS))
        for m in bookmarks[:SHOWN_BOOKMARKS]
    ]
    for step in barge_in.steps(named):
        event = f"{step.event}  = the verdict" if step.verdict else step.event
        page.line(f"  {step.after:>10}  {event}", "bold" if step.verdict else "")
    page.left_out(len(bookmarks) - SHOWN_BOOKMARKS, "more bookmarks")


def _told_with(call: Call, bookmark: Moment) -> BargeInView | None:
    """The barge-in in whose story a bookmark falls, else the nearest one with a story."""

    def distance(barge_in: BargeInView) -> int:
        times = [moment.at_ns for moment in barge_in.found.story]
        return max(min(times) - bookmark.at_ns, bookmark.at_ns - max(times), 0)

    told = [b for b in call.barge_ins if b.found.story and b.zero]
    return min(told, key=distance, default=None)


def unplaced_bookmarks(page: Page, call: Call) -> None:
    """Those of a trace without a barge-in to tell them with."""
    every = call.analysis.trace.bookmarks
    list_bookmarks(page, [m for m in every if _told_with(call, m) is None])


def list_bookmarks(page: Page, bookmarks: Sequence[Moment]) -> None:
    if not bookmarks:
        return
    page.title("Bookmarks, ms since the trace began")
    for moment in page.first(bookmarks, SHOWN_BOOKMARKS):
        at = time_ms(moment.at_ns)
        page.line(f"  {at:>12.1f}  {shortened(moment.event, BOOKMARK_CHARACTERS)}")


def _timeline(page: Page, barge_in: BargeInView) -> None:
    """One line of what was sent and one of what happened, on one scale."""
    found = barge_in.found
    sent = (found.after_onset or found.after_pause or found.leaked or {}).get("sent")
    known = [
        (at_ns, letter, name)
        for letter, name, field in _MARKS
        if (at_ns := getattr(found, field)) is not None
    ]
    if sent is None or not sent.spans or not known:
        return
    begin = min(at_ns for at_ns, _, _ in known)
    length = max([at_ns for at_ns, _, _ in known] + [s.stop_ns for s in sent.spans]) - begin
    if length <= 0:
        return
    columns = page.width - 12
    bar = ["."] * columns
    for span in sent.spans:
        first = max((span.start_ns - begin) * columns // length, 0)
        last = min(-(-(span.stop_ns - begin) * columns // length), columns)
        bar[first:last] = "#" * max(last - first, 0)
    letters = [" "] * columns
    # The verdict is written last, so that nothing on the same spot hides it.
    for at_ns, letter, _ in sorted(known, key=lambda mark: mark[1] == "V"):
        letters[min((at_ns - begin) * columns // length, columns - 1)] = letter
    step = time_ms(length) / columns
    page.title(f"Sent (#), {ns_text(length, 0)}, {step:.1f} ms a column")
    page.line(f"  sent    {''.join(bar)}")
    page.line(f"  marks   {''.join(letters)}")
    page.paragraph(", ".join(f"{letter} {name}" for _, letter, name in known), 10, "dim")


# --- Several -------------------------------------------------------------------------------------


def table(page: Page, told: Sequence[Call]) -> None:
    page.title("Barge-ins, worst first (ms after the verdict)")
    page.line(
        f"  {'sent':>8}{'pushed':>8}{'stop':>8}  {'verdict':<13}{'outcome':<10}"
        f"{'seg':>4}{'err':>4} trace",
        "dim",
    )
    for call, barge_in in worst_first(told):
        doubt = "!" if call.analysis.balanced is not True else " "
        # An outcome that is longer than its column takes room from the next.
        outcome = f"{barge_in.outcome}{barge_in.segment:>{max(14 - len(barge_in.outcome), 1)}}"
        page.line(
            f" {doubt}{barge_in.sent.ms:>8}{barge_in.pushed.ms:>8}{barge_in.stop.ms:>8}  "
            f"{barge_in.kind:<13}{outcome}{call.errors:>4} "
            f"{_ending(printable(call.name), page.width - 60)}"
        )
    if any(call.analysis.balanced is not True for call in told):
        page.paragraph("! the trace is incomplete, a boundary is missing, or it does not balance")
    page.paragraph("err: findings of severity error in its trace, of whatever rule")
    _summary(page, [call.analysis for call in told])


def _ending(text: str, room: int) -> str:
    """The end of a text that is too long: traces of one folder begin alike."""
    return text if len(text) <= room else "…" + text[1 - room :]


def _summary(page: Page, analyses: Sequence[Analysis]) -> None:
    summary = summarize(analyses)
    page.title(f"Summary of {summary.barge_ins} barge-ins in {summary.traces} traces")
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    page.fact("outcomes", outcomes or "none")
    if summary.left_out:
        left_out = ", ".join(f"{count} {name}" for name, count in summary.left_out.items())
        page.fact("left out", left_out)
    page.fact("", f"{'median':>8}{'95 %':>8}{'worst':>8}")
    for name, meaning, figures in spreads(analyses):
        page.fact(f"{name} (ms)", "".join(f"{figure:>8}" for figure in figures), meaning)
    page.fact(
        "swallowed",
        amount_text(summary.swallowed),
        "never sent, of speeches nobody interrupted",
    )
    page.fact(
        "unaccounted",
        f"{count_text(summary.unaccounted_samples)} samples",
        "0 where every sample has its place",
    )
