"""Rows of the frequent events while a trace is read: machine integers instead of objects."""

from __future__ import annotations

import typing
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

import msgspec
import numpy as np

from probe.trace.columns import ENDS, NONE, Ints
from probe.trace.events import (
    CaptureEnded,
    Event,
    FrameCaptured,
    FramePushed,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    Trailer,
)
from probe.trace.lines import LINES


class Texts(dict["str | None", int]):
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


class Rows:
    """Columns of one class of lines while they grow: machine integers, no objects."""

    def __init__(self, event: type[Event], texts: Texts) -> None:
        self.whole = False
        """Whether no more comes: then the numbers need not be copied to be handed out."""
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
        return self._handed_out(self.columns[name])

    def numbers(self) -> Ints:
        lines: Ints = self._handed_out(self.line)
        return lines

    def _handed_out(self, column: array[int]) -> Any:
        values = np.frombuffer(column, dtype=_DTYPES[column.typecode])
        return values if self.whole else values.copy()


def _unchanged(values: tuple[Any, ...]) -> Sequence[Any]:
    return values


def _with_none(values: tuple[Any, ...]) -> Sequence[Any]:
    return [NONE if value is None else value for value in values]


def _end_indices(values: tuple[Any, ...]) -> Sequence[Any]:
    return [_ENDS_INDEX[value] for value in values]


COLUMNED: Final[tuple[type[Event], ...]] = (
    FrameCaptured,
    CaptureEnded,
    FramePushed,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
)

RARE: Final = len(COLUMNED)
LAST: Final = RARE + 1
CODES: Final = {LINES[event]: code for code, event in enumerate(COLUMNED)} | {LINES[Trailer]: LAST}
"""What becomes of a decoded line: the columns of its class, an object, or the end."""


def int64(values: array[int]) -> Ints:
    """The numbers of an array, which must not grow as long as this is in use."""
    return np.frombuffer(values, dtype=np.int64)
