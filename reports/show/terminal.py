"""The report for people at a terminal: readable at 80 columns, and without colour.

The figure that matters comes first, then why, then what happened in which order, then where every
sample went. Whatever makes the figures doubtful comes before all of them. Zero is printed, what is
not known is a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reports.results import Analysis, BargeIn, Leak, Length, Moment, Segment
from reports.show import findings, realtime
from reports.show.page import Page, printable, shortened
from reports.show.wording import (
    BALANCE_NOTE,
    CAUSES,
    DASH,
    LOSSES,
    after_text,
    balance_figure,
    balance_length,
    balance_rows,
    barge_in_title,
    count_text,
    doubts,
    ms_text,
    not_shown,
    not_tapped,
    run_words,
    stalls,
    tapped,
    trace_name,
    trace_names,
    under_way,
    versions,
)
from reports.summary import Spread, leak_at, summarize, worst_first
from reports.units import ns_text, one_rate, time_ms
from reports.verdicts.explanations import amount_text, measured

__all__ = ["render"]

SHOWN_SEGMENTS: Final = 6
SHOWN_LINES: Final = 6
SHOWN_BOOKMARKS: Final = 12
"""Of one barge-in."""
BOOKMARK_CHARACTERS: Final = 48


def render(
    analyses: Sequence[Analysis],
    *,
    segment: int | None = None,
    width: int = 80,
    colour: bool = False,
) -> str:
    """The report as text, newline at its end.

    Args:
        analyses: one or more; several, or several barge-ins, are listed worst first.
        segment: show this segment's barge-ins and balance in full (numbered from 1).
        width: columns; no line is longer, down to 60.
        colour: put ANSI colours in.
    """
    page = Page(max(width, 60), colour)
    barge_ins = sum(len(analysis.barge_ins) for analysis in analyses)
    names = trace_names(analyses)
    for analysis, name in zip(analyses, names, strict=True):
        _doubts(page, analysis, f"{printable(name)}: " if len(analyses) > 1 else "")
    if segment is not None:
        for analysis, name in zip(analyses, names, strict=True):
            _heading(page, analysis, name)
            _segment_in_full(page, analysis, segment)
    elif len(analyses) == 1 and barge_ins <= 1:
        _single(page, analyses[0])
    else:
        _several(page, analyses)
    return page.text()


# --- What makes the figures doubtful -------------------------------------------------------------


def _doubts(page: Page, analysis: Analysis, where: str) -> None:
    for doubt in doubts(analysis):
        mark, style = ("!!", "bold red") if doubt.grave else ("!", "yellow")
        page.paragraph(f"{mark} {where}{doubt.text}", 0, style)
        _some(page, doubt.reasons)
        if doubt.amount:
            page.paragraph(f"- {doubt.amount}")


def _some(page: Page, lines: Sequence[str], indent: int = 2) -> None:
    for line in lines[:SHOWN_LINES]:
        page.paragraph(f"- {line}", indent)
    if len(lines) > SHOWN_LINES:
        page.paragraph(f"- and {len(lines) - SHOWN_LINES} more", indent)


# --- One trace -----------------------------------------------------------------------------------


def _heading(page: Page, analysis: Analysis, name: str) -> None:
    trace = analysis.trace
    page.line()
    page.line(printable(name), "bold")
    page.paragraph(run_words(analysis))
    labels = [f"{printable(name)}={printable(value)}" for name, value in trace.labels.items()]
    page.paragraph(", ".join(versions(trace) + labels))
    if analysis.realtime is not None:
        page.line(f"  realtime model {printable(analysis.realtime.model) or DASH}")
    counted = f"counted at: {', '.join(tapped(trace)) or 'nothing'}"
    gone = not_tapped(trace)
    if gone:
        counted += f"; not counted: {', '.join(gone)}"
    page.paragraph(counted)
    if missing := not_shown(trace):
        page.paragraph(f"not shown by this release: {', '.join(missing)}")
    if still := stalls(trace):
        page.paragraph(still)
    page.paragraph("times are ms since the trace began, except where a list counts from elsewhere")


def _single(page: Page, analysis: Analysis) -> None:
    _heading(page, analysis, trace_name(analysis))
    if not analysis.barge_ins:
        page.title("No barge-in in this trace")
    for barge_in in analysis.barge_ins:
        _key_figures(page, analysis, barge_in)
    findings.show(page, analysis, analysis.findings)
    for barge_in in analysis.barge_ins:
        _details(page, analysis, barge_in)
    _unplaced_bookmarks(page, analysis)
    _swallowed(page, analysis.segments)
    _control(page, analysis)
    realtime.show(page, analysis)
    _balance(page, analysis, analysis.segments)
    _losses(page, analysis.segments)
    _claims(page, analysis, analysis.segments)


def _segment_in_full(page: Page, analysis: Analysis, index: int) -> None:
    segments = [s for s in analysis.segments if s.index == index]
    if not segments:
        page.title(f"There is no segment {index}: this trace has {len(analysis.segments)}")
        return
    mine = [b for b in analysis.barge_ins if b.segment == index]
    for barge_in in mine:
        _key_figures(page, analysis, barge_in)
    if not mine:
        page.title(f"No barge-in on segment {index}")
    if segments[0].message_id is not None:
        page.paragraph(f"plays message {printable(segments[0].message_id)}")
    findings.show(page, analysis, [f for f in analysis.findings if f.segment == index])
    for barge_in in mine:
        _details(page, analysis, barge_in)
    _unplaced_bookmarks(page, analysis)
    _swallowed(page, segments)
    _balance(page, analysis, segments)
    _losses(page, segments)
    _claims(page, analysis, segments)
    _order(page, segments[0])


# --- A barge-in ----------------------------------------------------------------------------------


def _key_figures(page: Page, analysis: Analysis, barge_in: BargeIn) -> None:
    page.title(barge_in_title(barge_in))
    page.line(f"  speech {printable(barge_in.speech_id or DASH)}", "dim")
    page.line()
    sent = (barge_in.leaked or {}).get("sent")
    pushed = (barge_in.leaked or {}).get("pushed")
    if barge_in.leaked is not None:
        bad = sent is not None and sent.samples > 0
        page.line(
            f"  leaked after the verdict: {amount_text(sent)} sent, "
            f"{ms_text(None if pushed is None else pushed.ms)} pushed",
            "bold red" if bad else "bold green",
        )
        if analysis.balanced is False:
            page.line("    no result: the balance does not add up, see above", "bold red")
        resolution = time_ms(analysis.trace.resolution_ns.get("sent"))
        if bad and sent is not None and resolution and (sent.ms or 0) <= resolution:
            page.paragraph(
                f"no longer than the resolution of {resolution:g} ms, so it may as well be none",
                4,
            )
    else:
        page.line("  leaked after the verdict: no verdict, so no leak is counted", "bold")
    page.line()
    page.paragraph(barge_in.explanation)
    page.line()
    if barge_in.leaked is not None:
        silent = barge_in.stop_ns == 0 and sent is not None and sent.samples == 0
        page.fact(
            "stop time",
            ms_text(time_ms(barge_in.stop_ns)),
            "already silent" if silent else "verdict to last sample sent",
        )
        page.fact("remaining", amount_text(barge_in.remaining), "of the reply, at the verdict")
    _also_sent(page, "sent since pause", barge_in.after_pause, "audio since the gate closed")
    _also_sent(
        page, "sent since onset", barge_in.after_onset, "with the time of detection; not a leak"
    )
    _also_sent(page, "sent over the caller", barge_in.over_caller, "while the caller was speaking")
    if barge_in.stalled_ns:
        page.fact(
            "session loop stalled",
            ms_text(time_ms(barge_in.stalled_ns)),
            "times of calls and events are late by up to that",
        )


def _details(page: Page, analysis: Analysis, barge_in: BargeIn) -> None:
    if barge_in.causes:
        page.title("Why it was sent after the verdict")
        for cause in barge_in.causes:
            page.fact(cause.cause, measured(cause), CAUSES[cause.cause])
    _story(page, analysis, barge_in)
    _timeline(page, barge_in)


def _also_sent(
    page: Page, name: str, leaks: Mapping[str, Leak | None] | None, meaning: str
) -> None:
    if leaks is not None:
        page.fact(name, amount_text(leaks.get("sent")), meaning)


def _zero(barge_in: BargeIn) -> tuple[float, str] | None:
    """The instant a barge-in's story counts from, and what it is."""
    instants = (
        (time_ms(barge_in.verdict_ns), "verdict"),
        (time_ms(barge_in.pause_ns), "pause"),
        (time_ms(barge_in.onset_ns), "onset"),
    )
    return next(((at_ms, name) for at_ms, name in instants if at_ms is not None), None)


