"""From a trace to segments with their balance: where every captured sample went.

Everything here is integers on two axes. On the *captured* axis lie the frames that entered the
sink; pushes say which stretches of it they were made of. On the *pushed* axis lie the samples the
sources accepted; sent runs say which stretches of it left. Each axis is cut at every edge of what
lies on it, so that a cut (a `parts` row) has one fate. What no stretch covers was lost, and has to
earn its name: it is dropped, held, cleared or queued only if the trace shows the cause at the
right time. Otherwise it is unaccounted. No figure is the remainder of others.

Times of two clocks meet in two places only, where a stamp of the wire (up to a block late) is
compared with a clear or a push; there `SLACK_NS` and the resolution are allowed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import PlaybackReported, SinkMarked
from probe.trace.reader import NONE, Trace
from reports.account.facts import FOREVER, gather
from reports.results import LossCause

__all__ = ["Issue", "Ledger", "Lost", "SegmentSums", "balance"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

GAP_NS: Final = 15_000_000
"""Longest step between two blocks that still counts as contiguous."""

SLACK_NS: Final = 20_000_000
"""Allowed between two threads' stamps of one thing, on top of the boundary's resolution."""

LONGEST_SILENCE_NS: Final = 100_000_000
"""How long old releases put out nothing when they begin to run dry, or stamp a block late."""

LONGEST_RUN_NS: Final = 2**40
"""About 18 minutes, where a run lasts 200 ms."""

_RETURNED, _CANCELLED, _RAISED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Issue:
    """Samples that do not add up, and where."""

    samples: int
    segment: int
    """Index from 0, -1: none in particular."""
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost audio. Positions: captured axis for ``dropped``, pushed axis for ``cleared``."""

    what: Literal["dropped", "cleared"]
    cause: LossCause
    segment: int
    start: int
    stop: int
    at_ns: int
    rate_hz: int


@dataclass(slots=True)
class Parts:
    """The accepted samples, cut so that each row has one origin, one owner and one fate.

    Columns of int64; rows in the order of the pushed axis.
    """

    start: Ints
    stop: Ints
    captured: Ints
    """Captured position of the first sample, `NONE`: not known."""
    segment: Ints
    """-1: none."""
    push: Ints
    """Row of the trace's pushed columns."""
    run: Ints
    """Row of the trace's sent columns, -1: never sent."""
    sent_ns: Ints
    """Tick of the block its first sample left in; `FOREVER` where never sent."""
    sent_until_ns: Ints
    inherited: Bools
    rate_hz: Ints

    @property
    def samples(self) -> Ints:
        return self.stop - self.start


@dataclass(slots=True)
class SegmentSums:
    """Columns with one row per segment; samples as int64."""

    speech: Ints
    """Index into the trace's texts, -1: none."""
    first_ns: Ints
    start: Ints
    """Captured position of its first sample."""
    stop: Ints
    partial: Bools
    resampled: Bools
    captured_frames: Ints
    captured: Ints
    pushed_frames: Ints
    pushed: Ints
    sent_frames: Ints
    sent: Ints
    dropped: Ints
    held: Ints
    cleared: Ints
    queued: Ints
    inherited: Ints
    inserted: Ints
    tail: Ints
    tail_unsent: Ints
    """The part of the tail that was never sent."""
    ambiguous: Ints
    unaccounted: Ints
    unknown: Ints
    unseen: Ints
    """Pushed where nobody read the wire."""
    sent_later: Ints
    last_sent: Ints
    """Captured position after the last sent sample, `NONE`: nothing was sent."""
    finished_ns: Ints
    """`NONE`: not reported."""
    claimed_s: NDArray[np.float64]
    """NaN: not reported."""
    reported_interrupted: NDArray[np.int8]
    """-1: not reported."""


@dataclass(slots=True)
class Ledger:
    """The balance of a trace; what `reports.analysis` puts into words."""

    trace: Trace
    tapped: frozenset[str]
    incomplete: tuple[str, ...]
    """Why the trace cannot tell everything; empty for a whole one."""
    bounded_ns: int | None
    sums: SegmentSums
    parts: Parts
    frame_segment: Ints
    """Segment of each row of the trace's captured columns."""
    marks: list[tuple[SinkMarked, int]]
    """Marks in time order and the segment each belongs to, -1: there is no segment."""
    gate: list[tuple[int, int]]
    """When the sink's gate was shut and opened again, in order; `FOREVER`: it was not."""
    finishes: list[tuple[PlaybackReported, int]]
    """Reports of a finish and the segment each belongs to, -1: there was none without one."""
    clears: list[tuple[int, int, int]]
    """Clears of sources that succeeded: source, before, after, in time order."""
    closed: dict[int, int]
    """When each source was closed that was."""
    gaps: list[tuple[int, int, int]]
    """Segment, start and length in nanoseconds."""
    losses: list[Lost]
    issues: list[Issue]
    resolution_ns: dict[str, int | None]
    block: dict[int, int]
    """Samples per block by source."""
    sent_seen_until_ns: int
    """Until when the wire was read; `FOREVER`: to the end."""
    total: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of segments."""
        return len(self.sums.speech)


# --- Arithmetic on stretches ---------------------------------------------------------------------


def split(start: Ints, stop: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut stretches at ``cuts`` (sorted): the parent row, start and stop of each piece."""
    low = np.searchsorted(cuts, start, "right")
    high = np.searchsorted(cuts, stop, "left")
    inner = np.maximum(high - low, 0)
    count = inner + 1
    parent = np.repeat(np.arange(len(start)), count)
    nth = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    at = low[parent] + nth
    padded = np.append(cuts, 0)
    begin = np.where(nth == 0, start[parent], padded[np.maximum(at - 1, 0)])
    end = np.where(nth == inner[parent], stop[parent], padded[np.minimum(at, len(cuts))])
    return parent, begin, end


