"""A reply's first sample was sent while the caller was speaking."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from reports.findings.case import FOREVER, Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    doubt = case.resolution_ns() + limits["tolerance-ms"]
    starts = [since for since, _ in case.turns]
    for speech in case.speeches.values():
        rows = [row for row in speech.segments if case.sent_span[row] is not None]
        if not rows or case.segments[rows[0]].partial:
            continue
        first = min(span[0] for row in rows if (span := case.sent_span[row]) is not None)
        # Turns follow each other: only the last that had begun can still be going on.
        begun = bisect_left(starts, first - doubt)
        since, until = case.turns[begun - 1] if begun else (0, 0)
        if first >= until - doubt:
            continue
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
    needs=("captured", "pushed", "sent", "session", "balance"),
    figure="how long the caller went on",
    unit="ms",
    judge=_judge,
    thresholds=(Threshold("tolerance-ms", 50, "ms", "allowed at both ends of the caller's turn"),),
)