def _story(page: Page, analysis: Analysis, barge_in: BargeIn) -> None:
    zero = _zero(barge_in)
    if zero is None:
        return
    page.title(f"In order, ms from the {zero[1]}")
    bookmarks = [m for m in analysis.trace.bookmarks if _told_with(analysis, m) is barge_in]
    shown = [
        Moment(f"bookmark: {shortened(m.event, BOOKMARK_CHARACTERS)}", m.at_ns)
        for m in bookmarks[:SHOWN_BOOKMARKS]
    ]
    for moment in sorted((*barge_in.story, *shown), key=lambda m: m.at_ns):
        event = f"{moment.event}  = the verdict" if moment.verdict else moment.event
        after = after_text(time_ms(moment.at_ns) - zero[0])
        page.line(f"  {after:>10}  {event}", "bold" if moment.verdict else "")
    if len(bookmarks) > SHOWN_BOOKMARKS:
        more = len(bookmarks) - SHOWN_BOOKMARKS
        page.paragraph(f"and {more} more bookmarks (--format json)")


def _told_with(analysis: Analysis, bookmark: Moment) -> BargeIn | None:
    """The barge-in in whose story a bookmark falls, else the nearest one with a story."""

    def distance(barge_in: BargeIn) -> float:
        times = [time_ms(moment.at_ns) for moment in barge_in.story]
        return max(min(times) - time_ms(bookmark.at_ns), time_ms(bookmark.at_ns) - max(times), 0)

    told = [b for b in analysis.barge_ins if b.story and _zero(b) is not None]
    return min(told, key=distance, default=None)


