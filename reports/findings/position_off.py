"""The playback position the framework claims, or its progress events, against the samples that had
been sent by then, with the resolution of the tap taken into account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe.trace.events import PlaybackReported
from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Length
from reports.units import ns_text

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    doubt = case.resolution_ns() + limits["tolerance-ms"]
    progress = _progress(case)
    for report, row in case.ledger.finishes:
        if row < 0:
            continue
        segment = case.segments[row]
        if segment.sent is None or segment.partial or segment.resampled:
            continue
        # The slack of the wire's stamps: a block under way at the report counts as played.
        rate = case.pushed_rate_hz(row)
        sent = Length(case.wire.left(row, -FOREVER, report.at_ns).samples, rate).ns or 0
        tail = Length(int(case.ledger.sums.tail[row]), rate).ns or 0
        claims: list[tuple[str, int]] = []
        if report.position_s is not None:
            claims.append(("position", round(report.position_s * 1e9)))
        told = progress.get(row, [])
        if told:
            claims.append(("progress", round(sum((e.duration_s or 0.0) for e in told) * 1e9)))
        off = [(name, claimed, _beyond(claimed - sent, tail)) for name, claimed in claims]
        wrong = [entry for entry in off if abs(entry[2]) > doubt]
        if not wrong:
            continue
        name, claimed, by = max(wrong, key=lambda entry: abs(entry[2]))
        what = "playback position" if name == "position" else "sum of its progress events"
        side = "more" if by > 0 else "less"
        facts: dict[str, Any] = {"sent_ns": sent, "tail_ns": tail}
        facts |= {f"claimed_{n}_ns": c for n, c, _ in off}
        facts["allowed_ns"] = doubt
        yield Found(
            message=(
                f"The {what} says {ns_text(claimed)} were played, {ns_text(abs(by))} {side} than "
                f"the {ns_text(sent)} that had been sent when it came."
            ),
            figure=abs(by),
            segment=row + 1,
            moments=(
                (case.first_ns[row], "first frame captured"),
                *((e.at_ns, "progress reported") for e in told),
                *case.sinks.moments(case.first_ns[row], report.at_ns),
                (report.at_ns, "finish reported"),
            ),
            facts=facts,
        )


def _beyond(off: int, tail: int) -> int:
    """How far off a claim is that may or may not count the tail."""
    return max(off - tail, 0) if off > 0 else off


def _progress(case: Case) -> dict[int, list[PlaybackReported]]:
    """Progress events by segment: each belongs to the finish that comes next."""
    finishes = [(report.at_ns, row) for report, row in case.ledger.finishes if row >= 0]
    found: dict[int, list[PlaybackReported]] = {}
    nth = 0
    for event in case.session.reports:
        if event.report != "progressed":
            continue
        while nth < len(finishes) and finishes[nth][0] < event.at_ns:
            nth += 1
        if nth < len(finishes):
            found.setdefault(finishes[nth][1], []).append(event)
    return found


RULE = Rule(
    name="position-off",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The position is reckoned from the source's queued_duration, which is clock arithmetic, "
        "and what a pause discarded is counted as played or as never pushed."
    ),
    remedy=(
        "Text is cut at this position, so the history says what was not heard; see how the room "
        "output adds up what it pushed when it is paused, resumed or cleared."
    ),
    needs=("captured", "pushed", "sent", "all sent", "balance"),
    figure="claimed less sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(Threshold("tolerance-ms", 20, "ms", "allowed beside the resolution and the tail"),),
)
