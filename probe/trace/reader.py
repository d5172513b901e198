"""A trace file, read: the header, the rare events as objects, the frequent ones as columns.

What a report builds on
    ``read_trace(path)`` gives a `Trace`:

    * ``header``: the `Header`.
    * ``captured``, ``pushed``, ``sent``, ``inserted``: numpy columns (`CapturedColumns`,
      `PushedColumns`, `SentColumns`, `InsertedColumns`), one row per event, sorted by ``at_ns``
      (stable: ties stay in file order), read-only. A call of an hour has hundreds of thousands of
      these. What became known later is folded in already: `CaptureEnded` and `PushEnded` fill
      ``end``, ``ended_ns``, ``error`` and ``accepted``; `PushMatched` fills the captured ranges.
      Those three are therefore no objects of their own.
    * ``events``: everything else but header and trailer, as the dataclasses of
      `probe.trace.events`, sorted by ``at_ns`` (stable); ``event_lines`` are their line numbers,
      so that rows and objects with the same ``at_ns`` can be put in file order.
    * ``trailer``: the `Trailer`, or ``None`` where the trace was cut.
    * ``problems`` and ``complete``: see `TraceProblem`.

    In columns, an absent integer is `NONE` in int64 columns; texts are indices into
    ``Trace.texts``, -1 where absent; ``end`` is an index into `ENDS`, -1 while the call runs.

Which bad input does what
    `TraceError` (one line: expected, found, where), when nothing can be said: the file is missing,
    a directory, unreadable, empty, or does not begin with a readable header of schema 1 (not JSON,
    binary, another event first, a newer schema, a compressed file damaged in its first block).

    A `Trace` with ``complete`` false and a `TraceProblem` that says why, for everything after the
    header. Nothing else is ever raised for what a file holds.

The parser is fed in pieces of any length, so a file that is still growing can be followed with it.
"""

from __future__ import annotations

import os
import typing
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import IO, Annotated, Any, Final, Literal

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray

from probe.errors import TraceError
from probe.trace.events import (
    EVENTS,
    SCHEMA,
    CaptureEnded,
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    Trailer,
)
from probe.trace.writer import MAX_LINE_BYTES

__all__ = [
    "ENDS",
    "NONE",
    "CapturedColumns",
    "InsertedColumns",
    "PushedColumns",
    "SentColumns",
    "Trace",
    "TraceError",
    "TraceParser",
    "TraceProblem",
    "read_trace",
]

Ints = NDArray[np.int64]

NONE: Final = -(2**63)
"""An absent integer in an int64 column."""

ENDS: Final = ("returned", "cancelled", "raised")
"""What the column ``end`` counts through; -1 is a call whose end the trace does not show."""

ProblemKind = Literal[
    "cut",
    "garbled",
    "bad-value",
    "unknown-event",
    "duplicate-header",
    "after-trailer",
    "count",
    "time",
    "missing",
    "inconsistent",
]

ORDINARY_DISORDER_NS: Final = 1_000_000_000
"""How far lines may run backwards in time because several threads write."""

LATE_MATCH_NS: Final = 60_000_000_000
"""The same for what left the source: silence is told from speech only by what comes after it."""

