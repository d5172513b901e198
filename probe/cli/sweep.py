"""``sinkprobe sweep``: a part of the matrix of scripted calls, and one table of what they left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click

from probe.cli import expectations, matrix, options, settings
from probe.cli.axes import NUMBERS, PACING_LIST, PLACE_LIST, REPLY_LIST, WHOLE_NUMBERS
from probe.cli.files import columns, put
from probe.cli.run import find
from probe.scenarios import releases
from probe.scenarios.axes import Axes
from probe.scenarios.catalogue import CATALOGUE
from probe.sweep import calls

__all__ = ["sweep"]

DEFAULT_PACINGS: Final = ("burst", "realtime")


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
@click.option("--frame-ms", type=NUMBERS, help="Length of the TTS's frames.")
@click.option("--rate", "rate_hz", type=WHOLE_NUMBERS, help="Rate of the TTS, in Hz.")
@click.option("--reply-ms", type=WHOLE_NUMBERS, help="Length of the reply, in ms.")
@click.option("--at", type=PLACE_LIST, help="Where in the reply the barge-in lands.")
@click.option("--reply", type=REPLY_LIST, help="How the reply comes about.")
@click.option("--channels", type=WHOLE_NUMBERS, help="Of TTS and source.")
@click.option("--close-ms", type=WHOLE_NUMBERS, help="How long the reply's stream takes to close.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each cell."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Calls at a time. Default: half the processors, for a starved call measures the machine.",
)
@options.in_folder
@options.formatted("terminal", "json", "markdown")
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
    planned = matrix.planned(chosen, given)
    expected = {cell: expectations.of(cell.scenario) for cell in planned.cells}
    for cell, texts in expected.items():
        expectations.read(texts, f"{cell.scenario.name}: expect")
    releases.require_livekit()
    runner = matrix.Runner(directory or matrix.fresh("sweep"), limits, jobs or _default_jobs())
    made: list[matrix.Made] = []
    with matrix.may_break_off() as broken:
        runner.make_listed(calls(planned.cells, runs), made)

    from probe.cli.sweep_table import as_json, tabulate
    from probe.cli.sweep_text import as_markdown, as_terminal

    table = tabulate(
        planned.cells,
        made,
        expected=expected,
        left_out=planned.left_out,
        runs=runs,
        jobs=runner.jobs,
        folder=str(runner.folder),
    )
    if output_format == "terminal":
        put(as_terminal(table, columns()))
    else:
        put(as_json(table) if output_format == "json" else as_markdown(table))
    if broken.code:
        return broken.code
    if table.failed:
        return 1
    return settings.fails([m.analysis for m in made if m.analysis is not None], forbidden)


_AXIS_NAMES: Final = tuple(field.name for field in fields(Axes))
