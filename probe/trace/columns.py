"""What a trace is once it was read: a header, columns, events and problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import (
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    RunSent,
    SilenceInserted,
    Trailer,
)
from probe.trace.problems import TraceProblem

Ints = NDArray[np.int64]

NONE: Final = -(2**63)
"""An absent integer in an int64 column."""

ENDS: Final = ("returned", "cancelled", "raised")
"""What the column ``end`` counts through; -1 is a call whose end the trace does not show."""


@dataclass(frozen=True, slots=True, eq=False)
class CapturedColumns:
    """One row per `FrameCaptured`; the fields mean what they mean there."""

    line: Ints
    at_ns: Ints
    frame: Ints
    start_sample: Ints
    samples: Ints
    rate_hz: Ints
    channels: Ints
    speech: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""
    end: NDArray[np.int8]
    """Index into `ENDS`, -1: not known."""
    ended_ns: Ints
    """`NONE` where not known."""
    error: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""
    data_bytes: Ints
    """`NONE` where the data has the length its geometry says."""
    detail: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""

    def __len__(self) -> int:
        return len(self.at_ns)


@dataclass(frozen=True, slots=True, eq=False)
class PushedColumns:
    """One row per `FramePushed`; the fields mean what they mean there.

    The captured ranges of row ``i`` are ``range_start[a:b]``, ``range_samples[a:b]`` with
    ``a, b = range_offset[i], range_offset[i + 1]``.
    """

    line: Ints
    at_ns: Ints
    push: Ints
    source: Ints
    start_sample: Ints
    samples: Ints
    rate_hz: Ints
    channels: Ints
    accepted: NDArray[np.bool_]
    ambiguous_samples: Ints
    end: NDArray[np.int8]
    """Index into `ENDS`, -1: not known."""
    ended_ns: Ints
    """`NONE` where not known."""
    error: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""
    added_samples: Ints
    habit: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""
    detail: NDArray[np.int32]
    """Index into ``Trace.texts``, -1: none."""
    matched: NDArray[np.bool_]
    """Whether the captured ranges were ever decided; where not, the row has none."""
    range_offset: Ints
    """One longer than there are rows."""
    range_start: Ints
    """Captured position, `NONE`: audio that was never seen at captured."""
    range_samples: Ints

    def __len__(self) -> int:
        return len(self.at_ns)


@dataclass(frozen=True, slots=True, eq=False)
class SentColumns:
    """One row per `RunSent`; the fields mean what they mean there."""

    line: Ints
    at_ns: Ints
    until_ns: Ints
    source: Ints
    start_sample: Ints
    """Position among the pushed, `NONE`: audio that was never seen at pushed."""
    samples: Ints
    block_offset_samples: Ints
    ambiguous_samples: Ints

    def __len__(self) -> int:
        return len(self.at_ns)


@dataclass(frozen=True, slots=True, eq=False)
class InsertedColumns:
    """One row per `SilenceInserted`; the fields mean what they mean there."""

    line: Ints
    at_ns: Ints
    until_ns: Ints
    source: Ints
    samples: Ints
    ambiguous_samples: Ints

    def __len__(self) -> int:
        return len(self.at_ns)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A trace as far as it could be read. Positions and lengths are in samples per channel."""

    path: str
    """The file, as it was asked for."""
    header: Header
    events: tuple[Event, ...]
    """The rare events, sorted by ``at_ns``; see the head of this module."""
    event_lines: Ints
    captured: CapturedColumns
    pushed: PushedColumns
    sent: SentColumns
    inserted: InsertedColumns
    texts: tuple[str, ...]
    """What the text columns point into."""
    trailer: Trailer | None
    """``None``: the trace was cut, or is still being written."""
    problems: tuple[TraceProblem, ...]
    """What is wrong with it, in file order; empty for a sound trace."""
    lines: int
    """Lines of the file, the header and what was unreadable included."""
    last_ns: int
    """Latest instant of all events, nanoseconds since the trace began; 0 if there are none."""
    late_ns: int = 0
    """How late stamps of what left the sources may be, beyond what their tap says: as far as the
    beat of the blocks shows it and no later stamp put it right."""

    @property
    def complete(self) -> bool:
        """Whether the trace was closed and every line of it could be used."""
        return self.trailer is not None and all(p.kind == "late" for p in self.problems)

    def text(self, index: int) -> str | None:
        """Text behind a value of a text column; ``None`` for -1."""
        return None if index < 0 else self.texts[index]

    def all_events(self) -> Iterator[Event]:
        """Every event between header and trailer as an object, in time order, ties in file order.

        Slow (microseconds per event) and meant for small traces and for output; what was folded
        into the columns comes out folded.
        """
        rows: list[tuple[int, int, Event]] = [
            (event.at_ns, line, event)  # type: ignore[union-attr]  # no header is among them
            for event, line in zip(self.events, self.event_lines.tolist(), strict=True)
        ]
        kinds: tuple[tuple[Any, type[Event]], ...] = (
            (self.captured, FrameCaptured),
            (self.pushed, FramePushed),
            (self.sent, RunSent),
            (self.inserted, SilenceInserted),
        )
        for columns, kind in kinds:
            for row, (at_ns, line) in enumerate(
                zip(columns.at_ns.tolist(), columns.line.tolist(), strict=True)
            ):
                rows.append((at_ns, line, self._event(kind, columns, row)))
        rows.sort(key=lambda row: row[:2])
        return (event for _, _, event in rows)

    def _event(self, kind: type[Event], columns: Any, row: int) -> Event:
        values = {field.name: self._value(columns, field.name, row) for field in fields(kind)}
        return kind(**values)

    def _value(self, columns: Any, name: str, row: int) -> Any:
        """What the event of a row has in a field."""
        if name == "captured":
            if not columns.matched[row]:
                return None
            ranges = slice(*columns.range_offset[row : row + 2].tolist())
            starts, lengths = columns.range_start[ranges], columns.range_samples[ranges]
            return [
                (None if start == NONE else start, samples)
                for start, samples in zip(starts.tolist(), lengths.tolist(), strict=True)
            ]
        column = getattr(columns, name)
        value = column[row].item()
        if name == "end":
            return None if value < 0 else ENDS[value]
        if column.dtype == np.int32:
            return self.text(value)
        return None if value == NONE else value
