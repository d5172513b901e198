"""The calls a command asks for, made and read: what is going on is told on standard error.

A command says which calls and what becomes of each; how they are made, none twice where there is a
journal, is the same for all (`probe.sweep.run`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from probe.cli.run import DEFAULT_DIRECTORY
from probe.errors import TraceError, UsageError
from probe.sweep import INSTALLED, Build, Call, Done, Journal, Plan, plan, run

if TYPE_CHECKING:
    from probe.builds import BuildFailed
    from probe.scenarios.scenario import Scenario
    from reports import Analysis
    from reports.compare import BuildFacts, RunResult
    from reports.findings import Settings

__all__ = ["Broken", "Made", "Runner", "facts_of", "fresh", "may_break_off", "planned", "told"]

_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made, and what its trace says."""

    call: Call
    analysis: Analysis | None
    error: str
    """Why there is no analysis."""
    seconds: float

    @property
    def result(self) -> RunResult:
        """The same, as it is compared."""
        from reports.compare import RunResult

        return RunResult(self.call.cell.scenario.header, self.analysis, self.error)


def planned(
    scenarios: Sequence[Scenario],
    axes: Mapping[str, Sequence[Any]],
    builds: Sequence[Build] = (INSTALLED,),
) -> Plan:
    """What `probe.sweep.plan` makes of it.

    Raises:
        UsageError: no call can be made; says why of each.
    """
    found = plan(scenarios, axes, builds)
    if not found.cells:
        reasons = "; ".join(one.reason for one in found.left_out)
        raise UsageError(f"expected at least one call that can be made, found none: {reasons}")
    return found


def fresh(command: str) -> Path:
    """A folder of its own for what a command leaves now; not made yet."""
    return Path(DEFAULT_DIRECTORY) / time.strftime(f"{command}-%Y%m%d-%H%M%S")


@dataclass(frozen=True, slots=True)
class Runner:
    """Makes calls and has their traces read."""

    folder: Path
    """Where traces go."""
    limits: Settings
    """Thresholds of the rules that judge them."""
    jobs: int = 1
    """Calls at a time."""
    journal: Journal | None = None
    """Of the folder, where calls made before are not made again."""

    def make(
        self,
        todo: Iterable[Call],
        take: Callable[[Made], object],
        begun: Callable[[Call], None] | None = None,
    ) -> None:
        """Has each call handed to ``take`` as it ends, and ``begun`` told of what is really made;
        what is asked for next may depend on it, see `probe.sweep.run`."""
        with closing(
            run(todo, self.folder, jobs=self.jobs, journal=self.journal, begun=begun)
        ) as results:
            for done in results:
                take(_judged(done, self.limits))

    def make_listed(self, todo: Sequence[Call], made: list[Made]) -> None:
        """Puts what came of each call into ``made``, with a bar that grows, or a line each."""
        several = len({call.cell.build for call in todo}) > 1
        console = Console(stderr=True, highlight=False)
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _Remaining(),
            console=console,
            disable=not console.is_terminal,
        )
        with progress:
            task = progress.add_task("calling", total=len(todo))

            def take(one: Made) -> None:
                made.append(one)
                cell = one.call.cell
                name = f"{cell.build.label}: " if several else ""
                progress.update(task, advance=1, description=f"{name + cell.scenario.name:<24.44}")
                if not console.is_terminal:
                    error = f": {one.error}" if one.error else ""
                    _line(console, f"{len(made)}/{len(todo)} {cell.folder}{error}")

            self.make(todo, take)


def _judged(done: Done, limits: Settings) -> Made:
    """A call with the analysis of its trace."""
    from probe.trace.reader import read_trace
    from reports import analyze
    from reports.attempt import attempted

    analysis, error = None, done.error
    if done.trace is not None:
        try:
            trace = read_trace(done.trace)
            analysis, why = attempted(trace, lambda ledger: analyze(ledger, settings=limits))
            error = why or error
        except TraceError as failure:
            error = str(failure)
    return Made(done.call, analysis, error, done.seconds)


def facts_of(one: Build | BuildFailed) -> BuildFacts:
    """What a report says of a build."""
    from probe.builds import BuildFailed
    from reports.compare import BuildFacts

    if isinstance(one, BuildFailed):
        return BuildFacts(one.label, unavailable=one.reason)
    return BuildFacts(one.label, installed=one.installed, as_of=one.as_of, source=one.source)


@dataclass(slots=True)
class Broken:
    """Whether a command was broken off."""

    code: int = 0
    """Its exit code then; 0: it was not."""


@contextmanager
def may_break_off() -> Iterator[Broken]:
    """Calls in this block end with Ctrl-C or a signal, and the command prints what it has."""
    broken = Broken()
    try:
        yield broken
    except KeyboardInterrupt as stop:
        broken.code = getattr(stop, "exit_code", _INTERRUPTED)


@contextmanager
def told() -> Iterator[Callable[[str], None]]:
    """Something to tell what begins: one line that changes on a terminal, a line each elsewhere.
    What is said again is not repeated."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        with console.status("") as status:
            yield lambda text: status.update(text.replace("[", r"\["))
        return
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:
            _line(console, text)
        last = text

    yield say


def _line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False)


class _Remaining(ProgressColumn):
    """Time still to go, from all calls so far: several end together, so the last ones mislead."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if not task.completed or task.elapsed is None or task.total is None:
            return Text("-:-- to go")
        seconds = round(task.elapsed / task.completed * (task.total - task.completed))
        return Text(f"{seconds // 60}:{seconds % 60:02} to go")
