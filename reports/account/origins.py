"""From pushes to pieces: where each accepted sample came from, and whose it is.

A push says which captured ranges it was made of. Where the sink changed the geometry and the
content was not followed through it, what matches all the same is silence that looks alike: no range
of that source and pair of geometries is believed. Such pieces, and those of a sink that changes the
audio beyond recognition, are owned by time: by the segment whose first frame came last before them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from probe.trace.reader import NONE, Trace
from reports.account.boundary import CAPTURED, FOREVER
from reports.account.facts import Facts
from reports.account.issues import Issue, told
from reports.account.samples import CHANNEL_ROOM, encoded
from reports.account.segments import Segments
from reports.account.stretches import (
    Bools,
    Cover,
    Ints,
    column,
    columns_of,
    grouped,
    last_before,
    split,
    steps_back,
)
from reports.results import Unjoined

__all__ = ["UNJOINED", "Pieces", "find_origins", "unjoined_segments"]

UNJOINED: Final[tuple[Unjoined | None, ...]] = (
    None,
    "resampled",
    "changed",
    "buffer-reused",
    "channels",
)
"""What the column ``unjoined`` counts through."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The accepted samples in the order of their axis: one origin and one owner to each row."""

    start: Ints
    stop: Ints
    captured: Ints
    """Captured position of the first sample, `NONE`: not known."""
    push: Ints
    """Row of the trace's pushed columns."""
    segment: Ints
    """Whose it is; -1: nobody's."""
    added: Bools
    """Put in by the sink itself."""
    inherited: Bools
    """Inside sink or source when the probe came."""
    unknown: Bools
    """Nothing shows where it came from."""
    unjoined: Ints
    """Index into `UNJOINED`."""
    by_time: Bools
    """Whether only the time of its push says whose it is."""

    @property
    def samples(self) -> Ints:
        return self.stop - self.start

    def taken(self, rows: Ints, start: Ints, stop: Ints) -> Pieces:
        """These rows, each narrowed to a stretch inside it."""
        columns = {name: values[rows] for name, values in columns_of(self).items()}
        place = columns["captured"] + start - columns["start"]
        captured = np.where(columns["captured"] == NONE, NONE, place)
        return Pieces(**{**columns, "start": start, "stop": stop, "captured": captured})


def find_origins(trace: Trace, facts: Facts, segments: Segments) -> tuple[Pieces, list[Issue]]:
    """What was accepted, piece by piece, and what of it has no place on the captured axis."""
    p, c = trace.pushed, trace.captured
    pieces = _cut(_ranges(trace), segments.frames.edges())
    at, source = p.at_ns[pieces.push], p.source[pieces.push]
    by_time = segments.at(at)

    matched = pieces.captured != NONE
    frame = np.where(matched, segments.frames.holding(pieces.captured), -1)
    pushed_as = encoded(p.rate_hz, p.channels)[pieces.push]
    captured_as = last_before(c.at_ns, at + 1, encoded(c.rate_hz, c.channels))
    captured_as = np.where(
        frame >= 0, np.append(segments.frames.geometry, NONE)[frame], captured_as
    )
    foreign = (captured_as != pushed_as) & (captured_as != NONE)

    plain = ~matched & ~pieces.added
    inherited = plain & _inherited(facts, at, matched, c.at_ns)
    opaque = plain & foreign & ~inherited
    believed = matched & ~_of_same(opaque, foreign, source, captured_as, pushed_as)
    habits = {name: nth for nth, name in enumerate(trace.texts)}
    unjoined = np.where(opaque | (matched & ~believed), UNJOINED.index("resampled"), 0)
    for habit in ("changed", "buffer-reused"):
        hidden = plain & ~inherited & (p.habit[pieces.push] == habits.get(habit, -2))
        unjoined[hidden & (unjoined == 0)] = UNJOINED.index(habit)
    followed = believed & (frame >= 0)
    ratio = followed & (captured_as % CHANNEL_ROOM != pushed_as % CHANNEL_ROOM)
    timed = unjoined > 0
    unknown = plain & ~inherited & ~timed
    unjoined[ratio] = UNJOINED.index("channels")

    under_way = np.append(segments.partial, False)[by_time]
    segment = np.where(followed, np.append(segments.frames.segment, -1)[frame], by_time)
    segment[(inherited & ~under_way) | (believed & (frame < 0))] = -1
    segment = _with_neighbours(segment, pieces.added, source)
    found = replace(
        pieces,
        captured=np.where(believed & ~ratio, pieces.captured, NONE),
        segment=segment,
        inherited=inherited,
        unknown=unknown,
        unjoined=unjoined,
        by_time=timed | unknown,
    )
    issues = _repeated(found, source)
    if CAPTURED.name in facts.tapped:
        issues += told(
            unknown,
            pieces.samples,
            by_time,
            "push {push} at {ms:.1f} ms is of unknown origin",
            push=p.push[pieces.push],
            ms=at / 1e6,
        )
    return found, issues


