"""Frames that were still captured for a speech after it was interrupted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reports.findings.case import Case
from reports.findings.evidence import captured_range, length_of
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    c = case.trace.captured
    for speech in case.session.speeches.values():
        if speech.committed_ns is None or not speech.segments:
            continue
        since = speech.committed_ns + limits["grace-ms"]
        rows = case.audio.frames(speech.name)
        rows = rows[(c.at_ns[rows] > since) & (c.samples[rows] > 0)]
        if not len(rows):
            continue
        samples = int(c.samples[rows].sum())
        length = length_of(samples, np.unique(c.rate_hz[rows]).tolist())
        first, last = int(c.at_ns[rows].min()), int(c.at_ns[rows].max())
        start, stop = (
            int(c.start_sample[rows[0]]),
            int(c.start_sample[rows[-1]] + c.samples[rows[-1]]),
        )
        sent = _sent(case, speech.name, start)
        frames = "frame" if len(rows) == 1 else "frames"
        yield Found(
            message=(
                f"{len(rows)} {frames}, {measured(length)}, still entered the sink after "
                f"the speech was interrupted; {sent} samples of them were sent."
            ),
            figure=length.ns or 0,
            segment=case.segment_at(first) + 1,
            samples=samples,
            ranges=(captured_range(start, stop, first),),
            moments=(
                (speech.committed_ns, "commit: the speech is interrupted"),
                *case.sinks.moments(speech.committed_ns, last),
                (first, "first late frame captured"),
                (last, "last late frame captured"),
            ),
            facts={"frames": len(rows), "sent_samples": sent},
            severity="error" if sent else "warning",
        )


def _sent(case: Case, speech: str, captured: int) -> int:
    """Samples of a speech from a captured position on that were sent."""
    parts, rows = case.ledger.parts, case.audio.sent(speech)
    late = rows[parts.captured[rows] >= captured]
    return int((parts.stop[late] - parts.start[late]).sum())


RULE = Rule(
    name="late-frames",
    severity="error, warning where none was sent",
    looks_for=plain(__doc__),
    cause=(
        "The task that forwards the TTS to the sink is cancelled some steps after the commit, or "
        "drains its queue first."
    ),
    remedy=(
        "Stop forwarding at the commit, before the sink is cleared; see the audio forwarding task "
        "of the reply. A frame that comes after the clear opens a segment nobody clears."
    ),
    needs=("captured", "session"),
    figure="audio captured after the commit",
    unit="ms",
    judge=_judge,
    counts_audio=True,
    thresholds=(
        Threshold("grace-ms", 1, "ms", "frames this soon after the commit were under way"),
    ),
)
