"""What of a speech crossed which boundary between two instants. Exact in samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from probe.trace.events import SpeechCreated, Tapped
from probe.trace.reader import NONE
from reports.account.blocks import Blocks
from reports.account.boundary import (
    BOUNDARIES,
    CAPTURED,
    FOREVER,
    PUSHED,
    SENT,
    Boundary,
)
from reports.account.ledger import Ledger
from reports.account.losses import CAUSES, UNNAMED
from reports.account.samples import Samples, encoded
from reports.account.stretches import Bools, Ints, columns_of, grouped
from reports.account.wire import CLEARED, UNSEEN, Parts
from reports.results import Leak, Span, Unseen
from reports.units import one_rate

__all__ = ["Audio", "Crossed"]

NOTHING: Final[Ints] = np.empty(0, np.int64)


@dataclass(slots=True)
class Crossed:
    """Audio that crossed a boundary: one row per stretch, in the order it crossed."""

    start: Ints
    stop: Ints
    at_ns: Ints
    until_ns: Ints
    frame: Ints
    """Row of the captured columns, elsewhere of the pushed ones."""
    rate_hz: Ints
    geometry: Ints
    """As `encoded`."""
    part: Ints = field(default_factory=lambda: NOTHING)
    """Row of the ledger's parts; empty at captured."""

    @classmethod
    def of(cls, parts: Parts, rows: Ints, at_ns: Ints, until_ns: Ints) -> Crossed:
        return cls(
            parts.start[rows],
            parts.stop[rows],
            at_ns,
            until_ns,
            parts.push[rows],
            parts.rate_hz[rows],
            parts.geometry[rows],
            rows,
        )

    def taken(self, rows: Bools | Ints) -> Crossed:
        return Crossed(**{name: values[rows] for name, values in columns_of(self).items()})

    @property
    def samples(self) -> int:
        return int((self.stop - self.start).sum())

    @property
    def amount(self) -> Samples:
        """The same, which knows of what geometry it is."""
        return Samples.counted(self.stop - self.start, self.geometry)

    @property
    def rates(self) -> set[int]:
        return set(self.rate_hz.tolist())

    def leak(self, within_ns: int) -> Leak:
        """Sum and spans; a span ends at a hole, or where nothing crossed for ``within_ns``."""
        breaks = np.flatnonzero(
            (self.start[1:] != self.stop[:-1]) | (self.at_ns[1:] - self.until_ns[:-1] > within_ns)
        )
        first = np.concatenate((np.zeros(1, np.int64), breaks + 1))[: len(self.start)]
        last = np.append(breaks, len(self.start) - 1)[: len(self.start)]
        spans = zip(
            self.at_ns[first].tolist(),
            self.until_ns[last].tolist(),
            self.start[first].tolist(),
            self.stop[last].tolist(),
            strict=True,
        )
        return Leak(
            frames=len(set(self.frame.tolist())),
            samples=self.samples,
            rate_hz=one_rate(self.rates),
            spans=tuple(Span(*span) for span in spans),
        )


