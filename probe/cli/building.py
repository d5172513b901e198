"""Builds on the command line: named, made with what is going on shown on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from rich.console import Console

if TYPE_CHECKING:
    from probe.builds import BuildFailed
    from probe.cli.sweep_tables import Made
    from probe.scenarios.catalogue import Scenario
    from probe.sweep import Build
    from reports.compare import BuildFacts, RunResult

__all__ = ["barging_in", "cached", "facts_of", "result_of", "told"]

_BEGINS: Final = ("speak", "detect", "interrupt", "interrupt-handle")
"""Steps that begin a barge-in, if a reply is under way."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def cached(command: _Command) -> _Command:
    """Adds ``--cache`` to a command, as ``cache``: a folder, or ``None``."""
    return click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where environments are kept. Default: in the user's cache directory.",
    )(command)


def facts_of(one: Build | BuildFailed) -> BuildFacts:
    """What a report says of a build."""
    from probe.builds import BuildFailed
    from reports.compare import BuildFacts

    if isinstance(one, BuildFailed):
        return BuildFacts(one.label, unavailable=one.reason)
    return BuildFacts(one.label, installed=one.installed, as_of=one.as_of, source=one.source)


def result_of(made: Made) -> RunResult:
    """A call that was made, as it is compared."""
    from reports.compare import RunResult

    cell = made.call.cell
    header = {"scenario": cell.scenario.name, **asdict(cell.axes)}
    return RunResult(header, made.analysis, made.error)


def barging_in(scenarios: Sequence[Scenario]) -> set[str]:
    """Those in which somebody interrupts a reply that is under way."""
    names = set()
    for scenario in scenarios:
        steps = [step.do for step in scenario.steps]
        begun = next((nth for nth, step in enumerate(steps) if step in _BEGINS), None)
        if begun is not None and "await-end" not in steps[:begun]:
            names.add(scenario.name)
    return names


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
