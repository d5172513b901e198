"""``sinkprobe bisect``: in which release a finding appears, or went away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import matrix, options, settings
from probe.cli.files import columns, put
from probe.cli.run import find
from probe.errors import BuildError, ProbeError, UsageError
from probe.scenarios.axes import PACINGS
from probe.scenarios.catalogue import DEFAULT
from probe.sweep import varied
from probe.sweep.journal import opened

if TYPE_CHECKING:
    from probe.builds import BuildSpec, Runtime
    from probe.builds.releases import Published
    from probe.builds.tools import Progress
    from probe.cli.bisect_trial import Candidate, Trial
    from probe.sweep import Build

__all__ = ["bisect"]

AGREE: Final = 3
_VERSION: Final = re.compile(r"^v?(\d+(\.\d+)*([.-]?[A-Za-z][\w.-]*)?)$")


@click.command("bisect")
@click.option("--good", required=True, metavar="BUILD", help="A build without the finding.")
@click.option("--bad", required=True, metavar="BUILD", help="A build with it.")
@click.option(
    "--rule",
    required=True,
    metavar="RULE|RULE>VALUE",
    help="The finding, such as late-frames or 'leak-after-verdict>100ms'.",
)
@click.option("--fixed", is_flag=True, help="The bad build is the older one: where did it go?")
@click.option("--node", "of_node", is_flag=True, help="Plain versions are of @livekit/agents.")
@click.option(
    "--scenario",
    "name",
    default=DEFAULT,
    show_default=True,
    metavar="SCENARIO|FILE.toml",
    help="What to run.",
)
@click.option("--pacing", type=click.Choice(PACINGS), help="How the TTS delivers the reply.")
@click.option(
    "--agree",
    type=click.IntRange(min=1),
    default=AGREE,
    show_default=True,
    help="A build is run until so many runs give the same answer.",
)
@options.kept
@options.cached
@options.formatted("terminal", "json")
@settings.with_thresholds
def bisect(
    good: str,
    bad: str,
    rule: str,
    fixed: bool,
    of_node: bool,
    name: str,
    pacing: str | None,
    agree: int,
    directory: Path,
    cache: Path | None,
    output_format: str,
    thresholds: Sequence[str],
) -> int:
    """Find the first release in which a finding appears, or with --fixed is gone.

    GOOD and BAD are versions or builds as `sinkprobe compare` takes them; the older one has to be
    a release, the newer one may be a checkout. All releases between them are the row that is
    halved. Both ends are tried first.

    A build is run until --agree runs give the same answer. A run that does not balance, never
    comes to its barge-in or can't be judged gives none; a build of which as many give none, or
    that can't be installed, is gone around. If such builds lie beside the change the answer is a
    range, and the exit code 1.

    What was stopped goes on where it was: calls whose traces are in --out are not made again.
    """
    from probe.builds.bisection import Answer, search
    from probe.cli import bisect_text as texts
    from probe.cli.bisect_trial import Trial

    limits = settings.load(thresholds)
    (gate,) = settings.gates([rule], option="--rule")
    scenario = varied(find(name), {} if pacing is None else {"pacing": pacing})
    runtime: Runtime = "node" if of_node else "python"
    older, newer = (_spec(text, runtime) for text in ((bad, good) if fixed else (good, bad)))
    with matrix.told() as say:
        row = _row(older, newer, cache, say)
    live = output_format == "terminal"
    answer: Answer | None = None
    with opened(directory) as journal, matrix.may_break_off() as broken:
        trial = Trial(
            row,
            scenario,
            gate,
            agree=agree,
            runner=matrix.Runner(directory, limits, journal=journal),
            cache=cache,
            told=lambda step: put(texts.line(step, columns())) if live else None,
        )
        if live:
            put(texts.head(trial, columns()))
        _check_ends(trial, fixed)
        answer = search(len(row), lambda place: _changed(trial.found(place), fixed))
    if live:
        put(texts.conclusion(trial, answer, str(directory), columns()))
    else:
        put(texts.as_json(trial, answer, str(directory)))
    if broken.code:
        return broken.code
    return 1 if answer is None or answer.untried else 0


def _changed(found: bool | None, fixed: bool) -> bool | None:
    """Whether a build is as the newer end; ``None``: it gives no answer."""
    return None if found is None else found is not fixed


def _spec(text: str, runtime: Runtime) -> BuildSpec:
    from probe.builds import parse
    from probe.builds.specs import release

    match = _VERSION.match(text.strip())
    return parse(text) if match is None else release(runtime, match[1])


def _row(older: BuildSpec, newer: BuildSpec, cache: Path | None, say: Progress) -> list[Candidate]:
    """Every release from the older build to the newer, and that one itself where it is none.

    Raises:
        UsageError: the two make no row.
        BuildError: the newer one, or the list of releases, can't be had.
    """
    from probe.builds import make
    from probe.builds.releases import ordered, since
    from probe.builds.specs import Release
    from probe.cli.bisect_trial import Candidate

    if not isinstance(older, Release) or older.exact is None:
        raise UsageError(f"expected the older build to be one release, found {older.text}")
    last: Build | None = None
    if isinstance(newer, Release):
        if newer.exact is None:
            raise UsageError(f"expected the newer build to be one release, found {newer.text}")
        newest, runtime = newer.exact, newer.runtime
    else:
        last = make(newer, cache, say)
        newest, runtime = last.installed[older.package], last.runtime
    if runtime != older.runtime:
        raise UsageError(f"expected two builds of one language, found {older.text}, {newer.text}")
    if ordered(newest) < ordered(older.exact):
        raise UsageError(
            f"expected {older.exact} to be the older build, found {newest}: what appeared has its "
            "good build first, what was --fixed its bad one"
        )
    say(f"looking for the releases from {older.exact} to {newest}")
    row = [_released(one) for one in since(runtime, older.exact, newest)]
    if last is not None:
        row.append(Candidate(last.label, None, last))
    if len(row) < 2:
        raise UsageError(f"expected two builds, found only {row[0].name}")
    for spec, end in ((older, row[0]), (newer, row[-1])):
        if isinstance(spec, Release) and end.name != spec.exact:
            raise BuildError(f"no release fits {spec.wanted}")
    return row


def _released(release: Published) -> Candidate:
    from probe.cli.bisect_trial import Candidate

    day = None if release.uploaded is None else release.uploaded.strftime("%Y-%m-%d")
    return Candidate(release.version, day, release)


def _check_ends(trial: Trial, fixed: bool) -> None:
    """Tries both ends of the row.

    Raises:
        ProbeError: one of them is not as it was said to be.
    """
    for place, expected in ((0, fixed), (len(trial.row) - 1, not fixed)):
        found = trial.found(place)
        if found is not expected:
            step = trial.steps[-1]
            became = (
                f"it in {step.shown} of {step.shown + step.absent} runs"
                if found is not None
                else f"no answer: {step.reason}"
            )
            raise ProbeError(
                f"{step.build}: expected {trial.gate.text}{'' if expected else ' not'} to be "
                f"found, found {became}"
            )