@dataclass(slots=True)
class Cover:
    """The union of stretches, asked whether it holds a position."""

    start: Ints
    reach: Ints

    @classmethod
    def of(cls, start: Ints, stop: Ints) -> Cover:
        order = np.argsort(start, kind="stable")
        return cls(start[order], np.maximum.accumulate(stop[order]) if len(stop) else stop)

    def holds(self, position: Ints) -> Bools:
        if not len(self.start):
            return np.zeros(len(position), np.bool_)
        row = np.searchsorted(self.start, position, "right") - 1
        held: Bools = (row >= 0) & (position < self.reach[np.maximum(row, 0)])
        return held

    def total(self) -> int:
        if not len(self.start):
            return 0
        before = np.concatenate(([self.start[0]], self.reach[:-1]))
        return int(np.maximum(self.reach - np.maximum(self.start, before), 0).sum())


def steps_back(start: Ints, stop: Ints) -> Ints:
    """Of stretches in order of time: how much of each lies at or before what came earlier."""
    if not len(start):
        return start
    reached = np.concatenate((np.zeros(1, np.int64), np.maximum.accumulate(stop)[:-1]))
    back: Ints = np.maximum(np.minimum(stop, reached) - start, 0)
    return back


def summed(index: Ints, values: Ints | Bools, length: int) -> Ints:
    """Sum of ``values`` by ``index``; rows of index -1 are left out."""
    keep = index >= 0
    return np.rint(np.bincount(index[keep], values[keep], length)).astype(np.int64)


def counted(index: Ints, of: Ints, length: int) -> Ints:
    """Number of different ``of`` by ``index``; rows of index -1 are left out."""
    keep = index >= 0
    pairs = np.unique(of[keep] * np.int64(max(length, 1)) + index[keep])
    return np.bincount(pairs % max(length, 1), minlength=length).astype(np.int64)


def first_from(times: Ints, since: Ints) -> Ints:
    """First of ``times`` (sorted) at or after ``since``, `FOREVER` where there is none."""
    found: Ints = np.append(times, FOREVER)[np.searchsorted(times, since, "left")]
    return found


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


