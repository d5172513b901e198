"""What lies where in time: the lanes a picture of a call is drawn from.

    trace = read_trace("call.jsonl")
    timeline = lay_out(trace)
    timeline.sent.at_ns, timeline.sent.until_ns

Pure, and the same for every picture: times in nanoseconds since the trace began, audio in samples.
Two kinds of lanes: *dense* ones, columns with a row per frame or run, which `Frames.merged` and
`Depth.merged` make coarser for a view from afar; and *sparse* ones, a few `Stretch` or `Instant`
objects. What a barge-in leaked is no lane: it is in the `Analysis`, in spans of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import (
    Bookmarked,
    CancelSent,
    ControlStarted,
    Event,
    FalseInterruption,
    Faulted,
    InterruptCalled,
    LoopStalled,
    MessageCreated,
    OverlapJudged,
    PlaybackReported,
    QueueCleared,
    ResponseCreated,
    ResponseEnded,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
    StateChanged,
    Tapped,
    TranscriptReceived,
    TruncateSent,
    Untapped,
)
from probe.trace.reader import NONE, Trace, read_trace
from reports.account.facts import FOREVER
from reports.account.ledger import Ledger, balance

__all__ = [
    "FATES",
    "Depth",
    "Frames",
    "Instant",
    "Stretch",
    "Timeline",
    "lay_out",
]

Ints = NDArray[np.int64]

FATES: Final = ("whole", "partly lost", "lost", "refused", "inherited")
"""What the column ``fate`` counts through. ``whole``: all of it crossed the next boundary, or is
still on its way. ``lost`` and ``partly lost``: it was dropped or cleared. ``refused``: the source
did not take it. ``inherited``: inside when the probe came."""

WHOLE, PARTLY_LOST, LOST, REFUSED, INHERITED = range(len(FATES))

JOINED_NS: Final = 2_000_000
"""Stretches of claimed playback with a step no longer than this between them are one: they are
stamped by a wall clock."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something that lasted."""

    start_ns: int
    stop_ns: int
    what: str
    """What it is, a word or two: a state, ``closed``, ``claimed``, ``dropped`` …"""
    segment: int | None = None
    """From 1; ``None``: of none in particular."""
    speech: str | None = None
    samples: int | None = None
    """Audio it stands for; ``None``: it is no amount of audio."""
    rate_hz: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happened."""

    at_ns: int
    what: str
    """``pause``, ``resume``, ``clear``, ``flush``, ``source cleared``, ``interrupt``, ``commit``,
    ``transcript`` …"""
    speech: str | None = None
    detail: str = ""
    count: int = 1
    """The same mark, again and again with no other in between, is one; so often it came."""
    until_ns: int | None = None
    """The last of them; ``None``: there is one."""


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """A dense lane, one row per frame or run, in order of time. Columns of int64."""

    at_ns: Ints
    until_ns: Ints
    """When the call ended, or when the last block had left; ``at_ns`` where it is not known."""
    start_sample: Ints
    """Position at its boundary; `NONE`: not known."""
    samples: Ints
    count: Ints
    """Frames in the row: 1 until merged."""
    rate_hz: Ints
    segment: Ints
    """From 1; 0: none."""
    source: Ints
    """Number of the audio source; 0 at captured."""
    fate: Ints
    """Index into `FATES`."""
    lost: Ints
    """Samples of it that were dropped or cleared."""

    def __len__(self) -> int:
        return len(self.at_ns)

    def taken(self, rows: Ints) -> Frames:
        """These rows of every column."""
        return Frames(*(getattr(self, name)[rows] for name in self.__slots__))

    def merged(self, within_ns: int) -> Frames:
        """Rows that follow each other within this time are one, if they are of one kind.

        Coarser for a view from afar: no row is shorter in time, none is lost, samples add up.
        """
        if len(self) < 2:
            return self
        alike = (
            (self.segment[1:] == self.segment[:-1])
            & (self.source[1:] == self.source[:-1])
            & (self.fate[1:] == self.fate[:-1])
            & (self.rate_hz[1:] == self.rate_hz[:-1])
        )
        reach = np.maximum.accumulate(self.until_ns)
        near = self.at_ns[1:] - reach[:-1] <= within_ns
        first = np.flatnonzero(np.append(True, ~(alike & near)))
        return replace(
            self.taken(first),
            until_ns=np.maximum.reduceat(self.until_ns, first),
            samples=np.add.reduceat(self.samples, first),
            count=np.add.reduceat(self.count, first),
            lost=np.add.reduceat(self.lost, first),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """How much lay in a source's queue: straight lines between the points, two at a step.

    Exact in samples. In time it is as exact as *sent*, and a push counts from when the source had
    taken it. Columns of int64.
    """

    source: int
    rate_hz: int
    queue_ms: int | None
    """Capacity; ``None``: not known."""
    at_ns: Ints
    samples: Ints

    def merged(self, within_ns: int) -> Depth:
        """Of each stretch of this length the least and the most, for a view from afar."""
        if len(self.at_ns) < 3:
            return self
        first = np.flatnonzero(np.append(True, np.diff(self.at_ns // within_ns) > 0))
        at = np.repeat(self.at_ns[first], 2)
        samples = np.empty(len(at), np.int64)
        samples[0::2] = np.maximum.reduceat(self.samples, first)
        samples[1::2] = np.minimum.reduceat(self.samples, first)
        return replace(
            self,
            at_ns=np.append(at, self.at_ns[-1]),
            samples=np.append(samples, self.samples[-1]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A call in time, lane by lane in flow order."""

    duration_ns: int
    boundaries: tuple[str, ...]
    """Boundaries that were tapped, in flow order; a lane of another one is empty."""
    caller: tuple[Stretch, ...]
    """When the caller spoke."""
    words: tuple[Instant, ...]
    """Transcripts, and verdicts of the interruption model."""
    agent: tuple[Stretch, ...]
    """States of the agent."""
    model: tuple[Stretch, ...]
    """Responses of a realtime model while they were being generated."""
    captured: Frames
    gate: tuple[Stretch, ...]
    """The sink's gate, ``open`` and ``closed``, from the first frame or mark on."""
    pushed: Frames
    depth: tuple[Depth, ...]
    """One per audio source."""
    sent: Frames
    inserted: Frames
    """Silence the sources put out because they had nothing."""
    lost: tuple[Stretch, ...]
    """Dropped and cleared audio: from the instant it was lost, as long as it would have lasted."""
    claimed: tuple[Stretch, ...]
    """Playback as the framework reports it."""
    marks: tuple[Instant, ...]
    """Everything else that happened, in order of time."""
    stalls: tuple[Stretch, ...]
    """The session's loop did not run: stamps taken on it are late."""


