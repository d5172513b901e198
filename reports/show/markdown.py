"""The report for a pull request or an issue: the key line first, the rest behind a click.

GitHub's Markdown. Whatever makes the figures doubtful stands before them. Names that come from a
trace are text: they can't become markup, mention anybody or link to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reports.assertions import Result, text
from reports.assertions.text import summary
from reports.results import Analysis, BargeIn, Finding, Realtime, Segment
from reports.show import realtime_text
from reports.show.markdown_text import block, details, plain, table
from reports.show.wording import (
    BALANCE_NOTE,
    CAUSES,
    DASH,
    after_text,
    balance_figure,
    balance_rows,
    barge_in_title,
    count_text,
    doubts,
    findings_counted,
    none_found,
    not_judged,
    not_shown,
    not_tapped,
    run_words,
    stalls,
    trace_names,
    versions,
)
from reports.summary import Spread, leak_at, summarize, worst_first
from reports.units import ns_text, time_ms
from reports.verdicts.explanations import amount_text, explain_stop, measured

__all__ = ["render"]

SHOWN: Final = 20
"""Rows of one table; the rest is counted."""

KEY_RULES: Final = 4
"""Rules that the key line names."""


def render(analyses: Sequence[Analysis], expected: Sequence[Sequence[Result]] | None = None) -> str:
    """The report as Markdown, newline at its end; one analysis in full, several as a table.

    Args:
        analyses: at least one.
        expected: of each analysis, what came of the assertions held against it.
    """
    names = [plain(name) for name in trace_names(analyses)]
    lines = [_key_line(analyses, names), ""]
    for analysis, name in zip(analyses, names, strict=True):
        lines += _doubts(analysis, f"{name}: " if len(analyses) > 1 else "")
    if expected is not None:
        lines += _expected(names, expected)
    if len(analyses) == 1:
        lines += _single(analyses[0], names[0])
    else:
        lines += [*_barge_ins(analyses, names), *_summary(analyses), *_rules(analyses)]
    while lines[-1] == "":
        lines.pop()
    return "\n".join(lines) + "\n"


def _ms(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"


# --- First ---------------------------------------------------------------------------------------


def _key_line(analyses: Sequence[Analysis], names: Sequence[str]) -> str:
    """What one wants to know, in a line that survives being quoted."""
    pairs = worst_first(analyses)
    judged = [(a, b) for a, b in pairs if b.leaked is not None]
    balance = _swallowed_said(analyses) + _balance_said(analyses)
    if not pairs:
        where = names[0] if len(names) == 1 else _count(names, "trace")
        return f"**No barge-in** in {where}; {balance}{_findings_said(analyses)}."
    if not judged:
        outcomes = sorted({b.outcome or "undecided" for _, b in pairs})
        return (
            f"**No leak is counted**: no verdict in {_count(pairs, 'barge-in')} "
            f"({', '.join(outcomes)}); {balance}{_findings_said(analyses)}."
        )
    analysis, worst = judged[0]
    of = f", the worst of {len(judged)}" if len(judged) > 1 else ""
    how = f"{worst.verdict_kind} verdict, {worst.outcome or 'undecided'}"
    told = f"{_leak_said(analysis, worst, most=bool(of))}{of}: {how}"
    return f"{told}; {balance}{_findings_said(analyses)}. {_versions(analysis)}".rstrip()


def _leak_said(analysis: Analysis, barge_in: BargeIn, *, most: bool) -> str:
    leak = (barge_in.leaked or {}).get("sent")
    if leak is None:
        return "**What was sent after the verdict is not known**"
    resolution = time_ms(analysis.trace.resolution_ns.get("sent"))
    exact = f" ±{resolution:g} ms" if resolution else ""
    told = f"{amount_text(leak)}{exact} sent after the verdict"
    if analysis.balanced is False:
        return f"**No result, for the books do not balance**: seen were {told}"
    return f"**{'At most ' if most else ''}{told}**"


def _findings_said(analyses: Sequence[Analysis]) -> str:
    """How many findings there are, and of which rules; empty: there are none."""
    found = [f for analysis in analyses for f in analysis.findings]
    if not found:
        return ""
    rules = dict.fromkeys(f"`{f.rule}`" for f in found)
    named = [*rules][:KEY_RULES]
    more = [f"{len(rules) - KEY_RULES} more rules"] if len(rules) > KEY_RULES else []
    return f"; {findings_counted(found)} ({', '.join([*named, *more])})"


def _swallowed_said(analyses: Sequence[Analysis]) -> str:
    """What was lost without anybody interrupting, which no leak tells of; empty: nothing was."""
    told = summarize(analyses)
    if told.swallowed is None or not told.swallowed.samples:
        return ""
    lost = measured(told.swallowed)
    return f"**{lost} swallowed**, of speeches nobody interrupted; "


def _balance_said(analyses: Sequence[Analysis]) -> str:
    of = f" in {{}} of {len(analyses)} traces" if len(analyses) > 1 else ""
    if wrong := [a for a in analyses if a.balanced is False]:
        samples = "" if of else f"{wrong[0].unaccounted_samples} "
        return f"{samples}samples unaccounted for{of.format(len(wrong))}"
    if unknown := sum(a.balanced is None for a in analyses):
        return f"the balance is not known{of.format(unknown)}"
    return "every sample accounted for"


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _versions(analysis: Analysis) -> str:
    named = [plain(version) for version in versions(analysis.trace)]
    return f"({', '.join(named)})" if named else ""


def _doubts(analysis: Analysis, where: str) -> Iterator[str]:
    for doubt in doubts(analysis):
        reasons = "; ".join(plain(text) for text in (*doubt.reasons, doubt.amount) if text)
        because = f" ({reasons})" if reasons else ""
        yield from (f"> :warning: {where}{plain(doubt.text)}{because}", "")


def _expected(names: Sequence[str], expected: Sequence[Sequence[Result]]) -> Iterator[str]:
    for name, results in zip(names, expected, strict=True):
        where = f" of {name}" if len(names) > 1 else ""
        yield from (f"### Expected{where}: {summary(results)}", "")
        yield from (*block(text(results, 100)), "")


# --- One trace -----------------------------------------------------------------------------------


def _single(analysis: Analysis, name: str) -> Iterator[str]:
    trace = analysis.trace
    yield from _about(analysis, name)
    for barge_in in analysis.barge_ins[:SHOWN]:
        yield from _barge_in(barge_in)
    if len(analysis.barge_ins) > SHOWN:
        yield from (f"… and {len(analysis.barge_ins) - SHOWN} more barge-ins.", "")
    yield from _findings(analysis)
    if analysis.realtime is not None:
        yield from _conversation(analysis.realtime)
        yield from _stops(analysis.realtime)
    for nth, barge_in in enumerate(analysis.barge_ins[:SHOWN], 1):
        if barge_in.story:
            yield from details(f"Barge-in {nth} in order", _story(barge_in))
            yield ""
    verdict = {True: "balances", False: "does not balance", None: "balance not known"}
    title = f"Where every sample went: {verdict[analysis.balanced]}"
    yield from details(title, _balance(analysis))
    if trace.bookmarks:
        rows = [[plain(m.event), _ms(time_ms(m.at_ns))] for m in trace.bookmarks[:SHOWN]]
        yield ""
        yield from details("Bookmarks", table(["bookmark", "ms"], rows))


def _about(analysis: Analysis, name: str) -> Iterator[str]:
    trace, run = analysis.trace, analysis.run
    told = [name]
    if analysis.realtime is not None:
        told.append(f"realtime model {plain(analysis.realtime.model) or DASH}")
    told += [plain(words)] if (words := run_words(analysis)) else []
    if run is not None and run.control is not None and run.control.whole is not None:
        told.append("control whole" if run.control.whole else "**control not whole**")
    told += [f"{plain(name)}={plain(value)}" for name, value in trace.labels.items()]
    told += [f"not counted: {plain(boundary)}" for boundary in not_tapped(trace)]
    told += [f"not shown by this release: {plain(signal)}" for signal in not_shown(trace)]
    told += [still] if (still := stalls(trace)) else []
    yield from (" · ".join(told), "")


def _barge_in(barge_in: BargeIn) -> Iterator[str]:
    yield from (f"### {barge_in_title(barge_in)}", "", plain(barge_in.explanation), "")
    rows: list[list[str]] = []
    if barge_in.leaked is not None:
        rows = [
            ["leaked, sent", *_cells(barge_in.leaked.get("sent"))],
            ["leaked, pushed", *_cells(barge_in.leaked.get("pushed"))],
            ["stop time", _ms(time_ms(barge_in.stop_ns)), ""],
            ["remaining at the verdict", *_cells(barge_in.remaining)],
        ]
    also = (
        ("sent since pause", barge_in.after_pause),
        ("sent since onset (no leak)", barge_in.after_onset),
        ("sent over the caller", barge_in.over_caller),
    )
    rows += [[name, *_cells(leaks.get("sent"))] for name, leaks in also if leaks is not None]
    rows += [
        [f"leaked because {CAUSES[c.cause]}", _ms(c.ms), str(c.samples)]
        for c in barge_in.causes or ()
    ]
    yield from (*table(["", "ms", "samples"], rows), "")


def _cells(amount: object) -> tuple[str, str]:
    if amount is None:
        return DASH, DASH
    return _ms(getattr(amount, "ms", None)), str(getattr(amount, "samples", DASH))


def _findings(analysis: Analysis) -> Iterator[str]:
    yield from ("### Findings", "")
    if not analysis.findings:
        yield f"{none_found(analysis).capitalize()}."
    for finding in analysis.findings[:SHOWN]:
        yield from _finding(finding)
    if len(analysis.findings) > SHOWN:
        yield f"- … and {len(analysis.findings) - SHOWN} more"
    for reason, rules in not_judged(analysis).items():
        names = ", ".join(f"`{rule}`" for rule in rules)
        yield from ("", f"Not judged ({plain(reason)}): {names}.")
    yield ""


def _finding(finding: Finding) -> Iterator[str]:
    where = "" if finding.segment is None else f", segment {finding.segment}"
    yield f"- **{finding.severity}** `{finding.rule}`{where}: {plain(finding.message)}"
    if finding.evidence.parts:
        parts = [f"{measured(p)} {plain(p.cause)}" for p in finding.evidence.parts]
        yield f"  - {'; '.join(parts)}"
    yield f"  - cause: {plain(finding.cause)}"
    yield f"  - remedy: {plain(finding.remedy)}"


def _conversation(realtime: Realtime) -> Iterator[str]:
    """Both sides beside each other; what only one of them holds stands out."""
    yield from ("### The conversation as either side holds it", "")
    items = realtime_text.chosen(realtime.conversation, SHOWN)
    if not items:
        yield from ("Nothing of it was seen.", "")
        return
    rows = []
    for item in items:
        name = f"{plain(realtime_text.role(item))} {plain(item.id)}"
        held = [
            DASH if side is None else name if side else "" for side in (item.server, item.local)
        ]
        differs = f"**{item.difference}**" if item.difference else ""
        if item.difference == "neither":
            differs += f": {name}"
        amounts = realtime_text.figures(item)
        cells = ["", "", ""] if amounts is None else [_cells(amount)[0] for amount in amounts]
        rows.append([*held, differs, *cells])
    heads = ["server", "local", "held by", *(f"{name}, ms" for name in realtime_text.FIGURES)]
    yield from (*table(heads, rows, right=3), "")
    if len(realtime.conversation) > len(items):
        yield from (f"… and {len(realtime.conversation) - len(items)} more items.", "")
    told = [(item, item.message) for item in items if item.message is not None]
    for item, message in told:
        if text := realtime_text.truncation(message):
            yield f"- {plain(message.id)}: {text}"
        if item.difference in ("server only", "neither"):
            yield f"- {plain(message.id)}: {realtime_text.fate(message)}"
    yield ""


def _stops(realtime: Realtime) -> Iterator[str]:
    if not realtime.stops:
        return
    yield from ("### How the generation of interrupted speeches was stopped", "")
    for stop in realtime.stops[:SHOWN]:
        went_on = "not known" if stop.generating_ns is None else f"{ns_text(stop.generating_ns)}"
        yield (
            f"- {plain(explain_stop(stop, realtime))} Generated after the interrupt: "
            f"{amount_text(stop.generated_after)}; the generation went on for: {went_on}."
        )
    if len(realtime.stops) > SHOWN:
        yield f"- … and {len(realtime.stops) - SHOWN} more"
    yield ""


def _story(barge_in: BargeIn) -> list[str]:
    known = (barge_in.verdict_ns, barge_in.pause_ns, barge_in.onset_ns, 0)
    zero = time_ms(next(at_ns for at_ns in known if at_ns is not None))
    rows = [
        [
            plain(m.event) + (" **= the verdict**" if m.verdict else ""),
            after_text(time_ms(m.at_ns) - zero),
        ]
        for m in barge_in.story
    ]
    since = "verdict" if barge_in.verdict_ns is not None else "first of them"
    return table(["event", f"ms from the {since}"], rows)


def _balance(analysis: Analysis) -> list[str]:
    columns: list[Segment | None] = [*analysis.segments[:SHOWN]]
    if len(analysis.segments) != 1:
        columns.append(None)
    heads = ["samples", *("total" if c is None else f"segment {c.index}" for c in columns)]
    rows = [
        [name, *(count_text(balance_figure(analysis, column, field)) for column in columns)]
        for name, _, field in balance_rows(analysis, columns)
    ]
    lines = table(heads, rows)
    if len(analysis.segments) > SHOWN:
        lines += ["", f"The first {SHOWN} of {len(analysis.segments)} segments, and the total."]
    return [*lines, "", BALANCE_NOTE]


# --- Several traces ------------------------------------------------------------------------------


def _barge_ins(analyses: Sequence[Analysis], names: Sequence[str]) -> Iterator[str]:
    name = {a.trace.path: name for a, name in zip(analyses, names, strict=True)}
    rows = [
        [
            name[analysis.trace.path] + ("" if analysis.balanced else " (!)"),
            DASH if b.segment is None else str(b.segment),
            b.verdict_kind or DASH,
            b.outcome or "undecided",
            _ms(time_ms(leak_at(b, "sent"))),
            _ms(time_ms(leak_at(b, "pushed"))),
            _ms(time_ms(b.stop_ns)),
        ]
        for analysis, b in worst_first(analyses)
    ]
    heads = ["trace", "segment", "verdict", "outcome", "leaked, sent", "pushed", "stop"]
    yield from table(heads, rows[:SHOWN], right=4)
    more = f"; {len(rows) - SHOWN} more are left out" if len(rows) > SHOWN else ""
    notes = [f"Milliseconds, worst first{more}."]
    if any(not a.balanced for a in analyses):
        notes.append("(!): no balance.")
    if quiet := sum(not a.barge_ins for a in analyses):
        notes.append(f"No barge-in in {quiet} of {len(analyses)} traces.")
    yield from ("", " ".join(notes), "")


def _summary(analyses: Sequence[Analysis]) -> Iterator[str]:
    told = summarize(analyses)

    def row(name: str, spread: Spread | None) -> list[str]:
        if spread is None:
            return [name, DASH, DASH, DASH]
        return [
            name,
            *(_ms(time_ms(ns)) for ns in (spread.median_ns, spread.p95_ns, spread.worst_ns)),
        ]

    rows = [
        row("leaked, sent", told.leaked["sent"]),
        row("leaked, pushed", told.leaked["pushed"]),
        row("stop time", told.stop),
    ]
    yield from (*table(["ms", "median", "95 %", "worst"], rows), "")


def _rules(analyses: Sequence[Analysis]) -> Iterator[str]:
    found = [(a, f) for a in analyses for f in a.findings]
    if not found:
        yield "No finding in any trace."
        return
    rules = sorted({f.rule for _, f in found})
    rows = []
    for rule in rules:
        mine = [(a, f) for a, f in found if f.rule == rule]
        traces = len({a.trace.path for a, _ in mine})
        worst = max(f.evidence.figure.value for _, f in mine)
        unit = mine[0][1].evidence.figure.unit
        rows.append([f"`{rule}`", str(len(mine)), str(traces), f"{worst:g} {unit}"])
    yield from table(["rule", "findings", "traces", "worst"], rows)
