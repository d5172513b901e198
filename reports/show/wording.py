"""Words and figures that every report for people writes in the same way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.findings import SEVERITIES
from reports.results import Analysis, BargeIn, Finding, Length, Segment, TraceFacts
from reports.units import ns_text, one_rate, time_ms
from reports.verdicts.explanations import measured

__all__ = [
    "BALANCE_NOTE",
    "CAUSES",
    "DASH",
    "LOSSES",
    "PACKAGES",
    "Doubt",
    "after_text",
    "balance_figure",
    "balance_length",
    "balance_rows",
    "barge_in_title",
    "count_text",
    "doubts",
    "findings_counted",
    "ms_text",
    "none_found",
    "not_judged",
    "not_shown",
    "not_tapped",
    "other_errors",
    "packages",
    "run_words",
    "shown",
    "stalls",
    "tapped",
    "trace_name",
    "trace_names",
    "under_way",
    "versions",
]

DASH: Final = "–"
"""Stands for what is not known."""

CAUSES: Final = {
    "not-stopped": "no pause and no clear had come yet",
    "queue-played-on": "gate closed, but the source's queue was not cleared",
    "clear-pending": "sink cleared, source not yet",
    "after-clear": "sent although the source had been cleared",
    "resumed": "the gate had been opened again",
}
"""Why audio was sent after the verdict."""

LOSSES: Final = {
    ("dropped", "refused"): "refused by the source",
    ("dropped", "raised"): "its capture raised",
    ("dropped", "cancelled"): "its capture was cancelled",
    ("dropped", "clear"): "the sink was cleared",
    ("dropped", "pause"): "discarded by a pause",
    ("dropped", "source-cleared"): "gone when the source was cleared",
    ("dropped", "source-closed"): "the source was closed",
    ("cleared", "clear"): "the source's queue was cleared",
    ("cleared", "source-closed"): "the source was closed",
}
"""What lost audio, by what became of it and the cause."""


def ms_text(value: float | None) -> str:
    """``40.0 ms``; a dash where it is not known."""
    return DASH if value is None else f"{value:.1f} ms"


def after_text(value: float) -> str:
    """``+40.0``, for a time counted from another; no minus before a zero."""
    # To the microsecond first, as the instants are: a difference of floats lies a hair beside it.
    return f"{round(round(value, 3), 1) + 0.0:+.1f}"


_TOLD_BY_FIGURES: Final = ("leak-after-verdict", "swallowed-audio")
"""Rules whose figure stands at the head of a report anyway."""


def other_errors(analysis: Analysis) -> list[Finding]:
    """Errors beside what leaked and what was swallowed."""
    return [
        finding
        for finding in analysis.findings
        if finding.severity == "error" and finding.rule not in _TOLD_BY_FIGURES
    ]


def not_shown(trace: TraceFacts) -> list[str]:
    """Signals that this release or attachment lacks, each with the reason; no boundaries."""
    return [
        f"{signal} ({reason})"
        for signal, reason in trace.missing.items()
        if signal not in ("captured", "pushed", "sent")
    ]


def stalls(trace: TraceFacts) -> str:
    """How often and how long the session's loop stood still; empty: it did not."""
    if not trace.stalls:
        return ""
    longest = max(trace.stalls, key=lambda stall: stall.ns)
    if len(trace.stalls) == 1:
        how = f"once, {ns_text(longest.ns, 0)} at {ns_text(longest.at_ns)}"
    else:
        how = f"{len(trace.stalls)} times, at most {ns_text(longest.ns, 0)} at "
        how += ns_text(longest.at_ns)
    return f"the session's loop stood still {how}: stamps taken in it are late by up to that"


def count_text(value: int | None) -> str:
    """The number; a dash where it is not known."""
    return DASH if value is None else str(value)


def shown(text: object) -> str:
    """A text from a trace, with what can't be seen, or would reorder the line, spelled out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text))


def trace_name(analysis: Analysis) -> str:
    """The trace's file, without its folders."""
    return os.path.basename(analysis.trace.path)