def lay_out(trace: str | os.PathLike[str] | Trace) -> Timeline:
    """The lanes of a trace, a file or one already read.

    Raises:
        TraceError: nothing can be read; the message is one line.
    """
    read = trace if isinstance(trace, Trace) else read_trace(trace)
    ledger = balance(read)
    end = read.last_ns
    losses = _Losses.of(ledger)
    return Timeline(
        duration_ns=end,
        boundaries=tuple(b for b in ("captured", "pushed", "sent") if b in ledger.tapped),
        caller=_states(read.events, "user", end, only="speaking"),
        words=_words(read.events),
        agent=_states(read.events, "agent", end),
        model=_responses(read.events, end),
        captured=_captured(ledger, losses),
        gate=_gate(ledger, end),
        pushed=_pushed(ledger, losses),
        depth=_depths(ledger),
        sent=_sent(ledger),
        inserted=_inserted(ledger),
        lost=_lost(ledger),
        claimed=_claimed(read, ledger, end),
        marks=_marks(read.events),
        stalls=tuple(
            Stretch(e.at_ns, e.until_ns, "loop stalled")
            for e in read.events
            if isinstance(e, LoopStalled)
        ),
    )


# --- Dense lanes ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Losses:
    """Lost stretches of both axes, in order of position, without overlap."""

    dropped: tuple[Ints, Ints]
    cleared: tuple[Ints, Ints]

    @classmethod
    def of(cls, ledger: Ledger) -> _Losses:
        def axis(what: str) -> tuple[Ints, Ints]:
            pairs = sorted((x.start, x.stop) for x in ledger.losses if x.what == what)
            both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            return both[:, 0], both[:, 1]

        return cls(axis("dropped"), axis("cleared"))


def _overlap(start: Ints, stop: Ints, lost: tuple[Ints, Ints]) -> Ints:
    """How many samples of each stretch lie in the lost ones."""
    begin, end = lost
    upto = np.concatenate((np.zeros(1, np.int64), np.cumsum(end - begin)))

    def before(position: Ints) -> Ints:
        row = np.searchsorted(begin, position, "right")
        last = np.maximum(row - 1, 0)
        if not len(end):
            return np.zeros(len(position), np.int64)
        over: Ints = upto[row] - np.where(row > 0, np.maximum(end[last] - position, 0), 0)
        return over

    return before(stop) - before(start)


