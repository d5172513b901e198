"""What became of pushed samples that did not leave their source, one source at a time.

Times of two clocks meet here only, where a stamp of the wire (up to a block late) is compared with
a clear or a push; the slack of the source is allowed for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probe.trace.reader import NONE, Trace
from reports.account.boundary import FOREVER, GAP_NS, LONGEST_SILENCE_NS, SENT
from reports.account.facts import Facts, Source
from reports.account.issues import Issue, told
from reports.account.losses import CAUSES, UNNAMED, Lost, losses_of
from reports.account.stretches import Bools, Ints, column, grouped, last_before, summed
from reports.account.wire import CLEARED, QUEUED, UNACCOUNTED, UNSEEN, Parts

__all__ = ["Remains", "find_remains"]

SETTLED_NS = 50_000_000
"""How long after a push its audio is certain to have reached the native queue."""

PLACE = "pushed positions {start} to {stop} were "


@dataclass(frozen=True, slots=True)
class Remains:
    """What is known of the accepted samples that were never sent."""

    parts: Parts
    """All of them, each with its fate."""
    losses: list[Lost]
    tail: Ints
    """Of each segment: rests shorter than a block that stayed in a source."""
    tail_unsent: Ints
    """The part of the tail that was never sent."""


def find_remains(
    trace: Trace, facts: Facts, parts: Parts, segments: int
) -> tuple[Remains, list[Issue]]:
    """The fate of every part; those that were never sent are cleared, queued, unseen, or an issue.

    ``segments``: how many there are.
    """
    fate, until_ns, gone_ns = (
        values.copy() for values in (parts.fate, parts.sent_until_ns, parts.gone_ns)
    )
    tail, tail_unsent = np.zeros(segments, np.int64), np.zeros(segments, np.int64)
    losses: list[Lost] = []
    issues: list[Issue] = []
    for number, mine in grouped(parts.source):
        source = facts.sources[number]
        last = np.full(segments, NONE, np.int64)
        owned = mine[parts.segment[mine] >= 0]
        np.maximum.at(last, parts.segment[owned], parts.stop[owned])
        tail_here = _sent_after_a_gap(trace, parts, source, last)
        rows = mine[parts.run[mine] < 0]
        if len(rows) and SENT.name in facts.tapped:
            unsent = _Unsent.of(trace, facts, parts, source, mine, rows)
            decided = _decide(unsent)
            issues += decided.issues
            fate[rows] = decided.fate
            until_ns[rows] = np.where(decided.fate == UNSEEN, unsent.until_ns, FOREVER)
            gone_ns[rows] = np.where(decided.fate == CLEARED, decided.at_ns, FOREVER)
            segment = np.where(parts.inherited[rows], -1, parts.segment[rows])
            losses += losses_of(
                "cleared",
                np.where(parts.inherited[rows], UNNAMED, decided.cause),
                decided.at_ns,
                segment,
                unsent.start,
                unsent.stop,
                parts.rate_hz[rows],
            )
            never = _rests(unsent, decided, segment, last)
            tail_here = np.where(never > 0, never, tail_here)
            tail_unsent += never
        tail += tail_here
    found = replace(parts, fate=fate, sent_until_ns=until_ns, gone_ns=gone_ns)
    return Remains(found, losses, tail, tail_unsent), issues


@dataclass(frozen=True, slots=True)
class _Unsent:
    """Parts of one source that were never sent, with what went on around them."""

    source: Source
    start: Ints
    stop: Ints
    segment: Ints
    pushed_ns: Ints
    ended_ns: Ints
    """When the call of the push came back."""
    read_until_ns: Ints
    """Until when the wire was read that was read at the push; `NONE`: it was not."""
    left_until_ns: Ints
    """When the last sample before it had left; `-FOREVER`: none did."""
    until_ns: Ints
    """When the first sample behind it left; `FOREVER`: none did."""
    silent_ns: Ints
    """Until when that reading saw the source put out silence; `NONE`: it never did."""
    block_ns: int
    probe_ended_ns: int

    @classmethod
    def of(
        cls, trace: Trace, facts: Facts, parts: Parts, source: Source, mine: Ints, rows: Ints
    ) -> _Unsent:
        p, i = trace.pushed, trace.inserted
        push = parts.push[rows]
        sent = mine[parts.run[mine] >= 0]
        place = parts.start[sent]
        following = np.searchsorted(place, parts.stop[rows], "left")
        before = np.searchsorted(place, parts.start[rows], "left") - 1
        since, off = (column([span[nth] for span in source.read]) for nth in (0, 1))
        nth = np.searchsorted(since, p.at_ns[push], "right") - 1
        off = np.where(nth >= 0, np.append(off, NONE)[nth], NONE)
        return cls(
            source=source,
            start=parts.start[rows],
            stop=parts.stop[rows],
            segment=parts.segment[rows],
            pushed_ns=p.at_ns[push],
            ended_ns=np.maximum(p.ended_ns[push], p.at_ns[push]),
            read_until_ns=np.where(p.at_ns[push] < off, off, NONE),
            left_until_ns=np.append(parts.sent_until_ns[sent], -FOREVER)[before],
            until_ns=np.append(parts.sent_ns[sent], FOREVER)[following],
            silent_ns=last_before(np.sort(i.until_ns[i.source == source.number]), off + 1),
            block_ns=source.block * 1_000_000_000 // int(parts.rate_hz[rows[0]]),
            probe_ended_ns=facts.ended_ns,
        )

    def waits(self, clear_ns: Ints) -> Bools:
        """Whether that is later than anything can wait inside while nothing goes out."""
        quiet = clear_ns - np.maximum(self.ended_ns, self.left_until_ns)
        late: Bools = quiet > self.source.slack_ns + LONGEST_SILENCE_NS
        return late

    def clear_ns(self) -> Ints:
        """The clear after the last sample that left: by the stamps, or else, where that one came
        too late to be it, within their doubt; `FOREVER`: there is none.

        A push made while a clear ran may be taken by it.
        """
        began, ended = (column([clear[nth] for clear in self.source.clears]) for nth in (0, 1))
        ended = np.maximum.accumulate(ended) if len(ended) else ended

        def since(at: Ints) -> Ints:
            nth = np.searchsorted(ended, np.maximum(self.pushed_ns, at), "left")
            return np.append(began, FOREVER)[nth]

        stamped = since(self.left_until_ns - self.block_ns)
        fits = (stamped <= np.minimum(self.until_ns, self.read_until_ns)) & ~self.waits(stamped)
        doubted = since(self.left_until_ns - self.block_ns - self.source.slack_ns)
        return np.where(fits, stamped, doubted)


@dataclass(frozen=True, slots=True)
class _Decided:
    """What became of them, and when what took them happened."""

    fate: Ints
    cause: Ints
    at_ns: Ints
    idle: Bools
    """Whether the source had nothing else left before it."""
    issues: list[Issue]


def _decide(of: _Unsent) -> _Decided:
    source, slack = of.source, of.source.slack_ns
    size = of.stop - of.start
    read = of.read_until_ns != NONE
    clear = of.clear_ns()
    cleared = read & (clear < FOREVER)
    cleared &= clear <= np.minimum(of.until_ns, of.read_until_ns) + slack
    last = of.until_ns == FOREVER
    # Once nobody reads a source that lives on, it may send what is inside, or be emptied.
    dark = of.read_until_ns < np.minimum(of.until_ns, of.probe_ended_ns) - slack
    closed = read & ~cleared & last & (source.closed_ns >= of.pushed_ns)
    closed &= (source.closed_ns < FOREVER) & (
        ~dark | (source.closed_ns <= of.read_until_ns + slack)
    )

    # Silence after the push has taken effect proves that less than a block was left inside.
    dry = read & ~cleared & last
    dry &= np.minimum(of.silent_ns, source.closed_ns) > of.ended_ns + slack + SETTLED_NS
    missing = dry if int(size[dry].sum()) >= source.block else np.zeros_like(dry)
    closed &= ~missing

    # The source hands on a block every tick as long as it has one, so what a clear took cannot
    # have waited inside while nothing went out.
    waited = cleared & of.waits(clear)
    stretch = np.cumsum(np.append(True, of.start[1:] != of.stop[:-1])) - 1
    waited &= summed(stretch, size * waited, len(stretch))[stretch] >= source.block
    cleared &= ~waited

    # A source that had run dry keeps its rest of less than a block, whoever reads it.
    queued = read & ~cleared & ~waited & ~closed & ~missing & last & (~dark | dry)
    unseen = ~read | (dark & ~cleared & ~waited & ~closed & ~missing & ~queued)
    lost = ~(cleared | waited | closed | missing | queued | unseen)
    fate = np.full(len(size), UNACCOUNTED, np.int64)
    cause = np.full(len(size), UNNAMED, np.int64)
    for where, what in ((cleared | closed, CLEARED), (queued, QUEUED), (unseen, UNSEEN)):
        fate[where] = what
    cause[cleared], cause[closed] = CAUSES.index("clear"), CAUSES.index("source-closed")
    texts = (
        (missing, "never sent, although the source put out silence after them"),
        (waited, "inside before the clear at {ms:.1f} ms, yet the wire shows nothing in between"),
        (lost, "never sent, and no clear accounts for it"),
    )
    return _Decided(
        fate,
        cause,
        np.where(cleared, clear, np.where(closed, source.closed_ns, NONE)),
        queued | closed | (cleared & (clear - of.left_until_ns > GAP_NS + slack)),
        [
            issue
            for where, text in texts
            for issue in told(
                where,
                size,
                of.segment,
                PLACE + text,
                start=of.start,
                stop=of.stop,
                ms=clear / 1e6,
            )
        ],
    )


def _rests(of: _Unsent, decided: _Decided, segment: Ints, last: Ints) -> Ints:
    """Rests shorter than a block at the end of a segment, with the source idle before they went."""
    mine = np.where(decided.idle, segment, -1)
    amount = summed(mine, of.stop - of.start, len(last))
    end = np.full(len(last), NONE, np.int64)
    np.maximum.at(end, mine[mine >= 0], of.stop[mine >= 0])
    return np.where((amount < of.source.block) & (end == last), amount, 0)


def _sent_after_a_gap(trace: Trace, parts: Parts, source: Source, last: Ints) -> Ints:
    """Rests of less than a block that stayed inside until more audio came, by segment.

    ``last``: where each segment's audio ends in this source.
    """
    t = trace.sent
    tail = np.zeros(len(last), np.int64)
    runs = np.flatnonzero((t.source == source.number) & (t.start_sample != NONE))
    runs = runs[np.argsort(t.start_sample[runs], kind="stable")]
    stop = (t.start_sample + t.samples)[runs]
    waits = (stop[:-1] == t.start_sample[runs[1:]]) & (
        t.at_ns[runs[1:]] - t.until_ns[runs[:-1]] > GAP_NS
    )
    place = t.start_sample[runs[1:]][waits]
    row = np.searchsorted(parts.start, place, "right") - 1
    segment = np.append(parts.segment, -1)[row]
    amount = np.append(last, NONE)[segment] - place
    rest = (segment >= 0) & (amount > 0) & (amount < source.block)
    tail[segment[rest]] = amount[rest]
    return tail
