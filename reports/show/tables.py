"""Barge-ins, segments and realtime messages as flat tables, for people's own analysis: CSV, or
Parquet with pyarrow.

A column's name is the JSON report's path to the figure, with dots; what is not known is empty (CSV)
or null (Parquet). Several traces go into one table, told apart by ``trace``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from reports.results import Analysis, BargeIn, RealtimeMessage, Segment
from reports.show import json
from reports.show.wording import shown

__all__ = ["KINDS", "MissingLibraryError", "Table", "csv_text", "parquet_bytes", "rows"]

Table = Literal["barge-ins", "segments", "messages"]
KINDS: Final[tuple[Table, ...]] = ("barge-ins", "segments", "messages")

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
_MESSAGE: Final = (
    "id", "response", "speech_id", "created_ms", "created_by", "pulled_ms", "opened_ms",
    "first_audio_ms", "last_audio_ms", "generated", "read", "segments", "captured", "sent",
    "truncated_to_ms", "truncated_ms", "sent_position_ms", "on_server", "in_history",
)  # fmt: skip
_FIELDS: Final[Mapping[Table, tuple[str, ...]]] = {
    "barge-ins": _BARGE_IN,
    "segments": _SEGMENT,
    "messages": _MESSAGE,
}
_ABOUT: Final = ("trace", "livekit_agents", "scenario", "trace_balanced")
_AMOUNTS: Final = ("captured", "pushed", "sent", "remaining")
_SOUNDS: Final = ("generated", "read")
_LEAKS: Final = ("leaked", "after_onset", "after_pause")
_BOUNDARIES: Final = ("pushed", "sent")


def rows(analyses: Sequence[Analysis], table: Table) -> list[dict[str, Cell]]:
    """One row a segment, barge-in or message, in the order of the traces, each with every column.

    The segments of a message are their numbers with spaces between them.
    """
    found = []
    for analysis in analyses:
        about: dict[str, Cell] = {
            # A file's name need not be text; what is not is spelled out.
            "trace": analysis.trace.path.encode(errors="backslashreplace").decode(),
            "livekit_agents": analysis.trace.runtime.get("livekit_agents"),
            "scenario": None if analysis.run is None else analysis.run.scenario,
            "trace_balanced": analysis.balanced,
        }
        found += [
            {**about, **_flat(json.plain(one), _FIELDS[table])} for one in _each(analysis, table)
        ]
    return found


def _each(analysis: Analysis, table: Table) -> Sequence[Segment | BargeIn | RealtimeMessage]:
    if table == "segments":
        return analysis.segments
    if table == "barge-ins":
        return analysis.barge_ins
    return analysis.realtime.messages if analysis.realtime is not None else ()


def _flat(one: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Cell]:
    """Columns of what the JSON report says of one thing."""
    flat: dict[str, Cell] = {}
    for field in fields:
        value: Any = one[field]
        figures = _figures(field)
        if field == "segments":
            flat[field] = " ".join(map(str, value))
        elif not figures:
            flat[field] = value
        elif field in _LEAKS:
            for boundary in _BOUNDARIES:
                leak = (value or {}).get(boundary) or {}
                flat |= {f"{field}.{boundary}.{f}": leak.get(f) for f in figures}
        else:
            flat |= {f"{field}.{f}": (value or {}).get(f) for f in figures}
    return flat


def _figures(field: str) -> tuple[str, ...]:
    """What an amount of audio is made of; nothing: the field is none."""
    if field in _AMOUNTS or field in _LEAKS:
        return ("frames", "samples", "ms")
    return ("samples", "rate_hz", "ms") if field in _SOUNDS else ()


def _columns(table: Table) -> list[str]:
    names = [*_ABOUT]
    for field in _FIELDS[table]:
        places = [f"{field}.{b}" for b in _BOUNDARIES] if field in _LEAKS else [field]
        figures = _figures(field)
        names += [f"{place}.{f}" for place in places for f in figures] if figures else places
    return names


def csv_text(analyses: Sequence[Analysis], table: Table) -> str:
    """CSV as RFC 4180 has it, with a head. ``true`` and ``false``; empty: not known.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; characters that
    can't be seen, and that the RFC does not know, are spelled out.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(table))
    writer.writeheader()
    for row in rows(analyses, table):
        writer.writerow({name: _written(value) for name, value in row.items()})
    return out.getvalue()


_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How a text begins that some spreadsheet takes for more than text."""


def _written(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    text = "".join(c if c in "\t\r\n" else shown(c) for c in value)
    return f"'{text}" if _FORMULA.match(text) else text


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
    "id", "created_by", "segments",
)  # fmt: skip
_FLAGS: Final = (
    "trace_balanced",
    "partial",
    "balanced",
    "interrupted",
    "resampled",
    "on_server",
    "in_history",
)


def _parquet_type(pyarrow: Any, name: str) -> Any:
    if name in _TEXTS:
        return pyarrow.string()
    if name in _FLAGS:
        return pyarrow.bool_()
    return pyarrow.float64() if name.endswith("ms") else pyarrow.int64()
