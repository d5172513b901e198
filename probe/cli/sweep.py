"""``sinkprobe sweep``: a part of the matrix of scripted calls, and one table of what they left."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
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

from probe.cli import expectations, settings
from probe.cli.run import DEFAULT_DIRECTORY, find
from probe.errors import ProbeError, TraceError, UsageError
from probe.scenarios import releases
from probe.scenarios.catalogue import CATALOGUE, PACINGS, PLACES, REPLY_KINDS, Axes
from probe.sweep import Call, Done, calls, plan, run

if TYPE_CHECKING:
    from probe.cli.sweep_tables import Made, Table
    from reports.findings import Settings

__all__ = ["PACING_LIST", "judged", "make_calls", "put", "stopped_by", "sweep"]

DEFAULT_PACINGS: Final = ("burst", "realtime")
_INTERRUPTED: Final = 130


class _Values(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """Values with commas between them, each read by itself."""

    def __init__(self, read: Callable[[str], Any], name: str, expected: str) -> None:
        self._read = read
        self._expected = expected
        self.name = name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        texts = [text.strip() for text in str(value).split(",")]
        return tuple(self._one(text, param, ctx) for text in texts)

    def _one(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(text)
        except ValueError:
            self.fail(f"expected {self._expected}, found {text!r}", param, ctx)


class _Remaining(ProgressColumn):
    """Time still to go, from all calls so far: several end together, so the last ones mislead."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if not task.completed or task.elapsed is None or task.total is None:
            return Text("-:-- to go")
        seconds = round(task.elapsed / task.completed * (task.total - task.completed))
        return Text(f"{seconds // 60}:{seconds % 60:02} to go")


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read


def _place(text: str) -> Any:
    return text if text in PLACES else int(text)


PACING_LIST: Final = _Values(_one_of(PACINGS), "PACING,…", f"some of {', '.join(PACINGS)}")
_REPLIES: Final = _Values(_one_of(REPLY_KINDS), "KIND,…", f"some of {', '.join(REPLY_KINDS)}")
_NUMBERS: Final = _Values(float, "MS,…", "numbers")
_WHOLE: Final = _Values(int, "N,…", "whole numbers")
_PLACES: Final = _Values(_place, "PLACE,…", f"milliseconds or some of {', '.join(PLACES)}")


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default_jobs() -> int:
    """Half the processors: a starved call measures the machine.

    Measured with two on two processors: a quarter of the time saved, the same leaks to a block, but
    stalls of the calls' loops twice as long.
    """
    return max(_cpus() // 2, 1)


@click.command("sweep")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO|FILE.toml]…")
@click.option(
    "--pacing",
    type=PACING_LIST,
    help="How the TTS delivers the reply. Default: burst,realtime.",
)
@click.option("--frame-ms", type=_NUMBERS, help="Length of the TTS's frames.")
@click.option("--rate", "rate_hz", type=_WHOLE, help="Rate of the TTS, in Hz.")
@click.option("--reply-ms", type=_WHOLE, help="Length of the reply, in ms.")
@click.option("--at", type=_PLACES, help="Where in the reply the barge-in lands.")
@click.option("--reply", type=_REPLIES, help="How the reply comes about.")
@click.option("--channels", type=_WHOLE, help="Of TTS and source.")
@click.option("--close-ms", type=_WHOLE, help="How long the reply's stream takes to close.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each cell."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Calls at a time. Default: half the processors, for a starved call measures the machine.",
)
@click.option(
    "--out",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Where the traces go. Default: a new folder in {DEFAULT_DIRECTORY}.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
)
@settings.judged_by
def sweep(
    scenarios: Sequence[str],
    runs: int,
    jobs: int | None,
    directory: Path | None,
    output_format: str,
    thresholds: Sequence[str],
    fail_on: Sequence[str],
    **axes: Any,
) -> int:
    """Run a part of the matrix of scripted calls and print one table.

    The cells are SCENARIO (all that are listed, unless some are named) times every combination of
    the axes given; each takes several values with commas between them. An axis that is not given
    stays where the scenario has it. Ctrl-C keeps what was done and prints the table so far.

    A call that comes to no end costs its row a reason and the command the exit code 1; the others
    go on. A finding that --fail-on forbids, in any run, makes the exit code 3.
    """
    limits = settings.load(thresholds)
    forbidden = settings.gates(fail_on)
    chosen = [find(name) for name in scenarios or CATALOGUE]
    given = {name: axes[name] for name in _AXIS_NAMES if axes.get(name) is not None}
    given.setdefault("pacing", DEFAULT_PACINGS)
    planned = plan(chosen, given)
    if not planned.cells:
        reasons = "; ".join(one.reason for one in planned.left_out)
        raise UsageError(f"expected at least one call that can be made, found none: {reasons}")
    expected = {cell: expectations.of(cell.scenario) for cell in planned.cells}
    for cell, texts in expected.items():
        expectations.read(texts, f"{cell.scenario.name}: expect")
    releases.require_livekit()
    folder = directory or Path(DEFAULT_DIRECTORY) / time.strftime("sweep-%Y%m%d-%H%M%S")
    at_a_time = jobs or _default_jobs()
    todo = calls(planned.cells, runs)
    made: list[Made] = []
    stopped = 0
    try:
        make_calls(todo, folder, at_a_time, limits, made)
    except KeyboardInterrupt as stop:
        stopped = stopped_by(stop)

    from probe.cli.sweep_tables import tabulate

    table = tabulate(
        planned.cells,
        made,
        expected=expected,
        left_out=planned.left_out,
        runs=runs,
        jobs=at_a_time,
        folder=str(folder),
    )
    put(table, output_format)
    if stopped:
        return stopped
    if table.failed:
        return 1
    return settings.fails([m.analysis for m in made if m.analysis is not None], forbidden)


