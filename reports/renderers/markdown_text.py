"""Text that means itself on a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.renderers.page import printable

__all__ = ["plain", "row"]

_MEANS_MORE = re.compile(r"([\\`*_\[\]<>~])")


def plain(text: str) -> str:
    """A user's text on one line in which nothing is set in another face, linked or a tag."""
    return _MEANS_MORE.sub(r"\\\1", printable(text))


def row(cells: Sequence[str]) -> str:
    """One row of a table; the cells may hold marks of their own."""
    return f"| {' | '.join(text.strip().replace('|', chr(92) + '|') for text in cells)} |"
