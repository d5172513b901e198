"""Captures of a speech that end cancelled or raised although nobody interrupted it, or frames the
source refuses: the reply is swallowed before or at the source; since when."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.columns import Ints
from probe.trace.events import Tapped
from probe.trace.reader import ENDS
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    c, p = case.trace.captured, case.trace.pushed
    segment = case.ledger.frame_segment
    bad = (c.end == ENDS.index("cancelled")) | (c.end == ENDS.index("raised"))
    refused = np.zeros(len(c), np.bool_)
    for push in np.flatnonzero(~p.accepted).tolist():
        begin, end = int(p.range_offset[push]), int(p.range_offset[push + 1])
        at = np.searchsorted(c.start_sample, p.range_start[begin:end], "right") - 1
        refused[at[at >= 0]] = True
    since: int | None = None
    failed = np.flatnonzero(bad | refused)
    if not len(failed):
        return
    failed = failed[np.argsort(segment[failed], kind="stable")]
    rows, begins = np.unique(segment[failed], return_index=True)
    for row, frames in zip(rows.tolist(), np.split(failed, begins[1:]), strict=True):
        speech = case.speech_of(row)
        if speech is None:
            # Whoever feeds the sink itself may cancel its own calls.
            frames = frames[(c.end[frames] == ENDS.index("raised")) | refused[frames]]
        elif speech.committed_ns is not None:
            frames = frames[np.maximum(c.ended_ns[frames], c.at_ns[frames]) < speech.committed_ns]
        if not len(frames):
            continue
        first = int(c.at_ns[frames[0]])
        since = first if since is None else since
        samples = int(c.samples[frames].sum())
        length = case.length(samples, np.unique(c.rate_hz[frames]).tolist())
        how = "refused by the source" if refused[frames].any() else ENDS[int(c.end[frames[0]])]
        error = case.trace.text(int(c.error[frames[0]]))
        shape = _other_shape(case, frames) if refused[frames].any() else ""
        yield Found(
            message=(
                f"{len(frames)} of {case.ledger.sums.captured_frames[row]} captures were {how} "
                f"({measured(length)}) although nobody interrupted the speech; "
                f"so it has been since {since / 1e6:.1f} ms.{shape}"
            ),
            figure=float(len(frames)),
            segment=row + 1,
            samples=samples,
            ranges=(
                case.captured_range(
                    int(c.start_sample[frames[0]]),
                    int((c.start_sample + c.samples)[frames[-1]]),
                    first,
                ),
            ),
            moments=(
                *_before(case, first),
                (first, "first capture that failed"),
                (int(c.at_ns[frames[-1]]), "last capture that failed"),
                *case.mark_moments(case.first_ns[row], case.next_start(row) - 1),
            ),
            facts={
                "frames": len(frames),
                "how": how,
                "error": error,
                "detail": case.trace.text(int(c.detail[frames[0]])),
                "since_ns": since,
            },
            cause=_SHAPE[0] if shape else "",
            remedy=_SHAPE[1] if shape else "",
        )


_SHAPE = (
    "The frames are not of the source's rate or number of channels, and a source takes no other: "
    "it refuses each of them. No interruption has anything to do with it.",
    "Give the sink its sample_rate, so that the session resamples what the TTS delivers, or make "
    "the source with the rate and channels of the frames; a wrapper has to hand on the sample_rate "
    "of the sink behind it.",
)
"""Cause and remedy where frames are refused for their shape."""


def _other_shape(case: Case, frames: Ints) -> str:
    """In what refused frames differ from their source, as a sentence; empty: in nothing."""
    p, c = case.trace.pushed, case.trace.captured
    shapes = {
        e.source: (e.rate_hz, e.channels)
        for e in case.trace.events
        if isinstance(e, Tapped) and e.boundary == "pushed"
    }
    at, until = int(c.at_ns[frames[0]]), int(max(c.at_ns[frames[-1]], c.ended_ns[frames[-1]]))
    for push in np.flatnonzero(~p.accepted & (p.at_ns >= at) & (p.at_ns <= until)).tolist():
        rate, channels = shapes.get(int(p.source[push]), (None, None))
        theirs = int(p.rate_hz[push]), int(p.channels[push])
        if rate is not None and theirs[0] != rate:
            return f" They are of {theirs[0]} Hz, and the source takes {rate} Hz."
        if channels is not None and theirs[1] != channels:
            return f" They have {theirs[1]} channels, and the source takes {channels}."
    return ""


def _before(case: Case, at: int) -> list[tuple[int, str]]:
    """The last interruption of another speech before; it is what usually poisons the sink."""
    committed = [s.committed_ns for s in case.speeches.values() if s.committed_ns is not None]
    earlier = [ns for ns in committed if ns < at]
    return [(max(earlier), "an earlier speech is interrupted")] if earlier else []


RULE = Rule(
    name="sink-refuses",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "An interruption cancelled something the sink itself waits for, such as the future of the "
        "first subscriber; every later capture fails with it. Or the source was closed."
    ),
    remedy=(
        "Shield what the sink waits for from the cancellation of a capture; see capture_frame of "
        "the room output and its future of the subscription."
    ),
    needs=("captured", "every event"),
    figure="captures that failed",
    unit="count",
    judge=_judge,
    counts_audio=True,
)
