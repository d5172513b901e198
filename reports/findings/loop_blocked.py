"""The session's loop stood still between the verdict and the clear, or for longer than the
threshold since the first frame."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.units import ns_text

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    first = min(case.first_ns, default=None)
    if first is None:
        return
    waits = [
        (b, b.verdict_ns, end)
        for b in case.barge_ins
        if b.verdict_ns is not None
        and (end := b.clear_ns if b.clear_ns is not None else b.commit_ns) is not None
    ]
    for begin, end in case.session.stalls:
        length = end - begin
        within = next((b for b, verdict, clear in waits if begin < clear and end > verdict), None)
        short = within is None or length < limits["verdict-ms"]
        if short and (length < limits["stall-ms"] or end <= first):
            continue
        row = case.segment_at(begin)
        between = "" if short or within is None else " between the verdict and the clear"
        yield Found(
            message=f"The session's loop stood still for {ns_text(length, 0)}{between}.",
            figure=length,
            segment=within.segment if within is not None else (row + 1 if row >= 0 else None),
            moments=(
                (begin, "the loop stands still"),
                *case.sinks.moments(begin, end),
                *(() if within is None else tuple((m.at_ns, m.event) for m in within.story)),
                (end, "it runs again"),
            ),
        )


RULE = Rule(
    name="loop-blocked",
    severity="warning",
    looks_for=plain(__doc__),
    cause="Blocking code on the loop: a slow call in a tool or a handler, loading a model.",
    remedy=(
        "Move it to a thread. Until then every other figure around that time is late by as much; "
        "asyncio's debug mode names the callback."
    ),
    needs=("session",),
    figure="how long the loop stood still",
    unit="ms",
    judge=_judge,
    thresholds=(
        Threshold("stall-ms", 500, "ms", "shorter stalls elsewhere are no finding"),
        Threshold("verdict-ms", 50, "ms", "shorter stalls between verdict and clear are none"),
    ),
)
