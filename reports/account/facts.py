"""The rare facts of a trace that the balance builds on: taps, marks, clears, ends and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import numpy as np

from probe.trace.events import (
    AudioSkipped,
    Faulted,
    PlaybackReported,
    QueueCleared,
    SinkMarked,
    SizeBounded,
    SourceClosed,
    SumsKept,
    Tapped,
    Untapped,
)
from probe.trace.reader import NONE, Trace
from reports.account.boundary import BOUNDARIES, CAPTURED, FOREVER, PUSHED, SENT, SLACK_NS

__all__ = ["Facts", "Source", "gather"]

HARMLESS_FAULTS: Final = frozenset({"write_slow"})
"""Kinds of fault by which nothing was lost."""

SUMS: Final = (
    "captured_frames",
    "captured_samples",
    "pushed_frames",
    "pushed_samples",
    "sent_samples",
    "inserted_samples",
)
"""Of `SumsKept`."""

_AboutSource = Tapped | Untapped | QueueCleared | SourceClosed
Timed = TypeVar("Timed")


@dataclass(frozen=True, slots=True)
class Source:
    """What the trace says of one audio source and of who read its wire; times in nanoseconds."""

    number: int
    block: int
    """Samples it hands on per tick."""
    queue_ms: int | None
    """Capacity of its queue; ``None``: not known."""
    resolution_ns: int
    """How exact the instants are at which something left it."""
    sink: int | None
    """Number of the sink it was found under; ``None``: not known."""
    found_ns: int
    """When it was found, so that audio could be on its way to it; `NONE`: not known."""
    read: tuple[tuple[int, int], ...]
    """When its wire was read, half open; `FOREVER`: to the end."""
    clears: tuple[tuple[int, int], ...]
    """Clears of its queue that succeeded, in time order: before and after the call."""
    closed_ns: int
    """`FOREVER`: it was not closed."""

    @property
    def slack_ns(self) -> int:
        """What a stamp of its wire and one of another thread may be apart for the same thing."""
        return SLACK_NS + self.resolution_ns


@dataclass(frozen=True)
class Facts:
    """The rare events the balance needs, sorted out once; times in nanoseconds."""

    tapped: frozenset[str]
    """Names of the boundaries that were tapped."""
    sources: Mapping[int, Source]
    """Every source the trace speaks of, by its number."""
    mid_speech: tuple[int, ...]
    """When a tap went on while the agent was speaking, in time order."""
    captured_on: int
    ended_ns: int
    """When the probe went: the tap at the head of the sink came off, or the trace ended."""
    resolution_ns: Mapping[str, int | None]
    """The worst of a boundary's taps; ``None``: none of them says."""
    marks: tuple[tuple[SinkMarked, int], ...]
    """With their lines, in time order."""
    finished: tuple[PlaybackReported, ...]
    skipped: tuple[AudioSkipped, ...]
    bounded_ns: int | None
    kept: Mapping[str, int]
    """What went past each boundary while the file was bounded, by the names in `SumsKept`."""
    incomplete: tuple[str, ...]
    """Why the trace cannot tell everything; empty for a whole one."""

    def gate(self, sink: int | None = None) -> list[tuple[int, int]]:
        """When the gate was shut and opened again, in order; `FOREVER`: it was not opened.

        By the marks of that sink and those that do not say whose they are; of all for ``None``.
        """
        shut: list[tuple[int, int]] = []
        closed: int | None = None
        for mark in self.marks_of(sink):
            if mark.mark == "pause" and closed is None:
                closed = mark.at_ns
            elif mark.mark == "resume" and closed is not None:
                shut.append((closed, mark.at_ns))
                closed = None
        if closed is not None:
            shut.append((closed, FOREVER))
        return shut

    def marks_of(self, sink: int | None) -> list[SinkMarked]:
        """Marks that may be a sink's: all of them where it is not known which sink is meant."""
        return [mark for mark, _ in self.marks if sink is None or mark.sink in (None, sink)]

    @cached_property
    def breaks(self) -> tuple[list[int], list[int]]:
        """Times and lines of the marks that end a segment."""
        ends = [(mark.at_ns, line) for mark, line in self.marks if mark.mark in ("flush", "clear")]
        return [at for at, _ in ends], [line for _, line in ends]

    @property
    def read_until_ns(self) -> int:
        """Until when any wire was read; `FOREVER`: to the end."""
        return max((s.read[-1][1] for s in self.sources.values() if s.read), default=FOREVER)