@dataclass(slots=True)
class Blocks:
    """Of sent parts, one row each: where they lie in the blocks of their run."""

    begin_ns: Ints
    length_ns: Ints
    count: Ints
    """Blocks in the run."""
    size: Ints
    """Samples per block."""
    first: Ints
    """Position of the first sample of the run's first block, even where that is not of the run."""

    @classmethod
    def of(cls, trace: Trace, block: dict[int, int], run: Ints) -> Blocks:
        """For rows of the trace's sent columns; ``block``: samples per block by source."""
        t = trace.sent
        names, where = np.unique(t.source[run], return_inverse=True)
        size = _ints([block.get(int(name), 1) for name in names])[where]
        offset = t.block_offset_samples[run]
        return cls(
            begin_ns=t.at_ns[run],
            # No run is that long; the bound keeps absurd ones from overflowing.
            length_ns=np.clip(t.until_ns[run] - t.at_ns[run], 0, LONGEST_RUN_NS),
            count=np.maximum(-(-(offset + t.samples[run]) // size), 1),
            size=size,
            first=t.start_sample[run] - offset,
        )

    def tick(self, position: Ints) -> Ints:
        """When the block left that holds a position."""
        return self._instant((position - self.first) // self.size)

    def end(self, position: Ints) -> Ints:
        """When the block after the one with a position left, or would have."""
        return self._instant((position - self.first) // self.size + 1)

    def cut(self, at: Ints | int) -> Ints:
        """First position of each run whose block left at or after an instant."""
        ahead = np.clip(at, self.begin_ns, self.begin_ns + self.length_ns) - self.begin_ns
        nth = -(-ahead * self.count // np.maximum(self.length_ns, 1))
        # A run without length in time left at once.
        nth = np.where((self.length_ns <= 0) & (at > self.begin_ns), self.count, nth)
        position: Ints = self.first + np.minimum(nth, self.count) * self.size
        return position

    def _instant(self, nth: Ints) -> Ints:
        instant: Ints = self.begin_ns + self.length_ns * nth // self.count
        return instant


# --- The balance ---------------------------------------------------------------------------------


def balance(trace: Trace) -> Ledger:
    """Segments of a trace and what became of their samples. Exact; never raises for a bad trace."""
    return _Balance(trace).ledger()


class _Balance:
    """One pass over a trace; each step fills in what the next one builds on."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.facts = gather(trace)
        self.issues: list[Issue] = []
        self.losses: list[Lost] = []
        self.sent_inherited = 0
        self.slack = SLACK_NS + (self.facts.resolution.get("sent") or 10_000_000)
        self._segments()
        self._parts()
        self._send()
        self._captured_fates()
        self._pushed_fates()

    def issue(self, samples: int, segment: int, text: str) -> None:
        if samples > 0:
            self.issues.append(Issue(int(samples), segment, text))

    # Frames and segments

    def _segments(self) -> None:
        c = self.trace.captured
        order = np.lexsort((c.line, c.frame, c.start_sample))
        start, stop = c.start_sample[order], (c.start_sample + c.samples)[order]
        at, line, speech = c.at_ns[order], c.line[order], c.speech[order].astype(np.int64)
        bounds = [(m.at_ns, n) for m, n in self.facts.marks if m.mark in ("flush", "clear")]
        bound_ns, bound_line = _ints([b[0] for b in bounds]), _ints([b[1] for b in bounds])
        passed = _rank(bound_ns, bound_line, at, line)
        new = np.ones(len(start), np.bool_)
        new[1:] = (passed[1:] != passed[:-1]) | (speech[1:] != speech[:-1])
        segment = np.cumsum(new) - 1
        first = np.flatnonzero(new)
        self.count = len(first)
        self.f_order, self.f_start, self.f_stop, self.f_segment = order, start, stop, segment
        self.f_at, self.f_line = at, line
        self.f_reach = np.maximum.accumulate(stop) if len(stop) else stop
        self.s_first_ns, self.s_first_line, self.s_start = at[first], line[first], start[first]
        self.s_speech = speech[first]
        last = np.append(first[1:], len(start))[: len(first)] - 1
        self.s_stop = self.f_reach[last] if len(last) else start[:0]
        self.frame_segment = np.empty(len(order), np.int64)
        self.frame_segment[order] = segment

        # Positions have to follow on from 0.
        reached = np.concatenate((np.zeros(1, np.int64), self.f_reach[:-1]))[: len(start)]
        hole = start - reached
        for row in np.flatnonzero(hole > 0).tolist():
            self.issue(
                hole[row],
                int(segment[row]),
                f"captured positions {reached[row]} to {start[row]} are in no frame",
            )
        for row in np.flatnonzero((hole < 0) & (stop > start)).tolist():
            self.issue(
                min(-int(hole[row]), int(stop[row] - start[row])),
                int(segment[row]),
                f"captured position {start[row]} was counted twice",
            )

        self.partial = np.zeros(self.count, np.bool_)
        for tapped_ns in self.facts.mid_speech:
            row = int(np.searchsorted(self.s_first_ns, tapped_ns, "left"))
            between = [
                m
                for m, _ in self.facts.marks
                if m.mark in ("flush", "clear") and m.at_ns >= tapped_ns
            ]
            if row > 0 and not any(
                m.mark in ("flush", "clear") and self.s_first_ns[row - 1] <= m.at_ns <= tapped_ns
                for m, _ in self.facts.marks
            ):
                self.partial[row - 1] = True
            elif row < self.count and not any(m.at_ns <= self.s_first_ns[row] for m in between):
                self.partial[row] = True

    def _segment_at(self, at: Ints) -> Ints:
        """Segment whose first frame came last before each time; the first where none did."""
        if not self.count:
            return np.full(len(at), -1, np.int64)
        return np.maximum(np.searchsorted(self.s_first_ns, at, "right") - 1, 0)

    # Pushes

    def _parts(self) -> None:
        p = self.trace.pushed
        every_range_row = np.repeat(np.arange(len(p)), np.diff(p.range_offset))
        self.refused = ~p.accepted
        refused_ranges = self.refused[every_range_row] & (p.range_start != NONE)
        self.r_start = p.range_start[refused_ranges]
        self.r_stop = self.r_start + p.range_samples[refused_ranges]
        self.r_at = p.at_ns[every_range_row[refused_ranges]]

        rows = np.flatnonzero(p.accepted)
        rows = rows[np.lexsort((p.push[rows], p.start_sample[rows]))]
        start, stop = p.start_sample[rows], p.start_sample[rows] + p.samples[rows]
        reach = np.maximum.accumulate(stop) if len(stop) else stop
        reached = np.concatenate((np.zeros(1, np.int64), reach[:-1]))[: len(start)]
        owner = self._segment_at(p.at_ns[rows])
        for i in np.flatnonzero(start > reached).tolist():
            self.issue(
                int(start[i] - reached[i]),
                int(owner[i]),
                f"pushed positions {reached[i]} to {start[i]} are in no push",
            )
        for i in np.flatnonzero((start < reached) & (stop > start)).tolist():
            self.issue(
                int(min(reached[i], stop[i]) - start[i]),
                int(owner[i]),
                f"pushed position {start[i]} was counted twice",
            )

        # Each push becomes its captured ranges; a push without any is one range of its own.
        per_row = np.diff(p.range_offset)[rows]
        per_row = np.where(p.matched[rows], per_row, 0)
        begin = p.range_offset[:-1][rows]
        parent = np.repeat(np.arange(len(rows)), per_row)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        source_row = begin[parent] + nth
        length = p.range_samples[source_row]
        upto = np.cumsum(length)
        before = np.concatenate((np.zeros(1, np.int64), upto))[np.cumsum(per_row) - per_row]
        offset = upto - length - before[parent]
        piece_start = start[parent] + offset
        piece_stop = np.minimum(piece_start + length, stop[parent])
        piece_captured = p.range_start[source_row]
        told = summed(parent, length, len(rows))
        missing = p.matched[rows] & (told != p.samples[rows])
        for i in np.flatnonzero(missing).tolist():
            self.issue(
                abs(int(told[i] - p.samples[rows[i]])),
                int(owner[i]),
                f"push {p.push[rows[i]]} has {p.samples[rows[i]]} samples, "
                f"its origins add up to {told[i]}",
            )
        short = np.flatnonzero(told < p.samples[rows])
        piece_start = np.concatenate((piece_start, start[short] + told[short]))
        piece_stop = np.concatenate((piece_stop, stop[short]))
        piece_captured = np.concatenate((piece_captured, np.full(len(short), NONE, np.int64)))
        piece_row = np.concatenate((parent, short))
        # A push whose missing origins are reported above must not be reported as of no origin too.
        piece_told = np.concatenate((np.zeros(len(parent), np.bool_), missing[short]))
        keep = piece_stop > piece_start
        by_position = np.argsort(piece_start[keep], kind="stable")
        piece_start = piece_start[keep][by_position]
        piece_stop = piece_stop[keep][by_position]
        piece_captured = piece_captured[keep][by_position]
        piece_row = piece_row[keep][by_position]
        self.piece_told = piece_told[keep][by_position]
        self.piece_push = rows[piece_row]
        self.piece_start, self.piece_stop = piece_start, piece_stop
        self.piece_captured = piece_captured
        known = piece_captured != NONE
        self.piece_known = known

        # The order of the captured axis is the order of the sink.
        k_start = piece_captured[known]
        k_stop = k_start + (piece_stop - piece_start)[known]
        back = steps_back(k_start, k_stop)
        k_segment = self._segment_of(k_start)
        for i in np.flatnonzero(back).tolist():
            self.issue(
                int(back[i]),
                int(k_segment[i]),
                f"captured position {k_start[i]} was pushed twice or out of order",
            )
        self._origins(known)

    def _segment_of(self, captured: Ints) -> Ints:
        """Segment of captured positions; -1 where no frame has them."""
        if not self.count:
            return np.full(len(captured), -1, np.int64)
        row = np.searchsorted(self.f_start, captured, "right") - 1
        safe = np.maximum(row, 0)
        inside = (row >= 0) & (captured < self.f_reach[safe])
        return np.where(inside, self.f_segment[safe], -1)

    def _origins(self, known: Bools) -> None:
        """Cut the pieces at segments and holes, and say whose the rest of them are."""
        p, facts = self.trace.pushed, self.facts
        edges = np.unique(
            np.concatenate((self.s_start, self.s_stop, self.f_reach[-1:], self._hole_edges()))
        )
        virtual = np.where(known, self.piece_captured, NONE)
        length = self.piece_stop - self.piece_start
        parent, begin, end = split(
            np.where(known, virtual, 0), np.where(known, virtual + length, 0), edges
        )
        # A piece of no known origin stays in one; `split` was given an empty stretch for it.
        plain = ~known[parent]
        shift = np.where(plain, 0, begin - virtual[parent])
        size = np.where(plain, length[parent], end - begin)
        start = self.piece_start[parent] + shift
        captured = np.where(plain, NONE, begin)
        segment = np.full(len(parent), -1, np.int64)
        segment[~plain] = self._segment_of(captured[~plain])
        push = self.piece_push[parent]
        at = p.at_ns[push]

        beyond = ~plain & (segment < 0)
        by_time = self._segment_at(at)
        for i in np.flatnonzero(beyond).tolist():
            self.issue(
                int(size[i]),
                int(by_time[i]),
                f"push {p.push[push[i]]} is made of captured position {captured[i]}, "
                "which no frame has",
            )
        # Where code feeds the sink itself no session says that the probe came in mid-speech, but
        # what is pushed before anything was captured can only have been inside already.
        first_captured = int(self.f_at.min()) if len(self.f_at) else FOREVER
        inherited = np.zeros(len(parent), np.bool_)
        self.resampled = np.zeros(self.count, np.bool_)
        if "captured" in facts.tapped:
            last_known = np.maximum.accumulate(np.where(plain, NONE, at)) if len(at) else at
            geometry = {
                (int(r), int(n))
                for r, n in np.unique(
                    np.stack((self.trace.captured.rate_hz, self.trace.captured.channels)), axis=1
                ).T.tolist()
            }
            for i in np.flatnonzero(plain).tolist():
                if self.piece_told[parent[i]]:
                    continue
                came = max((m for m in facts.mid_speech if m <= at[i]), default=None)
                inside = last_known[i] == NONE and at[i] < first_captured
                if (
                    inside
                    or at[i] < facts.captured_on
                    or (came is not None and last_known[i] < came)
                ):
                    inherited[i] = True
                    under_way = self.partial[by_time[i]] if by_time[i] >= 0 else False
                    segment[i] = by_time[i] if under_way else -1
                    continue
                segment[i] = by_time[i]
                row = push[i]
                if (
                    geometry
                    and (int(p.rate_hz[row]), int(p.channels[row])) not in geometry
                    and by_time[i] >= 0
                ):
                    self.resampled[by_time[i]] = True
                    continue
                what = "is of unknown origin" if p.matched[row] else "was never matched"
                self.issue(
                    int(size[i]),
                    int(by_time[i]),
                    f"push {p.push[row]} at {at[i] / 1e6:.1f} ms {what}",
                )
        self.p_start, self.p_stop, self.p_captured = start, start + size, captured
        self.p_segment, self.p_push, self.p_inherited = segment, push, inherited

    def _hole_edges(self) -> Ints:
        if not len(self.f_start):
            return self.f_start
        reached = np.concatenate((np.zeros(1, np.int64), self.f_reach[:-1]))
        hole = self.f_start > reached
        return np.concatenate((reached[hole], self.f_start[hole]))

    # Sent runs

    def _send(self) -> None:
        t, p = self.trace.sent, self.trace.pushed
        known = np.flatnonzero(t.start_sample != NONE)
        start, stop = t.start_sample[known], t.start_sample[known] + t.samples[known]
        edges = np.unique(np.concatenate((start, stop)))
        parent, begin, end = split(self.p_start, self.p_stop, edges)
        captured = self.p_captured[parent]
        captured = np.where(captured == NONE, NONE, captured + begin - self.p_start[parent])
        by_position = np.argsort(start, kind="stable")
        self.run_rows = known[by_position]
        self.run_start, self.run_stop = start[by_position], stop[by_position]
        cover = Cover.of(start, stop)
        covered = cover.holds(begin)
        run = np.full(len(parent), -1, np.int64)
        if len(known):
            found = np.maximum(np.searchsorted(self.run_start, begin, "right") - 1, 0)
            run[covered] = self.run_rows[found[covered]]
        push = self.p_push[parent]
        self.parts = Parts(
            start=begin,
            stop=end,
            captured=captured,
            segment=self.p_segment[parent],
            push=push,
            run=run,
            sent_ns=np.full(len(parent), FOREVER, np.int64),
            sent_until_ns=np.full(len(parent), FOREVER, np.int64),
            inherited=self.p_inherited[parent],
            rate_hz=p.rate_hz[push],
        )
        self._stamp(covered)
        if "pushed" not in self.facts.tapped:
            return
        owner = self._segment_at(t.at_ns)
        for source in np.unique(t.source[known]).tolist():
            mine = known[t.source[known] == source]
            mine = mine[np.lexsort((t.line[mine], t.at_ns[mine]))]
            back = steps_back(t.start_sample[mine], t.start_sample[mine] + t.samples[mine])
            for i in np.flatnonzero(back).tolist():
                self.issue(
                    int(back[i]),
                    int(owner[mine[i]]),
                    f"pushed position {t.start_sample[mine[i]]} was sent twice or out of order "
                    f"at {t.at_ns[mine[i]] / 1e6:.1f} ms",
                )
        stray = cover.total() - int((end - begin)[covered].sum())
        self.issue(stray, -1, f"{stray} samples were sent that no push shows")
        alien = covered & (t.source[np.maximum(run, 0)] != p.source[push]) if len(t) else covered
        self.issue(
            int((end - begin)[alien].sum()), -1, "samples left another source than they entered"
        )
        self._sent_unseen_before()

    def _stamp(self, covered: Bools) -> None:
        """When each covered part left, block by block, as `RunSent` says it."""
        parts = self.parts
        blocks = Blocks.of(self.trace, self.facts.block, parts.run[covered])
        parts.sent_ns[covered] = blocks.tick(parts.start[covered])
        parts.sent_until_ns[covered] = blocks.end(parts.stop[covered] - 1)

    def _block_of(self, source: Ints) -> Ints:
        known = self.facts.block
        names, where = np.unique(source, return_inverse=True)
        return _ints([known.get(int(name), 1) for name in names])[where]

    def _sent_unseen_before(self) -> None:
        """Runs of audio that was never seen at pushed: there before the probe, or of no origin."""
        t, facts = self.trace.sent, self.facts
        first_captured = int(self.f_at.min()) if len(self.f_at) else FOREVER
        for row in np.flatnonzero(t.start_sample == NONE).tolist():
            source, at, samples = int(t.source[row]), int(t.at_ns[row]), int(t.samples[row])
            same = (t.source == source) & (t.start_sample != NONE) & (t.at_ns < at)
            last_known = int(t.at_ns[same].max()) if same.any() else NONE
            came = max((m for m in facts.mid_speech if m <= at + self.slack), default=None)
            inside = last_known == NONE and (
                samples < facts.block.get(source, 1) or at < first_captured
            )
            if (came is not None and last_known < came) or inside:
                self.sent_inherited += samples
                continue
            self.issue(
                samples,
                int(self._segment_at(_ints([at]))[0]),
                f"{samples} samples sent at {at / 1e6:.1f} ms are of unknown origin",
            )

    # Fates on the captured axis

    def _captured_fates(self) -> None:
        n, facts, p = self.count, self.facts, self.trace.pushed
        self.dropped = np.zeros(n, np.int64)
        self.held = np.zeros(n, np.int64)
        if "pushed" not in facts.tapped or not n:
            return
        known = self.piece_known
        k_start = self.piece_captured[known]
        k_stop = k_start + (self.piece_stop - self.piece_start)[known]
        k_at = p.at_ns[self.piece_push[known]]
        edges = np.unique(np.concatenate((k_start, k_stop, self.r_start, self.r_stop)))
        frame, begin, end = split(self.f_start, self.f_stop, edges)
        lost = (end > begin) & ~Cover.of(k_start, k_stop).holds(begin)
        frame, begin, end = frame[lost], begin[lost], end[lost]
        if not len(begin):
            return
        segment = self.f_segment[frame]
        in_resampled = self.resampled[segment]
        frame, begin, end, segment = (a[~in_resampled] for a in (frame, begin, end, segment))

        order = np.argsort(k_start, kind="stable")
        later_at = np.append(np.minimum.accumulate(k_at[order][::-1])[::-1], FOREVER)
        until = later_at[np.searchsorted(k_start[order], end, "left")]
        since = self.f_at[frame]
        last = until == FOREVER
        how = self.trace.captured.end[self.f_order[frame]]

        cause = np.full(len(begin), "", dtype=object)
        when = np.full(len(begin), NONE, np.int64)

        def blame(name: str, where: Bools, at: Ints) -> None:
            where = where & (cause == "")
            cause[where] = name
            when[where] = at[where]

        if len(self.r_start):
            by_start = np.argsort(self.r_start, kind="stable")
            hit = np.maximum(np.searchsorted(self.r_start[by_start], begin, "right") - 1, 0)
            blame(
                "refused",
                Cover.of(self.r_start, self.r_stop).holds(begin),
                self.r_at[by_start][hit],
            )
        ended = np.maximum(self.trace.captured.ended_ns[self.f_order[frame]], since)
        blame("raised", how == _RAISED, ended)
        blame("cancelled", how == _CANCELLED, ended)
        sink_clears = _ints([m.at_ns for m, _ in facts.marks if m.mark == "clear"])
        clear = first_from(sink_clears, since)
        blame("clear", (clear < FOREVER) & (clear <= until), clear)

        # A clear of the sink stays pending until the source is cleared: what comes in between goes
        # with it.
        source_clears = _ints(sorted(c[1] for c in facts.clears))
        emptied = first_from(source_clears, since)
        pending = np.zeros(len(begin), np.bool_)
        if len(sink_clears):
            before = np.searchsorted(sink_clears, since, "right") - 1
            asked = np.where(before >= 0, sink_clears[np.maximum(before, 0)], FOREVER)
            pending = (before >= 0) & (first_from(source_clears, asked) == emptied)
        over = _ints([f.at_ns for f in facts.finished])
        pending &= ~last | (first_from(over, np.minimum(emptied, FOREVER)) < FOREVER)
        blame("clear", pending & (emptied < FOREVER) & (emptied <= until), emptied)

        gate = facts.gate()
        if gate:
            shut, opened = _ints([g[0] for g in gate]), _ints([g[1] for g in gate])
            nth = np.searchsorted(opened, since, "left")
            safe = np.minimum(nth, len(shut) - 1)
            paused = (nth < len(shut)) & (shut[safe] <= until)
            after = first_from(over, np.minimum(opened[safe], FOREVER))
            gone = ~last | ((opened[safe] < FOREVER) & (after < FOREVER))
            blame("pause", paused & gone, np.maximum(shut[safe], 0))
        blame("source-cleared", ~last & (emptied <= until), emptied)
        closed = first_from(_ints(sorted(facts.closed.values())), since)
        blame("source-closed", ~last & (closed <= until), closed)

        held = (cause == "") & last
        self.held = summed(np.where(held, segment, -1), end - begin, n)
        named = cause != ""
        self.dropped = summed(np.where(named, segment, -1), end - begin, n)
        rate = self.trace.captured.rate_hz[self.f_order[frame]]
        self._lose("dropped", cause, when, segment, begin, end, rate)
        for i in np.flatnonzero(~named & ~held).tolist():
            self.issue(
                int(end[i] - begin[i]),
                int(segment[i]),
                f"captured positions {begin[i]} to {end[i]} were never pushed, and nothing "
                "that was logged accounts for it",
            )

    def _lose(
        self,
        what: Literal["dropped", "cleared"],
        cause: NDArray[Any],
        when: Ints,
        segment: Ints,
        begin: Ints,
        end: Ints,
        rate: Ints,
    ) -> None:
        """Note named losses, neighbours of one cause as one."""
        last: Lost | None = None
        for i in np.flatnonzero(cause != "").tolist():
            if (
                last is not None
                and last.stop == begin[i]
                and (last.cause, last.at_ns) == (cause[i], when[i])
                and (last.segment, last.rate_hz) == (segment[i], rate[i])
            ):
                last = replace(last, stop=int(end[i]))
                self.losses[-1] = last
            else:
                last = Lost(
                    what,
                    cause[i],
                    int(segment[i]),
                    int(begin[i]),
                    int(end[i]),
                    int(when[i]),
                    int(rate[i]),
                )
                self.losses.append(last)

    # Fates on the pushed axis

    def _pushed_fates(self) -> None:
        n, facts, p, parts = self.count, self.facts, self.trace.pushed, self.parts
        self.cleared = np.zeros(n, np.int64)
        self.queued = np.zeros(n, np.int64)
        self.unseen = np.zeros(n, np.int64)
        self.tail = np.zeros(n, np.int64)
        self.tail_unsent = np.zeros(n, np.int64)
        self.all_cleared = self.all_queued = self.all_unseen = 0
        self._tails_sent_later()
        if "sent" not in facts.tapped:
            return
        rows = np.flatnonzero(parts.run < 0)
        source_of = p.source[parts.push]
        for source in np.unique(source_of[rows]).tolist():
            mine = rows[source_of[rows] == source]
            self._source_fates(int(source), mine, source_of == source)

    def _source_fates(self, source: int, rows: Ints, of_source: Bools) -> None:
        facts, p, parts = self.facts, self.trace.pushed, self.parts
        begin, end, segment = parts.start[rows], parts.stop[rows], parts.segment[rows]
        pushed_ns = p.at_ns[parts.push[rows]]
        ended_ns = np.maximum(p.ended_ns[parts.push[rows]], pushed_ns)
        counts = ~parts.inherited[rows]

        on = facts.sent_on.get(source)
        off = facts.sent_off.get(source, FOREVER)
        if on is None:
            unseen = np.ones(len(rows), np.bool_)
        else:
            unseen = (pushed_ns < on) | (pushed_ns >= off)

        sent = np.flatnonzero(of_source & (parts.run >= 0))
        sent_start = parts.start[sent]
        next_at = np.append(parts.sent_ns[sent], FOREVER)
        until = next_at[np.searchsorted(sent_start, end, "left")]
        before = np.searchsorted(sent_start, begin, "left") - 1
        left_until = np.append(parts.sent_until_ns[sent], -FOREVER)[before]
        rate = int(p.rate_hz[parts.push[rows[0]]])
        block_ns = facts.block.get(source, 1) * 1_000_000_000 // rate

        clears = [c for c in facts.clears if c[0] == source]
        ended = _ints([c[2] for c in clears])
        began = np.append(_ints([c[1] for c in clears]), FOREVER)
        ended = np.maximum.accumulate(ended) if len(ended) else ended
        limit = np.minimum(until, off)

        def clear_since(since: Ints) -> Ints:
            return began[np.searchsorted(ended, np.maximum(pushed_ns, since), "left")]

        # The clear after the last sample that left: by the stamps, or else, where that one came too
        # late to be it, within their doubt.
        def waits(clear: Ints) -> Bools:
            late: Bools = clear - np.maximum(ended_ns, left_until) > self.slack + LONGEST_SILENCE_NS
            return late

        clear = clear_since(left_until - block_ns)
        clear = np.where(
            (clear <= limit) & ~waits(clear), clear, clear_since(left_until - block_ns - self.slack)
        )
        by_clear = ~unseen & (clear < FOREVER) & (clear <= limit + self.slack)
        closed = facts.closed.get(source, FOREVER)
        last = until == FOREVER
        # Once the tap is off a source that lives on, it may send what is inside, or be emptied.
        left_early = off < facts.ended_ns - self.slack
        by_close = ~unseen & ~by_clear & last & (closed >= pushed_ns) & (closed < FOREVER)
        if left_early and closed > off + self.slack:
            by_close &= False
        rest = ~unseen & ~by_clear & ~by_close & last

        block = facts.block.get(source, 1)
        # Silence after the push has taken effect proves that less than a block was left inside.
        i = self.trace.inserted
        silent = np.sort(i.until_ns[i.source == source]) if len(i) else i.at_ns
        silence_until = int(silent[-1]) if len(silent) else NONE
        idle = (rest | by_close) & (
            np.minimum(silence_until, closed) > ended_ns + self.slack + 50_000_000
        )
        if int((end - begin)[idle].sum()) >= block:
            for k in np.flatnonzero(idle).tolist():
                self.issue(
                    int(end[k] - begin[k]),
                    int(segment[k]),
                    f"pushed positions {begin[k]} to {end[k]} were never sent, although the "
                    "source put out silence after them",
                )
            rest &= ~idle
            by_close &= ~idle
        if left_early:
            # A source that had run dry keeps its rest of less than a block.
            unseen |= rest & ~idle
            rest &= idle

        # The source hands on a block every tick as long as it has one, so what a clear took cannot
        # have waited inside while nothing went out.
        waited = by_clear & waits(clear)
        stretch = np.cumsum(np.append(True, begin[1:] != end[:-1])) - 1
        waited &= summed(stretch, (end - begin) * waited, len(stretch))[stretch] >= block
        by_clear &= ~waited
        for k in np.flatnonzero(waited).tolist():
            self.issue(
                int(end[k] - begin[k]),
                int(segment[k]),
                f"pushed positions {begin[k]} to {end[k]} were inside before the clear at "
                f"{clear[k] / 1e6:.1f} ms, yet the wire shows nothing in between",
            )

        for k in np.flatnonzero(~unseen & ~by_clear & ~waited & ~by_close & ~rest & ~idle).tolist():
            self.issue(
                int(end[k] - begin[k]),
                int(segment[k]),
                f"pushed positions {begin[k]} to {end[k]} were never sent, and no clear "
                "accounts for it",
            )
        size = end - begin
        mine = np.where(counts, segment, -1)
        n = self.count
        self.cleared += summed(np.where(by_clear | by_close, mine, -1), size, n)
        self.queued += summed(np.where(rest, mine, -1), size, n)
        self.unseen += summed(np.where(unseen, mine, -1), size, n)
        self.all_cleared += int(size[(by_clear | by_close) & counts].sum())
        self.all_queued += int(size[rest & counts].sum())
        self.all_unseen += int(size[unseen & counts].sum())
        cause = np.full(len(rows), "", dtype=object)
        cause[by_clear] = "clear"
        cause[by_close] = "source-closed"
        when = np.where(by_clear, clear, np.where(by_close, closed, NONE))
        self._lose(
            "cleared", np.where(counts, cause, ""), when, segment, begin, end, parts.rate_hz[rows]
        )

        # A rest shorter than a block at the end of a segment, with the source idle before it went.
        idle_before = rest | by_close | (by_clear & (clear - left_until > GAP_NS + self.slack))
        for s in np.unique(mine[idle_before & (mine >= 0)]).tolist():
            suffix = idle_before & (mine == s)
            stop = int(parts.stop[parts.segment == s].max())
            amount = int(size[suffix].sum())
            if amount < block and int(end[suffix].max()) == stop:
                self.tail[s] = self.tail_unsent[s] = amount

    def _tails_sent_later(self) -> None:
        """Rests of less than a block that stayed inside until more audio came."""
        t, rows = self.trace.sent, self.run_rows
        if len(rows) < 2 or not self.count:
            return
        block = self._block_of(t.source)[rows]
        waits = (
            (self.run_stop[:-1] == self.run_start[1:])
            & (t.source[rows[:-1]] == t.source[rows[1:]])
            & (t.at_ns[rows[1:]] - t.until_ns[rows[:-1]] > GAP_NS)
        )
        place = self.run_start[1:][waits]
        if not len(place):
            return
        parts = self.parts
        last = np.zeros(self.count, np.int64)
        owned = parts.segment >= 0
        np.maximum.at(last, parts.segment[owned], parts.stop[owned])
        row = np.searchsorted(parts.start, place, "right") - 1
        segment = parts.segment[np.maximum(row, 0)]
        amount = last[segment] - place
        tail = (row >= 0) & (segment >= 0) & (amount > 0) & (amount < block[1:][waits])
        self.tail[segment[tail]] = amount[tail]

    # Everything together

    def ledger(self) -> Ledger:
        n, facts, parts, c = self.count, self.facts, self.parts, self.trace.captured
        p, t, ins = self.trace.pushed, self.trace.sent, self.trace.inserted
        own = ~parts.inherited
        segment = np.where(own, parts.segment, -1)
        sent = parts.run >= 0
        sent_segment = np.where(sent, segment, -1)
        last_sent = np.full(n, NONE, np.int64)
        placed = sent & own & (parts.captured != NONE) & (parts.segment >= 0)
        np.maximum.at(last_sent, parts.segment[placed], (parts.captured + parts.samples)[placed])

        unaccounted = np.zeros(n, np.int64)
        for issue in self.issues:
            if issue.segment >= 0:
                unaccounted[issue.segment] += issue.samples
        unknown = self.unseen.copy()
        if facts.incomplete:
            unknown += unaccounted

        ambiguous = np.zeros(n, np.int64)
        for columns, first in ((p, p.start_sample), (t, t.start_sample)):
            doubtful = np.flatnonzero((columns.ambiguous_samples > 0) & (first != NONE))
            if len(doubtful) and len(parts.start) and n:
                row = np.searchsorted(parts.start, first[doubtful], "right") - 1
                ambiguous += summed(
                    np.where(row >= 0, parts.segment[np.maximum(row, 0)], -1),
                    columns.ambiguous_samples[doubtful],
                    n,
                )
        finished, claimed, reported, finishes = self._claims()
        gaps, inserted = self._silences(sent & own)
        sums = SegmentSums(
            speech=self.s_speech,
            first_ns=self.s_first_ns,
            start=self.s_start,
            stop=self.s_stop,
            partial=self.partial,
            resampled=self.resampled,
            captured_frames=np.bincount(self.f_segment, minlength=n).astype(np.int64),
            captured=summed(self.f_segment, self.f_stop - self.f_start, n),
            pushed_frames=counted(segment, parts.push, n),
            pushed=summed(segment, parts.samples, n),
            sent_frames=counted(sent_segment, parts.push, n),
            sent=summed(sent_segment, parts.samples, n),
            dropped=self.dropped,
            held=self.held,
            cleared=self.cleared,
            queued=self.queued,
            inherited=summed(np.where(own, -1, parts.segment), parts.samples, n),
            inserted=inserted,
            tail=self.tail,
            tail_unsent=self.tail_unsent,
            ambiguous=ambiguous,
            unaccounted=unaccounted,
            unknown=unknown,
            unseen=self.unseen,
            sent_later=self._sent_later(sent & own),
            last_sent=last_sent,
            finished_ns=finished,
            claimed_s=claimed,
            reported_interrupted=reported,
        )
        kept = facts.sums
        inherited = int(parts.samples[parts.inherited].sum()) + self.sent_inherited
        total = {
            "captured_frames": len(c) + kept.captured_frames,
            "captured": int(c.samples.sum()) + kept.captured_samples,
            "pushed_frames": int(np.count_nonzero(p.accepted)) + kept.pushed_frames,
            "pushed": int(parts.samples[own].sum()) + kept.pushed_samples,
            "sent": int(t.samples.sum()) + kept.sent_samples - self._sent_not_own(parts),
            "dropped": int(self.dropped.sum()),
            "held": int(self.held.sum()),
            "cleared": self.all_cleared,
            "queued": self.all_queued,
            "inherited": inherited,
            "inserted": int(ins.samples.sum()) + kept.inserted_samples,
            "ambiguous": int(
                p.ambiguous_samples.sum() + t.ambiguous_samples.sum() + ins.ambiguous_samples.sum()
            ),
            "unseen": self.all_unseen,
            "unaccounted": sum(issue.samples for issue in self.issues),
        }
        marks = [
            (mark, owner) for (mark, _), owner in zip(facts.marks, self._mark_owners(), strict=True)
        ]
        return Ledger(
            trace=self.trace,
            tapped=facts.tapped,
            incomplete=facts.incomplete,
            bounded_ns=facts.bounded_ns,
            sums=sums,
            parts=parts,
            frame_segment=self.frame_segment,
            marks=marks,
            gate=facts.gate(),
            finishes=finishes,
            clears=facts.clears,
            closed=facts.closed,
            gaps=gaps,
            losses=sorted(self.losses, key=lambda lost: (lost.segment, lost.at_ns, lost.start)),
            issues=self.issues,
            resolution_ns=facts.resolution,
            block=facts.block,
            sent_seen_until_ns=max(facts.sent_off.values(), default=FOREVER),
            total=total,
        )

    def _sent_not_own(self, parts: Parts) -> int:
        """Samples sent that are inherited: they were inside before the probe came."""
        inside = int(parts.samples[parts.inherited & (parts.run >= 0)].sum())
        return inside + self.sent_inherited

    def _mark_owners(self) -> list[int]:
        """A mark belongs to the segment whose first frame came last before it."""
        marks = self.facts.marks
        if not self.count:
            return [-1] * len(marks)
        owner = _rank(
            self.s_first_ns,
            self.s_first_line,
            _ints([m.at_ns for m, _ in marks]),
            _ints([line for _, line in marks]),
        )
        owners: list[int] = np.maximum(owner - 1, 0).tolist()
        return owners

    def _claims(
        self,
    ) -> tuple[Ints, NDArray[np.float64], NDArray[np.int8], list[tuple[PlaybackReported, int]]]:
        """What the sink reported: each report belongs to the oldest segment still without one."""
        n, texts = self.count, self.trace.texts
        finished = np.full(n, NONE, np.int64)
        claimed = np.full(n, np.nan)
        interrupted = np.full(n, -1, np.int8)
        number = {text: i for i, text in enumerate(texts)}
        waiting = 0
        finishes: list[tuple[PlaybackReported, int]] = []
        for report in self.facts.finished:
            started = int(np.searchsorted(self.s_first_ns, report.at_ns, "right"))
            while waiting < started and finished[waiting] != NONE:
                waiting += 1
            row = waiting
            if report.speech is not None:
                # The current speech may be gone when its report comes, so another speech's name
                # is no proof, but a segment of the same name is the better guess.
                wanted = number.get(report.speech, -2)
                same = [
                    s
                    for s in range(waiting, started)
                    if self.s_speech[s] == wanted and finished[s] == NONE
                ]
                row = same[0] if same else waiting
            if row >= started:
                finishes.append((report, -1))
                continue
            finishes.append((report, row))
            finished[row] = report.at_ns
            if report.position_s is not None:
                claimed[row] = report.position_s
            if report.interrupted is not None:
                interrupted[row] = int(report.interrupted)
        return finished, claimed, interrupted, finishes

    def _silences(self, sent: Bools) -> tuple[list[tuple[int, int, int]], Ints]:
        """Gaps inside each segment's sent audio, and the silence put out in the meantime."""
        parts, ins = self.parts, self.trace.inserted
        inserted = np.zeros(self.count, np.int64)
        rows = np.flatnonzero(sent & (parts.segment >= 0))
        if not len(rows):
            return [], inserted
        rows = rows[np.lexsort((parts.sent_ns[rows], parts.segment[rows]))]
        segment, at, until = parts.segment[rows], parts.sent_ns[rows], parts.sent_until_ns[rows]
        step = at[1:] - until[:-1]
        wide = np.flatnonzero((segment[1:] == segment[:-1]) & (step > GAP_NS))
        gaps = [(int(segment[i]), int(until[i]), int(step[i])) for i in wide]
        first = np.flatnonzero(np.append(True, segment[1:] != segment[:-1]))
        last = np.append(first[1:], len(rows)) - 1
        upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(ins.samples)))
        begin = np.searchsorted(ins.at_ns, at[first], "left")
        end = np.searchsorted(ins.at_ns, at[last], "left")
        inserted[segment[first]] = upto[np.maximum(end, begin)] - upto[begin]
        return gaps, inserted

    def _sent_later(self, sent: Bools) -> Ints:
        """Samples of each segment that left after the next one had begun."""
        parts, n = self.parts, self.count
        after = np.append(self.s_first_ns[1:], FOREVER)[:n]
        rows = np.flatnonzero(sent & (parts.segment >= 0))
        late = rows[parts.sent_until_ns[rows] > after[parts.segment[rows]]] if n else rows
        cut = Blocks.of(self.trace, self.facts.block, parts.run[late]).cut(
            after[parts.segment[late]]
        )
        cut = np.clip(cut, parts.start[late], parts.stop[late])
        return summed(parts.segment[late], parts.stop[late] - cut, n)


def _rank(times: Ints, lines: Ints, at: Ints, line: Ints) -> Ints:
    """How many of the first came before each of the second; line order decides between equals."""
    every_at, every_line = np.concatenate((times, at)), np.concatenate((lines, line))
    order = np.lexsort((every_line, every_at))
    passed = np.cumsum(order < len(times))
    rank = np.empty(len(order), np.int64)
    rank[order] = passed
    return rank[len(times) :]
