"""Barge-ins, segments and realtime messages as flat tables, for people's own analysis.

A column's name is the JSON report's path to the figure, with dots; what is not known is ``None``.
Several traces go into one table, told apart by ``trace``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from reports.account.boundary import LEAKING, NAMES
from reports.results import Analysis, BargeIn, RealtimeMessage, Segment
from reports.show import json

__all__ = ["KINDS", "Cell", "Table", "columns", "rows"]

Table = Literal["barge-ins", "segments", "messages"]
KINDS: Final[tuple[Table, ...]] = ("barge-ins", "segments", "messages")

Cell: TypeAlias = str | int | float | bool | None

_SEGMENT: Final = (
    "index", "speech_id", "message_id", "partial", "balanced", "captured", "pushed", "sent",
    "cleared_samples", "dropped_samples", "held_samples", "queued_samples", "inherited_samples",
    "inserted_samples", "tail_samples", "ambiguous_samples", "unaccounted_samples",
    "unknown_samples", "swallowed_samples", "sent_in_later_segments_samples", "started_ms",
    "finished_ms", "interrupted", "claimed_position_ms", "sent_position_ms",
    "last_sent_position_ms", "resampled", "added_samples", "unjoined",
)  # fmt: skip
_BARGE_IN: Final = (
    "segment", "speech_id", "partial", "verdict_kind", "outcome", "onset_ms", "pause_ms",
    "verdict_ms", "commit_ms", "clear_ms", "source_clear_ms", "resume_ms", "last_sent_ms",
    "stop_ms", "stalled_ms", "leaked", "after_onset", "after_pause", "remaining",
    "unseen",
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
_AMOUNTS: Final = (*NAMES, "remaining")
_SOUNDS: Final = ("generated", "read")
_LEAKS: Final = ("leaked", "after_onset", "after_pause")


def rows(analyses: Sequence[Analysis], table: Table) -> list[dict[str, Cell]]:
    """One row a segment, barge-in or message, in the order of the traces, each with every column.

    The segments of a message are their numbers with spaces between them. A trace that could not be
    analysed is one row, of which no figure is known.
    """
    found: list[dict[str, Cell]] = []
    for analysis in analyses:
        about: dict[str, Cell] = {
            # A file's name need not be text; what is not is spelled out.
            "trace": analysis.trace.path.encode(errors="backslashreplace").decode(),
            "livekit_agents": analysis.trace.runtime.get("livekit_agents"),
            "scenario": None if analysis.run is None else analysis.run.scenario,
            "trace_balanced": analysis.balanced,
        }
        if analysis.trace.unanalysed is not None:
            found.append(dict.fromkeys(columns(table)) | about)
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
            for boundary in LEAKING:
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


def columns(table: Table) -> list[str]:
    """The names of a table's columns, in their order."""
    names = [*_ABOUT]
    for field in _FIELDS[table]:
        places = [f"{field}.{b}" for b in LEAKING] if field in _LEAKS else [field]
        figures = _figures(field)
        names += [f"{place}.{f}" for place in places for f in figures] if figures else places
    return names
