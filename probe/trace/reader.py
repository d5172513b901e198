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
    binary, another event first, a newer schema, a compressed file damaged in its first block), or
    it is beyond the `Limits`, as no trace of a call is.

    A `Trace` with ``complete`` false and a `TraceProblem` that says why, for everything after the
    header. Nothing else is ever raised for what a file holds.

The parser is fed in pieces of any length, so a file that is still growing can be followed with it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import IO, Any, Final

import zstandard

from probe.errors import TraceError
from probe.trace.columns import (
    ENDS,
    NONE,
    CapturedColumns,
    InsertedColumns,
    PushedColumns,
    SentColumns,
    Trace,
)
from probe.trace.limits import LIMITS, Limits, beyond
from probe.trace.parser import TraceParser
from probe.trace.problems import TraceProblem

__all__ = [
    "ENDS",
    "LIMITS",
    "NONE",
    "CapturedColumns",
    "InsertedColumns",
    "Limits",
    "PushedColumns",
    "SentColumns",
    "Trace",
    "TraceError",
    "TraceParser",
    "TraceProblem",
    "read_trace",
]

_CHUNK: Final = 1 << 17
_PACKED_CHUNK: Final = 1 << 10  # a kilobyte may unpack to megabytes
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def read_trace(path: str | os.PathLike[str], limits: Limits | None = LIMITS) -> Trace:
    """Reads a trace, plain or zstd-compressed (told apart by content, not by name).

    Args:
        path: the file.
        limits: how much of it is taken in before it is refused; ``None``: all there is.

    Returns:
        The `Trace`; whatever is wrong with it after the header is in its ``problems``.

    Raises:
        TraceError: nothing can be said about it; see the head of this module for the cases.
    """
    parser = TraceParser(path, limits)
    try:
        # Opening a pipe would wait until somebody writes into it.
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise ValueError("no regular file")
        with open(path, "rb") as file:
            _read_file(file, parser, limits)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(
            f"{parser.path}: expected a readable trace file, found: {reason}"
        ) from None
    return parser.trace()


def _read_file(file: IO[bytes], parser: TraceParser, limits: Limits | None) -> None:
    magic = file.read(len(_ZSTD_MAGIC))
    file.seek(0)
    broken = ""
    try:
        plain = iter(lambda: file.read(_CHUNK), b"")
        for data in _unpacked(file, parser.path, limits) if magic == _ZSTD_MAGIC else plain:
            # A kilobyte may unpack to megabytes of short lines.
            for start in range(0, len(data), _CHUNK):
                parser.feed(data[start : start + _CHUNK])
    except zstandard.ZstdError as error:
        broken = f"the compressed data is damaged ({error})"
    except OSError as error:
        if parser.header is None:
            raise
        broken = f"reading failed ({error.strerror})"
    parser.close(broken)


def _unpacked(file: IO[bytes], path: str, limits: Limits | None) -> Iterator[bytes]:
    """What is in the frames of a compressed file, one after the other, up to where it is damaged.

    Raises:
        ZstdError: a frame is damaged or not whole, or what follows it is none; what was unpacked
            before has been yielded.
        TraceError: it unpacks to more than a trace does.
    """
    unpacking: Any = None
    waiting: list[bytes] = []
    size = packed = total = 0
    try:
        while piece := file.read(_PACKED_CHUNK):
            packed += len(piece)
            while piece:
                unpacking = unpacking or zstandard.ZstdDecompressor().decompressobj()
                data = unpacking.decompress(piece)
                waiting.append(data)
                size += len(data)
                total += len(data)
                if limits is not None and total > max(
                    limits.ratio_from_bytes, packed * limits.ratio
                ):
                    raise beyond(path, limits.ratio, "times as many bytes unpacked as packed")
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
