"""The start of playback reported before any frame of the segment was captured."""

from __future__ import annotations

from collections.abc import Iterator

from probe.trace.reader import NONE
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    finished = case.ledger.sums.finished_ns.tolist()
    for event in case.session.reports:
        if event.report != "started":
            continue
        row = case.segment_at(event.at_ns)
        if row < 0 and case.audio.under_way is not None:
            continue
        over = row >= 0 and finished[row] != NONE and finished[row] < event.at_ns
        if row >= 0 and not over:
            continue
        following = row + 1 if row + 1 < len(case.first_ns) else None
        comes = None if following is None else case.first_ns[following]
        yield Found(
            message=(
                "The start of playback was reported when nothing of its segment had been captured"
                + ("." if comes is None else f", {(comes - event.at_ns) / 1e6:.1f} ms too early.")
            ),
            figure=0 if comes is None else comes - event.at_ns,
            segment=None if following is None else following + 1,
            moments=(
                (event.at_ns, "start reported"),
                *([] if comes is None else [(comes, "first frame captured")]),
            ),
        )


RULE = Rule(
    name="started-before-captured",
    severity="warning",
    looks_for=plain(__doc__),
    cause="The sink reports the start when it is told to play, not when it gets audio.",
    remedy="See where the sink reports on_playback_started; it belongs to the first frame.",
    needs=("captured", "playback_started", "every event"),
    figure="how much too early",
    unit="ms",
    judge=_judge,
    from_absence=True,
)
