"""Work on one trace of many, of which none may hide the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, TypeVar

from probe.trace.problems import TraceProblem
from probe.trace.reader import Trace
from reports.account.ledger import Ledger, balance
from reports.findings import SettingError

__all__ = ["attempted"]

_Made = TypeVar("_Made")

_LONGEST = 200


def attempted(trace: Trace, work: Callable[[Ledger], _Made]) -> tuple[_Made, str | None]:
    """What ``work`` makes of a trace's ledger, whatever is in the trace.

    Returns:
        What it made, and ``None``. Of a trace that breaks it: what it makes of the header alone,
        with a problem that says so, and that problem in one line. It is a fault of the analysis.

    Raises:
        SettingError: ``work`` was asked for the impossible; that is no trace's doing.
    """
    try:
        return work(balance(trace)), None
    except SettingError:
        raise
    except Exception as error:
        why = _said(error)
        return work(balance(_header_of(trace, why))), why


def _said(error: Exception) -> str:
    said = " ".join(f"{type(error).__name__}: {error}".split())
    said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
    where = extract_tb(error.__traceback__)[-1]
    place = f"{PurePath(where.filename).name}:{where.lineno}"
    return f"it could not be analysed, which is a fault of sinkprobe: {said} ({place})"


def _header_of(trace: Trace, why: str) -> Trace:
    """The trace without its lines, and the problem."""
    return replace(
        trace,
        events=(),
        event_lines=trace.event_lines[:0],
        captured=_emptied(trace.captured),
        pushed=_emptied(trace.pushed),
        sent=_emptied(trace.sent),
        inserted=_emptied(trace.inserted),
        problems=(*trace.problems, TraceProblem(0, "unanalysed", why)),
    )


def _emptied(columns: Any) -> Any:
    # The offsets of ranges are one longer than there are rows.
    kept = {"range_offset": 1}
    return replace(
        columns,
        **{f.name: getattr(columns, f.name)[: kept.get(f.name, 0)] for f in fields(columns)},
    )
