"""One call as it is shown: what it is, what leaked, what was found, and where every sample went."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.account.boundary import NAMES
from reports.results import Analysis, Length
from reports.show.view import barge_ins, conversation, findings
from reports.show.view.account import ControlView, control
from reports.show.view.barge_ins import BargeInView
from reports.show.view.conversation import Conversation
from reports.show.view.findings import Findings
from reports.show.view.quantity import audio, time
from reports.show.wording import packages, plural
from reports.summary import Spread, badness, summarize
from reports.units import ns_text, one_rate, time_ms

__all__ = ["Call", "Doubt", "Headline", "calls", "headline", "spreads", "worst_first"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the figures of a trace are to be taken with care, or not at all."""

    grave: bool
    """Whether there is no result, or only a lower bound of one."""
    text: str
    reasons: tuple[str, ...] = ()
    amount: str = ""
    """How much audio it is about, where that is known."""


@dataclass(frozen=True, slots=True)
class Call:
    """An analysis in words. Names that come from the trace are as they are in it: each form makes
    them harmless in its own way."""

    analysis: Analysis
    name: str
    """The trace's; of several without what their folders have in common."""
    run: str
    """What was scripted; empty: nothing was."""
    versions: tuple[str, ...]
    tapped: tuple[str, ...]
    """The boundaries that were counted, each with its resolution."""
    not_tapped: tuple[str, ...]
    """Those that were not, each with the reason."""
    not_shown: tuple[str, ...]
    """Signals that this release or attachment lacks, each with the reason."""
    stalls: str
    """How often and how long the session's loop stood still; empty: it did not."""
    doubts: tuple[Doubt, ...]
    """Everything that has to be said before any figure, gravest first."""
    barge_ins: tuple[BargeInView, ...]
    """In order of time."""
    findings: Findings
    control: ControlView | None
    """``None``: no reply was scripted to follow."""
    conversation: Conversation | None
    """``None``: no realtime model was seen."""

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.analysis.findings)


def calls(analyses: Sequence[Analysis]) -> list[Call]:
    """Each of the analyses in words."""
    return [_call(a, name) for a, name in zip(analyses, _names(analyses), strict=True)]


def worst_first(shown: Sequence[Call]) -> list[tuple[Call, BargeInView]]:
    """All barge-ins with their calls, in the order of `reports.worst_first`."""
    pairs = [(call, barge_in) for call in shown for barge_in in call.barge_ins]
    errors = {id(call): call.errors for call in shown}
    return sorted(pairs, key=lambda pair: badness(pair[1].found, errors[id(pair[0])]))


def _names(analyses: Sequence[Analysis]) -> list[str]:
    """A single trace has its file's name. Of several it is without the folders they have in common
    and without the suffix, for files of one name lie in folders of many."""
    if len(analyses) == 1:
        return [os.path.basename(analyses[0].trace.path)]
    paths = [os.path.abspath(analysis.trace.path) for analysis in analyses]
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [
        os.path.relpath(path, common).removesuffix(".zst").removesuffix(".jsonl") for path in paths
    ]


def _call(analysis: Analysis, name: str) -> Call:
    trace = analysis.trace
    missing = dict.fromkeys(NAMES, "never tapped") | dict(trace.missing)
    return Call(
        analysis=analysis,
        name=name,
        run=", ".join(_run(analysis)),
        versions=tuple(packages(trace.runtime)),
        tapped=tuple(
            f"{boundary} ±{time_ms(resolution_ns):g} ms"
            if (resolution_ns := trace.resolution_ns.get(boundary))
            else boundary
            for boundary in trace.boundaries
        ),
        not_tapped=tuple(
            f"{boundary} ({missing[boundary]})"
            for boundary in NAMES
            if boundary not in trace.boundaries
        ),
        not_shown=tuple(
            f"{signal} ({reason})"
            for signal, reason in trace.missing.items()
            if signal not in NAMES
        ),
        stalls=_stalls(analysis),
        doubts=tuple(_doubts(analysis)),
        barge_ins=tuple(barge_ins.told(one, analysis) for one in analysis.barge_ins),
        findings=findings.told(analysis, analysis.findings),
        control=control(analysis.run.control) if analysis.run and analysis.run.control else None,
        conversation=conversation.told(analysis.realtime) if analysis.realtime else None,
    )


def _run(analysis: Analysis) -> Iterator[str]:
    run = analysis.run
    if run is None:
        return
    if run.scenario:
        yield f"scenario {run.scenario}"
    if run.pacing:
        yield f"pacing {run.pacing}"
    if run.frame_ns is not None:
        yield f"frames of {time_ms(run.frame_ns):g} ms"
    if run.rate_hz is not None:
        yield f"{run.rate_hz} Hz"
    if run.reply_ns is not None:
        yield f"reply {time_ms(run.reply_ns):g} ms"


