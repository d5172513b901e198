"""Text that means itself on a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["plain", "row"]

_MEANS_MORE = re.compile(r"([\\`*_\[\]<>~])")


def plain(text: str) -> str:
    """A text in which nothing is set in another face, linked or taken for a tag."""
    return _MEANS_MORE.sub(r"\\\1", text)


def row(cells: Sequence[str]) -> str:
    """One row of a table; the cells may hold marks of their own."""
    return f"| {' | '.join(text.strip().replace('|', chr(92) + '|') for text in cells)} |"
