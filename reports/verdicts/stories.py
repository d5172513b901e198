"""What happened around a barge-in, in order, for the reader."""

from __future__ import annotations

from typing import Final

from probe.trace.events import TranscriptReceived
from reports.account.boundary import FOREVER
from reports.results import Moment
from reports.verdicts.attempts import Attempt
from reports.verdicts.causes import survives
from reports.verdicts.leaks import source_clear
from reports.verdicts.scene import Scene

__all__ = ["tell"]

AFTERTHOUGHT_NS: Final = 50_000_000
"""How long after a barge-in's end the session may still report on it."""


def tell(scene: Scene, attempt: Attempt, until_ns: int, sent_ns: int | None) -> tuple[Moment, ...]:
    """What happened around the verdict, in order; one moment of it is the verdict."""
    cleared_ns = source_clear(scene, attempt, until_ns)
    emptied = "the source's queue is cleared"
    if cleared_ns is not None and survives(scene, attempt.speech, cleared_ns):
        emptied += "; a push under way survives it"
    called = f" by {attempt.called_by}" if attempt.called_by else ""
    moments = [
        (at_ns, text)
        for at_ns, text in (
            (attempt.onset_ns, "the caller starts to speak"),
            (attempt.pause_ns, "pause: the gate is closed"),
            (attempt.overlap_ns, "the interruption model says: interruption"),
            (attempt.call_ns, f"interrupt called{called}"),
            (attempt.committed_ns, "commit: the speech is interrupted"),
            (attempt.clear_ns, "clear of the sink"),
            (cleared_ns, emptied),
            (attempt.resume_ns, "resume: the gate is open"),
            (sent_ns, "last sample of the speech sent"),
            (attempt.onset_until_ns, "the caller stops"),
        )
        if at_ns is not None and at_ns < FOREVER
    ]
    begin = min(at_ns for at_ns, _ in moments)
    ends = (attempt.commit_ns, attempt.resume_ns, attempt.onset_until_ns, attempt.about_ns)
    end = max(at_ns for at_ns in ends if at_ns is not None and at_ns < FOREVER)
    for event in scene.afterthoughts:
        if isinstance(event, TranscriptReceived):
            text = f"final transcript, {event.words} words"
        else:
            text = "the session calls it a false interruption"
        # The session reports these a moment after it has acted on them.
        if begin <= event.at_ns <= min(end + AFTERTHOUGHT_NS, until_ns):
            moments.append((event.at_ns, text))
    deciding = {
        "overlap": ("the interruption model",),
        "activity": ("pause:", "interrupt called", "commit:"),
    }.get(attempt.kind or "", ("interrupt called", "commit:"))
    story: list[Moment] = []
    found = attempt.verdict_ns is None
    for at_ns, text in sorted(moments):
        decides = not found and at_ns == attempt.verdict_ns and text.startswith(deciding)
        found = found or decides
        story.append(Moment(text, at_ns, decides))
    return tuple(story)
