"""What went on behind a sink that can't be followed, in time and with an error bar."""

from __future__ import annotations

import numpy as np

from reports.account.boundary import OWNERLESS, Boundary
from reports.account.crossings import Audio
from reports.account.samples import CHANNEL_ROOM
from reports.account.stretches import Ints, column, grouped, summed
from reports.results import Estimate

__all__ = ["Estimates"]


class Estimates:
    """Lengths of audio whose owner only its time tells.

    A pushed sample is given to the segment whose first frame was captured last before it. What was
    still in the sink by then is given to the wrong one: at most what had been captured for longer
    than was pushed, unless a clear had emptied the sink.
    """

    def __init__(self, audio: Audio) -> None:
        self._audio = audio
        self._carried_ns = _carried(audio)

    def crossed(
        self, boundary: Boundary, speech: str, since_ns: int, until_ns: int
    ) -> Estimate | None:
        """How much of a speech crossed a boundary from one instant to another, in time.

        ``None``: it is known to the sample, or not even this can be told.
        """
        if self._audio.unseen(boundary, speech, since_ns, until_ns) not in OWNERLESS:
            return None
        crossed = self._audio.crossed(boundary, speech, since_ns, until_ns)
        mine = self._audio.segments_of.get(speech, [])
        doubt = max((int(self._carried_ns[row : row + 2].max()) for row in mine), default=0)
        return Estimate(crossed.amount.ns, doubt)


def _carried(audio: Audio) -> Ints:
    """How much may have been in the sink from before each segment; behind the last one nothing."""
    ledger = audio.ledger
    n, parts = ledger.count, ledger.parts
    frames = ledger.segments.frames
    into, out = (
        _lasted(segment, samples, rate_hz, n)
        for segment, samples, rate_hz in (
            (frames.segment, frames.stop - frames.start, frames.geometry // CHANNEL_ROOM),
            (parts.segment, parts.stop - parts.start, parts.rate_hz),
        )
    )
    clears = column([mark.at_ns for mark, _ in ledger.marks if mark.mark == "clear"])
    emptied = np.diff(np.searchsorted(clears, ledger.sums.first_ns, "right")) > 0
    carried = np.zeros(n + 1, np.int64)
    for row in np.flatnonzero(~emptied).tolist():
        carried[row + 1] = max(int(carried[row] + into[row] - out[row]), 0)
    return carried


def _lasted(segment: Ints, samples: Ints, rate_hz: Ints, segments: int) -> Ints:
    """How long the audio of each segment lasts, in nanoseconds."""
    total = np.zeros(segments, np.int64)
    for rate, rows in grouped(rate_hz):
        total += summed(segment[rows], samples[rows], segments) * 1_000_000_000 // rate
    return total
