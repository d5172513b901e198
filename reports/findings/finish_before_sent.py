"""A segment reported as finished while audio of it was still to be sent."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER, SENT
from reports.findings.case import Case
from reports.findings.evidence import crossed_ranges
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Length
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    doubt = case.resolution_ns() + limits["tolerance-ms"]
    for report, row in case.ledger.finishes:
        segment = case.segments[row] if row >= 0 else None
        if segment is None or segment.sent is None or segment.partial:
            continue
        after = case.wire.left(row, report.at_ns, FOREVER)
        # The tail comes out with the next segment, whenever that is.
        amount = after.samples - min(int(case.ledger.sums.tail[row]), after.samples)
        unsent = Length(amount, case.pushed_rate_hz(row))
        if (unsent.ns or 0) <= doubt:
            continue
        last = int(after.until_ns.max())
        yield Found(
            message=(
                f"The segment was reported as finished with {measured(unsent)} "
                f"of it still to be sent; the last of it left {(last - report.at_ns) / 1e6:.1f} ms "
                "later."
            ),
            figure=unsent.ns or 0,
            segment=row + 1,
            samples=amount,
            ranges=crossed_ranges(after, SENT),
            moments=(
                *case.sinks.moments(case.first_ns[row], report.at_ns),
                (report.at_ns, "finish reported"),
                (last, "last sample sent"),
            ),
            facts={"interrupted": report.interrupted},
        )


RULE = Rule(
    name="finish-before-sent",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The sink waits by the source's queued_duration, which is clock arithmetic, or does not "
        "wait for the queue at all."
    ),
    remedy=(
        "The session starts the next step on this report; see what the room output awaits before "
        "on_playback_finished."
    ),
    needs=("captured", "pushed", "sent", "balance"),
    figure="audio still to be sent",
    unit="ms",
    judge=_judge,
    counts_audio=True,
    thresholds=(Threshold("tolerance-ms", 20, "ms", "allowed beside the resolution of the wire"),),
)
