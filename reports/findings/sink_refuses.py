"""Captures of a speech that end cancelled or raised although nobody interrupted it, or frames the
source refuses: the reply is swallowed before or at the source; since when, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from probe.trace.events import Tapped
from probe.trace.reader import ENDS, NONE
from reports.account.stretches import Ints
from reports.findings.case import Case
from reports.findings.evidence import captured_range, length_of
from reports.findings.rule import Found, Limits, Rule, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]

_POISONED = (
    "An interruption cancelled something the sink itself waits for, such as the future of the "
    "first subscriber; every later capture fails with it.",
    "Shield what the sink waits for from the cancellation of a capture; see capture_frame of the "
    "room output and its future of the subscription.",
)
_WHY = {
    "rate": (
        "The frames are not of the source's rate or number of channels, and a source takes no "
        "other: it refuses each of them. No interruption has anything to do with it.",
        "Give the sink its sample_rate, so that the session resamples what the TTS delivers; a "
        "wrapper has to hand on the sample_rate of the sink behind it. Or make the source with the "
        "rate and channels of the frames.",
    ),
    "closed": (
        "The source had been closed when the frames came.",
        "See who closes the source while there is a speech to come, and which source the sink "
        "goes on with.",
    ),
    "busy": (
        "The source takes one push at a time, and another one was still under way.",
        "Await each push before the next one; see what else feeds this source.",
    ),
    "raised": (
        "The source or the sink raised instead of taking the frames.",
        "See what raises, by the exception named here, and what the session does with it.",
    ),
    "cancelled": (
        "The calls were cancelled, and no interruption of a speech came before them.",
        "See what cancels the task that captures.",
    ),
}
"""Cause and remedy by what the trace shows."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a captured frame failed."""

    how: str
    why: str
    """A key of the table, ``""``: what came before has to tell."""
    text: str = ""
    """More, in words."""


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    c = case.trace.captured
    segment = case.ledger.frame_segment
    failures = _failed(case) | _refused(case)
    if not failures:
        return
    since: int | None = None
    failed = np.array(sorted(failures), np.int64)
    failed = failed[np.argsort(segment[failed], kind="stable")]
    rows, begins = np.unique(segment[failed], return_index=True)
    for row, frames in zip(rows.tolist(), np.split(failed, begins[1:]), strict=True):
        speech = case.session.speech_of(row)
        if speech is None:
            # Whoever feeds the sink itself may cancel its own calls.
            frames = frames[[failures[frame].how != "cancelled" for frame in frames.tolist()]]
        elif speech.committed_ns is not None:
            frames = frames[np.maximum(c.ended_ns[frames], c.at_ns[frames]) < speech.committed_ns]
        if not len(frames):
            continue
        first = int(c.at_ns[frames[0]])
        since = first if since is None else since
        samples = int(c.samples[frames].sum())
        length = length_of(samples, np.unique(c.rate_hz[frames]).tolist())
        failure = Counter(failures[frame] for frame in frames.tolist()).most_common(1)[0][0]
        before = [] if failure.why else _before(case, first)
        cause, remedy = _POISONED if before else _WHY[failure.why or failure.how]
        yield Found(
            message=(
                f"{len(frames)} of {case.ledger.sums.captured_frames[row]} captures were "
                f"{failure.how} ({measured(length)}) although nobody interrupted the speech; "
                f"so it has been since {since / 1e6:.1f} ms.{failure.text and f' {failure.text}'}"
            ),
            figure=float(len(frames)),
            segment=row + 1,
            samples=samples,
            ranges=(
                captured_range(
                    int(c.start_sample[frames[0]]),
                    int((c.start_sample + c.samples)[frames[-1]]),
                    first,
                ),
            ),
            moments=(
                *before,
                (first, "first capture that failed"),
                (int(c.at_ns[frames[-1]]), "last capture that failed"),
                *case.sinks.moments(case.first_ns[row], case.next_start(row) - 1),
            ),
            facts={
                "frames": len(frames),
                "how": failure.how,
                "error": case.trace.text(int(c.error[frames[0]])),
                "detail": case.trace.text(int(c.detail[frames[0]])),
                "since_ns": since,
            },
            cause=cause,
            remedy=remedy,
        )


