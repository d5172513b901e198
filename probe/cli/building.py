"""Builds on the command line: named, made with what is going on shown on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

if TYPE_CHECKING:
    from probe.builds import BuildFailed, BuildSpec
    from probe.sweep import Build

__all__ = ["cached", "make_builds", "read", "told"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def cached(command: _Command) -> _Command:
    """Adds ``--cache`` to a command, as ``cache``: a folder, or ``None``."""
    return click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where environments are kept. Default: in the user's cache directory.",
    )(command)


def read(texts: Sequence[str]) -> list[BuildSpec]:
    """The builds that texts name.

    Raises:
        UsageError: one of them names none.
    """
    from probe.builds import parse

    return [parse(text) for text in texts]


def make_builds(
    specs: Sequence[BuildSpec], cache: Path | None = None
) -> tuple[Build | BuildFailed, ...]:
    """Makes the builds and shows what it is at; see `probe.builds.make_all`."""
    from probe.builds import make_all

    with told() as say:
        return make_all(specs, cache, say)


@contextmanager
def told() -> Iterator[Callable[[str], None]]:
    """Something to tell what begins: one line that changes on a terminal, a line each elsewhere."""
    console = Console(stderr=True, highlight=False)

    def line(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False)

    if not console.is_terminal:
        yield line
        return
    with console.status("") as status:
        yield lambda text: status.update(text.replace("[", r"\["))