def unjoined_segments(trace: Trace, segments: Segments, pieces: Pieces) -> Ints:
    """Index into `UNJOINED` of each segment whose captured and pushed samples can't be compared.

    That is one that has such a piece, and one of which nothing was followed while the first push
    behind its first frame could not be: its audio may be in that.
    """
    code = np.zeros(segments.count, np.int64)
    owned = pieces.segment >= 0
    np.maximum.at(code, pieces.segment[owned], pieces.unjoined[owned])
    followed = np.zeros(segments.count, np.bool_)
    followed[pieces.segment[owned & (pieces.captured != NONE)]] = True
    at = trace.pushed.at_ns[pieces.push]
    order = np.argsort(at, kind="stable")
    behind = np.searchsorted(at[order], segments.first_ns, "left")
    lost = np.append(np.where(pieces.by_time, pieces.unjoined, 0)[order], 0)[behind]
    return np.where((code == 0) & ~followed, lost, code)


def _ranges(trace: Trace) -> Pieces:
    """The captured ranges of every accepted push; what they leave of it is one of no origin."""
    p = trace.pushed
    rows = np.flatnonzero(p.accepted)
    rows = rows[np.lexsort((p.push[rows], p.start_sample[rows]))]
    first, stop = p.start_sample[rows], (p.start_sample + p.samples)[rows]
    count = np.where(p.matched[rows], np.diff(p.range_offset)[rows], 0)
    parent = np.repeat(np.arange(len(rows)), count)
    nth = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
    ranges = p.range_offset[:-1][rows][parent] + nth
    length = p.range_samples[ranges]
    upto = np.cumsum(length)
    before = np.append(0, upto)[(np.cumsum(count) - count)[parent]]
    start = first[parent] + upto - length - before
    end = np.minimum(start + length, stop[parent])
    summed = np.zeros(len(rows), np.int64)
    np.add.at(summed, parent, length)
    short = np.flatnonzero(first + summed < stop)
    start = np.concatenate((start, (first + summed)[short]))
    order = np.argsort(start, kind="stable")
    end = np.concatenate((end, stop[short]))
    order = order[end[order] > start[order]]
    place = np.append(p.range_start[ranges], np.full(len(short), NONE, np.int64))
    push = rows[np.concatenate((parent, short))]
    no = np.zeros(len(order), np.bool_)
    nobody = np.full(len(order), -1, np.int64)
    pieces = Pieces(
        start[order], end[order], place[order], push[order], nobody, no, no, no, nobody, no
    )
    return _with_added(pieces, p.added_samples)


def _with_added(pieces: Pieces, added: Ints) -> Pieces:
    """Mark what the sinks put in: of each push that many samples without a captured position."""
    empty = (pieces.captured == NONE) & (added[pieces.push] > 0)
    if not empty.any():
        return pieces
    upto = np.cumsum(np.where(empty, pieces.samples, 0))
    new = np.append(True, pieces.push[1:] != pieces.push[:-1])
    before = np.append(0, upto)[np.flatnonzero(new)][np.cumsum(new) - 1]
    # Where the pushed axis comes to the last of them, if every sample of the push were empty.
    end = pieces.stop - np.maximum(upto - before - added[pieces.push], 0)
    end = np.where(empty, np.clip(end, pieces.start, pieces.stop), pieces.start)
    inner = (end > pieces.start) & (end < pieces.stop)
    parent, start, stop = split(pieces.start, pieces.stop, np.unique(end[inner]))
    return replace(pieces.taken(parent, start, stop), added=start < end[parent])


