"""A page of text for a terminal: lines of a fixed width, with or without colour."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.text import Text

T = TypeVar("T")

__all__ = ["Page", "printable", "shortened", "wrapped"]


def printable(text: str) -> str:
    """A user's text on one line: runs of white space are a space, what can't be shown is a ``?``.

    An escape sequence in a trace must not reach the terminal.
    """
    return _harmless(" ".join(text.split()))


def _harmless(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def shortened(text: str, characters: int) -> str:
    """A user's text, printable and no longer than this."""
    text = printable(text)
    return text if len(text) <= characters else text[: characters - 1] + "…"


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Lines of at most so many columns, each indented; of an empty text none."""
    pad = " " * indent
    return textwrap.wrap(
        text, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False
    )


class Page:
    """Lines of a fixed width, with or without colour."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = width
        self._out = io.StringIO()
        self._console = Console(
            file=self._out,
            width=width,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def line(self, text: str = "", style: str = "") -> None:
        """One line; what is too long is cut, with an ellipsis; what can't be shown is a ``?``."""
        line = Text(_harmless(text), style=style, no_wrap=True, overflow="ellipsis")
        line.truncate(self.width, overflow="ellipsis")
        self._console.print(line, soft_wrap=True)

    def paragraph(self, text: str, indent: int = 2, style: str = "") -> None:
        for line in wrapped(text, self.width, indent):
            self.line(line, style)

    def first(self, items: Sequence[T], most: int, how: str = "--format json") -> Iterator[T]:
        """The first of many, to be printed; behind them, how to see the others."""
        yield from items[:most]
        self.left_out(len(items) - most, how=how)

    def left_out(
        self, count: int, what: str = "more", how: str = "--format json", indent: int = 2
    ) -> None:
        """How many are not shown; nothing where all are."""
        if count > 0:
            self.paragraph(f"and {count} {what} ({how})", indent)

    def title(self, text: str) -> None:
        self.line()
        self.line(text, "bold")

    def fact(self, name: str, figure: str, meaning: str = "") -> None:
        """Name, figure and what the figure means, wrapped in the last column."""
        head = f"  {name:<20} {figure:<28}"
        room = self.width - len(head) - 1
        if not meaning:
            self.line(head.rstrip())
            return
        if room < 24:
            self.line(head.rstrip())
            self.paragraph(meaning, 4, "dim")
            return
        lines = textwrap.wrap(meaning, room, break_on_hyphens=False)
        for nth, text in enumerate(lines):
            line = Text(head if nth == 0 else " " * len(head), no_wrap=True)
            line.append(" " + text, "dim")
            self._console.print(line, soft_wrap=True)

    def text(self) -> str:
        lines = self._out.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"
