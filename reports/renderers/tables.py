"""Segments and barge-ins as flat tables, for people's own analysis: CSV, or Parquet with pyarrow.

A column's name is the JSON report's path to the figure, with dots; what is not known is empty (CSV)
or null (Parquet). Several traces go into one table, told apart by ``trace``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from reports.results import Amount, Analysis, BargeIn, Leak, Segment

__all__ = ["KINDS", "MissingLibraryError", "Table", "csv_text", "parquet_bytes", "rows"]

Table = Literal["segments", "barge-ins"]
KINDS: Final[tuple[Table, ...]] = ("segments", "barge-ins")

Cell = str | int | float | bool | None


class MissingLibraryError(RuntimeError):
    """A library that a format needs is not installed. One line, with the command."""


_SEGMENT: Final = (
    "index", "speech_id", "message_id", "partial", "balanced", "captured", "pushed", "sent",
    "cleared_samples", "dropped_samples", "held_samples", "queued_samples", "inherited_samples",
    "inserted_samples", "tail_samples", "ambiguous_samples", "unaccounted_samples",
    "unknown_samples", "swallowed_samples", "sent_in_later_segments_samples", "started_ms",
    "finished_ms", "interrupted", "claimed_position_ms", "sent_position_ms",
    "last_sent_position_ms", "resampled",
)  # fmt: skip
_BARGE_IN: Final = (
    "segment", "speech_id", "partial", "verdict_kind", "outcome", "onset_ms", "pause_ms",
    "verdict_ms", "commit_ms", "clear_ms", "source_clear_ms", "resume_ms", "last_sent_ms",
    "stop_ms", "stalled_ms", "leaked", "after_onset", "after_pause", "remaining",
)  # fmt: skip
_AMOUNTS: Final = ("captured", "pushed", "sent", "remaining")
_LEAKS: Final = ("leaked", "after_onset", "after_pause")


def rows(analyses: Sequence[Analysis], table: Table) -> list[dict[str, Cell]]:
    """One row a segment or barge-in, in the order of the traces; every row has every column."""
    found = []
    for analysis in analyses:
        about: dict[str, Cell] = {
            "trace": analysis.trace.path,
            "livekit_agents": analysis.trace.runtime.get("livekit_agents"),
            "scenario": None if analysis.run is None else analysis.run.scenario,
            "trace_balanced": analysis.balanced,
        }
        each: Iterable[Segment | BargeIn] = (
            analysis.segments if table == "segments" else analysis.barge_ins
        )
        fields = _SEGMENT if table == "segments" else _BARGE_IN
        found += [{**about, **_flat(one, fields)} for one in each]
    return found


def _flat(one: Segment | BargeIn, fields: Sequence[str]) -> dict[str, Cell]:
    flat: dict[str, Cell] = {}
    for field in fields:
        value: Any = getattr(one, field)
        if field in _AMOUNTS:
            flat |= _amount(field, value)
        elif field in _LEAKS:
            leaks: Mapping[str, Leak | None] = value or {}
            for boundary in ("pushed", "sent"):
                flat |= _amount(f"{field}.{boundary}", leaks.get(boundary))
        else:
            flat[field] = value
    return flat


def _amount(name: str, amount: Amount | Leak | None) -> dict[str, Cell]:
    return {
        f"{name}.{figure}": None if amount is None else getattr(amount, figure)
        for figure in ("frames", "samples", "ms")
    }


def _columns(table: Table) -> list[str]:
    about = ["trace", "livekit_agents", "scenario", "trace_balanced"]
    for field in _SEGMENT if table == "segments" else _BARGE_IN:
        if field in _AMOUNTS:
            about += _amount(field, None)
        elif field in _LEAKS:
            about += [c for b in ("pushed", "sent") for c in _amount(f"{field}.{b}", None)]
        else:
            about.append(field)
    return about


def csv_text(analyses: Sequence[Analysis], table: Table) -> str:
    """CSV as RFC 4180 has it, with a head. ``true`` and ``false``; empty: not known.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(table))
    writer.writeheader()
    for row in rows(analyses, table):
        writer.writerow({name: _written(value) for name, value in row.items()})
    return out.getvalue()


def _written(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return str(value)


def parquet_bytes(analyses: Sequence[Analysis], table: Table) -> bytes:
    """A Parquet file of the same columns, typed.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingLibraryError(
            "Parquet needs pyarrow: pip install 'sinkprobe[parquet]'"
        ) from error
    names = _columns(table)
    found = rows(analyses, table)
    types = {name: _parquet_type(pyarrow, name) for name in names}
    columns = {
        name: pyarrow.array([row[name] for row in found], type=types[name]) for name in names
    }
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


_TEXTS: Final = (
    "trace", "livekit_agents", "scenario", "speech_id", "message_id", "verdict_kind", "outcome",
)  # fmt: skip
_FLAGS: Final = ("trace_balanced", "partial", "balanced", "interrupted", "resampled")


def _parquet_type(pyarrow: Any, name: str) -> Any:
    if name in _TEXTS:
        return pyarrow.string()
    if name in _FLAGS:
        return pyarrow.bool_()
    return pyarrow.float64() if name.endswith("ms") else pyarrow.int64()