_CHUNK: Final = 1 << 18
_MAX_NS: Final = 10**17
_MAX_POSITION: Final = 10**17
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TraceProblem:
    """Something in a trace that is not as it should be. Repetitions are one problem, counted.

    Kinds:
        ``cut``: the trace ends without a trailer, or in the middle of a line or of a compressed
        block; the call was killed or is still running. ``garbled``: a line is no JSON object with
        an event name. ``bad-value``: a known event lacks a field, or a value is of the wrong type
        or beyond all reason. ``unknown-event``: an event this version does not know, written by a
        newer one or damaged. ``duplicate-header`` and ``after-trailer``: lines that belong to no
        trace, ignored. ``count``: the trailer counted other lines than there are. ``time``:
        time runs backwards, or a call ended before it began. ``missing``: numbers of frames or
        pushes are skipped. ``inconsistent``: two lines contradict each other.
    """

    line: int
    """Line in the (uncompressed) file, from 1, where it was seen first; 0: the file as a whole."""
    kind: ProblemKind
    text: str
    """One line: what was expected, what was found."""
    count: int = 1
    """How many times, of this kind."""


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

    @property
    def complete(self) -> bool:
        """Whether the trace was closed and every line of it could be used."""
        return self.trailer is not None and not self.problems

    def text(self, index: int) -> str | None:
        """Text behind a value of a text column; ``None`` for -1."""
        return None if index < 0 else self.texts[index]

    def all_events(self) -> Iterator[Event]:
        """Every event between header and trailer as an object, in time order, ties in file order.

        Slow (microseconds per event) and meant for small traces and for output; what was folded
        into the columns comes out folded.
        """
        rows: list[tuple[int, int, Event]] = [
            (event.at_ns, line, event)  # type: ignore[union-attr]
            for event, line in zip(self.events, self.event_lines.tolist(), strict=True)
        ]
        for columns, build in (
            (self.captured, self._captured),
            (self.pushed, self._pushed),
            (self.sent, self._sent),
            (self.inserted, self._inserted),
        ):
            for row, (at_ns, line) in enumerate(
                zip(columns.at_ns.tolist(), columns.line.tolist(), strict=True)
            ):
                rows.append((at_ns, line, build(row)))
        rows.sort(key=lambda row: row[:2])
        return (event for _, _, event in rows)

    def _captured(self, row: int) -> Event:
        c = self.captured
        return FrameCaptured(
            at_ns=int(c.at_ns[row]),
            frame=int(c.frame[row]),
            start_sample=int(c.start_sample[row]),
            samples=int(c.samples[row]),
            rate_hz=int(c.rate_hz[row]),
            channels=int(c.channels[row]),
            speech=self.text(c.speech[row]),
            end=_end(c.end[row]),
            ended_ns=_optional(c.ended_ns[row]),
            error=self.text(c.error[row]),
            data_bytes=_optional(c.data_bytes[row]),
        )

    def _pushed(self, row: int) -> Event:
        c = self.pushed
        ranges = slice(int(c.range_offset[row]), int(c.range_offset[row + 1]))
        return FramePushed(
            at_ns=int(c.at_ns[row]),
            push=int(c.push[row]),
            source=int(c.source[row]),
            start_sample=int(c.start_sample[row]),
            samples=int(c.samples[row]),
            rate_hz=int(c.rate_hz[row]),
            channels=int(c.channels[row]),
            accepted=bool(c.accepted[row]),
            captured=[
                (_optional(start), int(samples))
                for start, samples in zip(
                    c.range_start[ranges], c.range_samples[ranges], strict=True
                )
            ]
            if c.matched[row]
            else None,
            ambiguous_samples=int(c.ambiguous_samples[row]),
            end=_end(c.end[row]),
            ended_ns=_optional(c.ended_ns[row]),
            error=self.text(c.error[row]),
        )

    def _sent(self, row: int) -> Event:
        c = self.sent
        return RunSent(
            at_ns=int(c.at_ns[row]),
            until_ns=int(c.until_ns[row]),
            source=int(c.source[row]),
            start_sample=_optional(c.start_sample[row]),
            samples=int(c.samples[row]),
            block_offset_samples=int(c.block_offset_samples[row]),
            ambiguous_samples=int(c.ambiguous_samples[row]),
        )

    def _inserted(self, row: int) -> Event:
        c = self.inserted
        return SilenceInserted(
            at_ns=int(c.at_ns[row]),
            until_ns=int(c.until_ns[row]),
            source=int(c.source[row]),
            samples=int(c.samples[row]),
            ambiguous_samples=int(c.ambiguous_samples[row]),
        )


def _optional(value: Any) -> int | None:
    return None if value == NONE else int(value)


def _end(index: Any) -> Any:
    return None if index < 0 else ENDS[index]


# --- What a line may hold ------------------------------------------------------------------------

_SAMPLES: Final = (0, 10**9)
_RANGES: Final[dict[str, tuple[int, int]]] = {
    "schema": (1, SCHEMA),
    "started_monotonic_ns": (0, 2**63 - 1),
    "resolution_ns": (0, _MAX_NS),
    "start_sample": (0, _MAX_POSITION),
    "rate_hz": (1, 10**7),
    "channels": (1, 1024),
    "source": (1, 10**9),
    "frame": (1, 10**15),
    "push": (1, 10**15),
    "queue_ms": (0, 10**9),
}
"""Least and greatest value by field; wide enough for any real call, narrow enough to add up."""


def _range(event: type[Event], name: str) -> tuple[int, int]:
    if name in _RANGES:
        return _RANGES[name]
    if name.endswith("_ns"):
        return -_MAX_NS, _MAX_NS
    if name.endswith("samples") and event.NAME != "sums":
        return _SAMPLES
    return 0, _MAX_POSITION


