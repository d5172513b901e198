"""Part of a speech that nobody interrupted, or that was resumed, was never sent: where in the
speech the hole is, how long, and what took it. A lost tail is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from probe.trace.reader import NONE
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Length, Loss, Part, Range
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

_BY_PAUSE = (
    "A pause makes the next frame at the gate clear the source's queue; what was in it is gone "
    "when the speech is resumed.",
    "Keep what the queue held and push it again on resume, or pause without a clear; see what the "
    "room output does with its source when its gate is closed.",
)

_WHY = {
    ("dropped", "refused"): (
        "The source refused the frames: no pause and no interruption took them.",
        "See sink-refuses beside this: what the source said, and in what the frames differ from "
        "what it takes.",
    ),
    ("dropped", "raised"): (
        "The sink raised while it took the frames.",
        "See sink-refuses beside this, and what the exception says.",
    ),
    ("dropped", "cancelled"): (
        "The captures were cancelled by whoever hands the audio over, before the sink had taken "
        "it.",
        "See what cancels the task that forwards the audio although nobody interrupted the speech.",
    ),
    ("dropped", "skipped"): (
        "The sink leaves out silence of its own accord.",
        "If that is not meant, see what the sink does with quiet frames.",
    ),
    ("dropped", "source-closed"): (
        "The source was closed while audio of the speech was still to come.",
        "Close the source when the sink has played out.",
    ),
    ("cleared", "source-closed"): (
        "The source was closed with audio of the speech inside.",
        "Wait for the playout before the source is closed.",
    ),
}
"""Cause and remedy by what took the most; what is not here is taken by a clear or a pause."""

_NOT_SENT = (
    "The sink or the source still held it when the speech was said to be over.",
    "See what reports the speech as finished before its audio is sent; see finish-before-sent.",
)


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    resumed = {b.speech_id for b in case.barge_ins if b.outcome == "resumed"}
    undecided = {b.speech_id for b in case.barge_ins if b.outcome is None}
    for row, segment in enumerate(case.segments):
        swallowed = segment.swallowed_samples
        if not swallowed or case.stopped(row) or segment.partial:
            continue
        if segment.speech_id is not None and segment.speech_id in undecided:
            continue
        rate = case.rate_hz(row)
        length = Length(swallowed, rate)
        if (length.ns or 0) < limits["min-ms"]:
            continue
        holes = _holes(case, row)
        parts = tuple(
            Part(_TAKEN[loss.what, loss.cause], loss.samples, loss.rate_hz)
            for loss in segment.losses
        )
        rest = swallowed - sum(part.samples for part in parts)
        if rest > 0:
            parts = (*parts, Part(_KEPT, rest, rate))
        taken = max(parts, key=lambda part: part.samples).cause
        why = _why(segment.losses, rest)
        first = f" from {ns_text(case.place_ns(row, holes[0][0]), 0)} of it on" if holes else ""
        what = "was resumed" if segment.speech_id in resumed else "nobody interrupted"
        yield Found(
            message=(
                f"{measured(length)} of a speech that {what} were never sent,{first}: {taken}."
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
                        "ns": Length(stop - start, rate).ns,
                    }
                    for start, stop in holes
                ]
            },
            cause=why[0],
            remedy=why[1],
        )


def _why(losses: Sequence[Loss], kept: int) -> tuple[str, str]:
    """Cause and remedy, by what took the most."""
    taken: dict[tuple[str, str], int] = {}
    for loss in losses:
        key = (loss.what, loss.cause)
        taken[key] = taken.get(key, 0) + loss.samples
    most = max(taken, key=lambda key: taken[key], default=None)
    if most is None or kept > taken[most]:
        return _NOT_SENT
    return _WHY.get(most, _BY_PAUSE)


def _over(case: Case, row: int) -> list[tuple[int, str]]:
    """When the segment was said to be over."""
    speech, finished = case.speech_of(row), case.segments[row].finished_ns
    over = [] if finished is None else [(finished, "finish reported")]
    if speech is not None and speech.done_ns is not None:
        over.append((speech.done_ns, "the speech is done"))
    return over


def _holes(case: Case, row: int) -> list[tuple[int, int]]:
    """Stretches of the captured axis of which nothing was sent, the tail left out."""
    parts, sums = case.ledger.parts, case.ledger.sums
    rows = case.sent_rows(row)
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
    cause=_BY_PAUSE[0],
    remedy=_BY_PAUSE[1],
    needs=("captured", "pushed", "sent", "balance"),
    figure="audio that was never sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(Threshold("min-ms", 0, "ms", "shorter losses are no finding"),),
)
