"""What of a speech crossed which boundary between two instants. Exact in samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import SpeechCreated, Tapped
from reports.account.ledger import Blocks, Ledger
from reports.results import Leak, Span
from reports.units import one_rate

__all__ = ["Audio", "Crossed"]

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Crossed:
    """Audio that crossed a boundary: one row per stretch, in the order it crossed."""

    start: Ints
    stop: Ints
    at_ns: Ints
    until_ns: Ints
    frame: Ints
    rate_hz: Ints

    @property
    def samples(self) -> int:
        return int((self.stop - self.start).sum())

    @property
    def rates(self) -> set[int]:
        return set(np.unique(self.rate_hz).tolist())

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
            frames=len(np.unique(self.frame)),
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
        order = np.argsort(ledger.parts.segment, kind="stable")
        edges = np.arange(ledger.count + 1)
        self._by_segment = (order, np.searchsorted(ledger.parts.segment[order], edges, "left"))
        self.numbers = {text: i for i, text in enumerate(self.trace.texts)}
        self.created = {
            e.speech: e.at_ns for e in self.trace.events if isinstance(e, SpeechCreated)
        }
        """When each speech was created."""
        self.under_way = self._under_way()
        """The speech that was under way when the probe came, if any."""
        self._parts_of: dict[str, Ints] = {}
        self._frames_of: dict[str, Ints] = {}
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
            rows, bounds = self._by_segment
            mine = [rows[bounds[s] : bounds[s + 1]] for s in self.segments_of.get(speech, ())]
            if speech == self.under_way:
                parts = self.ledger.parts
                mine.append(np.flatnonzero(parts.inherited & (parts.segment < 0)))
            found = np.sort(np.concatenate(mine)) if mine else np.empty(0, np.int64)
            self._parts_of[speech] = found
        return self._parts_of[speech]

    def frames(self, speech: str) -> Ints:
        """Rows of the captured columns that belong to a speech."""
        if speech not in self._frames_of:
            number = self.numbers.get(speech, -2)
            self._frames_of[speech] = np.flatnonzero(self.trace.captured.speech == number)
        return self._frames_of[speech]

    def crossed(self, boundary: str, speech: str, since_ns: int, until_ns: int) -> Crossed:
        """What of a speech crossed a boundary from one instant (inclusive) to another."""
        if boundary == "captured":
            c, rows = self.trace.captured, self.frames(speech)
            rows = rows[(c.at_ns[rows] >= since_ns) & (c.at_ns[rows] < until_ns)]
            rows = rows[c.samples[rows] > 0]
            start, at = c.start_sample[rows], c.at_ns[rows]
            return Crossed(start, start + c.samples[rows], at, at, rows, c.rate_hz[rows])
        parts, rows = self.ledger.parts, self.parts(speech)
        if boundary == "pushed":
            at = self.trace.pushed.at_ns[parts.push[rows]]
            inside = (at >= since_ns) & (at < until_ns)
            rows, at = rows[inside], at[inside]
            return Crossed(
                parts.start[rows], parts.stop[rows], at, at, parts.push[rows], parts.rate_hz[rows]
            )
        return self.left(self.sent(speech), since_ns, until_ns)

    def left(self, rows: Ints, since_ns: int, until_ns: int) -> Crossed:
        """What of sent rows of the parts left the source between two instants."""
        parts = self.ledger.parts
        rows = rows[(parts.sent_until_ns[rows] > since_ns) & (parts.sent_ns[rows] < until_ns)]
        start, stop = parts.start[rows], parts.stop[rows]
        at, until = parts.sent_ns[rows], parts.sent_until_ns[rows]
        # Only the stretches that an instant falls into have to be cut at a block.
        cut = np.flatnonzero((at < since_ns) | (until > until_ns))
        if len(cut):
            start, stop, at, until = start.copy(), stop.copy(), at.copy(), until.copy()
            blocks = self.blocks(rows[cut])
            begin = np.clip(blocks.cut(since_ns), start[cut], stop[cut])
            end = np.clip(blocks.cut(until_ns), begin, stop[cut])
            start[cut], stop[cut] = begin, end
            at[cut], until[cut] = blocks.tick(begin), blocks.end(np.maximum(end - 1, begin))
        full = stop > start
        return Crossed(
            start[full],
            stop[full],
            at[full],
            until[full],
            parts.push[rows[full]],
            parts.rate_hz[rows[full]],
        )

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
