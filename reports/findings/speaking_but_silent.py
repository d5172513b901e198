"""The agent's state says speaking and nothing is sent for a second or more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.events import Tapped
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.units import ns_text
from reports.verdicts.explanations import UNSEEN

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    least = limits["silent-ms"]
    begin, end = case.wire.stretches
    tapped = min(
        (e.at_ns for e in case.trace.events if isinstance(e, Tapped) and e.boundary == "sent"),
        default=0,
    )
    for since, until in case.session.agent_speaking:
        low, high = max(since, tapped), min(until, case.seen_until_ns)
        if high - low < least:
            continue
        inside = (end > low) & (begin < high)
        edges = np.concatenate(([low], np.stack((begin[inside], end[inside]), 1).ravel(), [high]))
        silent = edges[1::2] - edges[0::2]
        for nth in np.flatnonzero(silent >= least).tolist():
            start, stop = int(edges[2 * nth]), int(edges[2 * nth + 1])
            row = case.segment_at(start)
            if case.wire.unread_within(start, stop):
                yield Unjudged(
                    f"from {ns_text(start)} to {ns_text(stop)}: {UNSEEN['source-unread']}"
                )
                continue
            yield Found(
                message=(
                    f"The agent's state was speaking and nothing was sent for "
                    f"{(stop - start) / 1e6:.0f} ms."
                ),
                figure=stop - start,
                segment=row + 1 if row >= 0 else None,
                moments=(
                    (since, "the agent's state becomes speaking"),
                    (start, "nothing is sent from here on"),
                    *case.sinks.moments(start, stop),
                    (stop, "up to here"),
                ),
                facts={"shut_ns": case.sinks.shut_within(start, stop)},
            )


RULE = Rule(
    name="speaking-but-silent",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The TTS delivers nothing, the gate is shut, or the sink lost the audio, and the state "
        "follows the reply's task instead of what is heard."
    ),
    remedy=(
        "Compare captured and sent of the segment: nothing captured is the TTS, nothing pushed "
        "the sink's gate, nothing sent the source."
    ),
    needs=("sent", "session", "every event"),
    figure="silence while the state said speaking",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(Threshold("silent-ms", 1000, "ms", "shorter silences are no finding"),),
)
