"""Lines of a trace to rows, events and problems, piece by piece as they come."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from probe.errors import TraceError
from probe.trace.builder import Gathered, build
from probe.trace.columns import Ints, Trace
from probe.trace.events import EVENTS, SCHEMA, Event, Header, Trailer
from probe.trace.limits import LIMITS, Limits, beyond
from probe.trace.lines import DECODER, LINES, NAME_DECODER, NESTED, UNDECODABLE, as_event, shown
from probe.trace.problems import ProblemKind, TraceProblem
from probe.trace.rows import CODES, COLUMNED, LAST, RARE, Rows, Texts
from probe.trace.writer import MAX_LINE_BYTES

__all__ = ["TraceParser"]

_BOM = b"\xef\xbb\xbf"


class TraceParser:
    """Takes a trace in pieces of bytes, as they come, and makes a `Trace` of what it got so far.

    Fit for a file that is still being written: `feed` what was added, ask `trace` when wanted.

    Args:
        path: what to call it.
        limits: beyond which it is refused; ``None``: none.
    """

    def __init__(self, path: str | os.PathLike[str], limits: Limits | None = LIMITS) -> None:
        self.path = os.fspath(path)
        self._limits = limits
        self._bytes = self._nested_bytes = 0
        self.header: Header | None = None
        """The header, as soon as its line is whole."""
        self.trailer: Trailer | None = None
        """The trailer, once it was seen."""
        self._texts = Texts({None: -1})
        self._rows = {event: Rows(event, self._texts) for event in COLUMNED}
        self._rare: list[Event] = []
        self._rare_lines = array("q")
        self._unread = 0  # lines that could not be read
        self._unnamed = 0  # those of them that do not say what they are
        self._problems: dict[tuple[str, str], TraceProblem] = {}
        self._number = 0  # of the last whole line
        self._blank = 0  # lines before the trailer that hold nothing
        self._counts: Counter[str] = Counter()  # lines before the trailer, by event
        self._rest = b""
        self._broken = ""  # why no more could be read, where that is not the end of the file
        self._oversized = False

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the (uncompressed) file, cut anywhere.

        Raises:
            TraceError: the first line is no header this version can read, or there is more than
                the limits allow.
        """
        self._bytes += len(data)
        self._bound(self._bytes, "unpacked_bytes", "bytes, unpacked")
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
        for rows in self._rows.values():
            rows.whole = True
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
            TraceError: no header was seen, or there are more sources than the limits allow.
        """
        if self.header is None:
            raise TraceError(f"{self.path}: expected a trace, found less than its first line")
        of_sources = [rows["source"] for rows in self._rows.values() if "source" in rows.columns]
        self._bound(len(np.unique(np.concatenate(of_sources))), "sources", "audio sources")
        return build(
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
        )

    # Lines ---------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        """Whole lines, the last newline included."""
        if self.header is None:
            end = data.index(b"\n")
            self._take_header(data[:end])
            data = data[end + 1 :]
            if not data:
                return None
        count = data.count(b"\n")
        self._bound(self._number + count, "lines", "lines")
        numbers = np.arange(self._number + 1, self._number + 1 + count)
        try:
            lines = DECODER.decode_lines(data)
        except UNDECODABLE:
            return self._take_singly(data)
        if len(lines) != count:
            # Blank lines are skipped by the decoder; what comes before a trailer has to be counted.
            if any(isinstance(line, LINES[Trailer]) for line in lines):
                return self._take_singly(data)
            numbers = numbers[[bool(raw.strip()) for raw in data[:-1].split(b"\n")]]
        if self.trailer is None:
            self._blank += count - len(lines)
        self._number += count
        self._sort_out(lines, numbers)
        return None

    def _take_singly(self, data: bytes) -> None:
        lines: list[Any] = []
        numbers: list[int] = []
        ended = self.trailer is not None
        for number, raw in enumerate(data[:-1].split(b"\n"), self._number + 1):
            self._number = number
            if not raw or raw.isspace():
                self._blank += not ended
            elif len(raw) > MAX_LINE_BYTES:
                self._unnamed += 1
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
                self._counts[event.NAME] += len(where)
                self._rows[event].extend([lines[i] for i in where.tolist()], numbers[where])
        for i in np.flatnonzero(codes >= RARE).tolist():
            if isinstance(lines[i], NESTED):
                self._nested_bytes += len(msgspec.json.encode(lines[i]))
                self._bound(self._nested_bytes, "nested_bytes", "bytes of lists and objects")
            self._take_rare(as_event(lines[i]), int(numbers[i]))
        self._bound(len(self._rare) + self._unread, "rare_lines", "lines beside those of the audio")

    def _take_rare(self, event: Event, number: int) -> None:
        if isinstance(event, Trailer):
            self.trailer = event
            self._check_counts(event, number)
            return
        self._counts[event.NAME] += 1
        if isinstance(event, Header):
            self._problem(number, "duplicate-header", "expected one header, found another")
        else:
            self._rare.append(event)
            self._rare_lines.append(number)

    def _check_counts(self, trailer: Trailer, number: int) -> None:
        before = number - 1 - self._blank
        if trailer.events != before:
            text = f"the trailer counts {trailer.events} lines before it, found {before}"
            self._problem(number, "count", text)
        if trailer.counts is None or self._unnamed:
            return
        told, found = Counter(trailer.counts), self._counts
        differ = [name for name in told | found if told[name] != found[name]]
        if differ:
            name = differ[0]
            text = f"the trailer counts {told[name]} lines of {shown(name)}, found {found[name]}"
            self._problem(number, "count", text, "kinds", len(differ))

    def _undecodable(self, number: int, raw: bytes, error: Exception) -> None:
        self._unread += 1
        name: str | None = None
        expected = "a line of JSON"
        try:
            name = NAME_DECODER.decode(raw).event
        except msgspec.ValidationError:
            expected = "a named event"
        except UNDECODABLE:
            pass
        if name is None or not isinstance(error, msgspec.ValidationError):
            self._unnamed += 1
            self._problem(number, "garbled", f"expected {expected}, found {shown(raw)}")
            return
        self._counts[name] += 1
        if name in EVENTS:
            self._problem(number, "bad-value", f"{name}: {error}", name)
        else:
            self._problem(number, "unknown-event", f"unknown event {shown(name)}")

    def _skip_oversized(self) -> None:
        self._number += 1
        self._unnamed += 1
        self._problem(self._number, "garbled", _too_long())

    # Header --------------------------------------------------------------------------------------

    def _take_header(self, raw: bytes) -> None:
        self._number = 1
        raw = raw.removeprefix(_BOM)
        try:
            line = DECODER.decode(raw)
        except UNDECODABLE as error:
            raise _no_header(self.path, raw, error) from None
        header = as_event(line)
        if not isinstance(header, Header):
            raise _no_header(self.path, raw)
        self.header = header
        self._counts[Header.NAME] += 1

    def _bound(self, found: int, limit: str, what: str) -> None:
        if self._limits is not None and found > getattr(self._limits, limit):
            where = f":{self._number}" if self._number else ""
            raise beyond(self.path, getattr(self._limits, limit), what, where)

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


def _no_header(path: str, raw: bytes, error: Exception | None = None) -> TraceError:
    """What to say of a first line that is no header."""
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
                f"{path}:1: expected a trace of schema {SCHEMA}, found schema "
                f"{schema if schema < 10**9 else 'beyond reason'}; a newer sinkprobe reads it"
            )
    elif isinstance(name, str):
        found = f"the event {shown(name)}"
    return TraceError(f"{path}:1: expected the header of a trace (schema {SCHEMA}), found {found}")
