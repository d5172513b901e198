"""Options that several commands have: which calls are made, where they go, how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from probe.cli.axes import PACING_LIST
from probe.cli.run import DEFAULT_DIRECTORY
from probe.scenarios.catalogue import DEFAULT

__all__ = ["cached", "formatted", "in_folder", "kept", "several_scenarios"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def cached(command: _Command) -> _Command:
    """Adds ``--cache`` to a command, as ``cache``: a folder, or ``None``."""
    return click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where environments are kept. Default: in the user's cache directory.",
    )(command)


def several_scenarios(command: _Command) -> _Command:
    """Adds ``--scenario``, repeatable, as ``scenarios``, and ``--pacing``: a list, or ``None``."""
    for option in (
        click.option(
            "--pacing", type=PACING_LIST, help="How the TTS delivers the reply, one or several."
        ),
        click.option(
            "--scenario",
            "scenarios",
            multiple=True,
            metavar="SCENARIO|FILE.toml",
            help=f"What to run; may be repeated. Default: {DEFAULT}.",
        ),
    ):
        command = option(command)
    return command


def kept(command: _Command) -> _Command:
    """Adds ``--out``, as ``directory``: where calls on releases are kept between commands."""
    return click.option(
        "--out",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=f"{DEFAULT_DIRECTORY}/releases",
        show_default=True,
        help="Where the traces go, and where calls that were made before are found.",
    )(command)


def in_folder(command: _Command) -> _Command:
    """Adds ``--out``, as ``directory``: a folder, or ``None`` for one of its own."""
    return click.option(
        "--out",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Where the traces go. Default: a new folder in {DEFAULT_DIRECTORY}.",
    )(command)


def formatted(*formats: str) -> Callable[[_Command], _Command]:
    """Adds ``--format``, as ``output_format``; without it the terminal's."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default="terminal",
        show_default=True,
    )