def _typed(event: type[Event], name: str, hint: Any) -> Any:
    """Type of a field with its limits, for the decoder."""
    low, high = _range(event, name)
    bounded: Any = Annotated[int, msgspec.Meta(ge=low, le=high)]
    if hint is int:
        return bounded
    if hint == int | None:
        return bounded | None
    if name == "captured":
        ranges: Any = list[
            tuple[
                Annotated[int, msgspec.Meta(ge=0, le=_MAX_POSITION)] | None,
                Annotated[int, msgspec.Meta(ge=_SAMPLES[0], le=_SAMPLES[1])],
            ]
        ]
        return ranges if event is PushMatched else ranges | None
    return hint


def _line_type(event: type[Event]) -> type[msgspec.Struct]:
    """Twin of an event class that the decoder can choose by the key ``event``."""
    hints = typing.get_type_hints(event)
    members: list[Any] = []
    for field in fields(event):
        typed = _typed(event, field.name, hints[field.name])
        if field.default_factory is not MISSING:
            default = msgspec.field(default_factory=field.default_factory)
            members.append((field.name, typed, default))
        elif field.default is not MISSING:
            members.append((field.name, typed, field.default))
        else:
            members.append((field.name, typed))
    return msgspec.defstruct(
        f"{event.__name__}Line",
        members,
        tag_field="event",
        tag=event.NAME,
        frozen=True,
        gc=False,
    )


_LINES: Final = {event: _line_type(event) for event in EVENTS.values()}
_EVENT_OF_LINE: Final = {line: event for event, line in _LINES.items()}
_DECODER: Final = msgspec.json.Decoder(typing.Union[tuple(_LINES.values())])  # noqa: UP007 - built


class _Name(msgspec.Struct, gc=False):
    """What is left of a line that could not be decoded: the name of its event."""

    event: str


_NAME_DECODER: Final = msgspec.json.Decoder(_Name)

# A line nested too deeply ends the decoder's patience with a RecursionError.
_UNDECODABLE: Final = (msgspec.DecodeError, RecursionError)


def _as_event(line: msgspec.Struct) -> Event:
    return _EVENT_OF_LINE[type(line)](*msgspec.structs.astuple(line))


def _shown(value: str | bytes) -> str:
    """Something from a file, fit to be printed in one line."""
    text = repr(value[:48])
    return (text if isinstance(value, str) else text[1:]) + ("…" if len(value) > 48 else "")


class _Texts(dict["str | None", int]):
    """Texts by their index; a text not seen before gets the next one."""

    def __missing__(self, text: str | None) -> int:
        index = self[text] = len(self) - 1
        return index


_ENDS_INDEX: Final[dict[str | None, int]] = {None: -1} | {end: i for i, end in enumerate(ENDS)}


_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "q": np.dtype(np.int64),
    "i": np.dtype(np.int32),
    "b": np.dtype(np.int8),
}


class _Rows:
    """Columns of one class of lines while they grow: machine integers, no objects."""

    def __init__(self, event: type[Event], texts: _Texts) -> None:
        self.line = array("q")
        self.columns: dict[str, array[int]] = {}
        self.range_count = array("q")
        self.range_start = array("q")
        self.range_samples = array("q")
        self._fill: list[Callable[[tuple[Any, ...]], None]] = []
        hints = typing.get_type_hints(event)
        for field in fields(event):
            hint = hints[field.name]
            if field.name == "captured":
                self._fill.append(self._extend_ranges)
            elif field.name == "end":
                self._add(field.name, "b", _end_indices)
            elif hint is bool:
                self._add(field.name, "b", _unchanged)
            elif hint is int:
                self._add(field.name, "q", _unchanged)
            elif hint == int | None:
                self._add(field.name, "q", _with_none)
            else:
                self._add(field.name, "i", lambda values: list(map(texts.__getitem__, values)))

    def _add(
        self, name: str, typecode: str, convert: Callable[[tuple[Any, ...]], Sequence[Any]]
    ) -> None:
        column: array[int] = array(typecode)
        dtype = _DTYPES[typecode]
        self.columns[name] = column

        def fill(values: tuple[Any, ...]) -> None:
            # By way of numpy: array.extend takes three times as long.
            column.frombytes(np.array(convert(values), dtype=dtype).tobytes())

        self._fill.append(fill)

    def _extend_ranges(self, values: tuple[Any, ...]) -> None:
        count, start, samples = self.range_count, self.range_start, self.range_samples
        for ranges in values:
            if ranges is None:
                count.append(-1)
                continue
            count.append(len(ranges))
            for first, length in ranges:
                start.append(NONE if first is None else first)
                samples.append(length)

    def extend(self, lines: Iterable[msgspec.Struct], numbers: Ints) -> None:
        self.line.frombytes(numbers.tobytes())
        by_field = zip(*map(msgspec.structs.astuple, lines), strict=True)
        for fill, values in zip(self._fill, by_field, strict=True):
            fill(values)

    def __getitem__(self, name: str) -> Any:
        column = self.columns[name]
        return np.array(np.frombuffer(column, dtype=_DTYPES[column.typecode]))

    def numbers(self) -> Ints:
        return np.array(_int64(self.line))