def gather(trace: Trace) -> Facts:
    """What the events beside the columns say about taps, marks, clears and reports. Exact."""
    taps = _every(trace, Tapped)
    gone = [e.at_ns for e in _every(trace, Untapped) if e.boundary == CAPTURED.name]
    came = [e.at_ns for e in taps if e.boundary == CAPTURED.name]
    off = max(gone, default=FOREVER)
    tapped = frozenset(e.boundary for e in taps) | {
        boundary.name for boundary in BOUNDARIES if len(boundary.rows(trace))
    }
    sums = _every(trace, SumsKept)
    bounded = min((e.at_ns for e in _every(trace, SizeBounded)), default=None)
    return Facts(
        tapped=tapped,
        sources=_sources(trace),
        mid_speech=tuple(e.at_ns for e in taps if e.mid_speech),
        captured_on=min(came, default=NONE),
        ended_ns=min(off if off >= max(came, default=NONE) else FOREVER, trace.last_ns),
        resolution_ns={
            boundary: max(
                (
                    # Stamps of the wire that came late without a later one to tell.
                    tap.resolution_ns + (trace.late_ns if boundary == SENT.name else 0)
                    for tap in taps
                    if tap.boundary == boundary and tap.resolution_ns is not None
                ),
                default=None,
            )
            for boundary in tapped
        },
        marks=tuple(
            (event, line)
            for event, line in zip(trace.events, trace.event_lines.tolist(), strict=True)
            if isinstance(event, SinkMarked)
        ),
        finished=tuple(e for e in _every(trace, PlaybackReported) if e.report == "finished"),
        skipped=tuple(_every(trace, AudioSkipped)),
        bounded_ns=bounded,
        kept={name: sum(getattr(event, name) for event in sums) for name in SUMS},
        incomplete=_incomplete(trace, bounded),
    )


def _every(trace: Trace, kind: type[Timed]) -> list[Timed]:
    return [event for event in trace.events if isinstance(event, kind)]


def _sources(trace: Trace) -> dict[int, Source]:
    """Every source by its number, ascending."""
    about: dict[int, list[_AboutSource]] = {}
    for event in trace.events:
        if isinstance(event, _AboutSource) and event.source is not None:
            about.setdefault(event.source, []).append(event)
    pushed, sent = trace.pushed, trace.sent
    numbers, first = np.unique(pushed.source, return_index=True)
    rates = dict(zip(numbers.tolist(), pushed.rate_hz[first].tolist(), strict=True))
    left = set(np.unique(np.concatenate((sent.source, trace.inserted.source))).tolist())
    told = any(isinstance(e, Tapped) and e.boundary == SENT.name for e in trace.events)
    # Where no tap at *sent* is told of at all, what was sent shows that there was one.
    untold = set() if told else set(np.unique(sent.source).tolist())
    return {
        number: _source(
            number, about.get(number, []), rates.get(number, 0), number in untold, trace.late_ns
        )
        for number in sorted({*about, *rates, *left})
    }


def _source(
    number: int, events: list[_AboutSource], rate_hz: int, untold: bool, late_ns: int
) -> Source:
    taps = [event for event in events if isinstance(event, Tapped)]
    wire = [tap for tap in taps if tap.boundary == SENT.name]
    rate_hz = next((tap.rate_hz for tap in taps if tap.rate_hz), rate_hz)
    block = next((tap.block_samples for tap in reversed(taps) if tap.block_samples), rate_hz // 100)
    return Source(
        number=number,
        block=max(block, 1),
        queue_ms=next((tap.queue_ms for tap in reversed(taps) if tap.queue_ms), None),
        # A resolution of nothing was never measured: a stamp is as late as its block.
        resolution_ns=late_ns
        + (max((tap.resolution_ns or 0 for tap in wire), default=0) or SENT.resolution_ns),
        sink=next((tap.sink for tap in taps if tap.boundary == PUSHED.name), None),
        found_ns=min((tap.at_ns for tap in taps), default=NONE),
        read=((NONE, FOREVER),) if untold else _read(events),
        clears=tuple(
            (e.at_ns, e.at_ns if e.ended_ns is None else e.ended_ns)
            for e in events
            if isinstance(e, QueueCleared) and e.error is None
        ),
        closed_ns=min((e.at_ns for e in events if isinstance(e, SourceClosed)), default=FOREVER),
    )


def _read(events: list[_AboutSource]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for event in events:
        if not isinstance(event, Tapped | Untapped) or event.boundary != SENT.name:
            continue
        reading = bool(spans) and spans[-1][1] == FOREVER
        if isinstance(event, Tapped) and not reading:
            spans.append((event.at_ns, FOREVER))
        elif isinstance(event, Untapped) and reading:
            spans[-1] = (spans[-1][0], event.at_ns)
    return tuple(spans)


def _incomplete(trace: Trace, bounded_ns: int | None) -> tuple[str, ...]:
    lost: dict[str, int] = {}
    for event in _every(trace, Faulted):
        if event.kind not in HARMLESS_FAULTS:
            lost[event.kind] = lost.get(event.kind, 0) + event.count
    why: list[str] = []
    if trace.trailer is None:
        why.append(
            "the trace has no end: the call was killed, its disk was full, or it is still running"
        )
    why += [
        f"line {problem.line}: {problem.text}" if problem.line else problem.text
        for problem in trace.problems
        if problem.spoils and (problem.kind != "cut" or trace.trailer is not None)
    ]
    why += [f"fault of the probe: {kind} ({count}x)" for kind, count in sorted(lost.items())]
    if bounded_ns is not None:
        why.append(
            f"the file reached its bound at {bounded_ns / 1e6:.0f} ms: only sums from there on"
        )
    return tuple(why)
