"""``sinkprobe history``: the same calls on one release after another, and what changed when."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import building, settings
from probe.cli.report import columns, put
from probe.cli.run import find
from probe.cli.sweep import judged, stopped_by
from probe.errors import BuildError, UsageError
from probe.scenarios.catalogue import DEFAULT
from probe.sweep import Build, Call, Cell, plan

if TYPE_CHECKING:
    from probe.builds import Runtime
    from probe.builds.journal import Journal
    from probe.builds.releases import Published
    from probe.builds.tools import Progress
    from reports.compare import RunResult
    from reports.compare.history import History, Step
    from reports.findings import Settings

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
@building.several_scenarios
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=RUNS,
    show_default=True,
    help="Runs of each call on each release.",
)
@building.kept
@building.cached
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
)
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
    from probe.builds.journal import opened
    from reports.compare.history import History
    from reports.show import history as texts

    limits = settings.load(thresholds)
    chosen = [find(name) for name in scenarios or (DEFAULT,)]
    planned = plan(chosen, {} if pacing is None else {"pacing": pacing})
    if not planned.cells:
        reasons = "; ".join(one.reason for one in planned.left_out)
        raise UsageError(f"expected at least one call that can be made, found none: {reasons}")
    _check_order(since, until)
    runtime: Runtime = "node" if of_node else "python"
    package = NODE_PACKAGE if of_node else PYTHON_PACKAGE
    with building.told() as say:
        say(f"looking for the releases of {package}")
        released = releases.since(runtime, since, until, each_minor=not every)
    live = output_format == "terminal"
    walk = _Walk(planned.cells, runs, limits, cache)
    if live:
        put(texts.head(package, len(released), runs, walk.calls, walk.varied, columns()))
    stopped = 0
    with opened(directory) as journal:
        try:
            for one in released:
                step = walk.on(one, journal)
                if live:
                    put(texts.lines(step, walk.varied, columns(), alone=len(walk.calls) == 1))
        except KeyboardInterrupt as stop:
            stopped = stopped_by(stop)
    made = History(package, runs, tuple(walk.steps), not stopped, str(directory))
    if live:
        put(texts.foot(made, columns()))
    else:
        render = texts.as_json if output_format == "json" else partial(_markdown, walk.varied)
        put(render(made))
    if stopped:
        return stopped
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

    def __init__(
        self, cells: Sequence[Cell], runs: int, limits: Settings, cache: Path | None
    ) -> None:
        from reports.compare import Call as ReportedCall

        self.steps: list[Step] = []
        self._cells = cells
        self._runs = runs
        self._limits = limits
        self._cache = cache
        self.calls = [ReportedCall(cell.scenario.name, asdict(cell.axes)) for cell in cells]
        axes = [call.axes for call in self.calls]
        self.varied = [name for name in axes[0] if len({repr(one[name]) for one in axes}) > 1]

    def on(self, release: Published, journal: Journal) -> Step:
        """Makes the calls on a release, but for those made before."""
        from probe.builds import BuildFailed, published
        from reports.compare.history import step

        uploaded = None if release.uploaded is None else release.uploaded.strftime("%Y-%m-%d")
        results: list[RunResult] = []
        with building.told() as say:
            try:
                build = published(release, self._cache, say)
            except BuildError as error:
                failed = BuildFailed(f"{release.package} {release.version}", str(error))
                facts = building.facts_of(failed)
            else:
                facts = building.facts_of(build)
                results = self._results(build, journal, say)
        self.steps.append(
            step(
                release.version,
                uploaded,
                facts,
                results,
                self.steps,
                with_barge_in=building.barging_in([cell.scenario for cell in self._cells]),
            )
        )
        return self.steps[-1]

    def _results(self, build: Build, journal: Journal, say: Progress) -> list[RunResult]:
        """All runs of a round, then the next; a call that only fails is given up."""
        cells = [replace(cell, build=build) for cell in self._cells]
        errors: dict[Cell, list[str]] = {cell: [] for cell in cells}
        results = []
        for number in range(1, self._runs + 1):
            todo = [Call(cell, number) for cell in cells if not _is_given_up(errors[cell])]
            if any(journal.trace(one) is None for one in todo):
                say(f"{build.label}: run {number} of {self._runs}")
            with closing(journal.run(todo)) as made:
                for done in made:
                    one = judged(done, self._limits)
                    errors[done.call.cell] += [one.error] if one.error else []
                    results.append(building.result_of(one))
        return results


def _is_given_up(errors: Sequence[str]) -> bool:
    return len(errors) >= _GIVEN_UP and len({*errors}) == 1
