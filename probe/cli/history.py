"""``sinkprobe history``: the same calls on one release after another, and what changed when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import matrix, options, settings
from probe.cli.files import columns, put
from probe.cli.run import find
from probe.errors import BuildError, UsageError
from probe.scenarios.catalogue import DEFAULT
from probe.sweep import Build, Call, Cell, calls
from probe.sweep.journal import opened

if TYPE_CHECKING:
    from probe.builds import Runtime
    from probe.builds.releases import Published
    from reports.compare.history import History, Step

__all__ = ["history"]

RUNS: Final = 5
_GIVEN_UP: Final = 2
"""Failures of one call, all for the same reason, after which it is not tried again."""


@click.command("history")
@click.option("--since", required=True, metavar="VERSION", help="The first release.")
@click.option("--until", metavar="VERSION", help="The last release. Default: the newest.")
@click.option("--node", "of_node", is_flag=True, help="Of @livekit/agents, not livekit-agents.")
@click.option(
    "--all", "every", is_flag=True, help="Every release. Default: the newest of each minor version."
)
@options.several_scenarios
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=RUNS,
    show_default=True,
    help="Runs of each call on each release.",
)
@options.kept
@options.cached
@options.formatted("terminal", "json", "markdown")
@settings.with_thresholds
def history(
    since: str,
    until: str | None,
    of_node: bool,
    every: bool,
    scenarios: Sequence[str],
    pacing: Sequence[str] | None,
    runs: int,
    directory: Path,
    cache: Path | None,
    output_format: str,
    thresholds: Sequence[str],
) -> int:
    """Run the same calls on one release after another and say what changed when.

    Each release gets an environment of its own, with its dependencies as of its date. A line tells
    of each as it is done: the figures, which findings appeared and which went away, and the
    figures that can be told apart from those of the release before. A release that can't be
    installed, or can't run a call, is a line that says why.

    What was stopped goes on where it was: calls whose traces are in --out are not made again.
    Give another --out to make all of them anew.
    """
    from probe.builds import NODE_PACKAGE, PYTHON_PACKAGE, releases
    from reports.compare.history import History
    from reports.show import history as texts

    limits = settings.load(thresholds)
    chosen = [find(name) for name in scenarios or (DEFAULT,)]
    planned = matrix.planned(chosen, {} if pacing is None else {"pacing": pacing})
    _check_order(since, until)
    runtime: Runtime = "node" if of_node else "python"
    package = NODE_PACKAGE if of_node else PYTHON_PACKAGE
    with matrix.told() as say:
        say(f"looking for the releases of {package}")
        released = releases.since(runtime, since, until, each_minor=not every)
    live = output_format == "terminal"
    walk = _Walk(planned.cells, runs)
    if live:
        put(texts.head(package, len(released), runs, walk.calls, walk.varied, columns()))
    with opened(directory) as journal, matrix.may_break_off() as broken:
        runner = matrix.Runner(directory, limits, journal=journal)
        for one in released:
            step = walk.on(one, runner, cache)
            if live:
                put(texts.lines(step, walk.varied, columns(), alone=len(walk.calls) == 1))
    made = History(package, runs, tuple(walk.steps), not broken.code, str(directory))
    if live:
        put(texts.foot(made, columns()))
    else:
        render = texts.as_json if output_format == "json" else partial(_markdown, walk.varied)
        put(render(made))
    if broken.code:
        return broken.code
    return 0 if any(row.column.runs for step in made.steps for row in step.rows) else 1


def _markdown(varied: Sequence[str], made: History) -> str:
    from reports.show.history import as_markdown

    return as_markdown(made, varied)


def _check_order(since: str, until: str | None) -> None:
    from probe.builds.releases import ordered

    try:
        if until is not None and ordered(until) < ordered(since):
            raise UsageError(f"expected --until from {since} on, found {until}")
        ordered(since)
    except BuildError as error:
        raise UsageError(str(error)) from error


class _Walk:
    """From one release to the next."""

    def __init__(self, cells: Sequence[Cell], runs: int) -> None:
        from reports.compare import Call as ReportedCall

        self.steps: list[Step] = []
        self._cells = cells
        self._runs = runs
        self.calls = [ReportedCall(cell.scenario.name, asdict(cell.axes)) for cell in cells]
        axes = [call.axes for call in self.calls]
        self.varied = [name for name in axes[0] if len({repr(one[name]) for one in axes}) > 1]

    def on(self, release: Published, runner: matrix.Runner, cache: Path | None) -> Step:
        """Makes the calls on a release, but for those made before."""
        from probe.builds import BuildFailed, released
        from reports.compare.history import step

        uploaded = None if release.uploaded is None else release.uploaded.strftime("%Y-%m-%d")
        made: list[matrix.Made] = []
        with matrix.told() as say:
            build = released(release, cache, say)
            if not isinstance(build, BuildFailed):
                label = build.label
                runner.make(
                    self._todo(build, made),
                    made.append,
                    lambda call: say(f"{label}: run {call.run} of {self._runs}"),
                )
        self.steps.append(
            step(
                release.version,
                uploaded,
                matrix.facts_of(build),
                [one.result for one in made],
                self.steps,
                with_barge_in={c.scenario.name for c in self._cells if c.scenario.barges_in},
            )
        )
        return self.steps[-1]

    def _todo(self, build: Build, made: Sequence[matrix.Made]) -> Iterator[Call]:
        """All runs of a round, then the next; a call that only fails is given up."""
        for call in calls([replace(cell, build=build) for cell in self._cells], self._runs):
            errors = [one.error for one in made if one.error and one.call.cell == call.cell]
            if len(errors) < _GIVEN_UP or len({*errors}) > 1:
                yield call
