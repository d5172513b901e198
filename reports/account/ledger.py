"""The sums: every captured sample in its place, by segment and in total.

The way of the data is one direction, from value to value: facts, segments (whose a captured sample
is), origins (where a pushed one came from), the wire (when it left), fates at the sink and at each
source (what became of the rest), sums. Everything is integers on two axes. On the *captured* axis
lie the frames that entered the sink, on the *pushed* axis the samples the sources accepted. What no
stretch covers was lost, and has to earn its name; no figure is the remainder of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import PlaybackReported, SinkMarked
from probe.trace.reader import NONE, Trace
from reports.account.blocks import Blocks
from reports.account.boundary import FOREVER, GAP_NS
from reports.account.claims import Claims, assign_claims
from reports.account.facts import Facts, gather
from reports.account.issues import Issue
from reports.account.losses import UNNAMED, Lost, losses_of
from reports.account.origins import UNJOINED, find_origins, unjoined_segments
from reports.account.segments import Segments, find_segments
from reports.account.sink_fates import Unpushed, find_unpushed
from reports.account.source_fates import Remains, find_remains
from reports.account.stretches import Bools, Ints, column, counted, grouped, summed
from reports.account.wire import CLEARED, QUEUED, SENT_ON, UNSEEN, Parts, send
from reports.results import Unjoined

__all__ = ["Ledger", "SegmentSums", "balance"]


@dataclass(frozen=True, slots=True)
class SegmentSums:
    """Columns with one row per segment; samples as int64."""

    speech: Ints
    """Index into the trace's texts, -1: none."""
    first_ns: Ints
    start: Ints
    """Captured position of its first sample."""
    stop: Ints
    partial: Bools
    unjoined: Ints
    """Index into `UNJOINED`: why its captured and pushed samples can't be compared. Where it is not
    0, nothing of it is dropped, held or lost."""
    captured_frames: Ints
    captured: Ints
    pushed_frames: Ints
    pushed: Ints
    added: Ints
    """Of the pushed, put in by the sink itself: captured + added = pushed + dropped + held."""
    sent_frames: Ints
    sent: Ints
    """A lower bound where something is unseen or unaccounted for."""
    dropped: Ints
    held: Ints
    cleared: Ints
    queued: Ints
    arrived: Ints
    """Captured and sent: what was sent without what the sink had added."""
    lost: Ints
    """Captured and dropped or cleared: never sent."""
    lost_at_least: Ints
    """The same as far as it is certain without a balance: no push was made of it although a later
    sample was pushed, or a clear took it. Meaningless in a damaged trace."""
    inherited: Ints
    inserted: Ints
    """Silence of the sources it went to, between its first and last sample sent from each."""
    tail: Ints
    tail_unsent: Ints
    """The part of the tail that was never sent."""
    ambiguous: Ints
    unaccounted: Ints
    unknown: Ints
    unseen: Ints
    """Pushed where nobody read the wire."""
    sent_later: Ints
    """Sent after the next segment's first frame was captured."""
    last_sent: Ints
    """Captured position after the last sent sample, `NONE`: nothing was sent, or not known."""
    finished_ns: Ints
    """`NONE`: not reported."""
    claimed_s: NDArray[np.float64]
    """NaN: not reported."""
    reported_interrupted: NDArray[np.int8]
    """-1: not reported."""

    @property
    def resampled(self) -> Bools:
        """Whether its audio was not followed through a change of geometry."""
        found: Bools = self.unjoined == UNJOINED.index("resampled")
        return found


