"""From pieces and sent runs to parts: when each accepted sample left its source, if it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from probe.trace.reader import NONE, Trace
from reports.account.blocks import Blocks
from reports.account.boundary import FOREVER, PUSHED
from reports.account.facts import Facts, Source
from reports.account.issues import Issue, told
from reports.account.origins import Pieces
from reports.account.samples import encoded
from reports.account.segments import Segments
from reports.account.stretches import (
    Cover,
    Ints,
    column,
    columns_of,
    edges,
    grouped,
    last_before,
    split,
)

__all__ = ["CLEARED", "QUEUED", "SENT_ON", "UNACCOUNTED", "UNSEEN", "Parts", "send"]

UNACCOUNTED: Final = 0
SENT_ON: Final = 1
CLEARED: Final = 2
QUEUED: Final = 3
UNSEEN: Final = 4
"""Fates of what a source accepted: nothing accounts for it, it left the source, it was discarded
from it, it is still inside, or nobody read the wire while it could leave."""


@dataclass(frozen=True, slots=True)
class Parts(Pieces):
    """The accepted samples, cut so that each row has one origin, one owner and one fate.

    Columns of int64; rows in the order of the pushed axis.
    """

    source: Ints
    rate_hz: Ints
    geometry: Ints
    """As `encoded`."""
    run: Ints
    """Row of the trace's sent columns, -1: never sent."""
    sent_ns: Ints
    """Tick of the block its first sample left in; `FOREVER` where never sent."""
    sent_until_ns: Ints
    """When the block with its last sample had left; of what nobody read, when it was out at the
    latest."""
    fate: Ints
    gone_ns: Ints
    """When what took it from the source happened; `FOREVER` where nothing did."""


def send(
    trace: Trace, facts: Facts, segments: Segments, pieces: Pieces
) -> tuple[Parts, int, list[Issue]]:
    """The pieces cut at the runs that left, the samples sent that were inside before the probe
    came, and what left although it never came in."""
    t, p = trace.sent, trace.pushed
    known = np.flatnonzero(t.start_sample != NONE)
    start, stop = t.start_sample[known], (t.start_sample + t.samples)[known]
    parent, begin, end = split(pieces.start, pieces.stop, edges(start, stop))
    cut = pieces.taken(parent, begin, end)
    cover = Cover.of(start, stop)
    order = np.argsort(start, kind="stable")
    nth = np.searchsorted(start[order], begin, "right") - 1
    run = np.where(cover.holds(begin), np.append(known[order], -1)[nth], -1)
    gone = np.flatnonzero(run >= 0)
    sent_ns, until_ns = (np.full(len(begin), FOREVER, np.int64) for _ in range(2))
    blocks = Blocks.of(trace, {s.number: s.block for s in facts.sources.values()}, run[gone])
    sent_ns[gone], until_ns[gone] = blocks.tick(begin[gone]), blocks.end(end[gone] - 1)
    parts = Parts(
        **columns_of(cut),
        source=p.source[cut.push],
        rate_hz=p.rate_hz[cut.push],
        geometry=encoded(p.rate_hz, p.channels)[cut.push],
        run=run,
        sent_ns=sent_ns,
        sent_until_ns=until_ns,
        fate=np.where(run >= 0, SENT_ON, UNACCOUNTED),
        gone_ns=np.full(len(begin), FOREVER, np.int64),
    )
    if PUSHED.name not in facts.tapped:
        return parts, 0, []
    return parts, *_of_no_push(trace, facts, segments)


def _of_no_push(trace: Trace, facts: Facts, segments: Segments) -> tuple[int, list[Issue]]:
    """Runs of audio that was never seen at pushed: there before the probe, or of no origin."""
    t, inherited = trace.sent, 0
    issues: list[Issue] = []
    first = int(trace.captured.at_ns.min()) if len(trace.captured) else FOREVER
    owner = segments.at(t.at_ns)
    for number, rows in grouped(t.source):
        source: Source = facts.sources[number]
        told_of = t.start_sample[rows] != NONE
        mine = rows[~told_of]
        at, samples = t.at_ns[mine], t.samples[mine]
        known_ns = last_before(t.at_ns[rows[told_of]], at)
        came = last_before(column(facts.mid_speech), at + source.slack_ns + 1)
        inside = (known_ns == NONE) & ((samples < source.block) | (at < first))
        early = inside | ((came != NONE) & (known_ns < came))
        inherited += int(samples[early].sum())
        issues += told(
            ~early,
            samples,
            owner[mine],
            "{count} samples sent at {ms:.1f} ms are of unknown origin",
            count=samples,
            ms=at / 1e6,
        )
    return inherited, issues