def _fates(samples: Ints, lost: Ints) -> Ints:
    fate = np.full(len(samples), WHOLE, np.int64)
    fate[lost > 0] = PARTLY_LOST
    fate[(lost > 0) & (lost >= samples)] = LOST
    return fate


def _ended(at: Ints, ended: Ints) -> Ints:
    return np.where(ended == NONE, at, np.maximum(ended, at))


def _captured(ledger: Ledger, losses: _Losses) -> Frames:
    c = ledger.trace.captured
    lost = _overlap(c.start_sample, c.start_sample + c.samples, losses.dropped)
    frames = Frames(
        at_ns=c.at_ns,
        until_ns=_ended(c.at_ns, c.ended_ns),
        start_sample=c.start_sample,
        samples=c.samples,
        count=np.ones(len(c), np.int64),
        rate_hz=c.rate_hz,
        segment=ledger.frame_segment + 1,
        source=np.zeros(len(c), np.int64),
        fate=_fates(c.samples, lost),
        lost=lost,
    )
    return frames.taken(np.argsort(c.at_ns, kind="stable"))


def _pushed(ledger: Ledger, losses: _Losses) -> Frames:
    p, parts = ledger.trace.pushed, ledger.parts
    segment = np.zeros(len(p), np.int64)
    inherited = np.zeros(len(p), np.bool_)
    # Backwards, so that of a push made of two segments the first one stays.
    segment[parts.push[::-1]] = parts.segment[::-1] + 1
    inherited[parts.push[::-1]] = parts.inherited[::-1]
    lost = np.where(
        p.accepted, _overlap(p.start_sample, p.start_sample + p.samples, losses.cleared), 0
    )
    fate = _fates(p.samples, lost)
    fate[inherited] = INHERITED
    fate[~p.accepted] = REFUSED
    frames = Frames(
        at_ns=p.at_ns,
        until_ns=_ended(p.at_ns, p.ended_ns),
        start_sample=p.start_sample,
        samples=p.samples,
        count=np.ones(len(p), np.int64),
        rate_hz=p.rate_hz,
        segment=segment,
        source=p.source,
        fate=fate,
        lost=lost,
    )
    return frames.taken(np.argsort(p.at_ns, kind="stable"))


def _sent(ledger: Ledger) -> Frames:
    """One row per run and segment; what was inside or left unseen at pushed is inherited."""
    parts, t, p = ledger.parts, ledger.trace.sent, ledger.trace.pushed
    rows = np.flatnonzero(parts.run >= 0)
    rows = rows[np.lexsort((parts.start[rows], parts.run[rows]))]
    run, segment, inside = parts.run[rows], parts.segment[rows] + 1, parts.inherited[rows]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (
        (run[1:] != run[:-1])
        | (segment[1:] != segment[:-1])
        | (inside[1:] != inside[:-1])
        | (parts.start[rows][1:] != parts.stop[rows][:-1])
    )
    first = np.flatnonzero(new)
    unseen = np.flatnonzero(t.start_sample == NONE)
    source_rate = dict(zip(p.source.tolist(), p.rate_hz.tolist(), strict=True))

    def joined(known: Ints, other: Ints) -> Ints:
        return np.concatenate((known, other)).astype(np.int64)

    def summed(values: Ints) -> Ints:
        return np.add.reduceat(values, first) if len(first) else values

    head = rows[first]
    last = rows[np.append(first[1:], len(rows))[: len(first)] - 1]
    none = np.zeros(len(unseen), np.int64)
    frames = Frames(
        at_ns=joined(parts.sent_ns[head], t.at_ns[unseen]),
        until_ns=joined(parts.sent_until_ns[last], t.until_ns[unseen]),
        start_sample=joined(parts.start[head], t.start_sample[unseen]),
        samples=joined(summed(parts.samples[rows]), t.samples[unseen]),
        count=np.ones(len(first) + len(unseen), np.int64),
        rate_hz=joined(
            parts.rate_hz[head],
            np.array([source_rate.get(s, 0) for s in t.source[unseen].tolist()], np.int64),
        ),
        segment=joined(segment[first], none),
        source=joined(t.source[run[first]], t.source[unseen]),
        fate=joined(
            np.where(parts.inherited[head], INHERITED, WHOLE),
            np.full(len(unseen), INHERITED, np.int64),
        ),
        lost=np.zeros(len(first) + len(unseen), np.int64),
    )
    return frames.taken(np.argsort(frames.at_ns, kind="stable"))


