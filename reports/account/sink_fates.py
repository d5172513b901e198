"""What became of captured samples that no push was made of: dropped, with its cause, or held.

What no push covers has to earn its name: it is dropped or held only where the trace shows the cause
at the right time, at the sink and the source it was on the way through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from probe.trace.columns import ENDS
from probe.trace.reader import NONE, Trace
from reports.account.boundary import FOREVER, PUSHED
from reports.account.facts import Facts, Source
from reports.account.issues import Issue, told
from reports.account.losses import CAUSES, UNNAMED
from reports.account.origins import Pieces
from reports.account.segments import Segments
from reports.account.stretches import Bools, Cover, Ints, column, edges, first_from, grouped, split
from reports.results import LossCause

__all__ = ["Unpushed", "find_unpushed"]


@dataclass(frozen=True, slots=True)
class Unpushed:
    """Captured stretches that no push was made of; columns of int64."""

    start: Ints
    stop: Ints
    segment: Ints
    rate_hz: Ints
    cause: Ints
    """Index into `CAUSES`, `UNNAMED`: it was not dropped, or nothing says by what."""
    at_ns: Ints
    """When that happened."""
    held: Bools
    """Whether it is still in the sink."""

    @property
    def samples(self) -> Ints:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Stretches of the captured axis that something happened to, in its order."""

    start: Ints
    stop: Ints
    at_ns: Ints

    @classmethod
    def of(cls, start: Ints, samples: Ints, at_ns: Ints) -> _Ranges:
        order = np.argsort(start, kind="stable")
        return cls(start[order], (start + samples)[order], at_ns[order])

    def hit(self, position: Ints) -> tuple[Bools, Ints]:
        """Whether each position lies in one, and since when."""
        nth = np.searchsorted(self.start, position, "right") - 1
        return Cover.of(self.start, self.stop).holds(position), np.append(self.at_ns, NONE)[nth]


