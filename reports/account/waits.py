"""What each gap in a segment's sent audio waited for.

At every instant of a gap one block was due: what was sent behind the gap, had it been sent without
one. That block was somewhere: its last sample was not captured yet, or it was in the sink, or in
the source already. The gate may have been shut; and while the block had still to be pushed, the
loop that captures and pushes may have stood still. Of a segment that ends before the gap would be
filled, its last block is due for the rest of it.
"""

from __future__ import annotations

import numpy as np

from probe.trace.events import LoopStalled
from probe.trace.reader import NONE
from reports.account.ledger import Ledger
from reports.account.stretches import Cover, Ints, column, grouped
from reports.account.wire import SENT_ON
from reports.results import Gap

__all__ = ["gaps_of"]


def gaps_of(ledger: Ledger) -> dict[int, list[Gap]]:
    """The gaps of each segment by its row, in order of time. Exact to a block."""
    stalls = _cover([(e.at_ns, e.until_ns) for e in ledger.trace.events if type(e) is LoopStalled])
    shut = {
        source.number: _cover(ledger.facts.gate(source.sink))
        for source in ledger.facts.sources.values()
    }
    parts = ledger.parts
    sent = np.flatnonzero((parts.fate == SENT_ON) & ~parts.inherited)
    sent = sent[np.lexsort((parts.start[sent], parts.sent_ns[sent]))]
    rows_of = {segment: sent[rows] for segment, rows in grouped(parts.segment[sent])}
    found: dict[int, list[Gap]] = {}
    for segment, at_ns, length_ns in ledger.gaps:
        rows = rows_of[segment]
        behind = rows[np.searchsorted(parts.sent_ns[rows], at_ns + length_ns, "left") :]
        number = int(parts.source[behind[0]])
        behind = behind[parts.source[behind] == number]
        gap = _gap(ledger, behind, at_ns, at_ns + length_ns, shut[number], stalls)
        found.setdefault(segment, []).append(gap)
    return found


def _cover(spans: list[tuple[int, int]]) -> Cover:
    ends = np.array(spans, np.int64).reshape(-1, 2)
    return Cover.of(ends[:, 0], ends[:, 1])


def _gap(
    ledger: Ledger, behind: Ints, at_ns: int, until_ns: int, shut: Cover, stalls: Cover
) -> Gap:
    """A gap, with how long it waited for what; ``behind``: the parts sent after it, in order."""
    parts = ledger.parts
    block = ledger.facts.sources[int(parts.source[behind[0]])].block
    block_ns = block * 1_000_000_000 // int(parts.rate_hz[behind[0]])
    upto = np.cumsum(parts.samples[behind])
    first = np.arange(0, upto[-1], block)[: -(-(until_ns - at_ns) // block_ns)]
    due_ns = at_ns + np.arange(len(first)) * block_ns
    # A block leaves when its last sample is there: what comes last was captured and pushed last.
    last = np.minimum(first + block, upto[-1]) - 1
    nth = np.searchsorted(upto, last, "right")
    row = behind[nth]
    pushed_ns = ledger.trace.pushed.at_ns[parts.push[row]]
    captured_ns = _captured_ns(ledger, row, parts.samples[row] - (upto[nth] - last), pushed_ns)
    changes = [due_ns, captured_ns, pushed_ns, column([at_ns, until_ns])]
    changes += [ends for cover in (shut, stalls) for ends in (cover.start, cover.stop)]
    edges = np.unique(np.clip(np.concatenate(changes), at_ns, until_ns))
    since, length_ns = edges[:-1], np.diff(edges)
    now = np.searchsorted(due_ns, since, "right") - 1
    paused = shut.holds(since)
    inside = ~paused & (pushed_ns[now] <= since)
    stalled = ~paused & ~inside & stalls.holds(since)
    held = ~(paused | inside | stalled) & (captured_ns[now] <= since)
    starved = ~(paused | inside | stalled | held)
    lasted = [int(length_ns[rows].sum()) for rows in (starved, held, inside, stalled, paused)]
    return Gap(at_ns, until_ns - at_ns, *lasted)


def _captured_ns(ledger: Ledger, row: Ints, offset: Ints, pushed_ns: Ints) -> Ints:
    """When samples of parts were captured; what the sink put in itself, when it was pushed."""
    place = ledger.parts.captured[row]
    frames = ledger.segments.frames
    frame = frames.holding(np.where(place == NONE, NONE, place + offset))
    known = np.append(frames.at_ns, 0)[frame]
    captured: Ints = np.where(frame < 0, pushed_ns, np.minimum(known, pushed_ns))
    return captured