def _unchanged(values: tuple[Any, ...]) -> Sequence[Any]:
    return values


def _with_none(values: tuple[Any, ...]) -> Sequence[Any]:
    return [NONE if value is None else value for value in values]


def _end_indices(values: tuple[Any, ...]) -> Sequence[Any]:
    return [_ENDS_INDEX[value] for value in values]


_COLUMNED: Final[tuple[type[Event], ...]] = (
    FrameCaptured,
    CaptureEnded,
    FramePushed,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
)

_RARE: Final = len(_COLUMNED)
_LAST: Final = _RARE + 1
_CODES: Final = {_LINES[event]: code for code, event in enumerate(_COLUMNED)} | {
    _LINES[Trailer]: _LAST
}
"""What becomes of a decoded line: the columns of its class, an object, or the end."""


# --- Parsing -------------------------------------------------------------------------------------


class TraceParser:
    """Takes a trace in pieces of bytes, as they come, and makes a `Trace` of what it got so far.

    Fit for a file that is still being written: `feed` what was added, ask `trace` when wanted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.header: Header | None = None
        """The header, as soon as its line is whole."""
        self.trailer: Trailer | None = None
        """The trailer, once it was seen."""
        self._texts = _Texts({None: -1})
        self._rows = {event: _Rows(event, self._texts) for event in _COLUMNED}
        self._rare: list[Event] = []
        self._rare_lines = array("q")
        self._problems: dict[tuple[str, str], TraceProblem] = {}
        self._number = 0  # of the last whole line
        self._blank = 0  # lines before the trailer that hold nothing
        self._rest = b""
        self._broken = ""  # why no more could be read, where that is not the end of the file
        self._oversized = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the (uncompressed) file, cut anywhere.

        Raises:
            TraceError: the first line is no header this version can read.
        """
        if self._oversized:
            end = data.find(b"\n")
            if end < 0:
                return
            self._oversized = False
            self._skip_oversized()
            data = data[end + 1 :]
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        if end:
            self._take(data[:end])
        if len(self._rest) > MAX_LINE_BYTES:
            if self.header is None:
                raise self._no_header(self._rest)
            self._rest = b""
            self._oversized = True

    def close(self, broken: str = "") -> None:
        """Says that no more comes, and why, if that is not because the file ends here.

        A last line without a newline counts if it is whole; an editor may have taken the newline.

        Raises:
            TraceError: there is no header, or none this version can read.
        """
        self._broken = broken
        if self.header is None and not self._rest.strip():
            raise TraceError(
                f"{self.path}: expected a trace, found {broken or 'nothing: the file is empty'}"
            )
        if not self._rest:
            return
        try:
            _DECODER.decode(self._rest.removeprefix(_BOM))
        except _UNDECODABLE:
            if self.header is None:
                self._take(self._rest + b"\n")
        else:
            self._take(self._rest + b"\n")
            self._rest = b""

    def trace(self) -> Trace:
        """What was fed so far, as a trace; a rest that is no whole line is left out and reported.

        Raises:
            TraceError: no header was seen.
        """
        if self.header is None:
            raise TraceError(f"{self.path}: expected a trace, found less than its first line")
        return _Builder(self, self.header).trace()

    # Lines ---------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        """Whole lines, the last newline included."""
        if self.header is None:
            end = data.index(b"\n")
            self._take_header(data[:end])
            data = data[end + 1 :]
            if not data:
                return
        count = data.count(b"\n")
        if self.trailer is None:
            try:
                lines = _DECODER.decode_lines(data)
            except _UNDECODABLE:
                lines = []
            # Blank lines are skipped by the decoder; then the numbers would not be right.
            if len(lines) == count:
                self._sort_out(lines, np.arange(self._number + 1, self._number + 1 + count))
                self._number += count
                return
        self._take_singly(data)

    def _take_singly(self, data: bytes) -> None:
        lines: list[Any] = []
        numbers: list[int] = []
        ended = self.trailer is not None
        for number, raw in enumerate(data[:-1].split(b"\n"), self._number + 1):
            self._number = number
            if not raw or raw.isspace():
                self._blank += not ended
            elif len(raw) > MAX_LINE_BYTES:
                self._problem(number, "garbled", _too_long())
            else:
                try:
                    line = _DECODER.decode(raw)
                except _UNDECODABLE as error:
                    self._undecodable(number, raw, error)
                else:
                    ended = ended or isinstance(line, _LINES[Trailer])
                    lines.append(line)
                    numbers.append(number)
        self._sort_out(lines, np.array(numbers, dtype=np.int64))

    def _sort_out(self, lines: list[Any], numbers: Ints) -> None:
        codes = np.array([_CODES.get(line.__class__, _RARE) for line in lines], dtype=np.int8)
        stop = 0
        if self.trailer is None:
            trailers = np.flatnonzero(codes == _LAST)
            stop = int(trailers[0]) + 1 if len(trailers) else len(lines)
        if stop < len(lines):
            text = "expected nothing after the trailer"
            self._problem(int(numbers[stop]), "after-trailer", text, count=len(lines) - stop)
            codes = codes[:stop]
        for code, event in enumerate(_COLUMNED):
            where = np.flatnonzero(codes == code)
            if len(where):
                self._rows[event].extend([lines[i] for i in where.tolist()], numbers[where])
        for i in np.flatnonzero(codes >= _RARE).tolist():
            self._take_rare(_as_event(lines[i]), int(numbers[i]))

    def _take_rare(self, event: Event, number: int) -> None:
        if isinstance(event, Trailer):
            self.trailer = event
            before = number - 1 - self._blank
            if event.events != before:
                self._problem(
                    number,
                    "count",
                    f"the trailer counts {event.events} lines before it, found {before}",
                )
        elif isinstance(event, Header):
            self._problem(number, "duplicate-header", "expected one header, found another")
        else:
            self._rare.append(event)
            self._rare_lines.append(number)

    def _undecodable(self, number: int, raw: bytes, error: Exception) -> None:
        name: str | None = None
        try:
            name = _NAME_DECODER.decode(raw).event
        except msgspec.ValidationError:
            self._problem(number, "garbled", f"expected a named event, found {_shown(raw)}")
            return
        except _UNDECODABLE:
            pass
        if name is None or not isinstance(error, msgspec.ValidationError):
            self._problem(number, "garbled", f"expected a line of JSON, found {_shown(raw)}")
        elif name in EVENTS:
            self._problem(number, "bad-value", f"{name}: {error}", name)
        else:
            self._problem(number, "unknown-event", f"unknown event {_shown(name)}")

    def _skip_oversized(self) -> None:
        self._number += 1
        self._problem(self._number, "garbled", _too_long())

    # Header --------------------------------------------------------------------------------------

    def _take_header(self, raw: bytes) -> None:
        self._number = 1
        raw = raw.removeprefix(_BOM)
        try:
            line = _DECODER.decode(raw)
        except _UNDECODABLE as error:
            raise self._no_header(raw, error) from None
        header = _as_event(line)
        if not isinstance(header, Header):
            raise self._no_header(raw)
        self.header = header

    def _no_header(self, raw: bytes, error: Exception | None = None) -> TraceError:
        found = _shown(raw)
        try:
            values = msgspec.json.decode(raw, type=dict[str, Any])
        except _UNDECODABLE:
            values = {}
        name = values.get("event")
        schema = values.get("schema")
        if name == "header":
            found = f"one that does not fit: {error}"
            if isinstance(schema, int) and schema > SCHEMA:
                return TraceError(
                    f"{self.path}:1: expected a trace of schema {SCHEMA}, found schema "
                    f"{schema if schema < 10**9 else 'beyond reason'}; a newer sinkprobe reads it"
                )
        elif isinstance(name, str):
            found = f"the event {_shown(name)}"
        return TraceError(
            f"{self.path}:1: expected the header of a trace (schema {SCHEMA}), found {found}"
        )

    # Problems ------------------------------------------------------------------------------------

    def _problem(
        self, line: int, kind: ProblemKind, text: str, group: str = "", count: int = 1
    ) -> None:
        known = self._problems.get((kind, group))
        count += 0 if known is None else known.count
        first = (line, text) if known is None else (known.line, known.text)
        self._problems[kind, group] = TraceProblem(first[0], kind, first[1], count)


