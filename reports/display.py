"""How an analysis shows itself: in a notebook, and to `rich.print`.

Results know nothing of what draws them, so this is put on from outside, once, by `reports`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reports.results import Analysis

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

__all__ = ["install"]


def install(kind: type[Analysis]) -> None:
    """Gives a class of analyses the two methods that displays ask for."""
    for name, method in (("__rich_console__", _for_a_console), ("_repr_html_", _for_a_notebook)):
        setattr(kind, name, method)


def _for_a_console(analysis: Analysis, console: Console, options: ConsoleOptions) -> Iterator[Text]:
    """The terminal's report, as wide as the console, down to 60 columns."""
    from rich.text import Text

    from reports.show import terminal

    report = terminal.render([analysis], width=options.max_width, colour=True)
    for line in report.splitlines():
        yield Text.from_ansi(line, no_wrap=True, overflow="ellipsis")


def _for_a_notebook(analysis: Analysis) -> str:
    """A piece of HTML, whole in itself; nothing from a trace is markup in it."""
    from reports.show import notebook

    return notebook.render(analysis)
