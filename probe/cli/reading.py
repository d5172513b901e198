"""Traces read one by one, none hiding the others, and how much of each is taken in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from probe.errors import TraceError
from probe.trace.limits import LIMITS, Limits

if TYPE_CHECKING:
    from reports.account.ledger import Ledger

__all__ = ["bounded", "each"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Made = TypeVar("_Made")


def bounded(command: _Command) -> _Command:
    """Adds ``--no-limits`` to a command that reads traces, as ``limits``: `Limits`, or ``None``."""
    return click.option(
        "--no-limits",
        "limits",
        is_flag=True,
        callback=lambda context, parameter, given: None if given else LIMITS,
        help="Read a trace however long it is, or unpacks to be. Calls of ten hours need it not.",
    )(command)


def each(
    paths: Iterable[Path], limits: Limits | None, work: Callable[[Ledger], _Made]
) -> tuple[list[_Made], bool]:
    """What ``work`` makes of each trace's ledger, and whether any of them failed.

    One that can't be read is left out, one that breaks the work is what its header alone makes;
    both say why on standard error.
    """
    from probe.trace.reader import read_trace
    from reports.attempt import attempted

    made: list[_Made] = []
    failed = False
    for path in paths:
        try:
            one, why = attempted(read_trace(path, limits), work)
        except TraceError as error:
            why = str(error)
        else:
            made.append(one)
            why = why and f"{path}: {why}"
        if why:
            failed = True
            click.echo(f"sinkprobe: {why}", err=True)
    return made, failed
