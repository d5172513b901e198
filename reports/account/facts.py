"""The rare facts of a trace that the balance builds on: taps, marks, clears, ends and losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from probe.trace.events import (
    Faulted,
    PlaybackReported,
    QueueCleared,
    SinkMarked,
    SizeBounded,
    SourceClosed,
    SpeechCommitted,
    SpeechDone,
    SumsKept,
    Tapped,
    Untapped,
)
from probe.trace.reader import NONE, Trace

__all__ = ["FOREVER", "Facts", "gather"]

FOREVER: Final = 2**61
"""A time after everything; the difference of two such still fits."""

BLOCK_NS: Final = 10_000_000
"""How long a source takes to hand on a block."""

HARMLESS_FAULTS: Final = frozenset({"write_slow"})
"""Kinds of fault by which nothing was lost."""


@dataclass(slots=True)
class Facts:
    """The rare events the balance needs, sorted out once; times in nanoseconds."""

    tapped: frozenset[str]
    mid_speech: list[int]
    captured_on: int
    ended_ns: int
    """When the probe went: the tap at the head of the sink came off, or the trace ended."""
    sent_on: dict[int, int]
    sent_off: dict[int, int]
    block: dict[int, int]
    resolution: dict[str, int | None]
    marks: list[tuple[SinkMarked, int]]
    clears: list[tuple[int, int, int]]
    closed: dict[int, int]
    finished: list[PlaybackReported]
    committed: set[str]
    done: set[str]
    bounded_ns: int | None
    sums: SumsKept
    incomplete: tuple[str, ...]

    def gate(self) -> list[tuple[int, int]]:
        """When the gate was shut and opened again, in order; `FOREVER`: it was not opened."""
        shut: list[tuple[int, int]] = []
        closed: int | None = None
        for mark, _ in self.marks:
            if mark.mark == "pause" and closed is None:
                closed = mark.at_ns
            elif mark.mark == "resume" and closed is not None:
                shut.append((closed, mark.at_ns))
                closed = None
        if closed is not None:
            shut.append((closed, FOREVER))
        return shut


def gather(trace: Trace) -> Facts:
    """What the events beside the columns say about taps, marks, clears and reports. Exact."""
    tapped: set[str] = set()
    mid: list[int] = []
    captured_on: list[int] = []
    captured_off = FOREVER
    sent_on: dict[int, int] = {}
    sent_off: dict[int, int] = {}
    block: dict[int, int] = {}
    resolution: dict[str, int | None] = {}
    marks: list[tuple[SinkMarked, int]] = []
    clears: list[tuple[int, int, int]] = []
    closed: dict[int, int] = {}
    finished: list[PlaybackReported] = []
    committed: set[str] = set()
    done: set[str] = set()
    bounded: int | None = None
    sums = [0] * 6
    lost: dict[str, int] = {}
    for event, line in zip(trace.events, trace.event_lines.tolist(), strict=True):
        if isinstance(event, SinkMarked):
            marks.append((event, line))
        elif isinstance(event, Tapped):
            tapped.add(event.boundary)
            if event.mid_speech:
                mid.append(event.at_ns)
            if event.boundary == "captured":
                captured_on.append(event.at_ns)
                captured_off = FOREVER
            if event.boundary == "sent" and event.source is not None:
                sent_on.setdefault(event.source, event.at_ns)
                sent_off.pop(event.source, None)
            if event.source is not None and event.block_samples:
                block[event.source] = event.block_samples
            if event.resolution_ns is not None:
                known = resolution.get(event.boundary) or 0
                resolution[event.boundary] = max(known, event.resolution_ns)
        elif isinstance(event, Untapped):
            if event.boundary == "sent" and event.source is not None:
                sent_off[event.source] = event.at_ns
            elif event.boundary == "captured":
                captured_off = event.at_ns
        elif isinstance(event, QueueCleared):
            if event.error is None:
                ended = event.at_ns if event.ended_ns is None else event.ended_ns
                clears.append((event.source, event.at_ns, ended))
        elif isinstance(event, SourceClosed):
            closed.setdefault(event.source, event.at_ns)
        elif isinstance(event, PlaybackReported):
            if event.report == "finished":
                finished.append(event)
        elif isinstance(event, SpeechCommitted):
            committed.add(event.speech)
        elif isinstance(event, SpeechDone):
            done.add(event.speech)
            if event.interrupted:
                committed.add(event.speech)
        elif isinstance(event, SizeBounded):
            bounded = event.at_ns if bounded is None else bounded
        elif isinstance(event, SumsKept):
            sums = [
                total + more
                for total, more in zip(
                    sums,
                    (
                        event.captured_frames,
                        event.captured_samples,
                        event.pushed_frames,
                        event.pushed_samples,
                        event.sent_samples,
                        event.inserted_samples,
                    ),
                    strict=True,
                )
            ]
        elif isinstance(event, Faulted) and event.kind not in HARMLESS_FAULTS:
            lost[event.kind] = lost.get(event.kind, 0) + event.count
    for boundary, rows in (
        ("captured", len(trace.captured)),
        ("pushed", len(trace.pushed)),
        ("sent", len(trace.sent)),
    ):
        if rows:
            tapped.add(boundary)
    if not sent_on:
        sent_on = dict.fromkeys(np.unique(trace.sent.source).tolist(), NONE)
    pushed = trace.pushed
    for source in np.unique(pushed.source).tolist():
        rate = int(pushed.rate_hz[np.argmax(pushed.source == source)])
        block.setdefault(source, max(rate // 100, 1))
    for boundary in tapped:
        resolution.setdefault(boundary, None)
    if trace.late_ns:
        resolution["sent"] = (resolution.get("sent") or BLOCK_NS) + trace.late_ns
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
    if bounded is not None:
        why.append(f"the file reached its bound at {bounded / 1e6:.0f} ms: only sums from there on")
    return Facts(
        tapped=frozenset(tapped),
        mid_speech=mid,
        captured_on=min(captured_on, default=NONE),
        ended_ns=min(captured_off, trace.last_ns),
        sent_on=sent_on,
        sent_off=sent_off,
        block=block,
        resolution=resolution,
        marks=marks,
        clears=clears,
        closed=closed,
        finished=finished,
        committed=committed,
        done=done,
        bounded_ns=bounded,
        sums=SumsKept(0, *sums),
        incomplete=tuple(why),
    )
