"""Lines of a trace by hand. 24 kHz, blocks of 240 samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probe.trace.events import (
    CallEnd,
    Event,
    FrameCaptured,
    FramePushed,
    MarkName,
    QueueCleared,
    RunSent,
    SinkMarked,
)
from reports import Analysis, Segment, analyze
from tests.report_traces import MS, taps, write


def captured(
    at_ms: float,
    frame: int,
    start: int,
    samples: int,
    *,
    speech: str | None = "s1",
    end: CallEnd | None = "returned",
    rate_hz: int = 24_000,
    channels: int = 1,
) -> FrameCaptured:
    at = int(at_ms * MS)
    return FrameCaptured(
        at, frame, start, samples, rate_hz, channels, speech, end, ended_ns=at + 1000
    )


def pushed(at_ms: float, push: int, start: int, samples: int, **fields: Any) -> FramePushed:
    defaults: dict[str, Any] = {"captured": [(start, samples)], "end": "returned"}
    at = int(at_ms * MS)
    defaults |= {"source": 1, "ended_ns": at + 1000, "rate_hz": 24_000, "channels": 1}
    return FramePushed(at, push, start_sample=start, samples=samples, **{**defaults, **fields})


def sent(at_ms: float, start: int | None, samples: int, **fields: Any) -> RunSent:
    block = fields.pop("block", 240)
    blocks = -(-(samples + fields.get("block_offset_samples", 0)) // block)
    at = int(at_ms * MS)
    source = fields.pop("source", 1)
    return RunSent(at, at + blocks * 10 * MS, source, start, samples, **fields)


def mark(at_ms: float, name: MarkName, speech: str | None = "s1") -> SinkMarked:
    return SinkMarked(int(at_ms * MS), name, speech, ended_ns=int(at_ms * MS) + 1000)


def cleared(at_ms: float) -> QueueCleared:
    return QueueCleared(int(at_ms * MS), 1, ended_ns=int(at_ms * MS) + 1000)


def of(folder: Path, *events: Event, tapped: list[Event] | None = None, **how: Any) -> Analysis:
    every = [*(taps() if tapped is None else tapped), *events]
    return analyze(write(folder / "call.jsonl", every, **how))


def only(analysis: Analysis) -> Segment:
    (segment,) = analysis.segments
    return segment
