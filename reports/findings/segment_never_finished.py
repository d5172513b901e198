"""A segment whose audio the sink took in and never reported as finished."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.reader import NONE
from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    wait = limits["wait-ms"]
    sums = case.ledger.sums
    end = min([case.end_ns, *case.ledger.closed.values()])
    bounded = case.ledger.bounded_ns
    if bounded is not None:
        end = min(end, bounded)
    accepted = np.bincount(
        case.ledger.frame_segment[case.trace.captured.end == 0], minlength=case.ledger.count
    )
    for row, segment in enumerate(case.segments):
        # What the sink never accepted is no segment of its own.
        if sums.finished_ns[row] != NONE or not accepted[row] or segment.partial:
            continue
        over = [m for m in segment.order if m.mark in ("flush", "clear")]
        bound = over[0].at_ns if over else case.next_start(row)
        span = case.wire.spans[row]
        since = max(bound, span[1] if span is not None else 0)
        if since >= FOREVER or end - since < wait:
            continue
        yield Found(
            message=(
                f"The segment was over at {since / 1e6:.1f} ms and the sink never reported it as "
                "finished."
            ),
            figure=end - since,
            segment=row + 1,
            samples=segment.captured.samples if segment.captured is not None else None,
            moments=(
                (case.first_ns[row], "first frame captured"),
                *case.sinks.moments(case.first_ns[row], min(since, end)),
                (since, "over"),
                (end, "still no finish reported"),
            ),
        )


RULE = Rule(
    name="segment-never-finished",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The task that waits for playout was cancelled or never started, or the sink counts a "
        "segment it never opened; wait_for_playout() then hangs."
    ),
    remedy=(
        "Every captured segment needs exactly one on_playback_finished, whichever way it ends; "
        "see flush and clear_buffer of the sink."
    ),
    needs=("captured", "every event"),
    figure="how long no finish came",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(Threshold("wait-ms", 500, "ms", "how long after its end a finish may come"),),
)