class Audio:
    """The audio of each speech at every boundary; found once, asked often."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.trace = ledger.trace
        self.segment_speech = [self.trace.text(int(i)) for i in ledger.sums.speech]
        """Speech of each segment."""
        self.segments_of: dict[str | None, list[int]] = {}
        """Segments of each speech, from 0."""
        for row, name in enumerate(self.segment_speech):
            self.segments_of.setdefault(name, []).append(row)
        self._by_segment = dict(grouped(ledger.parts.segment))
        self._by_speech = {
            self.trace.text(number): rows
            for number, rows in grouped(self.trace.captured.speech.astype(np.int64))
        }
        self.created = {
            e.speech: e.at_ns for e in self.trace.events if isinstance(e, SpeechCreated)
        }
        """When each speech was created."""
        self.under_way = self._under_way()
        """The speech that was under way when the probe came, if any."""
        strange = self.trace.sent.start_sample == NONE
        self._strange_until_ns = int(self.trace.sent.until_ns[strange].max(initial=-FOREVER))
        """Until when audio left that was never seen at *pushed*."""
        self._unpushed_of = dict(grouped(ledger.unpushed.segment))
        self._parts_of: dict[str, Ints] = {}
        self._sent_of: dict[str, Ints] = {}

    def _under_way(self) -> str | None:
        """The speech that was under way when the probe came: the first one to be named that was
        not created in the trace. What was inside sink and source then is its."""
        if not any(isinstance(e, Tapped) and e.mid_speech for e in self.trace.events):
            return None
        for event in self.trace.events:
            speech = getattr(event, "speech", None)
            if speech is not None:
                return None if speech in self.created else str(speech)
        return next((s for s in self.segment_speech if s not in self.created), None)

    def parts(self, speech: str) -> Ints:
        """Rows of the ledger's parts that belong to a speech."""
        if speech not in self._parts_of:
            mine = [self._by_segment.get(s, NOTHING) for s in self.segments_of.get(speech, ())]
            if speech == self.under_way:
                nobodys = self._by_segment.get(-1, NOTHING)
                mine.append(nobodys[self.ledger.parts.inherited[nobodys]])
            self._parts_of[speech] = np.sort(np.concatenate([NOTHING, *mine]))
        return self._parts_of[speech]

    def frames(self, speech: str) -> Ints:
        """Rows of the captured columns that belong to a speech."""
        return self._by_speech.get(speech, NOTHING)

    def crossed(self, boundary: Boundary, speech: str, since_ns: int, until_ns: int) -> Crossed:
        """What of a speech crossed a boundary from one instant (inclusive) to another."""
        return _CROSSINGS[boundary](self, speech, since_ns, until_ns)

    def _entered(self, speech: str, since_ns: int, until_ns: int) -> Crossed:
        c, rows = self.trace.captured, self.frames(speech)
        rows = rows[(c.at_ns[rows] >= since_ns) & (c.at_ns[rows] < until_ns)]
        rows = rows[c.samples[rows] > 0]
        start, at = c.start_sample[rows], c.at_ns[rows]
        geometry = encoded(c.rate_hz[rows], c.channels[rows])
        return Crossed(start, start + c.samples[rows], at, at, rows, c.rate_hz[rows], geometry)

    def _accepted(self, speech: str, since_ns: int, until_ns: int) -> Crossed:
        parts, rows = self.ledger.parts, self.parts(speech)
        at = self.trace.pushed.at_ns[parts.push[rows]]
        inside = (at >= since_ns) & (at < until_ns)
        return Crossed.of(parts, rows[inside], at[inside], at[inside])

    def _left(self, speech: str, since_ns: int, until_ns: int) -> Crossed:
        return self.left(self.sent(speech), since_ns, until_ns)

    def left(self, rows: Ints, since_ns: int, until_ns: int) -> Crossed:
        """What of sent rows of the parts left the source between two instants."""
        parts = self.ledger.parts
        rows = rows[(parts.sent_until_ns[rows] > since_ns) & (parts.sent_ns[rows] < until_ns)]
        found = Crossed.of(parts, rows, parts.sent_ns[rows], parts.sent_until_ns[rows])
        # Only the stretches that an instant falls into have to be cut at a block.
        cut = np.flatnonzero((found.at_ns < since_ns) | (found.until_ns > until_ns))
        if not len(cut):
            return found
        blocks = self.blocks(rows[cut])
        begin = np.clip(blocks.cut(since_ns), found.start[cut], found.stop[cut])
        end = np.clip(blocks.cut(until_ns), begin, found.stop[cut])
        found.start[cut], found.stop[cut] = begin, end
        found.at_ns[cut] = blocks.tick(begin)
        found.until_ns[cut] = blocks.end(np.maximum(end - 1, begin))
        return found.taken(found.stop > found.start)

    def sent(self, speech: str) -> Ints:
        """Rows of a speech's sent parts, in the order they left."""
        if speech not in self._sent_of:
            parts, rows = self.ledger.parts, self.parts(speech)
            rows = rows[parts.run[rows] >= 0]
            self._sent_of[speech] = rows[np.lexsort((parts.start[rows], parts.sent_ns[rows]))]
        return self._sent_of[speech]

    def blocks(self, rows: Ints) -> Blocks:
        """Where sent rows of the parts lie in the blocks of their runs."""
        return Blocks.of(self.trace, self.ledger.block, self.ledger.parts.run[rows])

    # --- What can't be told -----------------------------------------------------------------------

    def unseen(
        self, boundary: Boundary, speech: str, since_ns: int, until_ns: int = FOREVER
    ) -> Unseen | None:
        """Why it is not known what of a speech crossed a boundary between two instants.

        ``None``: it is known. As soon as any of it may have crossed where nobody looked, it is not.
        """
        if boundary.name not in self.ledger.tapped:
            return "unread"
        found: set[Unseen] = {
            reason
            for row in self.segments_of.get(speech, ())
            if (reason := self.ledger.unjoined(row)) is not None and reason != "channels"
        }
        bounded = self.ledger.bounded_ns
        if bounded is not None and since_ns >= bounded:
            found.add("bounded")
        if speech == self.under_way and self._strange_until_ns > since_ns:
            # Pushed before the probe came: how much of it is known, but not of what.
            found.add("under-way")
        if boundary.per_source and self._may_have_left_unread(speech, since_ns, until_ns):
            found.add("source-unread")
        return next((reason for reason in boundary.unseen_by if reason in found), None)

    def _may_have_left_unread(self, speech: str, since_ns: int, until_ns: int) -> bool:
        parts, rows = self.ledger.parts, self.parts(speech)
        rows = rows[parts.fate[rows] == UNSEEN]
        pushed_ns = self.trace.pushed.at_ns[parts.push[rows]]
        return bool(((pushed_ns < until_ns) & (parts.sent_until_ns[rows] > since_ns)).any())

    def remaining(self, speech: str, at_ns: int) -> Samples | None:
        """What of a speech could still go out at an instant, what was captured later included.

        Captured samples that had neither been sent nor lost, but for those a pause is to lose: a
        tail can't go out. ``None``: not known, or what was sent can't be held against it.
        """
        ledger, segments = self.ledger, self.segments_of.get(speech, [])
        if any(boundary.name not in ledger.tapped for boundary in BOUNDARIES if boundary.balanced):
            return None
        if speech == self.under_way or self.unseen(SENT, speech, at_ns) is not None:
            return None
        if ledger.sums.unjoined[segments].any():
            return None
        captured = self.crossed(CAPTURED, speech, -FOREVER, FOREVER).amount
        parts, unpushed = ledger.parts, ledger.unpushed
        before = self.left(self.sent(speech), -FOREVER, at_ns)
        rows = self.parts(speech)
        rows = rows[(parts.fate[rows] == CLEARED) & (parts.gone_ns[rows] < at_ns)]
        mine = [self._unpushed_of.get(segment, NOTHING) for segment in segments]
        dropped = np.concatenate([NOTHING, *mine])
        kept = np.isin(unpushed.cause[dropped], (UNNAMED, CAUSES.index("pause")))
        dropped = dropped[~kept & (unpushed.at_ns[dropped] < at_ns)]
        gone = (
            (parts.captured[before.part], before.stop - before.start),
            (parts.captured[rows], parts.stop[rows] - parts.start[rows]),
            (unpushed.start[dropped], unpushed.stop[dropped] - unpushed.start[dropped]),
        )
        for place, samples in gone:
            captured -= self._as_captured(place, samples)
        return captured if captured.count > int(ledger.sums.tail[segments].sum()) else Samples({})

    def _as_captured(self, place: Ints, samples: Ints) -> Samples:
        """So many samples from each captured position on, in their captured geometry."""
        frames = self.ledger.segments.frames
        frame = frames.holding(place)
        known = frame >= 0
        return Samples.counted(samples[known], frames.geometry[frame[known]])


_CROSSINGS: Final[Mapping[Boundary, Callable[[Audio, str, int, int], Crossed]]] = {
    CAPTURED: Audio._entered,
    PUSHED: Audio._accepted,
    SENT: Audio._left,
}
"""How what crossed each boundary is found."""
