"""A table as Parquet, typed, see `reports.show.tables`; what is not known is null."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import pyarrow
from pyarrow import parquet

from reports.results import Analysis
from reports.show.tables import Table, columns, rows

__all__ = ["render"]

_TEXTS: Final = (
    "trace", "livekit_agents", "scenario", "speech_id", "message_id", "verdict_kind", "outcome",
    "id", "created_by", "segments", "unseen", "unjoined",
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


def render(analyses: Sequence[Analysis], table: Table = "barge-ins") -> bytes:
    """A Parquet file; its types are the same whatever is known."""
    found = rows(analyses, table)
    arrays = {
        name: pyarrow.array([row[name] for row in found], type=_type(name))
        for name in columns(table)
    }
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), sink)
    return sink.getvalue()


def _type(name: str) -> Any:
    if name in _TEXTS:
        return pyarrow.string()
    if name in _FLAGS:
        return pyarrow.bool_()
    return pyarrow.float64() if name.endswith("ms") else pyarrow.int64()
