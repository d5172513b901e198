"""``sinkprobe run``: a scripted call on the installed build, and the report on what it left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from probe.cli import expectations, settings
from probe.cli.axes import AT
from probe.errors import ScenarioError, UsageError
from probe.scenarios import releases
from probe.scenarios.axes import PACINGS, PLACES, REPLY_KINDS
from probe.scenarios.catalogue import CATALOGUE, DEFAULT, load
from probe.scenarios.runner import Outcome, run_in_child
from probe.scenarios.scenario import Scenario
from probe.sweep import varied

if TYPE_CHECKING:
    from reports import Analysis
    from reports.assertions import Result

DEFAULT_DIRECTORY: Final = "sinkprobe-runs"


@click.command("run")
@click.argument("scenario", default=DEFAULT, metavar="[SCENARIO|FILE.toml]")
@click.option("--pacing", type=click.Choice(PACINGS), help="How the TTS delivers the reply.")
@click.option("--frame-ms", type=float, metavar="MS", help="Length of the TTS's frames.")
@click.option("--rate", "rate_hz", type=int, metavar="HZ", help="Rate of the TTS.")
@click.option("--reply-ms", type=int, metavar="MS", help="Length of the reply.")
@click.option(
    "--at",
    type=AT,
    help=f"Where in the reply the barge-in lands: ms, or one of {', '.join(PLACES)}.",
)
@click.option("--reply", type=click.Choice(REPLY_KINDS), help="Who makes the reply's audio.")
@click.option("--channels", type=int, metavar="1|2", help="Of the reply and the source.")
@click.option(
    "--close-ms", type=int, metavar="MS", help="How long the reply's audio stream takes to close."
)
@click.option(
    "--sink",
    metavar="MODULE:FACTORY",
    help="What makes the session's sink from rate in Hz and number of channels. "
    "Default: the framework's room output.",
)
@click.option(
    "--out",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="Where the trace goes.",
)
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document on stdout.")
@settings.judged_by
def run(
    scenario: str,
    directory: Path,
    as_json: bool,
    sink: str | None,
    thresholds: Sequence[str],
    fail_on: Sequence[str],
    **axes: Any,
) -> int:
    """Run a scripted call on the installed LiveKit Agents and report on it.

    SCENARIO is one of those that `sinkprobe scenarios` lists, or a TOML file of your own. What
    the file expects is held against the trace; where it does not hold, the exit code is 3. Of a
    listed scenario it is only said whether the build behaved as a healthy one does. A finding that
    --fail-on forbids makes it 3 as well; what could not be judged makes it 1.
    """
    from reports import analyze

    chosen = _with_axes(find(scenario), axes)
    assertions = expectations.read(expectations.of(chosen), f"{scenario}: expect")
    limits = settings.load(thresholds)
    forbidden = settings.gates(fail_on)
    releases.require_livekit()
    outcome = _call(chosen, directory, sink)
    analysis = analyze(outcome.trace, settings=limits)
    listed = scenario in CATALOGUE
    found = expectations.results([analysis], assertions) if assertions else None
    _report(analysis, as_json, found, listed=listed)
    unmet = 0 if listed else expectations.exit_code(found)
    return max(unmet, settings.fails([analysis], forbidden))


def find(scenario: str) -> Scenario:
    """The scenario of that name, or the one a TOML file describes.

    Raises:
        UsageError: it is neither listed nor a file.
        ScenarioError: the file is wrong.
    """
    if scenario in CATALOGUE:
        return CATALOGUE[scenario]
    if scenario.endswith(".toml") or Path(scenario).is_file():
        return load(Path(scenario))
    raise UsageError(
        f"expected a scenario or a TOML file, found {scenario!r}; `sinkprobe scenarios` lists them"
    )


def _with_axes(scenario: Scenario, axes: dict[str, Any]) -> Scenario:
    try:
        return varied(scenario, {name: at for name, at in axes.items() if at is not None})
    except ScenarioError as error:
        raise UsageError(str(error)) from error


def _call(scenario: Scenario, directory: Path, sink: str | None) -> Outcome:
    console = Console(stderr=True, highlight=False)
    status = console.status(f"{scenario.name}: starting") if console.is_terminal else None
    kept: list[Path] = []

    def started(trace: Path) -> None:
        kept.append(trace)
        console.print(f"trace: {_short(trace)}", soft_wrap=True, markup=False)

    def progress(step: str) -> None:
        if status is not None:
            status.update(f"{scenario.name}: {step}")

    with status or nullcontext():
        try:
            return run_in_child(scenario, directory, sink=sink, progress=progress, started=started)
        except KeyboardInterrupt:
            if kept:
                console.print("stopped; the trace up to there is kept", soft_wrap=True)
            raise


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _report(
    analysis: Analysis,
    as_json: bool,
    found: Sequence[Sequence[Result]] | None,
    *,
    listed: bool,
) -> None:
    from probe.cli.report import show

    title = None
    if found is not None and listed:
        title = f"As the scenario promises: {'yes' if expectations.are_met(found) else 'no'}"
    show([analysis], "json" if as_json else "terminal", expected=found, expected_title=title)
