"""Part of a speech that nobody interrupted, or that was resumed, was never sent: where in the
speech the hole is, how long, and what took it. A lost tail is none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.reader import NONE
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import Length, Part, Range, Segment
from reports.units import ns_text
from reports.verdicts.explanations import measured

__all__ = ["RULE"]

_TAKEN = {
    ("dropped", "refused"): "refused by the source",
    ("dropped", "skipped"): "passed over by the sink",
    ("dropped", "raised"): "its capture raised",
    ("dropped", "cancelled"): "its capture was cancelled",
    ("dropped", "clear"): "dropped by a clear of the sink",
    ("dropped", "pause"): "discarded by a pause",
    ("dropped", "source-cleared"): "gone when the source was cleared",
    ("dropped", "source-closed"): "the source was closed",
    ("cleared", "clear"): "taken by a clear of the source",
    ("cleared", "source-closed"): "the source was closed",
}

_KEPT = "still inside when the speech was over"
_LOST = "never pushed, although later audio was"

_PAUSED = (
    "A pause makes the next frame at the gate clear the source's queue; what was in it is gone "
    "when the speech is resumed.",
    "Keep what the queue held and push it again on resume, or pause without a clear; see what the "
    "room output does with its source when its gate is closed.",
)

_WHY = {
    "refused by the source": (
        "The source refused these frames; sink-refuses beside this says why.",
        "See sink-refuses: mend what makes the source refuse them.",
    ),
    "passed over by the sink": (
        "The sink left these samples out of its own accord.",
        "See by which rule the sink leaves audio out, such as one that skips silence.",
    ),
    "its capture raised": (
        "The sink raised instead of taking these frames; sink-refuses beside this says what.",
        "See sink-refuses, and whoever goes on after the exception as if the frame had been taken.",
    ),
    "its capture was cancelled": (
        "The call that hands these frames to the sink was cancelled; see sink-refuses beside this.",
        "See what cancels captures of a speech that goes on.",
    ),
    "dropped by a clear of the sink": (
        "The sink was cleared in the middle of a speech that went on.",
        "See who clears the sink, and whether that was meant for the speech before.",
    ),
    "discarded by a pause": _PAUSED,
    "gone when the source was cleared": (
        "The source was cleared while these frames were on their way through the sink.",
        "See who clears the source in the middle of a speech, and what the sink drops with that.",
    ),
    "the source was closed": (
        "The source was closed before it had handed on what it was given.",
        "Wait for the playout before the source is closed.",
    ),
    "taken by a clear of the source": (
        "The source was cleared in the middle of a speech that went on.",
        "See who clears the source, and whether that was meant for the speech before.",
    ),
    _KEPT: (
        "The speech was said to be over while the sink or the source still had this audio inside.",
        "See what the sink waits for before it hands on its rest, and gate-left-closed where that "
        "is beside this.",
    ),
    _LOST: (
        "The sink let these samples go without any call that shows it.",
        "See what the sink does with frames it does not push.",
    ),
}
"""Cause and remedy by what took the largest part."""


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    resumed = {b.speech_id for b in case.barge_ins if b.outcome == "resumed"}
    undecided = {b.speech_id for b in case.barge_ins if b.outcome is None and b.speech_id}
    if case.doubt is not None:
        yield Unjudged(case.doubt)
    for row, segment in enumerate(case.segments):
        if case.stopped(row) or segment.partial or segment.speech_id in undecided:
            continue
        swallowed = _swallowed(case, row)
        length = Length(swallowed, case.captured_rate_hz(row))
        if not swallowed or (length.ns or 0) < limits["min-ms"]:
            continue
        holes = _holes(case, row)
        parts = _parts(case, row, swallowed)
        main = max(parts, key=lambda part: part.samples)
        cause, remedy = _WHY[main.cause]
        if main.cause == _TAKEN["cleared", "clear"] and _paused(segment):
            cause, remedy = _PAUSED
        first = f" from {ns_text(case.place_ns(row, holes[0][0]), 0)} of it on" if holes else ""
        least = "" if case.doubt is None else "At least "
        what = "was resumed" if segment.speech_id in resumed else "nobody interrupted"
        yield Found(
            message=(
                f"{least}{measured(length)} of a speech that {what} were never "
                f"sent,{first}: {main.cause}."
            ),
            figure=length.ns or 0,
            segment=row + 1,
            samples=swallowed,
            parts=parts,
            ranges=tuple(Range("captured", start, stop, None, None) for start, stop in holes),
            moments=(
                *_over(case, row),
                *((loss.at_ns, _TAKEN[loss.what, loss.cause]) for loss in segment.losses),
                *((m.at_ns, m.mark) for m in segment.order),
            ),
            facts={
                "holes": [
                    {
                        "at_ns": case.place_ns(row, start),
                        "ns": Length(stop - start, length.rate_hz).ns,
                    }
                    for start, stop in holes
                ]
            },
            cause=cause,
            remedy=remedy,
        )


def _swallowed(case: Case, row: int) -> int:
    """Samples of a segment that were never sent; at least these, where the ledger does not add
    up."""
    if case.doubt is None:
        return case.segments[row].swallowed_samples or 0
    return case.lost_at_least(row)


def _parts(case: Case, row: int, swallowed: int) -> tuple[Part, ...]:
    """What took how much; all parts add up to what was swallowed."""
    segment, rate = case.segments[row], case.captured_rate_hz(row)
    parts, rest = [], swallowed
    for loss in segment.losses:
        # What is beyond them is the tail, which is lost last and is no loss to anybody.
        samples = min(loss.samples, rest)
        rest -= samples
        if samples:
            parts.append(Part(_TAKEN[loss.what, loss.cause], samples, loss.rate_hz))
    if rest:
        parts.append(Part(_KEPT if case.doubt is None else _LOST, rest, rate))
    return tuple(parts)


def _paused(segment: Segment) -> bool:
    """Whether a pause came before the largest loss."""
    worst = max(segment.losses, key=lambda loss: loss.samples)
    return any(m.mark == "pause" and m.at_ns <= worst.at_ns for m in segment.order)


def _over(case: Case, row: int) -> list[tuple[int, str]]:
    """When the segment was said to be over."""
    speech, finished = case.session.speech_of(row), case.segments[row].finished_ns
    over = [] if finished is None else [(finished, "finish reported")]
    if speech is not None and speech.done_ns is not None:
        over.append((speech.done_ns, "the speech is done"))
    return over


def _holes(case: Case, row: int) -> list[tuple[int, int]]:
    """Stretches of the captured axis of which nothing was sent, the tail left out."""
    parts, sums = case.ledger.parts, case.ledger.sums
    rows = case.wire.rows(row)
    rows = rows[parts.captured[rows] != NONE]
    rows = rows[np.argsort(parts.captured[rows], kind="stable")]
    start = np.append(parts.captured[rows], sums.stop[row])
    stop = np.append(sums.start[row], (parts.captured + parts.samples)[rows])
    holes = [(int(b), int(a)) for a, b in zip(start, stop, strict=True) if a > b]
    if holes and holes[-1][1] == int(sums.stop[row]):
        begin, end = holes[-1]
        end -= int(sums.tail_unsent[row])
        holes[-1:] = [(begin, end)] if end > begin else []
    return holes


RULE = Rule(
    name="swallowed-audio",
    severity="error",
    looks_for=plain(__doc__),
    cause=_PAUSED[0],
    remedy=_PAUSED[1],
    needs=("captured", "pushed", "sent", "all sent", "every event"),
    figure="audio that was never sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(Threshold("min-ms", 0, "ms", "shorter losses are no finding"),),
)
