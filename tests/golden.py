"""Golden files: what a renderer made of a call, looked at once and kept as text.

`pytest --update-golden` writes them anew. A difference is for eyes: what a report says has changed.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

__all__ = ["FOLDER", "Golden"]

FOLDER = Path(__file__).parent / "golden"
SHOWN_LINES = 60


class Golden:
    """Holds texts against the files they are kept in."""

    def __init__(self, update: bool, folder: Path = FOLDER) -> None:
        self._update = update
        self._folder = folder

    def check(self, name: str, text: str) -> None:
        """Fails with a diff where the text is not that of the file; writes it when told to."""
        path = self._folder / name
        kept = path.read_bytes().decode() if path.exists() else None
        if text == kept:
            return
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        lines = difflib.unified_diff(
            [] if kept is None else _visible(kept),
            _visible(text),
            f"{self._folder.name}/{name}",
            "what was rendered",
            lineterm="",
        )
        shown = list(lines)
        more = len(shown) - SHOWN_LINES
        rest = [f"… and {more} more lines"] if more > 0 else []
        pytest.fail(
            "\n".join(
                [
                    f"{name}: {'there is no such golden file' if kept is None else 'changed'}.",
                    *shown[:SHOWN_LINES],
                    *rest,
                    "If that is right: pytest tests/test_golden.py --update-golden, "
                    "and look at the difference.",
                ]
            ),
            pytrace=False,
        )


def _visible(text: str) -> list[str]:
    """Lines whose ends can be told apart."""
    return [line.replace("\r", "\\r") for line in text.split("\n")]