def find_unpushed(
    trace: Trace, facts: Facts, segments: Segments, pieces: Pieces, unjoined: Ints
) -> tuple[Unpushed, list[Issue]]:
    """Every stretch that is in no push, of the segments whose audio could be followed."""
    c, p, frames = trace.captured, trace.pushed, segments.frames
    known = np.flatnonzero(pieces.captured != NONE)
    known = known[np.argsort(pieces.captured[known], kind="stable")]
    push = pieces.push[known]
    pushed = _Ranges.of(pieces.captured[known], pieces.samples[known], p.at_ns[push])
    refused, skipped = _refused(trace), _skipped(facts)
    cuts = edges(*(x for of in (pushed, refused, skipped) for x in (of.start, of.stop)))
    frame, start, stop = split(frames.start, frames.stop, cuts)
    lost = (stop > start) & ~pushed.hit(start)[0]
    lost &= (unjoined[frames.segment[frame]] == 0) & (PUSHED.name in facts.tapped)
    frame, start, stop = frame[lost], start[lost], stop[lost]
    segment, row, since = frames.segment[frame], frames.row[frame], frames.at_ns[frame]

    verdict = _Verdict.open(len(start))
    ended = np.maximum(c.ended_ns[row], since)
    verdict.blame("refused", *refused.hit(start))
    verdict.blame("skipped", *skipped.hit(start))
    verdict.blame("raised", c.end[row] == ENDS.index("raised"), ended)
    verdict.blame("cancelled", c.end[row] == ENDS.index("cancelled"), ended)
    source = p.source[push]
    rows_of = {NONE: np.arange(len(source)), **dict(grouped(source))}
    found = Unpushed(
        start, stop, segment, c.rate_hz[row], verdict.cause, verdict.at_ns, verdict.held
    )
    for way in _ways(facts, pushed, source, pieces.segment[known], found, since):
        for number, rows in grouped(way):
            mine = rows[verdict.is_open[rows]]
            taken = rows_of.get(number, rows_of[NONE][:0])
            later = np.append(np.minimum.accumulate(pushed.at_ns[taken][::-1])[::-1], FOREVER)
            until = later[np.searchsorted(pushed.start[taken], stop[mine], "left")]
            sources = [s for s in facts.sources.values() if number in (NONE, s.number)]
            verdict.put(mine, _explained(facts, sources, since[mine], until))
    return found, list(
        told(
            verdict.is_open,
            found.samples,
            segment,
            "captured positions {start} to {stop} were never pushed, and nothing that was logged "
            "accounts for it",
            start=start,
            stop=stop,
        )
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The causes found so far, row by row; the first one stands."""

    cause: Ints
    at_ns: Ints
    held: Bools

    @classmethod
    def open(cls, rows: int) -> _Verdict:
        return cls(
            np.full(rows, UNNAMED, np.int64), np.full(rows, NONE, np.int64), np.zeros(rows, bool)
        )

    @property
    def is_open(self) -> Bools:
        still: Bools = (self.cause == UNNAMED) & ~self.held
        return still

    def blame(self, name: LossCause, where: Bools, at_ns: Ints) -> None:
        where = where & self.is_open
        self.cause[where] = CAUSES.index(name)
        self.at_ns[where] = at_ns[where]

    def put(self, rows: Ints, found: _Verdict) -> None:
        self.cause[rows], self.at_ns[rows], self.held[rows] = found.cause, found.at_ns, found.held


def _refused(trace: Trace) -> _Ranges:
    p = trace.pushed
    push = np.repeat(np.arange(len(p)), np.diff(p.range_offset))
    ranges = ~p.accepted[push] & (p.range_start != NONE)
    return _Ranges.of(p.range_start[ranges], p.range_samples[ranges], p.at_ns[push[ranges]])


def _skipped(facts: Facts) -> _Ranges:
    events = facts.skipped
    return _Ranges.of(
        column([e.start_sample for e in events]),
        column([e.samples for e in events]),
        column([e.at_ns for e in events]),
    )


def _ways(
    facts: Facts, pushed: _Ranges, source: Ints, owner: Ints, lost: Unpushed, since: Ints
) -> Iterator[Ints]:
    """The sources each stretch may have been on the way to, the likelier ones first; `NONE`: any.

    No frame says which sink it went to. Its neighbours that were pushed do, those of its own
    segment before others, where their source had been found by then; and so does the source that
    was found last.
    """
    sources = sorted(facts.sources.values(), key=lambda one: one.found_ns)
    found_ns = column([one.found_ns for one in sources])
    numbers = column([one.number for one in sources])
    latest = np.append(NONE, numbers)[np.searchsorted(found_ns, since, "right")]
    if not len(source):
        yield latest
        return
    found_of = dict(zip(numbers.tolist(), found_ns.tolist(), strict=True))
    named, nth = np.unique(source, return_inverse=True)
    since_found = column([found_of[number] for number in named.tolist()])[nth]
    before = np.searchsorted(pushed.start, lost.start, "right") - 1
    behind = np.searchsorted(pushed.start, lost.stop, "left")
    first, second = np.maximum(before, 0), np.minimum(behind, len(source) - 1)
    is_before = (before >= 0) & (since_found[first] <= since)
    is_behind = (behind < len(source)) & (since_found[second] <= since)
    own_before = is_before & (owner[first] == lost.segment)
    own_behind = is_behind & (owner[second] == lost.segment)
    likely = np.where(is_behind, source[second], latest)
    likely = np.where(own_before | (is_before & ~own_behind), source[first], likely)
    yield likely
    yield np.where(own_before == own_behind, np.where(is_behind, source[second], likely), likely)
    yield np.where(own_before & own_behind, likely, latest)


def _explained(facts: Facts, sources: list[Source], since: Ints, until: Ints) -> _Verdict:
    """What the marks of a sink and its sources account for.

    ``since`` the frames were in the sink, and ``until`` something captured later was pushed, or
    `FOREVER`: they may still be inside.
    """
    found = _Verdict.open(len(since))
    last = until == FOREVER
    sink = sources[0].sink if len(sources) == 1 else None
    over = column([report.at_ns for report in facts.finished])

    cleared = column([mark.at_ns for mark in facts.marks_of(sink) if mark.mark == "clear"])
    clear = first_from(cleared, since)
    found.blame("clear", (clear < FOREVER) & (clear <= until), clear)

    # A clear of the sink stays pending until the source is cleared: what comes in between goes
    # with it.
    emptying = column(sorted(began for source in sources for began, _ in source.clears))
    emptied = first_from(emptying, since)
    nth = np.searchsorted(cleared, since, "right") - 1
    asked = np.append(cleared, FOREVER)[nth]
    pending = (nth >= 0) & (first_from(emptying, asked) == emptied) & (emptied < FOREVER)
    pending &= ~last | (first_from(over, emptied) < FOREVER)
    found.blame("clear", pending & (emptied <= until), emptied)

    gate = facts.gate(sink)
    shut, opened = (np.append(column([times[n] for times in gate]), FOREVER) for n in (0, 1))
    nth = np.searchsorted(opened[:-1], since, "left")
    gone = ~last | ((opened[nth] < FOREVER) & (first_from(over, opened[nth]) < FOREVER))
    found.blame("pause", (shut[nth] < FOREVER) & (shut[nth] <= until) & gone, shut[nth])

    found.blame("source-cleared", ~last & (emptied <= until), emptied)
    closed = first_from(column(sorted(source.closed_ns for source in sources)), since)
    found.blame("source-closed", ~last & (closed <= until) & (closed < FOREVER), closed)
    found.held[found.is_open & last] = True
    return found
