"""From what a parser gathered to a trace: folds, sorts, and checks what contradicts itself."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np

from probe.trace.checks import Check, check_events, check_rising, check_wire
from probe.trace.columns import (
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
    Trailer,
)
from probe.trace.rows import Rows, Texts, int64

ORDINARY_DISORDER_NS: Final = 1_000_000_000
"""How far lines may run backwards in time because several threads write."""

LATE_MATCH_NS: Final = 60_000_000_000
"""The same for what left the source: silence is told from speech only by what comes after it."""


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


class Builder:
    """Makes a `Trace` of what a parser gathered: folds, sorts, and checks what contradicts."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._problems = list(gathered.problems)

    def trace(self) -> Trace:
        gathered = self._gathered
        rare_lines = np.array(gathered.rare_lines, dtype=np.int64)
        rare_at = _times(gathered.rare, "at_ns")
        captured = self._captured()
        pushed = self._pushed()
        sent = self._sent()
        inserted = self._inserted()
        self._check_order(rare_lines, rare_at, captured, pushed, sent, inserted)
        self._ask(check_events(gathered.rare, rare_lines))
        self._ask(check_wire(gathered.rare, pushed, sent, inserted))
        last_ns = max(
            [
                int(times.max())
                for times in self._all_times(rare_at, captured, pushed, sent, inserted)
            ]
            + [gathered.trailer.at_ns if gathered.trailer else 0]
        )
        self._check_end(last_ns)
        order = np.argsort(rare_at, kind="stable")
        return Trace(
            path=gathered.path,
            header=gathered.header,
            events=tuple([gathered.rare[index] for index in order.tolist()]),
            event_lines=_frozen(rare_lines[order]),
            captured=captured,
            pushed=pushed,
            sent=sent,
            inserted=inserted,
            texts=tuple(text for text in gathered.texts if text is not None),
            trailer=gathered.trailer,
            problems=tuple(sorted(self._problems, key=lambda problem: problem.line)),
            lines=gathered.lines + gathered.torn,
            last_ns=last_ns,
        )

    def _rows(self, event: type[Event]) -> Rows:
        return self._gathered.rows[event]

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
        columns["detail"][where] = ended["detail"][found]

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
        at_ns, line = columns["at_ns"][in_order], columns["line"][in_order]
        self._ask(check_rising("captured", "frame", index.numbers, at_ns, line))
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
        columns["detail"][where] = ended["detail"][found]
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
        for name in ("ambiguous_samples", "added_samples", "habit"):
            columns[name][where] = late[name][found]
        starts = np.concatenate([int64(rows.range_start), int64(late.range_start)])
        lengths = np.concatenate([int64(rows.range_samples), int64(late.range_samples)])

        self._check_pushes(columns, index)
        self._check_span("pushed", columns["line"], columns["at_ns"], columns["ended_ns"])
        at_ns, line = columns["at_ns"][index.rows], columns["line"][index.rows]
        self._ask(check_rising("pushed", "push", index.numbers, at_ns, line))
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

    def _located(self, name: str, key: str, late: Rows, index: _Index) -> tuple[Any, Any]:
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
        rare_seen = np.maximum(rare_at, _times(self._gathered.rare, "until_ns", rare_at))
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
        gathered = self._gathered
        last = f"last event at {last_ns / 1e9:.3f} s"
        if gathered.broken:
            self._report(gathered.lines, "cut", f"{gathered.broken}; {last}")
        elif gathered.torn:
            self._report(
                gathered.lines + 1, "cut", f"the trace ends in the middle of a line; {last}"
            )
        elif gathered.trailer is None:
            self._report(gathered.lines, "cut", f"the trace ends without a trailer; {last}")

    def _ask(self, checks: Iterable[Check]) -> None:
        for check in checks:
            self._report_rows(check.bad, check.line, check.kind, check.text)

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


def _times(events: Sequence[Event], name: str, default: Ints | None = None) -> Ints:
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
