"""The view of a trace that rules judge: every event in its place, every stretch of audio indexed.

Times are nanoseconds since the trace began, samples are exact. Whatever a rule asks for once per
segment is worked out once for all of them, so that a call of an hour is judged in moments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np

from reports.account.boundary import FOREVER, PUSHED, SENT
from reports.account.crossings import Audio
from reports.account.losses import Lost
from reports.findings.session import Session
from reports.findings.sink import Sinks
from reports.findings.wire import Wire
from reports.results import BargeIn, Length, Realtime, Segment
from reports.units import NS_PER_MS
from reports.verdicts.explanations import UNSEEN, unjoined_text

__all__ = ["Case"]

LATE_NS: Final = 600 * NS_PER_MS
"""How much later than it happened something may be written: a run of 200 ms, read in groups, and
the quarter of a second that a killed process loses."""


class Case:
    """One trace, with everything the ledger and the barge-ins say about it. Never changed."""

    def __init__(
        self,
        audio: Audio,
        segments: tuple[Segment, ...],
        barge_ins: tuple[BargeIn, ...],
        realtime: Realtime | None = None,
    ) -> None:
        self.audio = audio
        self.ledger = audio.ledger
        self.trace = audio.trace
        self.segments = segments
        self.barge_ins = tuple(one for one in barge_ins if one.counts)
        """Without what closings, callers who left and handovers ended: nobody interrupted it."""
        self.realtime = realtime
        """``None``: the trace shows no session of a realtime model."""
        self.session = Session(audio)
        self.sinks = Sinks(audio.ledger)
        self.wire = Wire(audio)

    # --- How far the trace can be trusted ---------------------------------------------------------

    @property
    def tapped(self) -> frozenset[str]:
        """Boundaries that were tapped."""
        return self.ledger.tapped

    @property
    def missing(self) -> Mapping[str, str]:
        """What the release or the attachment could not show, and why."""
        return self.trace.header.missing

    @cached_property
    def gaps(self) -> str | None:
        """Why something that is not in the trace may have happened all the same: it is damaged,
        lost events, or reached its bound. ``None``: what it shows is all there was.

        A trace that was merely cut is whole as far as it goes.
        """
        for reason in self.ledger.incomplete:
            if not reason.startswith("the trace has no end"):
                return f"the trace is incomplete: {reason}"
        return None

    @cached_property
    def doubt(self) -> str | None:
        """Why amounts of audio can't be judged by this trace; ``None``: they can be."""
        if self.gaps is not None:
            return self.gaps
        if self.ledger.total["unaccounted"]:
            return f"{self.ledger.total['unaccounted']} samples are unaccounted for"
        return None

    def resolution_ns(self) -> int:
        """How exact instants at *sent* are; one block where the trace is silent."""
        known = self.ledger.resolution_ns.get(SENT.name)
        return SENT.resolution_ns if known is None else known

    @property
    def end_ns(self) -> int:
        """Until when the trace shows everything: its end or, where it was cut, some time before,
        for what left last is written last."""
        return self.trace.last_ns - (0 if self.trace.trailer is not None else LATE_NS)

    @cached_property
    def seen_until_ns(self) -> int:
        """Until when the wire was read."""
        bounded = self.ledger.bounded_ns
        ends = [self.ledger.sent_seen_until_ns, self.end_ns]
        return min(ends if bounded is None else [*ends, bounded])

    @cached_property
    def unjoined(self) -> dict[int, str]:
        """Segments, by number, whose audio can't be followed through the sink, and why."""
        return {
            segment.index: f"segment {segment.index}: {why}"
            for segment in self.segments
            if (why := unjoined_text(segment)) is not None
        }

    @cached_property
    def unseen(self) -> dict[int, str]:
        """Segments, by number, of which not all that was sent was seen, and why."""
        if not {PUSHED.name, SENT.name} <= self.tapped:
            return {}
        rows = np.flatnonzero(self.ledger.sums.unseen).tolist()
        return {row + 1: f"segment {row + 1}: {UNSEEN['source-unread']}" for row in rows}

    # --- Segments ---------------------------------------------------------------------------------

    @cached_property
    def first_ns(self) -> list[int]:
        """When each segment's first frame was captured."""
        first: list[int] = self.ledger.sums.first_ns.tolist()
        return first

    def segment_at(self, at_ns: int) -> int:
        """Row of the segment whose first frame came last before an instant; -1: none had."""
        return bisect_right(self.first_ns, at_ns) - 1

    def next_start(self, row: int) -> int:
        """When the next segment's first frame was captured; `FOREVER`: there is none."""
        return self.first_ns[row + 1] if row + 1 < len(self.first_ns) else FOREVER

    def stopped(self, row: int) -> bool:
        """Whether a segment was interrupted: by its speech, or by what the sink reported of it."""
        speech = self.session.speech_of(row)
        if speech is not None:
            return speech.committed_ns is not None
        return bool(self.segments[row].interrupted)

    def captured_rate_hz(self, row: int) -> int:
        """Rate of a segment's captured samples."""
        return self.segments[row].geometry["captured"][0].rate_hz

    def pushed_rate_hz(self, row: int) -> int:
        """Rate of a segment's pushed samples, or of the captured where none was pushed."""
        pushed = self.segments[row].geometry.get("pushed", ())
        return pushed[0].rate_hz if pushed else self.captured_rate_hz(row)

    def place_ns(self, row: int, captured: int) -> int:
        """Place of a captured position within its segment's audio."""
        place = captured - int(self.ledger.sums.start[row])
        return Length(place, self.captured_rate_hz(row)).ns or 0

    def lost_at_least(self, row: int) -> int:
        """Captured samples of a segment that were never sent, so many at least. They are certain
        where the ledger does not add up as well."""
        sums = self.ledger.sums
        tail = max(int(sums.tail_unsent[row] - sums.queued[row]), 0)
        return max(int(sums.lost_at_least[row]) - tail, 0)

    def sinks_of(self, *rows: int) -> frozenset[int]:
        """Numbers of the sinks that audio of segments went through, as far as that is known."""
        return frozenset(sink for row in rows for sink in self._sinks_of.get(row, ()))

    @cached_property
    def _sinks_of(self) -> dict[int, set[int]]:
        parts, sources = self.ledger.parts, self.ledger.facts.sources
        found: dict[int, set[int]] = {}
        for row, number in set(zip(parts.segment.tolist(), parts.source.tolist(), strict=True)):
            sink = sources[number].sink
            if sink is not None:
                found.setdefault(row, set()).add(sink)
        return found

    @cached_property
    def dropped(self) -> dict[str | None, list[Lost]]:
        """What never reached the source, by speech."""
        found: dict[str | None, list[Lost]] = {}
        for lost in self.ledger.losses:
            if lost.what == "dropped":
                found.setdefault(self.audio.segment_speech[lost.segment], []).append(lost)
        return found