def _unplaced_bookmarks(page: Page, analysis: Analysis) -> None:
    """Those of a trace without a barge-in to tell them with."""
    _bookmarks(page, [m for m in analysis.trace.bookmarks if _told_with(analysis, m) is None])


def _bookmarks(page: Page, bookmarks: Sequence[Moment]) -> None:
    if not bookmarks:
        return
    page.title("Bookmarks, ms since the trace began")
    for moment in bookmarks[:SHOWN_BOOKMARKS]:
        page.line(
            f"  {time_ms(moment.at_ns):>12.1f}  {shortened(moment.event, BOOKMARK_CHARACTERS)}"
        )
    if len(bookmarks) > SHOWN_BOOKMARKS:
        page.paragraph(f"and {len(bookmarks) - SHOWN_BOOKMARKS} more (--format json)")


def _timeline(page: Page, barge_in: BargeIn) -> None:
    """One line of what was sent and one of what happened, on one scale."""
    leaks = barge_in.after_onset or barge_in.after_pause or barge_in.leaked
    sent = None if leaks is None else leaks.get("sent")
    if sent is None or not sent.spans:
        return
    marks = [
        (time_ms(barge_in.onset_ns), "o"),
        (time_ms(barge_in.pause_ns), "p"),
        (time_ms(barge_in.verdict_ns), "V"),
        (time_ms(barge_in.clear_ns), "c"),
        (time_ms(barge_in.source_clear_ns), "x"),
        (time_ms(barge_in.resume_ns), "r"),
    ]
    known = [(at_ms, letter) for at_ms, letter in marks if at_ms is not None]
    if not known:
        return
    begin = min(at_ms for at_ms, _ in known)
    end = max([at_ms for at_ms, _ in known] + [time_ms(span.stop_ns) for span in sent.spans])
    if end <= begin:
        return
    columns = page.width - 12
    step = (end - begin) / columns
    bar = [
        any(
            time_ms(s.start_ns) < begin + (i + 1) * step and time_ms(s.stop_ns) > begin + i * step
            for s in sent.spans
        )
        for i in range(columns)
    ]
    letters = [" "] * columns
    # The verdict is written last, so that nothing on the same spot hides it.
    for at_ms, letter in sorted(known, key=lambda mark: mark[1] == "V"):
        letters[min(int((at_ms - begin) / step), columns - 1)] = letter
    page.title(f"Sent (#), {end - begin:.0f} ms, {step:.1f} ms a column")
    page.line("  sent    " + "".join("#" if filled else "." for filled in bar))
    page.line("  marks   " + "".join(letters))
    names = {
        "o": "onset",
        "p": "pause",
        "V": "verdict",
        "c": "clear of the sink",
        "x": "source cleared",
        "r": "resume",
    }
    page.paragraph(", ".join(f"{letter} {names[letter]}" for _, letter in known), 10, "dim")


