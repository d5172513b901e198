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
import stat
from array import array
from collections.abc import Iterator
from typing import IO, Any, Final

import msgspec
import numpy as np
import zstandard

from probe.errors import TraceError
from probe.trace.builder import Builder, Gathered
from probe.trace.columns import (
    ENDS,
    NONE,
    CapturedColumns,
    InsertedColumns,
    Ints,
    ProblemKind,
    PushedColumns,
    SentColumns,
    Trace,
    TraceProblem,
)
from probe.trace.events import EVENTS, SCHEMA, Event, Header, Trailer
from probe.trace.lines import DECODER, LINES, NAME_DECODER, UNDECODABLE, as_event, shown
from probe.trace.rows import CODES, COLUMNED, LAST, RARE, Rows, Texts
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

_CHUNK: Final = 1 << 18
_PACKED_CHUNK: Final = 1 << 10  # a kilobyte may unpack to megabytes
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"


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
        self._texts = Texts({None: -1})
        self._rows = {event: Rows(event, self._texts) for event in COLUMNED}
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
                raise TraceError(f"{self.path}:1: {_too_long()}")
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
        if self._oversized:
            self._problem(self._number + 1, "garbled", _too_long())
        if not self._rest:
            return
        try:
            DECODER.decode(self._rest.removeprefix(_BOM))
        except UNDECODABLE:
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
        return Builder(
            Gathered(
                path=self.path,
                header=self.header,
                trailer=self.trailer,
                rare=self._rare,
                rare_lines=self._rare_lines,
                rows=self._rows,
                texts=self._texts,
                problems=tuple(self._problems.values()),
                lines=self._number,
                torn=bool(self._rest) or self._oversized,
                broken=self._broken,
            )
        ).trace()

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
                lines = DECODER.decode_lines(data)
            except UNDECODABLE:
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
                    line = DECODER.decode(raw)
                except UNDECODABLE as error:
                    self._undecodable(number, raw, error)
                else:
                    ended = ended or isinstance(line, LINES[Trailer])
                    lines.append(line)
                    numbers.append(number)
        self._sort_out(lines, np.array(numbers, dtype=np.int64))

    def _sort_out(self, lines: list[Any], numbers: Ints) -> None:
        codes = np.array([CODES.get(line.__class__, RARE) for line in lines], dtype=np.int8)
        stop = 0
        if self.trailer is None:
            trailers = np.flatnonzero(codes == LAST)
            stop = int(trailers[0]) + 1 if len(trailers) else len(lines)
        if stop < len(lines):
            text = "expected nothing after the trailer"
            self._problem(int(numbers[stop]), "after-trailer", text, count=len(lines) - stop)
            codes = codes[:stop]
        for code, event in enumerate(COLUMNED):
            where = np.flatnonzero(codes == code)
            if len(where):
                self._rows[event].extend([lines[i] for i in where.tolist()], numbers[where])
        for i in np.flatnonzero(codes >= RARE).tolist():
            self._take_rare(as_event(lines[i]), int(numbers[i]))

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
            name = NAME_DECODER.decode(raw).event
        except msgspec.ValidationError:
            self._problem(number, "garbled", f"expected a named event, found {shown(raw)}")
            return
        except UNDECODABLE:
            pass
        if name is None or not isinstance(error, msgspec.ValidationError):
            self._problem(number, "garbled", f"expected a line of JSON, found {shown(raw)}")
        elif name in EVENTS:
            self._problem(number, "bad-value", f"{name}: {error}", name)
        else:
            self._problem(number, "unknown-event", f"unknown event {shown(name)}")

    def _skip_oversized(self) -> None:
        self._number += 1
        self._problem(self._number, "garbled", _too_long())

    # Header --------------------------------------------------------------------------------------

    def _take_header(self, raw: bytes) -> None:
        self._number = 1
        raw = raw.removeprefix(_BOM)
        try:
            line = DECODER.decode(raw)
        except UNDECODABLE as error:
            raise self._no_header(raw, error) from None
        header = as_event(line)
        if not isinstance(header, Header):
            raise self._no_header(raw)
        self.header = header

    def _no_header(self, raw: bytes, error: Exception | None = None) -> TraceError:
        found = shown(raw)
        try:
            values = msgspec.json.decode(raw, type=dict[str, Any])
        except UNDECODABLE:
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
            found = f"the event {shown(name)}"
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


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace, plain or zstd-compressed (told apart by content, not by name).

    Returns:
        The `Trace`; whatever is wrong with it after the header is in its ``problems``.

    Raises:
        TraceError: nothing can be said about it; see the head of this module for the cases.
    """
    parser = TraceParser(path)
    try:
        # Opening a pipe would wait until somebody writes into it.
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise ValueError("no regular file")
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
    file.seek(0)
    broken = ""
    try:
        plain = iter(lambda: file.read(_CHUNK), b"")
        for data in _unpacked(file) if magic == _ZSTD_MAGIC else plain:
            parser.feed(data)
    except zstandard.ZstdError as error:
        broken = f"the compressed data is damaged ({error})"
    except OSError as error:
        if parser.header is None:
            raise
        broken = f"reading failed ({error.strerror})"
    parser.close(broken)


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """What is in the frames of a compressed file, one after the other, up to where it is damaged.

    Raises:
        ZstdError: a frame is damaged or not whole, or what follows it is none; what was unpacked
            before has been yielded.
    """
    unpacking: Any = None
    waiting: list[bytes] = []
    size = 0
    try:
        while piece := file.read(_PACKED_CHUNK):
            while piece:
                unpacking = unpacking or zstandard.ZstdDecompressor().decompressobj()
                data = unpacking.decompress(piece)
                waiting.append(data)
                size += len(data)
                piece = b""
                if unpacking.eof:
                    piece, unpacking = unpacking.unused_data, None
            if size >= _CHUNK:
                yield b"".join(waiting)
                waiting, size = [], 0
    except zstandard.ZstdError:
        yield b"".join(waiting)
        raise
    yield b"".join(waiting)
    if unpacking is not None:
        raise zstandard.ZstdError("its last frame is not whole")
