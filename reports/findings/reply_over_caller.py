"""A reply's first sample was sent while the caller was speaking."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    doubt = case.resolution_ns() + limits["tolerance-ms"]
    for speech in case.session.speeches.values():
        rows = [row for row in speech.segments if case.wire.spans[row] is not None]
        if not rows or case.segments[rows[0]].partial:
            continue
        first = min(span[0] for row in rows if (span := case.wire.spans[row]) is not None)
        turn = case.session.turn_around(first, doubt)
        if turn is None:
            continue
        since, until = turn.start_ns, turn.stop_ns
        hush = [] if until >= FOREVER else [(until, "the caller stops")]
        yield Found(
            message=(
                "The reply's first sample was sent while the caller was speaking, "
                f"{(first - since) / 1e6:.0f} ms after the caller had begun."
            ),
            figure=min(until, case.seen_until_ns) - first,
            segment=rows[0] + 1,
            moments=(
                (since, "the caller starts to speak"),
                (case.first_ns[rows[0]], "first frame of the reply captured"),
                (first, "first sample of the reply sent"),
                *hush,
            ),
        )


RULE = Rule(
    name="reply-over-caller",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The end of the caller's turn was decided too early, or the reply was started by code or "
        "ahead of the turn's end."
    ),
    remedy=(
        "See endpointing delays and preemptive generation, and whether the session checks the "
        "user's state before it lets the first frame out."
    ),
    needs=("captured", "pushed", "sent", "all sent", "session", "balance"),
    figure="how long the caller went on",
    unit="ms",
    judge=_judge,
    thresholds=(Threshold("tolerance-ms", 50, "ms", "allowed at both ends of the caller's turn"),),
)