def _inserted(ledger: Ledger) -> Frames:
    i = ledger.trace.inserted
    none = np.zeros(len(i), np.int64)
    rate = _rates(ledger)
    frames = Frames(
        at_ns=i.at_ns,
        until_ns=np.maximum(i.until_ns, i.at_ns),
        start_sample=np.full(len(i), NONE, np.int64),
        samples=i.samples,
        count=none + 1,
        rate_hz=np.array([rate.get(s, 0) for s in i.source.tolist()], dtype=np.int64),
        segment=none,
        source=i.source,
        fate=none,
        lost=none,
    )
    return frames.taken(np.argsort(i.at_ns, kind="stable"))


def _rates(ledger: Ledger) -> dict[int, int]:
    """Rate of each source, as its tap says it or as it was pushed."""
    p = ledger.trace.pushed
    names, where = np.unique(p.source, return_index=True)
    rates: dict[int, int] = dict(zip(names.tolist(), p.rate_hz[where].tolist(), strict=True))
    for event in ledger.trace.events:
        if isinstance(event, Tapped) and event.source is not None and event.rate_hz:
            rates[event.source] = event.rate_hz
    return rates


def _depths(ledger: Ledger) -> tuple[Depth, ...]:
    if not {"pushed", "sent"} <= ledger.tapped:
        return ()
    queue_ms = {
        e.source: e.queue_ms
        for e in ledger.trace.events
        if isinstance(e, Tapped) and e.source is not None and e.queue_ms
    }
    rates = _rates(ledger)
    sources = np.unique(ledger.trace.pushed.source).tolist()
    return tuple(
        Depth(source, rates.get(source, 0), queue_ms.get(source), *_depth(ledger, source))
        for source in sources
    )


def _depth(ledger: Ledger, source: int) -> tuple[Ints, Ints]:
    p, t, parts = ledger.trace.pushed, ledger.trace.sent, ledger.parts
    mine = np.flatnonzero((p.source == source) & p.accepted)
    # A push that waits for room is inside when it ends, at the latest when its first sample leaves.
    left = np.full(len(p), FOREVER, np.int64)
    np.minimum.at(left, parts.push, parts.sent_ns)
    entered = np.minimum(_ended(p.at_ns, p.ended_ns), left)[mine]
    steps = [(entered, p.samples[mine])]
    gone = [
        (lost.at_ns, lost.start - lost.stop)
        for lost in ledger.losses
        if lost.what == "cleared" and _source_of(ledger, lost.start) == source
    ]
    if gone:
        lost = np.array(gone, dtype=np.int64)
        steps.append((lost[:, 0], lost[:, 1]))
    at = np.concatenate([s[0] for s in steps])
    change = np.concatenate([s[1] for s in steps])
    order = np.argsort(at, kind="stable")
    at, level = at[order], np.cumsum(change[order])
    runs = np.flatnonzero((t.source == source) & (t.start_sample != NONE))
    runs = runs[np.argsort(t.at_ns[runs], kind="stable")]
    ramp_ns = np.stack((t.at_ns[runs], t.until_ns[runs]), axis=1).ravel()
    ramp_ns = np.maximum.accumulate(ramp_ns) if len(ramp_ns) else ramp_ns
    total = np.cumsum(t.samples[runs])
    ramp = np.stack((total - t.samples[runs], total), axis=1).ravel()
    times = np.unique(np.concatenate((at, ramp_ns)))
    if not len(times):
        return times, times
    padded = np.concatenate((np.zeros(1, np.int64), level))
    out = np.zeros(len(times), np.int64)
    if len(ramp_ns):
        out = np.rint(np.interp(times, ramp_ns, ramp, left=0)).astype(np.int64)
    before = padded[np.searchsorted(at, times, "left")] - out
    after = padded[np.searchsorted(at, times, "right")] - out
    both = np.stack((before, after), axis=1)
    keep = np.ones_like(both, np.bool_)
    keep[:, 1] = before != after
    flat = keep.ravel()
    return np.repeat(times, 2)[flat], np.maximum(both.ravel()[flat], 0)


def _source_of(ledger: Ledger, pushed: int) -> int:
    """Number of the source that has a pushed position."""
    parts = ledger.parts
    row = int(np.searchsorted(parts.start, pushed, "right")) - 1
    return int(ledger.trace.pushed.source[parts.push[row]])


