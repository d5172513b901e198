"""A segment that was cut is reported as not interrupted, or one that was played to its end as
interrupted."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain
from reports.results import Length
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    verdicts = {b.speech_id: b.verdict_ns for b in case.barge_ins if b.verdict_ns is not None}
    for report, row in case.ledger.finishes:
        if row < 0 or report.interrupted is None:
            continue
        segment = case.segments[row]
        if segment.captured is None or segment.sent is None or segment.partial:
            continue
        if segment.resampled:
            continue
        tail = int(case.ledger.sums.tail_unsent[row])
        lost = segment.captured.samples - int(case.ledger.sums.arrived[row]) - tail
        unsent = Length(lost, case.captured_rate_hz(row))
        cut = [m for m in segment.order if m.mark == "clear" and m.at_ns <= report.at_ns]
        verdict = verdicts.get(segment.speech_id)
        flushed = [m for m in segment.order if m.mark == "flush"]
        span = case.wire.spans[row]
        if not report.interrupted and cut and (unsent.ns or 0) > case.resolution_ns():
            message = (
                f"The segment was cut, {measured(unsent)} of it were never sent, and it was "
                "reported as not interrupted."
            )
        elif (
            report.interrupted
            and lost <= 0
            and flushed
            and span is not None
            and span[1] < min(report.at_ns, verdict or report.at_ns) - case.resolution_ns()
            and (verdict is None or flushed[0].at_ns < verdict)
        ):
            message = "The segment was sent to its end, and it was reported as interrupted."
        else:
            continue
        yield Found(
            message=message,
            figure=max(unsent.ns or 0, 0),
            segment=row + 1,
            samples=max(lost, 0),
            moments=(
                *case.sinks.moments(case.first_ns[row], report.at_ns),
                *([] if verdict is None else [(verdict, "verdict")]),
                *([] if span is None else [(span[1], "last sample sent")]),
                (report.at_ns, "finish reported"),
            ),
            facts={"reported_interrupted": report.interrupted},
        )


RULE = Rule(
    name="finished-uninterrupted",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The sink's report takes the state of another segment, or of the moment the report is "
        "made, instead of what happened to its own."
    ),
    remedy=(
        "See where the room output reports the finish of a segment and which event it asks for "
        "the interruption; the history is cut, or not cut, by this report."
    ),
    needs=("captured", "pushed", "sent", "all sent", "balance"),
    figure="audio of the segment that was never sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
)
