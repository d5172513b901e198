"""What FORMAT.md says of each event, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import probe.trace

__all__ = ["FORMAT", "Row", "Section", "documented"]

FORMAT = (Path(probe.trace.__file__).parent / "FORMAT.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A field, as the table says."""

    field: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Section:
    """An event."""

    meaning: str
    rows: tuple[Row, ...]


@cache
def documented() -> dict[str, Section]:
    """Every event of the page by its name, in its order."""
    events: dict[str, Section] = {}
    for section in re.split(r"^### ", FORMAT, flags=re.MULTILINE)[1:]:
        heading = re.match(r"`(\w+)`\n\n(.+?)\n\n", section, re.DOTALL)
        assert heading, section[:40]
        rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| (.+) \|$", section, re.MULTILINE)
        events[heading[1]] = Section(" ".join(heading[2].split()), tuple(Row(*row) for row in rows))
    return events