def trace_names(analyses: Sequence[Analysis]) -> list[str]:
    """A name for each of several traces: without the folders they have in common, and without the
    suffix, for files of one name lie in folders of many. A single trace has its file's name."""
    if len(analyses) == 1:
        return [trace_name(analyses[0])]
    paths = [os.path.abspath(analysis.trace.path) for analysis in analyses]
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [
        os.path.relpath(path, common).removesuffix(".zst").removesuffix(".jsonl") for path in paths
    ]


def barge_in_title(barge_in: BargeIn) -> str:
    """What was barged into, who decided, what became of it."""
    where = f"segment {barge_in.segment}"
    if barge_in.segment is None:
        where = "a speech under way" if barge_in.partial else "a speech without audio"
    kind = f"{barge_in.verdict_kind} verdict" if barge_in.verdict_kind else "no verdict"
    return f"Barge-in on {where}: {kind}, outcome {barge_in.outcome or 'not decided'}"


def run_words(analysis: Analysis) -> str:
    """What was scripted, in a line; empty for a call that was not."""
    run = analysis.run
    if run is None:
        return ""
    told = [
        f"scenario {run.scenario}" if run.scenario else "",
        f"pacing {run.pacing}" if run.pacing else "",
        f"frames of {time_ms(run.frame_ns):g} ms" if run.frame_ns is not None else "",
        f"{run.rate_hz} Hz" if run.rate_hz is not None else "",
        f"reply {time_ms(run.reply_ns):g} ms" if run.reply_ns is not None else "",
    ]
    return ", ".join(text for text in told if text)


PACKAGES: Final = {
    "python": {"livekit_agents": "livekit-agents", "livekit": "livekit"},
    "node": {"livekit_agents": "@livekit/agents", "livekit": "@livekit/rtc-node"},
}
"""By language, what a trace's runtime calls the packages that people know by another name."""


def packages(runtime: Mapping[str, str]) -> list[str]:
    """``livekit-agents 1.8.9``, ``livekit 1.1.21``, as far as they are known."""
    named = PACKAGES["node" if runtime.get("language") == "node" else "python"]
    return [f"{package} {runtime[key]}" for key, package in named.items() if key in runtime]


def versions(trace: TraceFacts) -> list[str]:
    """The same of a trace."""
    return packages(trace.runtime)


def tapped(trace: TraceFacts) -> list[str]:
    """The boundaries that were counted, each with its resolution."""
    return [
        f"{boundary} ±{time_ms(trace.resolution_ns[boundary]):g} ms"
        if trace.resolution_ns.get(boundary)
        else boundary
        for boundary in trace.boundaries
    ]


def not_tapped(trace: TraceFacts) -> list[str]:
    """The boundaries that were not counted, each with the reason."""
    return [
        f"{boundary} ({trace.missing.get(boundary, 'never tapped')})"
        for boundary in ("captured", "pushed", "sent")
        if boundary not in trace.boundaries
    ]


# --- What makes the figures doubtful -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the figures of a trace are to be taken with care, or not at all."""

    grave: bool
    """Whether there is no result, or only a lower bound of one."""
    text: str
    reasons: tuple[str, ...] = ()
    amount: str = ""
    """How much audio it is about, where that is known."""


def doubts(analysis: Analysis) -> Iterator[Doubt]:
    """Everything that has to be said before any figure, gravest first."""
    trace = analysis.trace
    if not trace.complete:
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


# --- Findings ------------------------------------------------------------------------------------


