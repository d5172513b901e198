"""A table as CSV, see `reports.show.tables`; what is not known is empty."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Final

from reports.results import Analysis
from reports.show.tables import Cell, Table, columns, rows
from reports.show.wording import shown

__all__ = ["render"]


def render(analyses: Sequence[Analysis], table: Table = "barge-ins") -> str:
    """CSV as RFC 4180 has it, with a head. ``true`` and ``false``; empty: not known.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; characters that
    can't be seen, and that the RFC does not know, are spelled out.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(table))
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
