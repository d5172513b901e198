"""Lanes of audio: what was captured, pushed, sent and inserted, and how much lay in each queue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import Tapped
from probe.trace.reader import NONE
from reports.account.boundary import FOREVER
from reports.account.ledger import Ledger
from reports.timeline.lanes import INHERITED, LOST, PARTLY_LOST, REFUSED, WHOLE, Depth, Frames

__all__ = ["captured", "depths", "inserted", "pushed", "sent"]

Ints = NDArray[np.int64]


def captured(ledger: Ledger) -> Frames:
    """One row per frame."""
    c = ledger.trace.captured
    lost = _lost_in(ledger, "dropped", c.start_sample, c.start_sample + c.samples)
    return Frames.of(
        at_ns=c.at_ns,
        until_ns=_ended(c.at_ns, c.ended_ns),
        start_sample=c.start_sample,
        samples=c.samples,
        rate_hz=c.rate_hz,
        segment=ledger.frame_segment + 1,
        fate=_fates(c.samples, lost),
        lost=lost,
    )


def pushed(ledger: Ledger) -> Frames:
    """One row per frame, refused ones too. A push of two segments is of the first."""
    p, parts = ledger.trace.pushed, ledger.parts
    segment = np.zeros(len(p), np.int64)
    inherited = np.zeros(len(p), np.bool_)
    # Backwards, so that of a push made of two segments the first one stays.
    segment[parts.push[::-1]] = parts.segment[::-1] + 1
    inherited[parts.push[::-1]] = parts.inherited[::-1]
    lost = _lost_in(ledger, "cleared", p.start_sample, p.start_sample + p.samples) * p.accepted
    fate = _fates(p.samples, lost)
    fate[inherited] = INHERITED
    fate[~p.accepted] = REFUSED
    return Frames.of(
        at_ns=p.at_ns,
        until_ns=_ended(p.at_ns, p.ended_ns),
        start_sample=p.start_sample,
        samples=p.samples,
        rate_hz=p.rate_hz,
        segment=segment,
        source=p.source,
        fate=fate,
        lost=lost,
    )


def sent(ledger: Ledger) -> Frames:
    """One row per run and segment; what was inside or left unseen at pushed is inherited."""
    parts, t = ledger.parts, ledger.trace.sent
    rows = np.flatnonzero(parts.run >= 0)
    rows = rows[np.lexsort((parts.start[rows], parts.run[rows]))]
    kind = np.stack((parts.run[rows], parts.segment[rows], parts.inherited[rows]), axis=1)
    new = np.ones(len(rows), np.bool_)
    new[1:] = (kind[1:] != kind[:-1]).any(axis=1) | (parts.start[rows][1:] != parts.stop[rows][:-1])
    first = np.flatnonzero(new)
    head, last = rows[first], rows[np.append(first[1:], len(rows))[: len(first)] - 1]
    samples = parts.samples[rows]
    known = Frames.of(
        at_ns=parts.sent_ns[head],
        until_ns=parts.sent_until_ns[last],
        start_sample=parts.start[head],
        samples=np.add.reduceat(samples, first) if len(first) else samples,
        rate_hz=parts.rate_hz[head],
        segment=parts.segment[head] + 1,
        source=t.source[parts.run[head]],
        fate=np.where(parts.inherited[head], INHERITED, WHOLE),
    )
    unseen = np.flatnonzero(t.start_sample == NONE)
    return known.with_rows(
        Frames.of(
            at_ns=t.at_ns[unseen],
            until_ns=t.until_ns[unseen],
            samples=t.samples[unseen],
            rate_hz=_rates(ledger, t.source[unseen]),
            source=t.source[unseen],
            fate=INHERITED,
        )
    )


def inserted(ledger: Ledger) -> Frames:
    """One row per run of silence that a source put out because it had nothing."""
    i = ledger.trace.inserted
    return Frames.of(
        at_ns=i.at_ns,
        until_ns=np.maximum(i.until_ns, i.at_ns),
        samples=i.samples,
        rate_hz=_rates(ledger, i.source),
        source=i.source,
    )


def _lost_in(ledger: Ledger, what: str, start: Ints, stop: Ints) -> Ints:
    """How many samples of each stretch were dropped or cleared."""
    pairs = sorted((lost.start, lost.stop) for lost in ledger.losses if lost.what == what)
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    upto = np.append(0, np.cumsum(edges[:, 1] - edges[:, 0]))

    def before(position: Ints) -> Ints:
        row = np.searchsorted(edges[:, 0], position, "right")
        reach = np.append(0, edges[:, 1])[row]
        ahead: Ints = upto[row] - np.where(row > 0, np.maximum(reach - position, 0), 0)
        return ahead

    return before(stop) - before(start)


def _fates(samples: Ints, lost: Ints) -> Ints:
    return np.select([lost <= 0, lost < samples], [WHOLE, PARTLY_LOST], LOST)


def _ended(at: Ints, ended: Ints) -> Ints:
    return np.where(ended == NONE, at, np.maximum(ended, at))


def _rates(ledger: Ledger, sources: Ints) -> Ints:
    """Rate of each source, as its tap says it or as it was pushed first; 0: not known."""
    p = ledger.trace.pushed
    names, first = np.unique(p.source, return_index=True)
    rates: dict[int, int] = dict(zip(names.tolist(), p.rate_hz[first].tolist(), strict=True))
    for event in ledger.trace.events:
        if isinstance(event, Tapped) and event.source is not None and event.rate_hz:
            rates[event.source] = event.rate_hz
    return np.array([rates.get(source, 0) for source in sources.tolist()], np.int64)


# --- The queue of a source -----------------------------------------------------------------------


def depths(ledger: Ledger) -> tuple[Depth, ...]:
    """One per source that was pushed into; none where *pushed* or *sent* was not tapped."""
    if not {"pushed", "sent"} <= ledger.tapped:
        return ()
    queue_ms = {
        e.source: e.queue_ms
        for e in ledger.trace.events
        if isinstance(e, Tapped) and e.source is not None and e.queue_ms
    }
    sources = np.unique(ledger.trace.pushed.source)
    rates = _rates(ledger, sources).tolist()
    return tuple(
        Depth(source, rate, queue_ms.get(source), *_depth(ledger, source))
        for source, rate in zip(sources.tolist(), rates, strict=True)
    )


def _depth(ledger: Ledger, source: int) -> tuple[Ints, Ints]:
    """Times and samples: what went in at once, less what was cleared at once, less what was sent
    bit by bit."""
    entered, into = _entered(ledger, source)
    cleared, gone = _cleared(ledger, source)
    at, change = np.concatenate((entered, cleared)), np.concatenate((into, -gone))
    order = np.argsort(at, kind="stable")
    at, level = at[order], np.append(0, np.cumsum(change[order]))
    ramp_ns, ramp = _ramp(ledger, source)
    times = np.unique(np.concatenate((at, ramp_ns)))
    if not len(times):
        return times, times
    out = np.zeros(len(times), np.int64)
    if len(ramp_ns):
        out = np.rint(np.interp(times, ramp_ns, ramp, left=0)).astype(np.int64)
    before, after = (level[np.searchsorted(at, times, side)] - out for side in ("left", "right"))
    kept = np.stack((np.ones(len(times), np.bool_), before != after), axis=1).ravel()
    samples = np.stack((before, after), axis=1).ravel()
    return np.repeat(times, 2)[kept], np.maximum(samples[kept], 0)


def _entered(ledger: Ledger, source: int) -> tuple[Ints, Ints]:
    """When each push was inside, at the latest when its first sample left; and its samples."""
    p, parts = ledger.trace.pushed, ledger.parts
    mine = np.flatnonzero((p.source == source) & p.accepted)
    left = np.full(len(p), FOREVER, np.int64)
    np.minimum.at(left, parts.push, parts.sent_ns)
    return np.minimum(_ended(p.at_ns, p.ended_ns), left)[mine], p.samples[mine]


def _cleared(ledger: Ledger, source: int) -> tuple[Ints, Ints]:
    """When audio was cleared from a source, and its samples."""
    parts = ledger.parts
    gone = [lost for lost in ledger.losses if lost.what == "cleared"]
    start = np.array([lost.start for lost in gone], np.int64)
    owner = ledger.trace.pushed.source[parts.push[np.searchsorted(parts.start, start, "right") - 1]]
    mine = [lost for lost, of in zip(gone, owner.tolist(), strict=True) if of == source]
    table = np.array([(lost.at_ns, lost.stop - lost.start) for lost in mine], np.int64)
    at_ns, samples = table.reshape(-1, 2).T
    return at_ns, samples


def _ramp(ledger: Ledger, source: int) -> tuple[Ints, Ints]:
    """Begin and end of every run in order of time, and how much had been sent by then."""
    t = ledger.trace.sent
    runs = np.flatnonzero((t.source == source) & (t.start_sample != NONE))
    runs = runs[np.argsort(t.at_ns[runs], kind="stable")]
    ends = np.stack((t.at_ns[runs], t.until_ns[runs]), axis=1).ravel()
    total = np.cumsum(t.samples[runs])
    return np.maximum.accumulate(ends), np.stack((total - t.samples[runs], total), axis=1).ravel()
