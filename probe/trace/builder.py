"""From what a parser gathered to a trace: folded, its stamps settled, checked and sorted."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from probe.trace.checks import (
    check_captured,
    check_events,
    check_order,
    check_origins,
    check_pushed,
    check_sent,
    check_span,
    check_speeches,
)
from probe.trace.columns import InsertedColumns, Ints, SentColumns, Trace
from probe.trace.events import (
    CaptureEnded,
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    SizeBounded,
    Trailer,
)
from probe.trace.fold import columns, fold_captured, fold_pushed, frozen, in_order
from probe.trace.problems import TraceProblem
from probe.trace.rows import Rows, Texts
from probe.trace.wire import settle

__all__ = ["Gathered", "build"]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Lines of a trace, sorted out but not looked at together."""

    path: str
    header: Header
    trailer: Trailer | None
    rare: Sequence[Event]
    rare_lines: array[int]
    rows: dict[type[Event], Rows]
    texts: Texts
    problems: Sequence[TraceProblem]
    lines: int
    """Whole lines."""
    torn: bool
    """Whether something follows them that is no whole line."""
    broken: str
    """Why no more could be read, where that is not the end of the file."""


def build(gathered: Gathered) -> Trace:
    """The trace that these lines make, with everything that is wrong with it."""
    rows, rare = gathered.rows, gathered.rare
    rare_lines = np.array(gathered.rare_lines, dtype=np.int64)
    rare_at = _times(rare, "at_ns")
    rare_seen = np.maximum(rare_at, _times(rare, "until_ns", rare_at))
    captured, captured_problems = fold_captured(rows[FrameCaptured], rows[CaptureEnded])
    pushed, pushed_problems = fold_pushed(rows[FramePushed], rows[PushEnded], rows[PushMatched])
    closed = gathered.trailer is not None
    settled = settle(
        rare,
        rare_lines,
        pushed,
        columns(rows[RunSent]),
        columns(rows[SilenceInserted]),
        whole=closed,
    )
    sent = SentColumns(**_by_time(settled.sent))
    inserted = InsertedColumns(**_by_time(settled.inserted))
    texts = tuple(text for text in gathered.texts if text is not None)
    tables: tuple[Any, ...] = (captured, pushed, sent, inserted)
    last_ns = max(
        (int(at.max()) for at in (rare_at, *(table.at_ns for table in tables)) if len(at)),
        default=0,
    )
    last_ns = max(last_ns, gathered.trailer.at_ns if gathered.trailer else 0)
    # Of a file that reached its bound, the last frames are in the sums only.
    whole = closed and not any(isinstance(event, SizeBounded) for event in rare)
    problems = [
        *gathered.problems,
        *captured_problems,
        *pushed_problems,
        *settled.problems,
        *check_captured(captured),
        *check_pushed(pushed),
        *check_origins(captured, pushed, whole=whole),
        *check_sent(pushed, sent, whole=whole),
        *check_span("sent", sent.line, sent.at_ns, sent.until_ns),
        *check_span("inserted", inserted.line, inserted.at_ns, inserted.until_ns),
        *check_events(rare, rare_lines),
        *check_speeches(gathered.header, rare, rare_lines, captured, texts),
        *check_order(
            [
                (rare_lines, rare_at, rare_seen, False),
                *((table.line, table.at_ns, table.at_ns, False) for table in (captured, pushed)),
                *((table.line, table.at_ns, table.until_ns, True) for table in (sent, inserted)),
            ]
        ),
        *_check_end(gathered, last_ns),
    ]
    order = np.argsort(rare_at, kind="stable")
    return Trace(
        path=gathered.path,
        header=gathered.header,
        events=tuple([rare[index] for index in order.tolist()]),
        event_lines=frozen(rare_lines[order]),
        captured=captured,
        pushed=pushed,
        sent=sent,
        inserted=inserted,
        texts=texts,
        trailer=gathered.trailer,
        problems=tuple(sorted(problems, key=attrgetter("line"))),
        lines=gathered.lines + gathered.torn,
        last_ns=last_ns,
        late_ns=settled.late_ns,
    )


def _by_time(table: dict[str, Any]) -> dict[str, Any]:
    order = in_order(table["at_ns"])
    return {name: frozen(values[order]) for name, values in table.items()}


def _check_end(gathered: Gathered, last_ns: int) -> Iterator[TraceProblem]:
    last = f"last event at {last_ns / 1e9:.3f} s"
    lines = gathered.lines
    if gathered.broken:
        yield TraceProblem(lines, "cut", f"{gathered.broken}; {last}")
    elif gathered.torn:
        yield TraceProblem(lines + 1, "cut", f"the trace ends in the middle of a line; {last}")
    elif gathered.trailer is None:
        yield TraceProblem(lines, "cut", f"the trace ends without a trailer; {last}")


def _times(events: Sequence[Event], name: str, default: Ints | None = None) -> Ints:
    if default is None:
        return np.fromiter(map(attrgetter(name), events), np.int64, len(events))
    return np.fromiter(
        (getattr(event, name, instead) for event, instead in zip(events, default, strict=True)),
        np.int64,
        len(events),
    )