def _too_long() -> str:
    return f"expected lines of at most {MAX_LINE_BYTES} bytes, found a longer one"


# --- From rows to a trace ------------------------------------------------------------------------


class _Builder:
    """Makes a `Trace` of what a parser gathered: folds, sorts, and checks what contradicts."""

    def __init__(self, parser: TraceParser, header: Header) -> None:
        self._parser = parser
        self._header = header
        self._problems = list(parser._problems.values())

    def trace(self) -> Trace:
        parser = self._parser
        rare_lines = np.array(parser._rare_lines, dtype=np.int64)
        rare_at = _times(parser._rare, "at_ns")
        captured = self._captured()
        pushed = self._pushed()
        sent = self._sent()
        inserted = self._inserted()
        self._check_order(rare_lines, rare_at, captured, pushed, sent, inserted)
        last_ns = max(
            [
                int(times.max())
                for times in self._all_times(rare_at, captured, pushed, sent, inserted)
            ]
            + [parser.trailer.at_ns if parser.trailer else 0]
        )
        self._check_end(last_ns)
        order = np.argsort(rare_at, kind="stable")
        return Trace(
            path=parser.path,
            header=self._header,
            events=tuple([parser._rare[index] for index in order.tolist()]),
            event_lines=_frozen(rare_lines[order]),
            captured=captured,
            pushed=pushed,
            sent=sent,
            inserted=inserted,
            texts=tuple(text for text in parser._texts if text is not None),
            trailer=parser.trailer,
            problems=tuple(sorted(self._problems, key=lambda problem: problem.line)),
            lines=parser._number + bool(parser._rest),
            last_ns=last_ns,
        )

    def _rows(self, event: type[Event]) -> _Rows:
        return self._parser._rows[event]

    def _captured(self) -> CapturedColumns:
        rows = self._rows(FrameCaptured)
        columns = {name: rows[name] for name in rows.columns}
        columns["line"] = rows.numbers()
        index = self._number_index("captured", "frame", columns)
        ended = self._rows(CaptureEnded)
        where, found = self._located("capture_ended", "frame", ended, index)
        columns["end"][where] = ended["end"][found]
        columns["ended_ns"][where] = ended["at_ns"][found]
        columns["error"][where] = ended["error"][found]

        in_order = index.rows
        start, samples = columns["start_sample"][in_order], columns["samples"][in_order]
        expected = start[:-1] + samples[:-1]
        self._report_rows(
            (start[1:] != expected) & (np.diff(index.numbers) == 1),
            columns["line"][in_order][1:],
            "inconsistent",
            "a captured frame does not start where the one before it stopped",
        )
        self._check_span("captured", columns["line"], columns["at_ns"], columns["ended_ns"])
        order = index.by_time(columns["at_ns"])
        return CapturedColumns(**{name: _frozen(values[order]) for name, values in columns.items()})

    def _pushed(self) -> PushedColumns:
        rows = self._rows(FramePushed)
        columns = {name: rows[name] for name in rows.columns}
        columns["line"] = rows.numbers()
        index = self._number_index("pushed", "push", columns)
        ended = self._rows(PushEnded)
        where, found = self._located("push_ended", "push", ended, index)
        columns["end"][where] = ended["end"][found]
        columns["ended_ns"][where] = ended["at_ns"][found]
        columns["error"][where] = ended["error"][found]
        columns["accepted"][where] = ended["accepted"][found]

        # Ranges of both kinds of lines in one table; each row points to where its own begin.
        late = self._rows(PushMatched)
        count = np.array(rows.range_count, dtype=np.int64)
        begin = np.cumsum(np.maximum(count, 0)) - np.maximum(count, 0)
        late_count = np.array(late.range_count, dtype=np.int64)
        late_begin = np.cumsum(late_count) - late_count + len(rows.range_start)
        where, found = self._located("push_matched", "push", late, index)
        count[where] = late_count[found]
        begin[where] = late_begin[found]
        columns["ambiguous_samples"][where] = late["ambiguous_samples"][found]
        starts = np.concatenate([_int64(rows.range_start), _int64(late.range_start)])
        lengths = np.concatenate([_int64(rows.range_samples), _int64(late.range_samples)])

        self._check_pushes(columns, index)
        self._check_span("pushed", columns["line"], columns["at_ns"], columns["ended_ns"])
        order = index.by_time(columns["at_ns"])
        count, begin = count[order], begin[order]
        columns = {name: values[order] for name, values in columns.items()}
        matched = count >= 0
        offset = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(np.maximum(count, 0), out=offset[1:])
        pick = np.arange(offset[-1]) + np.repeat(begin - offset[:-1], np.maximum(count, 0))
        range_samples = lengths[pick]
        summed = np.concatenate([[0], np.cumsum(range_samples)])[offset]
        self._report_rows(
            matched & (np.diff(summed) != columns["samples"]),
            columns["line"],
            "inconsistent",
            "the captured ranges of a push do not add up to its samples",
        )
        columns["accepted"] = columns["accepted"].astype(np.bool_)
        return PushedColumns(
            **{name: _frozen(values) for name, values in columns.items()},
            matched=_frozen(matched),
            range_offset=_frozen(offset),
            range_start=_frozen(starts[pick]),
            range_samples=_frozen(range_samples),
        )

    def _check_pushes(self, columns: dict[str, Any], index: _Index) -> None:
        in_order = index.rows
        start, samples = columns["start_sample"][in_order], columns["samples"][in_order]
        accepted = columns["accepted"][in_order].astype(np.bool_)
        # A push found to be refused only after the next one was numbered has kept its room.
        fits = (start[1:] == start[:-1] + samples[:-1]) | (
            ~accepted[:-1] & (start[1:] == start[:-1])
        )
        self._report_rows(
            ~fits & (np.diff(index.numbers) == 1),
            columns["line"][in_order][1:],
            "inconsistent",
            "a push does not start where the one before it stopped",
        )

    def _sent(self) -> SentColumns:
        rows = self._rows(RunSent)
        columns = {name: rows[name] for name in rows.columns}
        columns["line"] = rows.numbers()
        known = np.flatnonzero(columns["start_sample"] != NONE)
        known = known[np.argsort(columns["start_sample"][known], kind="stable")]
        start, samples = columns["start_sample"][known], columns["samples"][known]
        self._report_rows(
            start[1:] < start[:-1] + samples[:-1],
            columns["line"][known][1:],
            "inconsistent",
            "a sample is sent twice",
        )
        self._check_span("sent", columns["line"], columns["at_ns"], columns["until_ns"])
        order = np.argsort(columns["at_ns"], kind="stable")
        return SentColumns(**{name: _frozen(values[order]) for name, values in columns.items()})

    def _inserted(self) -> InsertedColumns:
        rows = self._rows(SilenceInserted)
        columns = {name: rows[name] for name in rows.columns}
        columns["line"] = rows.numbers()
        self._check_span("inserted", columns["line"], columns["at_ns"], columns["until_ns"])
        order = np.argsort(columns["at_ns"], kind="stable")
        return InsertedColumns(**{name: _frozen(values[order]) for name, values in columns.items()})

    # Checks --------------------------------------------------------------------------------------

    def _number_index(self, name: str, key: str, columns: dict[str, Any]) -> _Index:
        """Rows by the number of their frame or push; reports numbers that repeat or are skipped."""
        numbers, rows = np.unique(columns[key], return_index=True)
        extra = len(columns[key]) - len(numbers)
        if extra:
            repeated = np.setdiff1d(np.arange(len(columns[key])), rows)
            self._report(
                int(columns["line"][repeated[0]]),
                "inconsistent",
                f"{name}: {key} {columns[key][repeated[0]]} comes twice; the first counts",
                extra,
            )
        if len(numbers) and numbers[-1] != len(numbers):
            gap = int(np.argmax(numbers != np.arange(1, len(numbers) + 1)))
            expected = gap + 1
            self._report(
                int(columns["line"][rows[gap]]),
                "missing",
                f"{name}: expected {key} {expected}, found {key} {numbers[gap]}",
                int(numbers[-1]) - len(numbers),
            )
        return _Index(numbers, rows)

    def _located(self, name: str, key: str, late: _Rows, index: _Index) -> tuple[Any, Any]:
        """Rows of the index that later lines speak of, and the rows of those lines."""
        if not len(late.line):
            none = np.zeros(0, dtype=np.int64)
            return none, none
        numbers = late[key]
        place = np.searchsorted(index.numbers, numbers)
        known = place < len(index.numbers)
        known[known] = index.numbers[place[known]] == numbers[known]
        self._report_rows(
            ~known, late.numbers(), "inconsistent", f"{name}: no such {key} in the trace"
        )
        return index.rows[place[known]], np.flatnonzero(known)

    def _check_span(self, name: str, line: Ints, begin: Ints, end: Ints) -> None:
        self._report_rows(
            (end != NONE) & (end < begin), line, "time", f"{name}: it ended before it began"
        )

    def _check_order(
        self,
        rare_lines: Ints,
        rare_at: Ints,
        captured: CapturedColumns,
        pushed: PushedColumns,
        sent: SentColumns,
        inserted: InsertedColumns,
    ) -> None:
        """Reports lines whose time is far before that of lines above them."""
        rare_seen = np.maximum(rare_at, _times(self._parser._rare, "until_ns", rare_at))
        kinds = [
            (rare_lines, rare_at, rare_seen, ORDINARY_DISORDER_NS),
            (captured.line, captured.at_ns, captured.at_ns, ORDINARY_DISORDER_NS),
            (pushed.line, pushed.at_ns, pushed.at_ns, ORDINARY_DISORDER_NS),
            (sent.line, sent.at_ns, sent.until_ns, LATE_MATCH_NS),
            (inserted.line, inserted.at_ns, inserted.until_ns, LATE_MATCH_NS),
        ]
        line = np.concatenate([kind[0] for kind in kinds])
        if not len(line):
            return
        at_ns = np.concatenate([kind[1] for kind in kinds])
        seen = np.concatenate([kind[2] for kind in kinds])
        allowed = np.concatenate([np.full(len(kind[0]), kind[3]) for kind in kinds])
        order = np.argsort(line, kind="stable")
        latest = np.maximum.accumulate(at_ns[order])
        back = latest - seen[order]
        bad = back > allowed[order]
        if bad.any():
            first = int(np.argmax(bad))
            self._report(
                int(line[order][first]),
                "time",
                f"time runs backwards by {back[first] / 1e9:.3f} s",
                int(bad.sum()),
            )

    def _all_times(self, rare_at: Ints, *columns: Any) -> list[Ints]:
        return [times for times in (rare_at, *(c.at_ns for c in columns)) if len(times)]

    def _check_end(self, last_ns: int) -> None:
        parser = self._parser
        last = f"last event at {last_ns / 1e9:.3f} s"
        if parser._broken:
            self._report(parser._number, "cut", f"{parser._broken}; {last}")
        elif parser._rest or parser._oversized:
            self._report(
                parser._number + 1, "cut", f"the trace ends in the middle of a line; {last}"
            )
        elif parser.trailer is None:
            self._report(parser._number, "cut", f"the trace ends without a trailer; {last}")

    def _report_rows(self, bad: Any, line: Ints, kind: ProblemKind, text: str) -> None:
        if bad.any():
            self._report(int(line[bad].min()), kind, text, int(bad.sum()))

    def _report(self, line: int, kind: ProblemKind, text: str, count: int = 1) -> None:
        self._problems.append(TraceProblem(line, kind, text, count))