@dataclass(frozen=True, slots=True)
class Ledger:
    """The balance of a trace; what `reports.analysis` puts into words."""

    trace: Trace
    facts: Facts
    segments: Segments
    sums: SegmentSums
    parts: Parts
    """What the sources accepted, and what became of it."""
    unpushed: Unpushed
    """What was captured and never accepted, and what became of it."""
    total: Mapping[str, int]
    marks: list[tuple[SinkMarked, int]]
    """Marks in time order and the segment each belongs to, -1: there is no segment."""
    finishes: list[tuple[PlaybackReported, int]]
    """Reports of a finish and the segment each belongs to, -1: there was none without one."""
    gaps: list[tuple[int, int, int]]
    """Segment, start and length in nanoseconds."""
    losses: list[Lost]
    issues: list[Issue]
    frame_segment: Ints
    """Segment of each row of the trace's captured columns."""
    clears: list[tuple[int, int, int]]
    """Clears of sources that succeeded: source, before, after, in time order."""

    @property
    def count(self) -> int:
        """Number of segments."""
        return self.segments.count

    @property
    def tapped(self) -> frozenset[str]:
        """Names of the boundaries that were tapped."""
        return self.facts.tapped

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Why the trace cannot tell everything; empty for a whole one."""
        return self.facts.incomplete

    @property
    def bounded_ns(self) -> int | None:
        """When the file reached its bound; ``None``: it did not."""
        return self.facts.bounded_ns

    @property
    def resolution_ns(self) -> Mapping[str, int | None]:
        """How exact instants at each boundary are; ``None``: no tap says."""
        return self.facts.resolution_ns

    @property
    def gate(self) -> list[tuple[int, int]]:
        """When the sink's gate was shut and opened again, in order; `FOREVER`: it was not."""
        return self.facts.gate()

    @property
    def closed(self) -> dict[int, int]:
        """When each source was closed that was."""
        sources = self.facts.sources.values()
        return {s.number: s.closed_ns for s in sources if s.closed_ns < FOREVER}

    @property
    def block(self) -> dict[int, int]:
        """Samples per block by source."""
        return {source.number: source.block for source in self.facts.sources.values()}

    @property
    def sent_seen_until_ns(self) -> int:
        """Until when any wire was read; `FOREVER`: to the end."""
        return self.facts.read_until_ns

    def unjoined(self, row: int) -> Unjoined | None:
        """Why a segment's captured and pushed samples can't be compared; ``None``: they can."""
        return UNJOINED[int(self.sums.unjoined[row])]


def balance(trace: Trace) -> Ledger:
    """Segments of a trace and what became of their samples. Exact; never raises for a bad trace."""
    facts = gather(trace)
    segments = find_segments(trace, facts)
    pieces, unknown = find_origins(trace, facts, segments)
    unjoined = unjoined_segments(trace, segments, pieces)
    parts, sent_inherited, strays = send(trace, facts, segments, pieces)
    unpushed, unexplained = find_unpushed(trace, facts, segments, pieces, unjoined)
    remains, unsent = find_remains(trace, facts, parts, segments.count)
    issues = [*unknown, *strays, *unexplained, *unsent]
    parts = remains.parts
    claims = assign_claims(trace, segments, facts.finished)
    gaps, inserted = _silences(trace, parts, segments.count)
    owners = segments.owners(
        column([mark.at_ns for mark, _ in facts.marks]), column([line for _, line in facts.marks])
    )
    c = trace.captured
    frame_segment = np.empty(len(c), np.int64)
    frame_segment[segments.frames.row] = segments.frames.segment
    c_losses = losses_of(
        "dropped",
        unpushed.cause,
        unpushed.at_ns,
        unpushed.segment,
        unpushed.start,
        unpushed.stop,
        unpushed.rate_hz,
    )
    return Ledger(
        trace=trace,
        facts=facts,
        segments=segments,
        sums=_sums(trace, facts, segments, unjoined, unpushed, remains, inserted, issues, claims),
        parts=parts,
        unpushed=unpushed,
        total=_total(trace, facts, parts, unpushed, sent_inherited, issues),
        marks=[
            (mark, owner) for (mark, _), owner in zip(facts.marks, owners.tolist(), strict=True)
        ],
        finishes=claims.finishes,
        gaps=gaps,
        losses=sorted(
            [*c_losses, *remains.losses], key=lambda lost: (lost.segment, lost.at_ns, lost.start)
        ),
        issues=issues,
        frame_segment=frame_segment,
        clears=sorted(
            (
                (source.number, *clear)
                for source in facts.sources.values()
                for clear in source.clears
            ),
            key=lambda clear: clear[1],
        ),
    )