def _stalls(analysis: Analysis) -> str:
    stalls = analysis.trace.stalls
    if not stalls:
        return ""
    longest = max(stalls, key=lambda stall: stall.ns)
    often = "once," if len(stalls) == 1 else f"{len(stalls)} times, at most"
    return (
        f"the session's loop stood still {often} {ns_text(longest.ns, 0)} at "
        f"{ns_text(longest.at_ns)}: stamps taken in it are late by up to that"
    )


def _doubts(analysis: Analysis) -> Iterator[Doubt]:
    trace = analysis.trace
    if trace.unanalysed is not None:
        yield Doubt(
            True,
            "NOT ANALYSED: nothing of this trace is known but its header.",
            (trace.unanalysed,),
        )
    elif not trace.complete:
        unknown = analysis.totals.unknown_samples
        yield Doubt(
            True,
            "INCOMPLETE TRACE: no balance can be given; figures near the damage and at the end are "
            "lower bounds.",
            trace.incomplete_because,
            f"{unknown} samples whose fate the trace does not show" if unknown else "",
        )
    if analysis.balanced is False:
        yield Doubt(
            True,
            f"DOES NOT BALANCE: {analysis.unaccounted_samples} samples unaccounted for. The "
            "figures below are no result.",
            analysis.unaccounted_because,
        )
    for fault in analysis.faults:
        at = "" if fault.first_ns is None else f", first at {ns_text(fault.first_ns)}"
        yield Doubt(False, f"fault of the probe: {fault.kind}, {fault.count}x{at} {fault.detail}")
    if trace.complete:
        for problem in trace.problems:
            yield Doubt(False, f"line {problem.line}: {problem.text}")


# --- What a reader came for ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure to stand above everything."""

    big: str
    what: str
    bad: bool
    detail: str = ""
    small: str = ""


_TOLD_BY_FIGURES = ("leak-after-verdict", "swallowed-audio")
"""Rules whose figure is a headline anyway."""


def headline(call: Call) -> list[Headline]:
    """What leaked, what was swallowed if anything was, and what else is an error; that stands first
    where nothing leaked."""
    analysis = call.analysis
    figures = [_leak(call)]
    others = [
        f.rule
        for f in analysis.findings
        if f.severity == "error" and f.rule not in _TOLD_BY_FIGURES
    ]
    if others:
        what = ", ".join(dict.fromkeys(others))
        errors = Headline(plural(len(others), "error"), what, True, "see the findings")
        figures.insert(1 if figures[0].bad else 0, errors)
    swallowed = analysis.totals.swallowed_samples
    if swallowed:
        rates = {g.rate_hz for s in analysis.segments for g in s.geometry["captured"]}
        length = audio(Length(swallowed, one_rate(rates)))
        what = "swallowed: lost, and nobody had interrupted"
        samples = f"{swallowed} samples"
        big = samples if length.text == samples else length.length
        figures.append(Headline(big, what, True, samples))
    return figures


def _leak(call: Call) -> Headline:
    worst = [barge_in for _, barge_in in worst_first([call]) if barge_in.found.counts]
    judged = [barge_in for barge_in in worst if barge_in.judged]
    if not judged:
        none = "no barge-in in this trace" if not worst else "no verdict, so no leak is counted"
        return Headline("", none, False)
    first = judged[0]
    what = "leaked after the verdict"
    if len(judged) > 1:
        what += f" at worst, of {len(judged)} barge-ins with a verdict"
    detail = f"{first.sent} sent, {first.pushed} pushed"
    return Headline(
        first.sent.length, what, first.sent.is_some or not first.known, detail, first.remark
    )


# --- Of several calls ----------------------------------------------------------------------------


def spreads(analyses: Sequence[Analysis]) -> list[tuple[str, str, tuple[str, str, str]]]:
    """Name and meaning of every figure of the summary, with its median, 95th percentile and worst
    in milliseconds."""
    told = summarize(analyses)
    return [
        ("leaked, sent", "sent after the verdict", _spread(told.leaked["sent"])),
        ("leaked, pushed", "pushed after the verdict", _spread(told.leaked["pushed"])),
        ("stop time", "verdict to last sample sent", _spread(told.stop)),
    ]


def _spread(spread: Spread | None) -> tuple[str, str, str]:
    known = None if spread is None else (spread.median_ns, spread.p95_ns, spread.worst_ns)
    median, p95, worst = (time(ns).ms for ns in known or (None, None, None))
    return median, p95, worst