# --- Sparse lanes --------------------------------------------------------------------------------


def _states(
    events: Iterable[Event], who: Literal["agent", "user"], end: int, *, only: str | None = None
) -> tuple[Stretch, ...]:
    """States from one change to the next; the first one since the trace began."""
    stretches: list[Stretch] = []
    since, state = 0, ""
    for event in events:
        if not isinstance(event, StateChanged) or event.who != who:
            continue
        state = state or event.old
        if event.at_ns > since:
            stretches.append(Stretch(since, event.at_ns, state))
        since, state = event.at_ns, event.new
    if state and end > since:
        stretches.append(Stretch(since, end, state))
    return tuple(s for s in stretches if s.what and (only is None or s.what == only))


def _words(events: Iterable[Event]) -> tuple[Instant, ...]:
    words: list[Instant] = []
    for event in events:
        if isinstance(event, TranscriptReceived):
            what = "final transcript" if event.final else "interim transcript"
            words.append(
                Instant(event.at_ns, what, detail=f"{event.words} words, {event.chars} characters")
            )
        elif isinstance(event, OverlapJudged):
            what = "overlap: interruption" if event.is_interruption else "overlap: none"
            sure = "" if event.probability is None else f"probability {event.probability:.2f}"
            words.append(Instant(event.at_ns, what, event.speech, sure))
    return tuple(words)


def _responses(events: Iterable[Event], end: int) -> tuple[Stretch, ...]:
    begun: dict[int, ResponseCreated] = {}
    stretches: list[Stretch] = []
    for event in events:
        if isinstance(event, ResponseCreated):
            begun[event.response] = event
        elif isinstance(event, ResponseEnded) and event.response in begun:
            stretches.append(_response(begun.pop(event.response), event.at_ns, "response"))
    stretches += [_response(event, end, "response, no end seen") for event in begun.values()]
    return tuple(sorted(stretches, key=lambda s: s.start_ns))


def _response(event: ResponseCreated, stop_ns: int, what: str) -> Stretch:
    return Stretch(
        event.at_ns,
        max(stop_ns, event.at_ns),
        what,
        speech=event.speech,
        detail=f"number {event.response}",
    )


def _gate(ledger: Ledger, end: int) -> tuple[Stretch, ...]:
    begun = [mark.at_ns for mark, _ in ledger.marks[:1]]
    begun += ledger.sums.first_ns[:1].tolist()
    if not begun:
        return ()
    stretches: list[Stretch] = []
    since = min(begun)
    for shut, opened in ledger.gate:
        opened = min(opened, end)
        if shut > since:
            stretches.append(Stretch(since, shut, "open"))
        if opened > shut:
            stretches.append(Stretch(shut, opened, "closed"))
        since = opened
    if end > since:
        stretches.append(Stretch(since, end, "open"))
    return tuple(stretches)


def _lost(ledger: Ledger) -> tuple[Stretch, ...]:
    """Lost audio by what lost it: neighbours that went at one instant for one cause are one."""
    speeches = [ledger.trace.text(int(i)) for i in ledger.sums.speech]
    grouped: dict[tuple[int, str, str, int, int], int] = {}
    for lost in ledger.losses:
        key = (lost.at_ns, lost.what, lost.cause, lost.segment, lost.rate_hz)
        grouped[key] = grouped.get(key, 0) + lost.stop - lost.start
    stretches = [
        Stretch(
            at_ns,
            at_ns + samples * 1_000_000_000 // max(rate_hz, 1),
            what,
            segment=segment + 1 if segment >= 0 else None,
            speech=speeches[segment] if segment >= 0 else None,
            samples=samples,
            rate_hz=rate_hz,
            detail=cause,
        )
        for (at_ns, what, cause, segment, rate_hz), samples in grouped.items()
    ]
    return tuple(sorted(stretches, key=lambda s: s.start_ns))