_AXIS_NAMES: Final = tuple(field.name for field in fields(Axes))


def make_calls(
    todo: Sequence[Call], folder: Path, jobs: int, limits: Settings, made: list[Made]
) -> None:
    """Make the calls, and put what came of each into ``made`` as it ends."""
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
    with progress, closing(run(todo, folder, jobs=jobs)) as results:
        task = progress.add_task("calling", total=len(todo))
        for done in results:
            made.append(judged(done, limits))
            cell = done.call.cell
            said = f"{cell.build.label}: " if several else ""
            progress.update(task, advance=1, description=f"{said + cell.scenario.name:<24.44}")
            if not console.is_terminal:
                error = f": {made[-1].error}" if made[-1].error else ""
                console.print(
                    f"{len(made)}/{len(todo)} {cell.folder}{error}",
                    soft_wrap=True,
                    markup=False,
                )


def stopped_by(stop: KeyboardInterrupt) -> int:
    """The exit code of what broke off a command that prints what it has: Ctrl-C or a signal."""
    return getattr(stop, "exit_code", _INTERRUPTED)


def judged(done: Done, limits: Settings) -> Made:
    from probe.cli.sweep_tables import Made
    from reports import analyze

    if done.trace is None:
        return Made(done.call, None, done.error, done.seconds)
    try:
        return Made(done.call, analyze(done.trace, settings=limits), "", done.seconds)
    except TraceError as error:
        return Made(done.call, None, str(error), done.seconds)


def put(table: Table, output_format: str) -> None:
    from probe.cli import sweep_tables

    if output_format == "json":
        text = sweep_tables.as_json(table)
    elif output_format == "markdown":
        text = sweep_tables.as_markdown(table)
    else:
        columns = shutil.get_terminal_size((80, 24)).columns
        text = sweep_tables.as_terminal(table, min(columns, 120))
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    except OSError as error:
        raise ProbeError(f"the table can't be written: {error.strerror or error}") from error
