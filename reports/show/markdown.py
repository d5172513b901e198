"""The report for a pull request or an issue: the key line first, the rest behind a click.

GitHub's Markdown. Whatever makes the figures doubtful stands before them. Names that come from a
trace are text: they can't become markup, mention anybody or link to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reports.assertions import Result, text
from reports.assertions.text import summary
from reports.results import Analysis, Segment
from reports.show.markdown_text import block, details, plain, table
from reports.show.view import Call, account, calls, conversation, findings, worst_first
from reports.show.view.barge_ins import BargeInView
from reports.show.view.call import spreads
from reports.show.view.findings import Entry
from reports.show.view.quantity import audio, time
from reports.show.wording import DASH, plural
from reports.summary import summarize
from reports.units import time_ms

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
    told = calls(analyses)
    lines = [_key_line(told), ""]
    for call in told:
        lines += _doubts(call, f"{plain(call.name)}: " if len(told) > 1 else "")
    if expected is not None:
        lines += _expected(told, expected)
    if len(told) == 1:
        lines += _single(told[0])
    else:
        lines += [*_barge_ins(told), *_summary(analyses), *_rules(analyses)]
    while lines[-1] == "":
        lines.pop()
    return "\n".join(lines) + "\n"


# --- First ---------------------------------------------------------------------------------------


def _key_line(told: Sequence[Call]) -> str:
    """What one wants to know, in a line that survives being quoted."""
    analyses = [call.analysis for call in told]
    pairs = [(call, b) for call, b in worst_first(told) if b.found.counts]
    judged = [(call, b) for call, b in pairs if b.judged]
    rest = f"{_swallowed_said(analyses)}{_balance_said(analyses)}{_findings_said(analyses)}."
    if not pairs:
        where = plain(told[0].name) if len(told) == 1 else plural(len(told), "trace")
        return f"**No barge-in** in {where}; {rest}"
    if not judged:
        outcomes = ", ".join(sorted({b.outcome for _, b in pairs}))
        barge_ins = plural(len(pairs), "barge-in")
        return f"**No leak is counted**: no verdict in {barge_ins} ({outcomes}); {rest}"
    call, worst = judged[0]
    of = f", the worst of {len(judged)}" if len(judged) > 1 else ""
    leak = _leak_said(call.analysis, worst, most=bool(of))
    versions = f" ({', '.join(map(plain, call.versions))})" if call.versions else ""
    return f"{leak}{of}: {worst.kind} verdict, {worst.outcome}; {rest}{versions}"


def _leak_said(analysis: Analysis, barge_in: BargeInView, *, most: bool) -> str:
    if not barge_in.known:
        about = "" if barge_in.sent.text == DASH else f", {plain(barge_in.sent.text)} by time"
        return f"**What was sent after the verdict is not known**{about}"
    resolution = time_ms(analysis.trace.resolution_ns.get("sent"))
    exact = f" ±{resolution:g} ms" if resolution else ""
    told = f"{barge_in.sent}{exact} sent after the verdict"
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
    return f"; {findings.counted(found)} ({', '.join([*named, *more])})"


def _swallowed_said(analyses: Sequence[Analysis]) -> str:
    """What was lost without anybody interrupting, which no leak tells of; empty: nothing was."""
    lost = audio(summarize(analyses).swallowed)
    return f"**{lost} swallowed**, of speeches nobody interrupted; " if lost.is_some else ""


def _balance_said(analyses: Sequence[Analysis]) -> str:
    of = f" in {{}} of {len(analyses)} traces" if len(analyses) > 1 else ""
    if wrong := [a for a in analyses if a.balanced is False]:
        samples = "" if of else f"{wrong[0].unaccounted_samples} "
        return f"{samples}samples unaccounted for{of.format(len(wrong))}"
    if unknown := sum(a.balanced is None for a in analyses):
        return f"the balance is not known{of.format(unknown)}"
    return "every sample accounted for"


def _doubts(call: Call, where: str) -> Iterator[str]:
    for doubt in call.doubts:
        reasons = "; ".join(plain(text) for text in (*doubt.reasons, doubt.amount) if text)
        because = f" ({reasons})" if reasons else ""
        yield from (f"> :warning: {where}{plain(doubt.text)}{because}", "")


def _expected(told: Sequence[Call], expected: Sequence[Sequence[Result]]) -> Iterator[str]:
    for call, results in zip(told, expected, strict=True):
        where = f" of {plain(call.name)}" if len(told) > 1 else ""
        yield from (f"### Expected{where}: {summary(results)}", "")
        yield from (*block(text(results, 100)), "")


# --- One trace -----------------------------------------------------------------------------------


def _single(call: Call) -> Iterator[str]:
    yield from (" · ".join(_about(call)), "")
    for barge_in in call.barge_ins[:SHOWN]:
        yield from _barge_in(barge_in)
    if len(call.barge_ins) > SHOWN:
        yield from (f"… and {len(call.barge_ins) - SHOWN} more barge-ins.", "")
    yield from _findings(call)
    if call.conversation is not None:
        yield from _conversation(call.conversation)
        yield from _stops(call.conversation)
    for nth, barge_in in enumerate(call.barge_ins[:SHOWN], 1):
        if barge_in.found.story:
            yield from (*details(f"Barge-in {nth} in order", _story(barge_in)), "")
    balance = account.balance_said(call.analysis).lower()
    yield from details(f"Where every sample went: {balance}", _balance(call.analysis))
    if bookmarks := call.analysis.trace.bookmarks:
        rows = [[plain(m.event), time(m.at_ns).ms] for m in bookmarks[:SHOWN]]
        yield from ("", *details("Bookmarks", table(["bookmark", "ms"], rows)))


def _about(call: Call) -> Iterator[str]:
    yield plain(call.name)
    if call.conversation is not None:
        yield f"realtime model {plain(call.conversation.model) or DASH}"
    if call.run:
        yield plain(call.run)
    if call.control is not None and call.control.whole is not None:
        yield "control whole" if call.control.whole else "**control not whole**"
    for name, value in call.analysis.trace.labels.items():
        yield f"{plain(name)}={plain(value)}"
    yield from (f"not counted: {plain(boundary)}" for boundary in call.not_tapped)
    yield from (f"not shown by this release: {plain(signal)}" for signal in call.not_shown)
    if call.stalls:
        yield call.stalls


def _barge_in(barge_in: BargeInView) -> Iterator[str]:
    yield from (f"### {barge_in.title}", "", plain(barge_in.found.explanation), "")
    facts = (*barge_in.leaked, *barge_in.facts)
    amounts = [(fact.name + fact.alone, fact.amount) for fact in facts]
    amounts += [(f"leaked because {cause.meaning}", cause.amount) for cause in barge_in.causes]
    rows = [[name, amount.ms, amount.samples] for name, amount in amounts]
    yield from (*table(["", "ms", "samples"], rows), "")


def _findings(call: Call) -> Iterator[str]:
    entries = call.findings.entries
    yield from ("### Findings", "")
    if not entries:
        yield f"{call.findings.none.capitalize()}."
    for entry in entries[:SHOWN]:
        yield from _finding(entry)
    if len(entries) > SHOWN:
        yield f"- … and {len(entries) - SHOWN} more"
    for reason, rules in call.findings.not_judged.items():
        names = ", ".join(f"`{rule}`" for rule in rules)
        yield from ("", f"Not judged ({plain(reason)}): {names}.")
    yield ""


def _finding(entry: Entry) -> Iterator[str]:
    finding = entry.finding
    where = f", {entry.where}" if entry.where else ""
    yield f"- **{finding.severity}** `{finding.rule}`{where}: {plain(finding.message)}"
    if entry.parts:
        yield f"  - {'; '.join(f'{amount} {plain(cause)}' for cause, amount in entry.parts)}"
    yield f"  - cause: {plain(finding.cause)}"
    yield f"  - remedy: {plain(finding.remedy)}"


def _conversation(told: conversation.Conversation) -> Iterator[str]:
    """Both sides beside each other; what only one of them holds stands out."""
    yield from ("### The conversation as either side holds it", "")
    items = conversation.chosen(told.items, SHOWN)
    if not items:
        yield from ("Nothing of it was seen.", "")
        return
    rows = []
    for item in items:
        row = item.row
        name = f"{plain(item.role)} {plain(row.id)}"
        held = [DASH if side is None else name if side else "" for side in (row.server, row.local)]
        differs = f"**{row.difference}**" if row.difference else ""
        if item.is_gone:
            differs += f": {name}"
        amounts = [amount.ms for amount in item.amounts] or [""] * len(conversation.FIGURES)
        rows.append([*held, differs, *amounts])
    heads = ["server", "local", "held by", *(f"{name}, ms" for name in conversation.FIGURES)]
    yield from (*table(heads, rows, right=3), "")
    if len(told.items) > len(items):
        yield from (f"… and {len(told.items) - len(items)} more items.", "")
    yield from (f"- {plain(item.row.id)}: {note}" for item in items for note in item.notes)
    yield ""


def _stops(told: conversation.Conversation) -> Iterator[str]:
    if not told.stops:
        return
    yield from ("### How the generation of interrupted speeches was stopped", "")
    for stop in told.stops[:SHOWN]:
        went_on = "not known" if stop.went_on.text == DASH else stop.went_on
        yield (
            f"- {plain(stop.explanation)} Generated after the interrupt: "
            f"{stop.generated_after}; the generation went on for: {went_on}."
        )
    if len(told.stops) > SHOWN:
        yield f"- … and {len(told.stops) - SHOWN} more"
    yield ""


def _story(barge_in: BargeInView) -> list[str]:
    rows = [
        [plain(step.event) + (" **= the verdict**" if step.verdict else ""), step.after]
        for step in barge_in.steps()
    ]
    since = "verdict" if barge_in.zero == "verdict" else "first of them"
    return table(["event", f"ms from the {since}"], rows)


def _balance(analysis: Analysis) -> list[str]:
    columns: list[Segment | None] = [*analysis.segments[:SHOWN]]
    if len(analysis.segments) != 1:
        columns.append(None)
    balance = account.balance(analysis, columns)
    rows = [[row.name, *(cell.samples for cell in row.cells)] for row in balance.rows]
    lines = table(["samples", *balance.heads], rows)
    if len(analysis.segments) > SHOWN:
        lines += ["", f"The first {SHOWN} of {len(analysis.segments)} segments, and the total."]
    return [*lines, *(line for note in balance.notes for line in ("", plain(note)))]


# --- Several traces ------------------------------------------------------------------------------


def _barge_ins(told: Sequence[Call]) -> Iterator[str]:
    rows = [
        [
            plain(call.name) + ("" if call.analysis.balanced else " (!)"),
            b.segment,
            b.kind,
            b.outcome,
            b.sent.ms,
            b.pushed.ms,
            b.stop.ms,
        ]
        for call, b in worst_first(told)
    ]
    heads = ["trace", "segment", "verdict", "outcome", "leaked, sent", "pushed", "stop"]
    yield from table(heads, rows[:SHOWN], right=4)
    more = f"; {len(rows) - SHOWN} more are left out" if len(rows) > SHOWN else ""
    notes = [f"Milliseconds, worst first{more}."]
    if any(not call.analysis.balanced for call in told):
        notes.append("(!): no balance.")
    if quiet := sum(not call.analysis.counted for call in told):
        notes.append(f"No barge-in in {quiet} of {len(told)} traces.")
    yield from ("", " ".join(notes), "")


def _summary(analyses: Sequence[Analysis]) -> Iterator[str]:
    rows = [[name, *figures] for name, _, figures in spreads(analyses)]
    yield from (*table(["ms", "median", "95 %", "worst"], rows), "")
    left_out = summarize(analyses).left_out
    if left_out:
        named = ", ".join(f"{count} {plain(name)}" for name, count in left_out.items())
        yield from (f"In none of these figures: {named}.", "")


def _rules(analyses: Sequence[Analysis]) -> Iterator[str]:
    counts = sorted(findings.by_rule(analyses), key=lambda one: one.rule)
    if not counts:
        yield "No finding in any trace."
        return
    rows = [[f"`{one.rule}`", str(one.findings), str(one.traces), one.figure] for one in counts]
    yield from table(["rule", "findings", "traces", "worst"], rows)
