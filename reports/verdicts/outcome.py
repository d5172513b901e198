"""What became of a barge-in."""

from __future__ import annotations

from reports.results import Amount, Leak, Outcome
from reports.verdicts.attempts import Attempt

__all__ = ["outcome_of"]


def outcome_of(
    attempt: Attempt, sent: Leak | None, remaining: Amount | None, *, has_audio: bool
) -> Outcome | None:
    """The outcome of a decided attempt; ``None``: not decided when the trace ended.

    Args:
        attempt: decided.
        sent: what left the source after the verdict, where that is known.
        remaining: what could still have left at the verdict, where that is known.
        has_audio: whether anything of the speech was captured.
    """
    if attempt.ignored:
        return "ignored"
    if attempt.ended_by is not None:
        return attempt.ended_by
    nothing_left = has_audio and remaining is not None and remaining.samples == 0
    if attempt.committed_ns is not None:
        return "finished" if nothing_left else "committed"
    if attempt.resume_ns is not None:
        return "resumed"
    if nothing_left:
        return "finished"
    if attempt.done_ns is not None:
        went_on = sent is not None and sent.samples > 0
        return "resumed" if attempt.verdict_ns is not None and went_on else "finished"
    return None
