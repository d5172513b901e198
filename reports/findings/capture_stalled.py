"""A capture that took far longer than its frame and a full queue explain, while the gate was
open."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.events import Tapped
from probe.trace.reader import NONE
from reports.findings.case import Case
from reports.findings.evidence import captured_range
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.units import NS_PER_MS

__all__ = ["RULE"]

_QUEUE_NS = 1000 * NS_PER_MS
"""Taken for the queue's capacity where the trace does not say; longer than any known."""


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    c = case.trace.captured
    if not len(c):
        return
    queues = [e.queue_ms for e in case.trace.events if isinstance(e, Tapped) and e.queue_ms]
    queue_ns = max(queues) * NS_PER_MS if queues else _QUEUE_NS
    running = c.end < 0
    end = min([case.trace.last_ns, *case.ledger.closed.values()])
    # Where a trace was cut the end of a call may just not have been written.
    cut = case.trace.trailer is None
    ended = np.where(c.ended_ns == NONE, np.where(running & (not cut), end, c.at_ns), c.ended_ns)
    allowed_ns = (
        c.samples * 10**9 // np.maximum(c.rate_hz, 1) + queue_ns + round(limits["stall-ms"])
    )
    long = np.flatnonzero(ended - c.at_ns > allowed_ns)
    for row in long.tolist():
        at, until = int(c.at_ns[row]), int(ended[row])
        waited = until - at - case.sinks.shut_within(at, until)
        if waited <= allowed_ns[row]:
            continue
        still = ", and had not ended when the trace did" if running[row] else ""
        yield Found(
            message=(
                f"A capture of {int(c.samples[row]) * 1000 / int(c.rate_hz[row] or 1):.1f} ms took "
                f"{waited / 1e6:.0f} ms with the gate open{still}."
            ),
            figure=waited,
            segment=int(case.ledger.frame_segment[row]) + 1,
            samples=int(c.samples[row]),
            ranges=(
                captured_range(
                    int(c.start_sample[row]), int(c.start_sample[row] + c.samples[row]), at
                ),
            ),
            moments=(
                (at, "capture begins"),
                *case.sinks.moments(at, until),
                (until, "capture still runs" if running[row] else "capture ends"),
            ),
            facts={"frame": int(c.frame[row])},
        )


RULE = Rule(
    name="capture-stalled",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The sink waits for something beside the queue: a subscriber that has not come, a lock, a "
        "task that died."
    ),
    remedy="See what capture_frame of the sink awaits before and after it pushes.",
    needs=("captured", "every event"),
    figure="how long the capture took with the gate open",
    unit="ms",
    judge=_judge,
    thresholds=(Threshold("stall-ms", 500, "ms", "allowed beside the frame and a full queue"),),
)
