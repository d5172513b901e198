"""``sinkprobe compare``: builds, or folders of traces, side by side with what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import matrix, options, reading, settings
from probe.cli.files import coloured, columns, put, traces_of
from probe.cli.run import find
from probe.errors import UsageError
from probe.scenarios.catalogue import CATALOGUE, DEFAULT
from probe.scenarios.scenario import Scenario
from probe.sweep import calls

if TYPE_CHECKING:
    from probe.builds import BuildSpec
    from probe.trace.limits import Limits
    from reports.compare import BuildFacts, Comparison, RunResult
    from reports.compare.gates import NewGate, WorseGate
    from reports.findings import Gate, Settings

__all__ = ["compare"]

RUNS: Final = 5
_SOURCES: Final = (
    "pyproject.toml", "package.json", "pyvenv.cfg", "node_modules", "livekit-agents", ".git",
)  # fmt: skip
"""What a folder has that is a checkout or an environment, and no folder of traces."""


@dataclass(slots=True)
class _Collected:
    """Runs by build, and what came in the way."""

    runs: dict[str, list[RunResult]] = field(default_factory=dict)
    facts: list[BuildFacts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: int = 0
    """Exit code of what broke it off; 0: nothing did."""
    failed: bool = False
    """Whether something that was asked for is missing."""


@click.command("compare")
@click.argument("builds", nargs=-1, required=True, metavar="BUILD|FOLDER…")
@options.several_scenarios
@click.option(
    "--runs", type=click.IntRange(min=1), help=f"Runs of each call on each build. Default: {RUNS}."
)
@options.in_folder
@options.cached
@options.formatted("terminal", "markdown", "html", "json")
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="SEVERITY|RULE|RULE>VALUE|new:RULE|RULE+VALUE|worse",
    help="Exit with 3 where the last build shows this: besides what `report` takes, new:RULE (in "
    "none of the first build's runs), 'RULE+20ms' (the median grew by more) and worse (in a figure "
    "by which the two are told apart).",
)
@reading.bounded
@settings.with_thresholds
def compare(
    builds: Sequence[str],
    scenarios: Sequence[str],
    pacing: Sequence[str] | None,
    runs: int | None,
    directory: Path | None,
    cache: Path | None,
    output_format: str,
    fail_on: Sequence[str],
    limits: Limits | None,
    thresholds: Sequence[str],
) -> int:
    """Compare builds by the same scripted calls, or folders of recorded traces.

    BUILD is installed, livekit-agents==1.6.5, livekit-agents>=1.8, livekit-agents==1.5.*,
    npm:@livekit/agents@1.9.0, a checkout, or a git URL with @REF. Each build is compared with the
    first. Runs are interleaved (A B C A B C), so that a machine that slows down hits all alike.
    A run that does not balance or never comes to its barge-in is set apart. Ctrl-C keeps what was
    done and prints the comparison so far.

    A build or a call of which there is no result makes the exit code 1, what --fail-on forbids
    makes it 3.
    """
    from probe.builds import parse
    from reports.compare.gates import parse as parse_gate

    chosen = settings.load(thresholds)
    forbidden = settings.gates_by(parse_gate, fail_on, "--fail-on")
    if all(_is_recorded(text) for text in builds):
        asked = {
            "--scenario": scenarios, "--pacing": pacing, "--runs": runs, "--out": directory,
            "--cache": cache,
        }  # fmt: skip
        for option, value in asked.items():
            if value:
                raise UsageError(f"{option} goes with builds: what was recorded is compared as is")
        if len(builds) < 2:
            raise UsageError(f"expected two folders of traces or more, found only {builds[0]}")
        collected = _recorded(builds, chosen, limits)
        known = [*CATALOGUE.values()]
    else:
        specs = [parse(text) for text in builds if not _is_recorded(text)]
        if len(specs) < len(builds):
            mixed = next(text for text in builds if _is_recorded(text))
            raise UsageError(
                f"expected builds only or folders of traces only, found both: {mixed} is a folder "
                "of traces"
            )
        known = [find(name) for name in scenarios or (DEFAULT,)]
        runner = matrix.Runner(directory or matrix.fresh("compare"), chosen)
        collected = _made(specs, known, pacing, runs or RUNS, runner, cache)

    from reports.compare import compare as side_by_side
    from reports.show import COMPARED

    comparison = side_by_side(
        collected.runs,
        with_barge_in={scenario.name for scenario in known if scenario.barges_in},
        facts=collected.facts,
        complete=not collected.stopped,
        notes=collected.notes,
    )
    form = COMPARED[output_format]
    put(form.render(comparison, width=columns(), colour=coloured()))
    if collected.stopped:
        return collected.stopped
    code = _judge(comparison, collected, forbidden)
    return code or int(collected.failed)


# --- Traces that are there -----------------------------------------------------------------------


def _is_recorded(text: str) -> bool:
    path = Path(text)
    try:
        if path.is_file():
            return True
        folder = bool(text.strip()) and path.is_dir()
        return folder and not any((path / name).exists() for name in _SOURCES)
    except OSError:
        # Whoever reads it as a build says why it is none.
        return False


def _recorded(folders: Sequence[str], chosen: Settings, limits: Limits | None) -> _Collected:
    from reports.compare import read

    collected = _Collected()
    for name, folder in zip(_labels(folders), folders, strict=True):
        collected.runs[name], failed = reading.each(
            traces_of([Path(folder)]), limits, lambda ledger: read(ledger, settings=chosen)
        )
        collected.failed |= failed
    if _one_after_the_other(collected.runs.values()):
        collected.notes.append(
            "These were recorded one after the other, not by turns: what else changed in between "
            "is in the differences as well."
        )
    return collected


def _one_after_the_other(builds: Iterable[Sequence[RunResult]]) -> bool:
    """Whether all runs of one build began after all of another."""
    started = [[r.started_unix_s for r in runs if r.started_unix_s is not None] for runs in builds]
    spans = sorted((min(times), max(times)) for times in started if times)
    return any(first[1] < second[0] for first, second in combinations(spans, 2))


def _labels(folders: Sequence[str]) -> list[str]:
    """The folders' names, or their whole paths where names are alike; no two the same."""
    names = [Path(folder).name or folder for folder in folders]
    if len(set(names)) < len(names):
        names = [str(Path(folder)) for folder in folders]
    seen: dict[str, int] = {}
    labels = []
    for name in names:
        seen[name] = count = seen.get(name, 0) + 1
        labels.append(name if count == 1 else f"{name} ({count})")
    return labels