@dataclass(frozen=True, slots=True)
class _Index:
    """Numbers of frames or pushes, ascending and each once, and the row each was first seen in."""

    numbers: Ints
    rows: Ints

    def by_time(self, at_ns: Ints) -> Ints:
        """The rows in order of time; those with the same time in the order of the file."""
        rows: Ints = np.sort(self.rows)
        ordered: Ints = rows[np.argsort(at_ns[rows], kind="stable")]
        return ordered


def _int64(values: array[int]) -> Ints:
    return np.frombuffer(values, dtype=np.int64)


def _times(events: list[Event], name: str, default: Ints | None = None) -> Ints:
    if default is None:
        return np.fromiter(map(attrgetter(name), events), np.int64, len(events))
    return np.fromiter(
        (getattr(event, name, instead) for event, instead in zip(events, default, strict=True)),
        np.int64,
        len(events),
    )


def _frozen(values: Any) -> Any:
    values.flags.writeable = False
    return values


# --- Files ---------------------------------------------------------------------------------------


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace, plain or zstd-compressed (told apart by content, not by name).

    Returns:
        The `Trace`; whatever is wrong with it after the header is in its ``problems``.

    Raises:
        TraceError: nothing can be said about it; see the head of this module for the cases.
    """
    parser = TraceParser(path)
    try:
        with open(path, "rb") as file:
            _read_file(file, parser)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(
            f"{parser.path}: expected a readable trace file, found: {reason}"
        ) from None
    return parser.trace()


def _read_file(file: IO[bytes], parser: TraceParser) -> None:
    magic = file.read(len(_ZSTD_MAGIC))
    source: Any = file
    if magic == _ZSTD_MAGIC:
        file.seek(0)
        source = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    else:
        parser.feed(magic)
    broken = ""
    while True:
        try:
            data = source.read(_CHUNK)
        except zstandard.ZstdError as error:
            broken = f"the compressed data is damaged ({error})"
            break
        except OSError as error:
            if parser.header is None:
                raise
            broken = f"reading failed ({error.strerror})"
            break
        if not data:
            break
        parser.feed(data)
    parser.close(broken)