def _swallowed(page: Page, segments: Iterable[Segment]) -> None:
    lost = [s for s in segments if s.swallowed_samples]
    if not lost:
        return
    page.title("Swallowed: nobody interrupted it, and it was never sent")
    lost.sort(key=lambda s: -(s.swallowed_samples or 0))
    for segment in lost[:SHOWN_LINES]:
        rates = [g.rate_hz for g in segment.geometry["captured"]]
        samples = segment.swallowed_samples or 0
        page.line(
            f"  segment {segment.index}: {measured(Length(samples, one_rate(rates)))}", "yellow"
        )
    if len(lost) > SHOWN_LINES:
        page.paragraph(f"and {len(lost) - SHOWN_LINES} more (--format json)")


def _control(page: Page, analysis: Analysis) -> None:
    control = analysis.run.control if analysis.run is not None else None
    if control is None:
        return
    page.title("Control: the reply after it")
    if control.segment is None:
        page.paragraph("nothing of it ever reached the sink", style="bold red")
        return
    figures = (
        f"segment {control.segment}: {count_text(control.sent_samples)} of "
        f"{count_text(control.captured_samples)} captured samples sent"
    )
    if control.whole is None:
        page.paragraph(f"{figures}; whether it arrived whole can't be known")
    elif control.whole:
        page.paragraph(f"{figures}: whole, up to a tail of less than a block", style="green")
    else:
        page.paragraph(f"{figures}: NOT WHOLE", style="bold red")


# --- The balance ---------------------------------------------------------------------------------