def _failed(case: Case) -> dict[int, _Failure]:
    """Rows of captured frames whose own calls failed."""
    c = case.trace.captured
    found = {}
    for how in ("cancelled", "raised"):
        for frame in np.flatnonzero(c.end == ENDS.index(how)).tolist():
            found[frame] = _Failure(how, "", _said(case, int(c.error[frame]), int(c.detail[frame])))
    return found


def _refused(case: Case) -> dict[int, _Failure]:
    """Rows of captured frames of which a source refused something."""
    c, p = case.trace.captured, case.trace.pushed
    takes = {
        e.source: (e.rate_hz, e.channels)
        for e in case.trace.events
        if isinstance(e, Tapped) and e.source is not None and e.rate_hz is not None
    }
    accepted = {
        number: np.flatnonzero(p.accepted & (p.source == number))
        for number in np.unique(p.source[~p.accepted]).tolist()
    }
    found: dict[int, _Failure] = {}
    for push in np.flatnonzero(~p.accepted).tolist():
        failure = _why_refused(case, push, takes, accepted[int(p.source[push])])
        ranges = slice(int(p.range_offset[push]), int(p.range_offset[push + 1]))
        start, samples = p.range_start[ranges], p.range_samples[ranges]
        for begin, stop in zip(start.tolist(), (start + samples).tolist(), strict=True):
            if begin == NONE:
                continue
            low, high = np.searchsorted(c.start_sample, (begin, stop - 1), "right")
            found |= dict.fromkeys(range(max(int(low) - 1, 0), int(high)), failure)
    return found


def _why_refused(
    case: Case, push: int, takes: dict[int, tuple[int, int | None]], accepted: Ints
) -> _Failure:
    """Why a source refused a push; ``accepted``: rows of those it took."""
    p = case.trace.pushed
    number, at = int(p.source[push]), int(p.at_ns[push])
    rate, channels = int(p.rate_hz[push]), int(p.channels[push])
    said = _said(case, int(p.error[push]), int(p.detail[push]))
    how = "refused by the source"
    wanted = takes.get(number, (rate, channels))
    if wanted[0] != rate:
        text = f"They are of {rate} Hz, and the source takes {wanted[0]} Hz."
        return _Failure(how, "rate", f"{text} {said}".rstrip())
    if wanted[1] not in (None, channels):
        text = f"They have {channels} channels, and the source takes {wanted[1]}."
        return _Failure(how, "rate", f"{text} {said}".rstrip())
    if case.ledger.closed.get(number, at) < at:
        return _Failure(how, "closed", "The source had been closed.")
    nth = int(np.searchsorted(accepted, push))
    ended_ns = [int(p.ended_ns[before]) for before in accepted[max(nth - 1, 0) : nth]]
    if any(ended == NONE or ended > at for ended in ended_ns):
        return _Failure(how, "busy", "Another push was under way.")
    return _Failure(how, "raised", said)


def _said(case: Case, error: int, detail: int) -> str:
    """The exception, and what it said where the trace holds that, as a sentence; else nothing."""
    texts = [text for text in (case.trace.text(error), case.trace.text(detail)) if text]
    return f"It raised {': '.join(texts)}." if texts else ""


def _before(case: Case, at: int) -> list[tuple[int, str]]:
    """The last interruption of another speech before; it is what usually poisons the sink."""
    speeches = case.session.speeches.values()
    earlier = [s.committed_ns for s in speeches if s.committed_ns is not None]
    last = max((ns for ns in earlier if ns < at), default=None)
    return [] if last is None else [(last, "an earlier speech is interrupted")]


RULE = Rule(
    name="sink-refuses",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "An interruption cancelled something the sink itself waits for, such as the future of the "
        "first subscriber; every later capture fails with it. Or the source was closed, or takes "
        "frames of another rate."
    ),
    remedy=_POISONED[1],
    needs=("captured", "every event"),
    figure="captures that failed",
    unit="count",
    judge=_judge,
    counts_audio=True,
)
