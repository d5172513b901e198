"""What decided on each attempt: the verdict, the onset, and what no caller had asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from probe.trace.events import CallerLeft, HandedOver, SessionClosed
from reports.account.boundary import FOREVER, PUSHED, SENT
from reports.results import Outcome, VerdictKind
from reports.verdicts.attempts import Attempt
from reports.verdicts.scene import Scene

__all__ = ["decide", "ended_by", "find_onset", "ignored"]

SAME_NS: Final = 1_000_000
"""The close of a session is seen right before it interrupts the speech."""

HANDOFF_NS: Final = 1_000_000_000
"""How long after a handoff the old agent's speech may be stopped by it."""

LOOKED_NS: Final = 100_000_000
"""A handoff that no event tells of is seen so much later at most."""


def decide(scene: Scene, attempt: Attempt) -> None:
    """The verdict, by precedence; never later than the commit."""
    commit = attempt.committed_ns
    if attempt.overlap_ns is not None and (commit is None or attempt.overlap_ns <= commit):
        attempt.kind, attempt.verdict_ns = "overlap", attempt.overlap_ns
    elif commit is None:
        return
    elif attempt.pause_ns is not None and attempt.pause_ns <= commit:
        attempt.kind, attempt.verdict_ns = "activity", attempt.pause_ns
    else:
        called = commit if attempt.call_ns is None else min(attempt.call_ns, commit)
        attempt.kind, attempt.verdict_ns = attempt.called_by or _guess(scene, called), called


def _guess(scene: Scene, called_ns: int) -> VerdictKind:
    """Who interrupted, on a release that does not say."""
    turn = scene.turn_before(called_ns)
    if turn is None:
        return "programmatic"
    if any(turn.start_ns <= at_ns <= called_ns for at_ns in scene.finals):
        return "transcript"
    return "activity" if called_ns < turn.stop_ns else "programmatic"


def find_onset(scene: Scene, attempt: Attempt, others: Sequence[Attempt]) -> None:
    """When the caller began to speak whom the attempt is about, if the trace shows it.

    Args:
        scene: the trace.
        attempt: whose onset is looked for.
        others: of the same speech.
    """
    known = (attempt.pause_ns, attempt.verdict_ns, attempt.call_ns)
    since = min(at_ns for at_ns in known if at_ns is not None)
    turn = scene.turn_before(since)
    if turn is None:
        return
    still = turn.stop_ns > since
    mine = scene.audio.segments_of.get(attempt.speech, ())
    begun = min(
        scene.audio.created.get(attempt.speech, FOREVER),
        min((scene.first_ns[s] for s in mine), default=FOREVER),
    )
    # A turn that was over before is what the code or the transcript of it reacted to, unless
    # it came before the speech or has had its barge-in already.
    taken = any(other.onset_ns == turn.start_ns for other in others if other is not attempt)
    if still or (attempt.kind != "programmatic" and turn.start_ns >= begun and not taken):
        attempt.onset_ns, attempt.onset_until_ns = turn.start_ns, turn.stop_ns


def ended_by(scene: Scene, attempt: Attempt) -> Outcome | None:
    """What stopped a speech that no caller interrupted: the session's close, the caller's going,
    a handoff. ``None``: none of these."""
    verdict = attempt.verdict_ns
    by_code = attempt.kind == "programmatic" and attempt.onset_ns is None
    if verdict is None or not by_code or attempt.pause_ns is not None:
        return None
    left = closed = handed = False
    for event in scene.events:
        if isinstance(event, CallerLeft):
            left = left or event.at_ns <= verdict + SAME_NS
        elif isinstance(event, SessionClosed) and event.at_ns <= verdict + SAME_NS:
            closed = True
            left = left or event.reason == "participant_disconnected"
        elif isinstance(event, HandedOver):
            near = -LOOKED_NS <= verdict - event.at_ns <= HANDOFF_NS
            made = scene.audio.created.get(attempt.speech, -FOREVER)
            handed = handed or (near and made <= event.at_ns)
    if closed:
        return "hung-up" if left else "closed"
    return "handed-over" if handed else None


def ignored(scene: Scene, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The caller spoke over audio that was going out, and neither pause nor verdict came."""
    found = []
    audio = scene.audio
    boundary = SENT if SENT.name in scene.ledger.tapped else PUSHED
    went_out = {
        speech: (int(crossed.at_ns.min()), int(crossed.until_ns.max()))
        for speech in dict.fromkeys(s for s in scene.segment_speech if s is not None)
        if (crossed := audio.crossed(boundary, speech, -FOREVER, FOREVER)).samples
    }
    of_speech: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        of_speech.setdefault(attempt.speech, []).append(attempt)
    names, spans = list(went_out), np.array(list(went_out.values()), np.int64).reshape(-1, 2)
    for turn in scene.turns:
        over = (spans[:, 0] < turn.stop_ns) & (spans[:, 1] > turn.start_ns)
        for speech in (names[row] for row in np.flatnonzero(over)):
            met = any(
                a.onset_ns == turn.start_ns
                or turn.start_ns <= a.about_ns <= turn.stop_ns
                or (a.committed_ns is not None and a.committed_ns <= turn.start_ns)
                for a in of_speech.get(speech, [])
            )
            if met:
                continue
            if not audio.crossed(boundary, speech, -FOREVER, turn.start_ns).samples:
                continue
            if not audio.crossed(boundary, speech, turn.start_ns, turn.stop_ns).samples:
                continue
            attempt = Attempt(speech, turn.start_ns)
            attempt.onset_ns, attempt.onset_until_ns = turn.start_ns, turn.stop_ns
            attempt.ignored = True
            found.append(attempt)
    return found