def _balance(page: Page, analysis: Analysis, segments: Sequence[Segment]) -> None:
    verdict = {True: "balances", False: "DOES NOT BALANCE", None: "balance not known"}
    page.title(f"Where every sample went ({verdict[analysis.balanced]})")
    if not segments:
        page.paragraph("no frame was captured")
    shown = list(segments)
    if len(shown) > SHOWN_SEGMENTS:
        touched = {b.segment for b in analysis.barge_ins}
        shown = [s for s in shown if s.index in touched or s.balanced is False][:SHOWN_SEGMENTS]
        page.paragraph(
            f"{len(segments)} segments; shown are {len(shown)} of those with a barge-in. "
            "Any other with --segment N."
        )
    per_table = max((page.width - 16) // 16, 1)
    columns: list[Segment | None] = [*shown]
    if len(segments) != 1:
        columns.append(None)
    for begin in range(0, len(columns), per_table):
        _table(page, analysis, columns[begin : begin + per_table])
    page.paragraph(BALANCE_NOTE, 2, "dim")


def _table(page: Page, analysis: Analysis, columns: Sequence[Segment | None]) -> None:
    heads = ["total" if s is None else f"segment {s.index}" for s in columns]
    page.line("  " + " " * 14 + "".join(f"{head:>16}" for head in heads), "bold")
    page.line("  " + " " * 14 + f"{'samples':>8}{'ms':>8}" * len(columns), "dim")
    for name, depth, field in balance_rows(analysis, columns):
        cells = []
        for column in columns:
            samples = balance_figure(analysis, column, field)
            length = None if samples is None else balance_length(analysis, column, samples).ms
            cells.append(
                f"{count_text(samples):>8}{DASH if length is None else format(length, '.1f'):>8}"
            )
        wrong = field == "unaccounted_samples" and any(
            balance_figure(analysis, column, field) for column in columns
        )
        label = "  " * depth + name
        page.line(f"  {label:<14}" + "".join(cells), "bold red" if wrong else "")


def _losses(page: Page, segments: Iterable[Segment]) -> None:
    losses = [(s, loss) for s in segments for loss in s.losses]
    if not losses:
        return
    page.title("What was lost, and where")
    losses.sort(key=lambda pair: -pair[1].samples)
    for segment, loss in losses[:SHOWN_LINES]:
        axis = "captured" if loss.what == "dropped" else "pushed"
        page.paragraph(
            f"segment {segment.index}: {ms_text(loss.ms)} ({loss.samples} samples) {loss.what}: "
            f"{LOSSES[loss.what, loss.cause]} at {ns_text(loss.at_ns)}; {axis} positions "
            f"{loss.start_sample} to {loss.stop_sample}"
        )
    if len(losses) > SHOWN_LINES:
        page.paragraph(f"and {len(losses) - SHOWN_LINES} more (--segment N, or --format json)")


def _claims(page: Page, analysis: Analysis, segments: Iterable[Segment]) -> None:
    claims = [s for s in segments if s.claimed_position_ns is not None or s.partial]
    if not claims:
        return
    page.title("What the framework says was played, and what was sent")
    for segment in claims[:SHOWN_LINES]:
        sent, last = segment.sent_position, segment.last_sent_position
        page.paragraph(
            f"segment {segment.index}: claimed {ms_text(time_ms(segment.claimed_position_ns))}, "
            f"sent {ms_text(None if sent is None else sent.ms)}, last sent sample at "
            f"{ms_text(None if last is None else last.ms)} of the captured audio"
        )
        _under_way(page, analysis, segment)
    if len(claims) > SHOWN_LINES:
        page.paragraph(f"and {len(claims) - SHOWN_LINES} more (--segment N, or --format json)")


def _under_way(page: Page, analysis: Analysis, segment: Segment) -> None:
    """Of a partial segment: that its beginning is in no figure."""
    text = under_way(analysis, segment)
    if text:
        page.paragraph(text, 2, "yellow")


def _order(page: Page, segment: Segment) -> None:
    page.title("Marks of the sink, ms since the trace began")
    marks = [(time_ms(segment.started_ns), "first frame captured")]
    marks += [(time_ms(mark.at_ns), mark.mark) for mark in segment.order]
    if segment.finished_ns is not None:
        marks.append((time_ms(segment.finished_ns), "reported as finished"))
    marks += [
        (time_ms(gap.at_ns), f"gap in the sent audio, {ns_text(gap.ns)}") for gap in segment.gaps
    ]
    for at_ms, text in sorted(marks, key=lambda mark: mark[0]):
        page.line(f"  {at_ms:>12.1f}  {text}")


# --- Several barge-ins or traces -----------------------------------------------------------------


def _several(page: Page, analyses: Sequence[Analysis]) -> None:
    if len(analyses) == 1:
        _heading(page, analyses[0], trace_name(analyses[0]))
    page.title("Barge-ins, worst first (ms after the verdict)")
    page.line(
        f"  {'sent':>8}{'pushed':>8}{'stop':>8}  {'verdict':<13}{'outcome':<10}"
        f"{'seg':>4}{'err':>4} trace",
        "dim",
    )
    paths = [analysis.trace.path for analysis in analyses]
    names = dict(zip(paths, trace_names(analyses), strict=True))
    for analysis, barge_in in worst_first(analyses):
        doubt = "!" if analysis.balanced is not True else " "
        stop = DASH if barge_in.stop_ns is None else f"{time_ms(barge_in.stop_ns):.1f}"
        page.line(
            f" {doubt}{_leak_cell(barge_in, 'sent'):>8}{_leak_cell(barge_in, 'pushed'):>8}"
            f"{stop:>8}  {barge_in.verdict_kind or DASH:<13}{barge_in.outcome or 'undecided':<10}"
            f"{DASH if barge_in.segment is None else barge_in.segment:>4}"
            f"{sum(finding.severity == 'error' for finding in analysis.findings):>4} "
            f"{_ending(printable(names[analysis.trace.path]), page.width - 60)}"
        )
    if any(analysis.balanced is not True for analysis in analyses):
        page.paragraph("! the trace is incomplete, a boundary is missing, or it does not balance")
    page.paragraph("err: findings of severity error in its trace, of whatever rule")
    _summary(page, analyses)
    if len(analyses) == 1:
        findings.show(page, analyses[0], analyses[0].findings)
    else:
        findings.count(page, analyses)
    if len(analyses) == 1:
        _swallowed(page, analyses[0].segments)
        _control(page, analyses[0])
        realtime.show(page, analyses[0])
        _balance(page, analyses[0], analyses[0].segments)
        for segment in analyses[0].segments:
            _under_way(page, analyses[0], segment)
        _losses(page, analyses[0].segments)
        _bookmarks(page, analyses[0].trace.bookmarks)
    page.line()
    how = "--segment N" if len(analyses) == 1 else "sinkprobe report TRACE --segment N"
    page.paragraph(f"Details of one: {how}, N as in the column seg.", 0, "dim")


def _ending(text: str, room: int) -> str:
    """The end of a text that is too long: traces of one folder begin alike."""
    return text if len(text) <= room else "…" + text[1 - room :]


def _leak_cell(barge_in: BargeIn, boundary: str) -> str:
    leak_ns = leak_at(barge_in, boundary)
    return DASH if leak_ns is None else f"{time_ms(leak_ns):.1f}"


def _summary(page: Page, analyses: Sequence[Analysis]) -> None:
    summary = summarize(analyses)
    page.title(f"Summary of {summary.barge_ins} barge-ins in {summary.traces} traces")
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    page.fact("outcomes", outcomes or "none")
    page.fact("", f"{'median':>8}{'95 %':>8}{'worst':>8}")
    page.fact("leaked, sent (ms)", _spread(summary.leaked["sent"]), "sent after the verdict")
    page.fact("leaked, pushed (ms)", _spread(summary.leaked["pushed"]), "pushed after the verdict")
    page.fact("stop time (ms)", _spread(summary.stop), "verdict to last sample sent")
    page.fact(
        "swallowed",
        DASH if summary.swallowed_samples is None else amount_text(summary.swallowed),
        "never sent, of speeches nobody interrupted",
    )
    page.fact(
        "unaccounted",
        f"{count_text(summary.unaccounted_samples)} samples",
        "0 where every sample has its place",
    )


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return f"{DASH:>8}{DASH:>8}{DASH:>8}"
    return "".join(
        f"{time_ms(ns):>8.1f}" for ns in (spread.median_ns, spread.p95_ns, spread.worst_ns)
    )
