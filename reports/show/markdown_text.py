"""Markdown as GitHub reads it: tables that line up in the source as well, text that stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.show.page import printable

__all__ = ["block", "details", "plain", "table"]

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#~!$&])")
_LINKED = re.compile(r"\b(www)\.", re.IGNORECASE)


def plain(text: str) -> str:
    """A user's text as text: no markup, no line break, nobody mentioned, nothing linked.

    GitHub looks for mentions and issues in what a text has become, where an escape is gone. So a
    space of no width parts the sign from the name.
    """
    escaped = _LINKED.sub(r"\1&#46;", _ACTIVE.sub(r"\\\1", printable(text)))
    return escaped.replace("@", "@&#8203;").replace("://", "&#58;//").replace("\\#", "#&#8203;")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: int = 1) -> list[str]:
    """A table, one line each; columns from number ``right`` on are aligned to the right.

    Cells may hold marks of their own; a bar in them is escaped.
    """
    heads, *rows = ([cell.strip().replace("|", "\\|") for cell in row] for row in (heads, *rows))
    widths = [max(3, *(len(row[i]) for row in (heads, *rows))) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i >= right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (w - 1) + ":" if i >= right else "-" * w for i, w in enumerate(widths)]
    return [line(heads), line(rule), *(line(row) for row in rows)]


def block(text: str) -> list[str]:
    """Text as it stands, in a fence that is longer than any within it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", text.rstrip(), fence]


def details(title: str, lines: Sequence[str]) -> list[str]:
    """Lines behind a click; empty lines around them, or what is inside is no Markdown."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]
