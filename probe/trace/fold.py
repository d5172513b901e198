"""From rows of lines to columns: what became known later goes where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from probe.trace.columns import (
    CapturedColumns,
    Ints,
    PushedColumns,
)
from probe.trace.problems import TraceProblem, found
from probe.trace.rows import Rows, int64

__all__ = ["columns", "fold_captured", "fold_pushed", "frozen", "in_order"]

_ENDED: Final = {"end": "end", "ended_ns": "at_ns", "error": "error", "detail": "detail"}
_ACCEPTED: Final = {**_ENDED, "accepted": "accepted"}
_MATCHED: Final = {name: name for name in ("ambiguous_samples", "added_samples", "habit")}
"""Column of a call to the column of the later line that it takes its value from."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Columns of one kind of call, and where each number was seen first."""

    name: str
    key: str
    columns: dict[str, Any]
    numbers: Ints
    """Ascending, each once."""
    rows: Ints
    """Row of each number."""

    @classmethod
    def of(cls, name: str, key: str, rows: Rows) -> _Table:
        table = columns(rows)
        number = table[key]
        if len(number) and (number[1:] <= number[:-1]).any():
            numbers, first = np.unique(number, return_index=True)
        else:
            numbers, first = number, np.arange(len(number))
        return cls(name, key, table, numbers, first)

    def repeated(self) -> list[TraceProblem]:
        number, line = self.columns[self.key], self.columns["line"]
        extra = len(number) - len(self.numbers)
        if not extra:
            return []
        row = int(np.setdiff1d(np.arange(len(number)), self.rows)[0])
        text = f"{self.name}: {self.key} {number[row]} comes twice; the first counts"
        return [TraceProblem(int(line[row]), "inconsistent", text, extra)]

    def take(
        self, name: str, late: Rows, fields: Mapping[str, str]
    ) -> tuple[Ints, Ints, list[TraceProblem]]:
        """Writes what later lines say over the rows they speak of.

        Returns:
            Rows that were spoken of, the rows of the lines that did, and what they missed.
        """
        numbers = late[self.key]
        place = np.searchsorted(self.numbers, numbers)
        known = place < len(self.numbers)
        known[known] = self.numbers[place[known]] == numbers[known]
        row, line = self.rows[place[known]], np.flatnonzero(known)
        for target, origin in fields.items():
            self.columns[target][row] = late[origin][line]
        text = f"{name}: no such {self.key} in the trace"
        return row, line, list(found(~known, late.numbers(), "inconsistent", text))

    def order(self) -> Any:
        """Index of the rows in the order of time, each number once."""
        at_ns = self.columns["at_ns"]
        if len(self.rows) == len(at_ns):
            return in_order(at_ns)
        rows = np.sort(self.rows)
        return rows[np.argsort(at_ns[rows], kind="stable")]


def fold_captured(rows: Rows, ended: Rows) -> tuple[CapturedColumns, list[TraceProblem]]:
    """Captured frames, each with its end where that is known."""
    table = _Table.of("captured", "frame", rows)
    _, _, missed = table.take("capture_ended", ended, _ENDED)
    order = table.order()
    captured = {name: frozen(values[order]) for name, values in table.columns.items()}
    return CapturedColumns(**captured), table.repeated() + missed


def fold_pushed(rows: Rows, ended: Rows, matched: Rows) -> tuple[PushedColumns, list[TraceProblem]]:
    """Pushes, each with its end and its captured ranges where these are known."""
    table = _Table.of("pushed", "push", rows)
    _, _, no_end = table.take("push_ended", ended, _ACCEPTED)
    # Ranges of both kinds of lines in one list; each row points to where its own begin.
    count, late_count = int64(rows.range_count).copy(), int64(matched.range_count)
    begin = _starts(count)
    row, line, no_match = table.take("push_matched", matched, _MATCHED)
    count[row] = late_count[line]
    begin[row] = (_starts(late_count) + len(rows.range_start))[line]
    starts = np.concatenate([int64(rows.range_start), int64(matched.range_start)])
    lengths = np.concatenate([int64(rows.range_samples), int64(matched.range_samples)])

    order = table.order()
    count, begin = count[order], begin[order]
    length = np.maximum(count, 0)
    offset = np.append(np.zeros(1, np.int64), np.cumsum(length))
    pick = np.arange(offset[-1]) + np.repeat(begin - offset[:-1], length)
    values = {name: values[order] for name, values in table.columns.items()}
    values |= {
        "accepted": values["accepted"].astype(np.bool_),
        "matched": count >= 0,
        "range_offset": offset,
        "range_start": starts[pick],
        "range_samples": lengths[pick],
    }
    pushed = PushedColumns(**{name: frozen(column) for name, column in values.items()})
    return pushed, table.repeated() + no_end + no_match


def in_order(at_ns: Ints) -> Any:
    """Index that sorts rows by their times, those with the same time in the order of the file."""
    # Most are in order already, and need not be copied.
    if not (at_ns[1:] < at_ns[:-1]).any():
        return slice(None)
    return np.argsort(at_ns, kind="stable")


def frozen(values: Any) -> Any:
    """The same array, which nobody may change from here on."""
    values.flags.writeable = False
    return values


def columns(rows: Rows) -> dict[str, Any]:
    return {name: rows[name] for name in rows.columns} | {"line": rows.numbers()}


def _starts(count: Ints) -> Ints:
    """Where each of many stretches begins that lie one behind the other; -1 counts as none."""
    length = np.maximum(count, 0)
    return np.cumsum(length) - length