def _sums(
    trace: Trace,
    facts: Facts,
    segments: Segments,
    unjoined: Ints,
    unpushed: Unpushed,
    remains: Remains,
    inserted: Ints,
    issues: list[Issue],
    claims: Claims,
) -> SegmentSums:
    n, parts, frames = segments.count, remains.parts, segments.frames
    own = np.where(parts.inherited, -1, parts.segment)
    joined = parts.captured != NONE

    def sum_of(where: Bools, samples: Ints = parts.samples) -> Ints:
        return summed(np.where(where, own, -1), samples, n)

    def missing(where: Bools) -> Ints:
        return summed(np.where(where, unpushed.segment, -1), unpushed.samples, n)

    sent = parts.fate == SENT_ON
    cleared = sum_of((parts.fate == CLEARED) & joined)
    dropped = missing(unpushed.cause != UNNAMED)
    # What was pushed behind a segment's first frame and is nobody's may be its audio.
    strange = np.cumsum(sum_of(parts.unknown)[::-1])[::-1]
    unaccounted = np.zeros(n, np.int64)
    for issue in issues:
        if issue.segment >= 0:
            unaccounted[issue.segment] += issue.samples
    unseen = sum_of(parts.fate == UNSEEN)
    last_sent = np.full(n, NONE, np.int64)
    placed = sent & joined & (own >= 0)
    np.maximum.at(last_sent, own[placed], (parts.captured + parts.samples)[placed])
    return SegmentSums(
        speech=segments.speech,
        first_ns=segments.first_ns,
        start=segments.start,
        stop=segments.stop,
        partial=segments.partial,
        unjoined=unjoined,
        captured_frames=np.bincount(frames.segment, minlength=n).astype(np.int64),
        captured=summed(frames.segment, frames.stop - frames.start, n),
        pushed_frames=counted(own, parts.push, n),
        pushed=sum_of(own >= 0),
        added=sum_of(parts.added),
        sent_frames=counted(np.where(sent, own, -1), parts.push, n),
        sent=sum_of(sent),
        dropped=dropped,
        held=missing(unpushed.held),
        cleared=sum_of(parts.fate == CLEARED),
        queued=sum_of(parts.fate == QUEUED),
        arrived=sum_of(sent & joined),
        lost=np.where(unjoined == 0, dropped + cleared, 0),
        lost_at_least=np.where(
            unjoined == 0, np.maximum(missing(~unpushed.held) + cleared - strange, 0), 0
        ),
        inherited=summed(np.where(parts.inherited, parts.segment, -1), parts.samples, n),
        inserted=inserted,
        tail=remains.tail,
        tail_unsent=remains.tail_unsent,
        ambiguous=_ambiguous(trace, parts, n),
        unaccounted=unaccounted,
        unknown=unseen + (unaccounted if facts.incomplete else 0),
        unseen=unseen,
        sent_later=_sent_later(trace, facts, segments, parts),
        last_sent=last_sent,
        finished_ns=claims.finished_ns,
        claimed_s=claims.claimed_s,
        reported_interrupted=claims.interrupted,
    )