def _cut(pieces: Pieces, edges: Ints) -> Pieces:
    """Cut what has a captured position at positions of that axis."""
    known = pieces.captured != NONE
    place = np.where(known, pieces.captured, 0)
    parent, begin, end = split(place, np.where(known, place + pieces.samples, 0), edges)
    # A piece of no known origin stays in one; `split` was given an empty stretch for it.
    whole = ~known[parent]
    start = pieces.start[parent] + np.where(whole, 0, begin - place[parent])
    return pieces.taken(parent, start, np.where(whole, pieces.stop[parent], start + end - begin))


def _inherited(facts: Facts, at: Ints, matched: Bools, captured_ns: Ints) -> Bools:
    """Pushes that can be of what was inside when the probe came.

    Where code feeds the sink itself no session says that the probe came in mid-speech, but what is
    pushed before anything was captured can only have been inside already.
    """
    if CAPTURED.name not in facts.tapped:
        return np.zeros(len(at), np.bool_)
    first = int(captured_ns.min()) if len(captured_ns) else FOREVER
    known_ns = np.maximum.accumulate(np.where(matched, at, NONE)) if len(at) else at
    came = last_before(column(facts.mid_speech), at + 1)
    inside: Bools = (known_ns == NONE) & (at < first)
    early: Bools = (at < facts.captured_on) | ((came != NONE) & (known_ns < came))
    return inside | early


def _of_same(some: Bools, among: Bools, source: Ints, captured_as: Ints, pushed_as: Ints) -> Bools:
    """Rows ``among`` which there are ``some`` of the same source and pair of geometries."""
    found = np.zeros(len(some), np.bool_)
    if some.any():
        rows = np.flatnonzero(among)
        keys = np.stack((source[rows], captured_as[rows], pushed_as[rows]), axis=1)
        names, where = np.unique(keys, axis=0, return_inverse=True)
        where = where.reshape(-1)
        marked = np.zeros(len(names), np.bool_)
        marked[where[some[rows]]] = True
        found[rows] = marked[where]
    return found


def _with_neighbours(segment: Ints, added: Bools, source: Ints) -> Ints:
    """What a sink added belongs to the segment whose first frame came last before it was pushed,
    but to none before that of what its source got before it, nor behind that of what followed."""
    found: Ints = segment.copy()
    if not added.any():
        return found
    for _, mine in grouped(source):
        owned = ~added[mine] & (segment[mine] >= 0)
        if not owned.any():
            continue
        owner = segment[mine]
        rows = np.arange(len(mine))
        last = np.maximum.accumulate(np.where(owned, rows, -1))
        following = np.minimum.accumulate(np.where(owned, rows, len(mine))[::-1])[::-1]
        before = np.where(last < 0, -1, owner[last])
        behind = np.append(owner, FOREVER)[following]
        found[mine] = np.where(added[mine], np.clip(owner, before, behind), owner)
    return found


def _repeated(pieces: Pieces, source: Ints) -> list[Issue]:
    """The order of the captured axis is the order of each source, and none is given it twice."""
    known = np.flatnonzero(pieces.captured != NONE)
    start, length = pieces.captured[known], pieces.samples[known]
    stop = start + length
    back = np.zeros(len(known), np.int64)
    each = [(mine, Cover.of(start[mine], stop[mine])) for _, mine in grouped(source[known])]
    for mine, _ in each:
        back[mine] = steps_back(start[mine], stop[mine])
    if sum(cover.total for _, cover in each) > Cover.of(start, stop).total:
        given = Cover.of(start[:0], stop[:0])
        for mine, cover in each:
            back[mine] = np.maximum(back[mine], given.within(start[mine], stop[mine]))
            given = given.joined(cover)
    return list(
        told(
            back > 0,
            back,
            pieces.segment[known],
            "captured position {start} was pushed twice or out of order",
            start=start,
        )
    )