def _claimed(trace: Trace, ledger: Ledger, end: int) -> tuple[Stretch, ...]:
    """Where the framework says it played: stretches it reports, else from start to finish.

    A stretch is stamped by the wall clock, which the header pairs with the monotonic one. Without
    such reports a claim begins where the start was reported, or with the segment's first frame,
    and is as long as the position its finish reports.
    """
    begun_s = trace.header.started_unix_s
    reports = [e for e in trace.events if isinstance(e, PlaybackReported)]
    stretches: list[Stretch] = []
    for report in reports:
        if report.report != "progressed" or report.duration_s is None:
            continue
        start = report.at_ns
        if report.event_unix_s is not None:
            start = _nanoseconds(report.event_unix_s - begun_s)
        stop = start + _nanoseconds(report.duration_s)
        last = stretches[-1] if stretches else None
        if last is not None and last.speech == report.speech and start - last.stop_ns <= JOINED_NS:
            stretches[-1] = replace(last, stop_ns=max(stop, last.stop_ns))
        else:
            stretches.append(Stretch(start, stop, "claimed as played", speech=report.speech))
    told = {s.speech for s in stretches}
    started = [e for e in reports if e.report == "started"]
    for report, owner in ledger.finishes:
        if owner < 0 or report.position_s is None or report.speech in told:
            continue
        first = int(ledger.sums.first_ns[owner])
        begun = [e.at_ns for e in started if first <= e.at_ns <= report.at_ns]
        start = min(begun, default=first)
        stop = start + _nanoseconds(report.position_s)
        stretches.append(Stretch(start, stop, "claimed as played", owner + 1, report.speech))
    inside = [
        replace(s, start_ns=max(s.start_ns, 0), stop_ns=min(s.stop_ns, end)) for s in stretches
    ]
    return tuple(sorted((s for s in inside if s.stop_ns > s.start_ns), key=lambda s: s.start_ns))


def _nanoseconds(seconds: float) -> int:
    """A length in nanoseconds; what no call can last is as long as `FOREVER`."""
    if math.isnan(seconds):
        return 0
    return round(min(max(seconds, -FOREVER / 1e9), FOREVER / 1e9) * 1e9)


def _marks(events: Sequence[Event]) -> tuple[Instant, ...]:
    marks: list[Instant] = []
    latest = -1
    for event in events:
        if isinstance(event, SinkMarked):
            last = marks[latest] if latest >= 0 else None
            if last is not None and last.what == event.mark and last.speech == event.speech:
                marks[latest] = replace(last, count=last.count + 1, until_ns=event.at_ns)
                continue
            latest = len(marks)
            failed = "" if event.error is None else f"raised {event.error}"
            marks.append(Instant(event.at_ns, event.mark, event.speech, failed))
            continue
        mark = _mark(event)
        if mark is not None:
            marks.append(mark)
    return tuple(marks)


def _mark(event: Event) -> Instant | None:
    """Anything else that happened; ``None``: it is in another lane, or of no interest in time."""
    if isinstance(event, QueueCleared):
        failed = "" if event.error is None else f"raised {event.error}"
        return Instant(event.at_ns, "source cleared", detail=failed or f"source {event.source}")
    if isinstance(event, InterruptCalled):
        return Instant(event.at_ns, "interrupt", event.speech, f"by {event.by or 'unknown'}")
    if isinstance(event, SpeechCommitted):
        return Instant(event.at_ns, "commit", event.speech)
    if isinstance(event, SpeechDone):
        how = "interrupted" if event.interrupted else ""
        return Instant(event.at_ns, "speech done", event.speech, how)
    if isinstance(event, PlaybackReported) and event.report != "progressed":
        position = "" if event.position_s is None else f"position {event.position_s * 1000:.1f} ms"
        return Instant(event.at_ns, f"playback {event.report}", event.speech, position)
    if isinstance(event, FalseInterruption):
        how = "resumed" if event.resumed else "not resumed"
        return Instant(event.at_ns, "false interruption", detail=how)
    if isinstance(event, Bookmarked):
        return Instant(event.at_ns, "bookmark", detail=event.name)
    if isinstance(event, ControlStarted):
        return Instant(event.at_ns, "control begins", event.speech)
    if isinstance(event, Faulted):
        return Instant(event.at_ns, "fault of the probe", detail=f"{event.kind} {event.detail}")
    if isinstance(event, Untapped):
        return Instant(event.at_ns, f"{event.boundary} untapped", detail=event.reason)
    if isinstance(event, CancelSent):
        hits = ", ".join(map(str, event.hits)) or "none"
        return Instant(event.at_ns, "cancel sent", event.speech, f"responses hit: {hits}")
    if isinstance(event, TruncateSent):
        detail = f"message {event.message} to {event.audio_end_ms} ms"
        return Instant(event.at_ns, "truncate sent", detail=detail)
    if isinstance(event, MessageCreated):
        return Instant(event.at_ns, "message created", detail=event.message)
    return None