def findings_counted(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``, worst first; ``none``."""
    counts = []
    for severity in reversed(SEVERITIES):
        number = sum(f.severity == severity for f in findings)
        if number:
            plural = "s" if number > 1 and severity != "info" else ""
            counts.append(f"{number} {severity}{plural}")
    return ", ".join(counts) or "none"


def none_found(analysis: Analysis) -> str:
    """What there is to say of a trace without findings: no more than could be judged."""
    if analysis.not_judged:
        return "nothing was found by the rules that could be judged"
    return "nothing that the rules look for was found"


def not_judged(analysis: Analysis) -> Mapping[str, Sequence[str]]:
    """Why rules could not be judged, and which they are."""
    reasons: dict[str, list[str]] = {}
    for entry in analysis.not_judged:
        reasons.setdefault(entry.reason, []).append(entry.rule)
    return reasons


# --- Segments under way --------------------------------------------------------------------------


def under_way(analysis: Analysis, segment: Segment) -> str:
    """Of a partial segment, that its beginning is in no figure; empty for a whole one."""
    if not segment.partial:
        return ""
    samples, where = segment.inherited_samples, "inside already"
    # What was pushed before its first captured frame is in the total only.
    if sum(s.partial for s in analysis.segments) == 1:
        samples = analysis.totals.inherited_samples
    elif not samples and analysis.totals.inherited_samples:
        samples, where = analysis.totals.inherited_samples, "inside already, in the whole trace,"
    inside = measured(balance_length(analysis, segment, samples))
    return (
        f"segment {segment.index} was under way when the probe came: {inside} {where} are "
        "inherited and in no balance; what was sent before is not known"
    )


# --- The balance ---------------------------------------------------------------------------------

BALANCE: Final = (
    ("captured", 0, "captured"),
    ("pushed", 1, "pushed"),
    ("dropped", 1, "dropped_samples"),
    ("held", 1, "held_samples"),
    ("sent", 2, "sent"),
    ("cleared", 2, "cleared_samples"),
    ("queued", 2, "queued_samples"),
    ("unaccounted", 0, "unaccounted_samples"),
    ("tail", 0, "tail_samples"),
    ("inserted", 0, "inserted_samples"),
    ("swallowed", 0, "swallowed_samples"),
)
"""Name, depth and field of every figure of the balance that is always shown."""

BALANCE_NOTE: Final = (
    "captured = pushed + dropped + held; pushed = sent + cleared + queued. The tail, a rest "
    "shorter than a block, is part of queued or cleared, or was sent with the next segment. "
    "Inserted silence and inherited audio are in no sum."
)

SELDOM: Final = (
    ("inherited", 0, "inherited_samples"),
    ("ambiguous", 0, "ambiguous_samples"),
    ("sent later", 0, "sent_in_later_segments_samples"),
    ("unknown", 0, "unknown_samples"),
)
"""Those that are zero in a healthy call. The JSON report always has them."""


def balance_rows(
    analysis: Analysis, columns: Sequence[Segment | None]
) -> list[tuple[str, int, str]]:
    """The rows a table of these segments needs; ``None`` among them stands for the total."""
    every = [*columns, *analysis.segments, None]
    seldom = [
        row
        for row in SELDOM
        if any(
            balance_figure(analysis, column, row[2])
            for column in (every if row[0] == "inherited" else columns)
        )
    ]
    return [*BALANCE, *seldom]


def balance_figure(analysis: Analysis, column: Segment | None, field: str) -> int | None:
    """Samples of one figure of a segment, or of the total; ``None``: not known."""
    if column is None:
        if field == "unaccounted_samples":
            return analysis.unaccounted_samples
        name = field if field.endswith("_samples") else f"{field}_samples"
        if name == "tail_samples" and analysis.totals.sent_samples is None:
            return None
        if name == "tail_samples" or name == "sent_in_later_segments_samples":
            known = [getattr(s, name) for s in analysis.segments]
            return None if any(value is None for value in known) else sum(known)
        value: int | None = getattr(analysis.totals, name)
        return value
    if field in ("captured", "pushed", "sent"):
        amount = getattr(column, field)
        return None if amount is None else amount.samples
    if field == "inherited_samples" and column.partial and not column.inherited_samples:
        # Some was inside, and how much of it was this segment's can't be told.
        return None if analysis.totals.inherited_samples else 0
    figure: int | None = getattr(column, field)
    return figure


def balance_length(analysis: Analysis, column: Segment | None, samples: int) -> Length:
    """The same as a length, known where there is only one rate."""
    segments = analysis.segments if column is None else [column]
    rates = {g.rate_hz for s in segments for pairs in s.geometry.values() for g in pairs}
    return Length(samples, one_rate(rates))