# --- Builds --------------------------------------------------------------------------------------


def _made(
    specs: Sequence[BuildSpec],
    scenarios: Sequence[Scenario],
    pacings: Sequence[str] | None,
    runs: int,
    runner: matrix.Runner,
    cache: Path | None,
) -> _Collected:
    from probe.builds import BuildFailed, make_all

    collected = _Collected()
    with matrix.told() as said:
        found = make_all(specs, cache, said)
    if len(found) < 2:
        raise UsageError(f"expected two builds or more, found only {found[0].label}")
    there = [one for one in found if not isinstance(one, BuildFailed)]
    collected.runs = {one.label: [] for one in found}
    collected.facts = [matrix.facts_of(one) for one in found]
    collected.failed = len(there) < len(found)
    if there:
        axes = {} if pacings is None else {"pacing": pacings}
        planned = matrix.planned(scenarios, axes, there)
        made: list[matrix.Made] = []
        with matrix.may_break_off() as broken:
            runner.make_listed(calls(planned.cells, runs), made)
        for one in made:
            collected.runs[one.call.cell.build.label].append(one.result)
        collected.stopped = broken.code
        collected.failed |= any(one.analysis is None for one in made)
        collected.notes += [f"Left out: {one.reason}" for one in planned.left_out]
        collected.notes.append(f"Traces: {runner.folder}")
    return collected


# --- What becomes of it --------------------------------------------------------------------------


def _judge(
    comparison: Comparison, collected: _Collected, forbidden: Sequence[NewGate | WorseGate | Gate]
) -> int:
    """The exit code that the gates make, with a line for each that is not passed."""
    from reports.findings import Gate
    from reports.show import compare_text

    last = [r.analysis for r in [*collected.runs.values()][-1] if r.analysis is not None]
    code = settings.fails(last, [gate for gate in forbidden if isinstance(gate, Gate)])
    if forbidden and not last:
        click.echo(
            f"sinkprobe: --fail-on: not judged, {[*collected.runs][-1]} has no run", err=True
        )
        code = 1
    varied = compare_text.varied(comparison)
    for gate in forbidden:
        if isinstance(gate, Gate):
            continue
        for judged in gate.judge(comparison):
            where = compare_text.title(judged.table.call, varied)
            said = "found what it forbids" if judged.fails else "not judged"
            click.echo(
                f"sinkprobe: {where}: --fail-on {gate.text}: {said}, {judged.reason}", err=True
            )
            code = max(code, settings.FINDINGS_EXIT if judged.fails else 1)
    return code