def _total(
    trace: Trace,
    facts: Facts,
    parts: Parts,
    unpushed: Unpushed,
    sent_inherited: int,
    issues: list[Issue],
) -> dict[str, int]:
    """The sums over all segments and what is nobody's, with what a bounded file only counted."""
    p, t, ins, kept = trace.pushed, trace.sent, trace.inserted, facts.kept
    own, samples = ~parts.inherited, parts.samples
    before = sent_inherited + int(samples[parts.inherited & (parts.fate == SENT_ON)].sum())
    return {
        "captured_frames": len(trace.captured) + kept["captured_frames"],
        "captured": int(trace.captured.samples.sum()) + kept["captured_samples"],
        "pushed_frames": int(np.count_nonzero(p.accepted)) + kept["pushed_frames"],
        "pushed": int(samples[own].sum()) + kept["pushed_samples"],
        "added": int(samples[own & parts.added].sum()),
        "sent": int(t.samples.sum()) + kept["sent_samples"] - before,
        "dropped": int(unpushed.samples[unpushed.cause != UNNAMED].sum()),
        "held": int(unpushed.samples[unpushed.held].sum()),
        "cleared": int(samples[own & (parts.fate == CLEARED)].sum()),
        "queued": int(samples[own & (parts.fate == QUEUED)].sum()),
        "unseen": int(samples[own & (parts.fate == UNSEEN)].sum()),
        "inherited": int(samples[parts.inherited].sum()) + sent_inherited,
        "inserted": int(ins.samples.sum()) + kept["inserted_samples"],
        "ambiguous": int(sum(rows.ambiguous_samples.sum() for rows in (p, t, ins))),
        "unaccounted": sum(issue.samples for issue in issues),
    }


def _ambiguous(trace: Trace, parts: Parts, segments: int) -> Ints:
    """Samples of each segment that order and time placed, as pushes and runs say it."""
    found = np.zeros(segments, np.int64)
    p, t = trace.pushed, trace.sent
    for columns, counts in ((p, p.accepted), (t, t.start_sample != NONE)):
        rows = np.flatnonzero((columns.ambiguous_samples > 0) & counts)
        part = np.searchsorted(parts.start, columns.start_sample[rows], "right") - 1
        found += summed(
            np.append(parts.segment, -1)[part], columns.ambiguous_samples[rows], segments
        )
    return found


def _silences(trace: Trace, parts: Parts, segments: int) -> tuple[list[tuple[int, int, int]], Ints]:
    """Gaps inside each segment's sent audio, and the silence that the sources it went to put out
    between its first and its last sample there."""
    inserted = np.zeros(segments, np.int64)
    rows = np.flatnonzero((parts.fate == SENT_ON) & ~parts.inherited & (parts.segment >= 0))
    rows = rows[np.lexsort((parts.sent_ns[rows], parts.segment[rows]))]
    segment, at = parts.segment[rows], parts.sent_ns[rows]
    ins = trace.inserted
    for number, mine in grouped(parts.source[rows]):
        silent = np.flatnonzero(ins.source == number)
        upto = np.append(0, np.cumsum(ins.samples[silent]))
        first = np.flatnonzero(np.append(True, segment[mine][1:] != segment[mine][:-1]))
        last = np.append(first[1:], len(mine)) - 1
        begin, end = (
            np.searchsorted(ins.at_ns[silent], at[mine[edge]], "left") for edge in (first, last)
        )
        inserted[segment[mine[first]]] += upto[end] - upto[begin]
    # The latest end so far of the same segment: segments ascend, so their ends can be told apart.
    ends, nth = np.unique(parts.sent_until_ns[rows], return_inverse=True)
    until = ends[np.maximum.accumulate(segment * len(ends) + nth) % max(len(ends), 1)]
    step = at[1:] - until[:-1]
    wide = np.flatnonzero((segment[1:] == segment[:-1]) & (step > GAP_NS))
    return [(int(segment[i]), int(until[i]), int(step[i])) for i in wide], inserted


def _sent_later(trace: Trace, facts: Facts, segments: Segments, parts: Parts) -> Ints:
    """Samples of each segment that left after the next one had begun."""
    n = segments.count
    rows = np.flatnonzero((parts.fate == SENT_ON) & ~parts.inherited & (parts.segment >= 0))
    after = np.append(segments.first_ns[1:], FOREVER)[:n]
    late = rows[parts.sent_until_ns[rows] > after[parts.segment[rows]]]
    blocks = Blocks.of(trace, {s.number: s.block for s in facts.sources.values()}, parts.run[late])
    cut = np.clip(blocks.cut(after[parts.segment[late]]), parts.start[late], parts.stop[late])
    return summed(parts.segment[late], parts.stop[late] - cut, n)
