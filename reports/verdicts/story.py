"""What happened around a barge-in, in order of time; one moment of it is the verdict."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from probe.trace.events import Event, FalseInterruption, LoopStalled, TranscriptReceived
from reports.account.boundary import FOREVER, SLACK_NS
from reports.account.crossings import Audio
from reports.results import Moment, Outcome
from reports.verdicts.attempts import Attempt

__all__ = ["afterthoughts_of", "longest_stall", "tell"]

AFTERTHOUGHT_NS: Final = 50_000_000
"""How long after a barge-in's end the session may still report on it."""

_DECIDING: Final = {
    "overlap": ("the interruption model",),
    "activity": ("pause:", "interrupt called", "commit:"),
}
"""How the moment of a verdict begins, by its kind."""

_ENDED: Final[dict[Outcome | None, str]] = {
    "closed": "commit: the closing of the session ends the speech",
    "hung-up": "commit: the speech ends, the caller has left",
    "handed-over": "commit: the speech ends, another agent takes over",
}


def afterthoughts_of(events: Sequence[Event]) -> list[tuple[int, str]]:
    """What the session reports a moment after it has acted on it, in order of time."""
    found = []
    for event in events:
        if isinstance(event, TranscriptReceived) and event.final:
            found.append((event.at_ns, f"final transcript, {event.words} words"))
        elif isinstance(event, FalseInterruption):
            found.append((event.at_ns, "the session calls it a false interruption"))
    return found


def tell(
    audio: Audio,
    attempt: Attempt,
    afterthoughts: Sequence[tuple[int, str]],
    *,
    began_ns: int | None,
    source_clear_ns: int | None,
    last_sent_ns: int | None,
    until_ns: int,
) -> tuple[Moment, ...]:
    """The story of an attempt.

    Args:
        audio: of the trace.
        attempt: decided.
        afterthoughts: of the trace.
        began_ns: when the speech was captured first, if that was only after the verdict.
        source_clear_ns: the first clear of its source.
        last_sent_ns: when its last sample left.
        until_ns: when the next attempt on the speech begins.
    """
    emptied = "the source's queue is cleared"
    if source_clear_ns is not None and _survives(audio, attempt.speech, source_clear_ns):
        emptied += "; a push under way survives it"
    called = f" by {attempt.called_by}" if attempt.called_by else ""
    hush_ns = FOREVER if attempt.onset is None else attempt.onset.stop_ns
    moments = [
        (at_ns, text)
        for at_ns, text in (
            (attempt.onset_ns, "the caller starts to speak"),
            (attempt.pause_ns, "pause: the gate is closed"),
            (attempt.overlap_ns, "the interruption model says: interruption"),
            (attempt.call_ns, f"interrupt called{called}"),
            (
                attempt.committed_ns,
                _ENDED.get(attempt.ended_by, "commit: the speech is interrupted"),
            ),
            (attempt.clear_ns, "clear of the sink"),
            (source_clear_ns, emptied),
            (attempt.resume_ns, "resume: the gate is open"),
            (began_ns, "first frame of the speech captured"),
            (last_sent_ns, "last sample of the speech sent"),
            (hush_ns, "the caller stops"),
        )
        if at_ns is not None and at_ns < FOREVER
    ]
    begin = min(at_ns for at_ns, _ in moments)
    ends = (attempt.commit_ns, attempt.resume_ns, hush_ns, attempt.about_ns)
    end = max(at_ns for at_ns in ends if at_ns is not None and at_ns < FOREVER)
    end = min(end + AFTERTHOUGHT_NS, until_ns)
    low, high = (bisect_left(afterthoughts, (at_ns, "")) for at_ns in (begin, end + 1))
    moments += afterthoughts[low:high]
    deciding = _DECIDING.get(attempt.kind or "", ("interrupt called", "commit:"))
    story: list[Moment] = []
    found = attempt.verdict_ns is None
    for at_ns, text in sorted(moments):
        decides = not found and at_ns == attempt.verdict_ns and text.startswith(deciding)
        found = found or decides
        story.append(Moment(text, at_ns, decides))
    return tuple(story)


def _survives(audio: Audio, speech: str, clear_ns: int) -> bool:
    """Whether a push that was under way when the source was cleared went out all the same."""
    ledger = audio.ledger
    nth = bisect_left(ledger.clears, clear_ns, key=lambda clear: clear[1])
    _, _, ended = ledger.clears[nth]
    parts, p, rows = ledger.parts, audio.trace.pushed, audio.parts(speech)
    rows = rows[(parts.run[rows] >= 0) & (parts.sent_ns[rows] > ended)]
    push = parts.push[rows]
    return bool(((p.at_ns[push] <= ended) & (p.ended_ns[push] >= clear_ns)).any())


def longest_stall(stalls: Sequence[LoopStalled], attempt: Attempt, last_sent_ns: int | None) -> int:
    """Length of the longest stall of the session's loop around an attempt; 0: there was none."""
    known = (attempt.onset_ns, attempt.first_ns, attempt.about_ns)
    # A stall that has just ended is what made the first of them late.
    begin = min(at_ns for at_ns in known if at_ns is not None) - SLACK_NS
    marks = (last_sent_ns, attempt.clear_ns, attempt.commit_ns, attempt.about_ns)
    end = max(at_ns for at_ns in marks if at_ns is not None)
    return max(
        (s.until_ns - s.at_ns for s in stalls if s.until_ns > begin and s.at_ns < end), default=0
    )
