"""What of a speech went out from an instant on, and when the last of it did."""

from __future__ import annotations

import numpy as np

from reports.account.boundary import BOUNDARIES, FOREVER, SENT, SLACK_NS
from reports.results import Amount, Estimate, Leak
from reports.units import one_rate
from reports.verdicts.attempts import Attempt
from reports.verdicts.scene import Scene

__all__ = ["estimated", "last_sent", "leaks", "remaining", "source_clear", "stalled"]


def leaks(
    scene: Scene, speech: str, since_ns: int | None, until_ns: int
) -> dict[str, Leak | None] | None:
    """By boundary; ``None`` at one where it is not known. ``None``: there is no such instant."""
    if since_ns is None:
        return None
    found: dict[str, Leak | None] = {}
    for boundary in (boundary for boundary in BOUNDARIES if boundary.unit == "samples"):
        if scene.audio.unseen(boundary, speech, since_ns, until_ns) is not None:
            found[boundary.name] = None
            continue
        crossed = scene.audio.crossed(boundary, speech, since_ns, until_ns)
        found[boundary.name] = crossed.leak(boundary.gap_ns)
    return found


def estimated(
    scene: Scene, speech: str, since_ns: int | None, until_ns: int
) -> dict[str, Estimate | None] | None:
    """The same in time, by boundary, where a sink can't be followed. ``None``: nowhere."""
    if since_ns is None:
        return None
    found = {
        boundary.name: scene.estimates.crossed(boundary, speech, since_ns, until_ns)
        for boundary in BOUNDARIES
    }
    return found if any(found.values()) else None


def remaining(scene: Scene, attempt: Attempt) -> Amount | None:
    """What of the speech could still have gone out at the verdict; a tail can't."""
    verdict = attempt.verdict_ns
    samples = None if verdict is None else scene.audio.remaining(attempt.speech, verdict)
    if samples is None:
        return None
    frames = len(scene.audio.frames(attempt.speech)) if samples else 0
    return Amount(frames, samples.count, one_rate(samples.rates))


def last_sent(scene: Scene, speech: str, until_ns: int) -> int | None:
    """Tick of the block with the last sent sample of a speech."""
    crossed = scene.audio.crossed(SENT, speech, -FOREVER, until_ns)
    if not len(crossed.stop):
        return None
    last = int(np.argmax(crossed.until_ns))
    rows = scene.audio.sent(speech)
    parts, position = scene.ledger.parts, crossed.stop[last : last + 1] - 1
    holds = rows[(parts.start[rows] <= position) & (parts.stop[rows] > position)]
    return int(scene.audio.blocks(holds[:1]).tick(position)[0])


def source_clear(scene: Scene, attempt: Attempt, until_ns: int) -> int | None:
    """When a source of the speech was cleared for the first time in an attempt."""
    if attempt.ignored:
        return None
    sources = scene.sources(attempt.speech)
    for source, at_ns, _ in scene.clears(attempt.first_ns, until_ns):
        if sources and source not in sources:
            continue
        # Once another speech has begun, every later clear is about that.
        other = scene.another_began(attempt.speech, attempt.first_ns, at_ns)
        return None if other else at_ns
    return None


def stalled(scene: Scene, attempt: Attempt, sent_ns: int | None) -> int:
    """The longest stall of the session's loop around an attempt.

    Args:
        scene: the trace.
        attempt: the attempt.
        sent_ns: when the last of its speech left.
    """
    known = (attempt.onset_ns, attempt.first_ns, attempt.about_ns)
    # A stall that has just ended is what made the first of them late.
    begin = min(at_ns for at_ns in known if at_ns is not None) - SLACK_NS
    marks = (sent_ns, attempt.clear_ns, attempt.commit_ns, attempt.about_ns)
    end = max(at_ns for at_ns in marks if at_ns is not None)
    return max((until - at for at, until in scene.stalls if until > begin and at < end), default=0)
