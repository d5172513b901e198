"""What of a speech crossed each boundary from an instant on; ``None`` where that can't be told."""

from __future__ import annotations

import numpy as np

from reports.account.boundary import BOUNDARIES, FOREVER, SENT
from reports.account.crossings import Audio
from reports.account.estimates import Estimates
from reports.results import Estimate, Leak

__all__ = ["estimates_after", "last_sent", "leaks_after"]


def leaks_after(
    audio: Audio, speech: str, since_ns: int | None, until_ns: int
) -> dict[str, Leak | None] | None:
    """By boundary, from one instant (inclusive) to another. Exact in samples.

    ``None``: there is no such instant, or of one boundary, not all of it was seen there.
    """
    if since_ns is None:
        return None
    return {
        boundary.name: None
        if audio.unseen(boundary, speech, since_ns, until_ns) is not None
        else audio.crossed(boundary, speech, since_ns, until_ns).leak(boundary.gap_ns)
        for boundary in BOUNDARIES
        if boundary.unit == "samples"
    }


def estimates_after(
    audio: Audio, estimates: Estimates, speech: str, since_ns: int | None, until_ns: int
) -> dict[str, Estimate | None] | None:
    """The same in time, where only time tells; ``None``: it does not, at any boundary."""
    if since_ns is None:
        return None
    found = {
        boundary.name: estimates.crossed(boundary, speech, since_ns, until_ns)
        for boundary in BOUNDARIES
    }
    return found if any(found.values()) else None


def last_sent(audio: Audio, speech: str, since_ns: int, until_ns: int) -> int | None:
    """Tick of the block with the last sample of a speech that was sent before an instant.

    ``None``: nothing was, or not all that was sent from ``since_ns`` on was seen.
    """
    if audio.unseen(SENT, speech, since_ns, until_ns) is not None:
        return None
    crossed = audio.crossed(SENT, speech, -FOREVER, until_ns)
    if not len(crossed.stop):
        return None
    last = int(np.argmax(crossed.until_ns))
    blocks = audio.blocks(crossed.part[last : last + 1])
    return int(blocks.tick(crossed.stop[last : last + 1] - 1)[0])
