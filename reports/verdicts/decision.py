"""Which instant of an attempt is the verdict, and what it is about: the caller, or something else
that ended the speech."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from probe.trace.events import CallerLeft, Event, HandedOver, SessionClosed
from reports.account.boundary import FOREVER, PUSHED, SENT, Boundary
from reports.account.crossings import Audio
from reports.results import Outcome
from reports.verdicts.attempts import Attempt
from reports.verdicts.caller import Caller

__all__ = ["Endings", "decide", "find_ignored", "with_onset"]


SAME_NS: Final = 1_000_000
"""What ends a speech is seen right before it does, give or take this."""

HANDOVER_NS: Final = 1_000_000_000
"""How long after a handover the old agent's speech may be stopped by it."""

LOOKED_NS: Final = 20_000_000
"""A handover that no event tells of is seen so much later at most."""


@dataclass(frozen=True, slots=True)
class Endings:
    """What ends speeches without the caller interrupting them; instants in order of time."""

    closed_ns: Sequence[int]
    """The closing of the session was seen to begin."""
    left_ns: Sequence[int]
    """The caller left the room."""
    handed_over_ns: Sequence[int]
    """Another agent took over."""

    @classmethod
    def of(cls, events: Sequence[Event]) -> Endings:
        closed = [e for e in events if isinstance(e, SessionClosed)]
        left = [e.at_ns for e in events if isinstance(e, CallerLeft)]
        left += [e.at_ns for e in closed if e.reason == "participant_disconnected"]
        return cls(
            [e.at_ns for e in closed],
            sorted(left),
            [e.at_ns for e in events if isinstance(e, HandedOver)],
        )

    def before(self, at_ns: int, since_ns: int, caller: Caller) -> Outcome | None:
        """What may have ended a speech at an instant; ``since_ns``: when the speech began."""
        turn = caller.turn_before(at_ns)
        heard_ns = -FOREVER if turn is None else turn.start_ns
        # A caller who speaks after one has left is another one, or is back.
        if any(heard_ns <= left <= at_ns + SAME_NS for left in self.left_ns):
            return "hung-up"
        if any(closed <= at_ns + SAME_NS for closed in self.closed_ns):
            return "closed"
        for handed in self.handed_over_ns:
            # What the new agent says is its own.
            if since_ns <= handed and handed - LOOKED_NS <= at_ns <= handed + HANDOVER_NS:
                return "handed-over"
        return None


def decide(attempt: Attempt, caller: Caller, endings: Endings, created_ns: int) -> Attempt:
    """The attempt with its verdict, by precedence; never later than the commit."""
    commit = attempt.committed_ns
    if attempt.overlap_ns is not None and (commit is None or attempt.overlap_ns <= commit):
        return replace(attempt, kind="overlap", verdict_ns=attempt.overlap_ns)
    if commit is None:
        return attempt
    called = commit if attempt.call_ns is None else min(attempt.call_ns, commit)
    if attempt.called_by in (None, "programmatic"):
        ended_by = endings.before(called, created_ns, caller)
        if ended_by is not None:
            return replace(attempt, ended_by=ended_by)
    if attempt.pause_ns is not None and attempt.pause_ns <= commit:
        return replace(attempt, kind="activity", verdict_ns=attempt.pause_ns)
    kind = attempt.called_by or caller.interrupted_by(called)
    return replace(attempt, kind=kind, verdict_ns=called)


def with_onset(
    attempt: Attempt, caller: Caller, begun_ns: int, earlier: Iterable[Attempt]
) -> Attempt:
    """The attempt with the turn of the caller it began with.

    Args:
        attempt: decided.
        caller: who spoke when.
        begun_ns: when the speech was created or its first frame captured.
        earlier: the other attempts on the speech, those before with their onsets.
    """
    known = (attempt.pause_ns, attempt.verdict_ns, attempt.call_ns, attempt.committed_ns)
    since = min(at_ns for at_ns in known if at_ns is not None)
    turn = caller.turn_before(since)
    if turn is None:
        return attempt
    # A turn that was over before is what the code or the transcript of it reacted to, unless it
    # came before the speech or has had its barge-in already.
    taken = any(other.onset == turn for other in earlier)
    reacted = attempt.kind not in (None, "programmatic") or attempt.pause_ns is not None
    if turn.stop_ns > since or (reacted and turn.start_ns >= begun_ns and not taken):
        return replace(attempt, onset=turn)
    return attempt


def find_ignored(audio: Audio, caller: Caller, attempts: Iterable[Attempt]) -> list[Attempt]:
    """Where the caller spoke over audio that was going out, and neither pause nor verdict came."""
    of_speech: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        of_speech.setdefault(attempt.speech, []).append(attempt)
    boundaries = {speech: _seen_at(audio, speech) for speech in audio.segments_of if speech}
    went_out = {
        speech: (int(crossed.at_ns.min()), int(crossed.until_ns.max()))
        for speech, boundary in boundaries.items()
        if (crossed := audio.crossed(boundary, speech, -FOREVER, FOREVER)).samples
    }
    names, spans = list(went_out), np.array(list(went_out.values()), np.int64).reshape(-1, 2)
    ignored = []
    for turn in caller.turns:
        over = (spans[:, 0] < turn.stop_ns) & (spans[:, 1] > turn.start_ns)
        for speech in (names[row] for row in np.flatnonzero(over)):
            boundary = boundaries[speech]
            met = any(
                attempt.onset == turn
                or turn.start_ns <= attempt.about_ns <= turn.stop_ns
                or (attempt.committed_ns is not None and attempt.committed_ns <= turn.start_ns)
                for attempt in of_speech.get(speech, ())
            )
            if (
                not met
                and audio.crossed(boundary, speech, -FOREVER, turn.start_ns).samples
                and audio.crossed(boundary, speech, turn.start_ns, turn.stop_ns).samples
            ):
                ignored.append(Attempt(speech, turn.start_ns, onset=turn, ignored=True))
    return ignored


def _seen_at(audio: Audio, speech: str) -> Boundary:
    """Where it can be seen that audio of a speech was going out: the last place that was read."""
    unread = ("unread", "source-unread")
    return PUSHED if audio.unseen(SENT, speech, -FOREVER) in unread else SENT
