"""Builds on the command line: how they are named, and what a report says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from probe.cli.axes import PACING_LIST
from probe.cli.run import DEFAULT_DIRECTORY
from probe.scenarios.catalogue import DEFAULT

if TYPE_CHECKING:
    from probe.builds import BuildFailed
    from probe.sweep import Build
    from reports.compare import BuildFacts

__all__ = ["cached", "facts_of", "kept", "several_scenarios"]

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


def facts_of(one: Build | BuildFailed) -> BuildFacts:
    """What a report says of a build."""
    from probe.builds import BuildFailed
    from reports.compare import BuildFacts

    if isinstance(one, BuildFailed):
        return BuildFacts(one.label, unavailable=one.reason)
    return BuildFacts(one.label, installed=one.installed, as_of=one.as_of, source=one.source)
