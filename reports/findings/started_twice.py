"""The start of a segment's playback reported more than once."""

from __future__ import annotations

from collections.abc import Iterator

from probe.trace.events import PlaybackReported
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    started: dict[int, list[PlaybackReported]] = {}
    for event in case.session.reports:
        row = case.segment_at(event.at_ns)
        if event.report == "started" and row >= 0:
            started.setdefault(row, []).append(event)
    for row, events in started.items():
        if len(events) < 2:
            continue
        first, last = events[0].at_ns, events[-1].at_ns
        yield Found(
            message=f"The start of the segment's playback was reported {len(events)} times.",
            figure=float(len(events)),
            segment=row + 1,
            moments=(
                (case.first_ns[row], "first frame captured"),
                *((e.at_ns, "start reported") for e in events),
                *case.sinks.moments(first, last),
            ),
        )


RULE = Rule(
    name="started-twice",
    severity="warning",
    looks_for=plain(__doc__),
    cause="The sink takes the first frame after a resume for the first frame of the segment.",
    remedy=(
        "Latency and state are reckoned from this event; see where the sink reports "
        "on_playback_started and what a pause resets."
    ),
    needs=("captured", "playback_started", "every event"),
    figure="starts of one segment",
    unit="count",
    judge=_judge,
    from_absence=True,
)
