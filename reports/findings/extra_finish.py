"""A finish reported when no segment was without one."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for report, row in case.ledger.finishes:
        if row >= 0:
            continue
        current = case.segment_at(report.at_ns)
        if case.audio.under_way is not None and current < 0:
            continue  # of the segment that was under way when the probe came
        before = case.first_ns[current] if current >= 0 else 0
        yield Found(
            message="The sink reported a finish when every segment had been reported already.",
            figure=1.0,
            segment=current + 1 if current >= 0 else None,
            moments=(
                *case.sinks.moments(before, report.at_ns),
                *(
                    (e.at_ns, "finish reported")
                    for e, owner in case.ledger.finishes
                    if owner >= 0 and owner == current
                ),
                (report.at_ns, "finish reported once more"),
            ),
            facts={"interrupted": report.interrupted, "position_s": report.position_s},
        )


RULE = Rule(
    name="extra-finish",
    severity="warning",
    looks_for=plain(__doc__),
    cause="The sink reports the end of a segment twice, by its flush and by its clear.",
    remedy=(
        "The base class logs and swallows it, or takes it for the next segment's, which then "
        "counts as over before it was played; see who calls on_playback_finished."
    ),
    needs=("captured", "every event"),
    figure="finishes too many",
    unit="count",
    judge=_judge,
    from_absence=True,
)
