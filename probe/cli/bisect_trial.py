"""Builds in a row, asked one by one whether a finding is there; each until its runs agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from probe.builds import BuildFailed, released
from probe.builds.bisection import decide
from probe.builds.releases import Published
from probe.cli import matrix
from probe.cli.matrix import Made
from probe.scenarios.scenario import Scenario
from probe.sweep import Build, Call, Cell
from reports.compare.runs import why_set_apart

if TYPE_CHECKING:
    from reports.findings import Gate

__all__ = ["Candidate", "Step", "Trial"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place in the row of builds."""

    name: str
    """Its version, or as the user named it."""
    uploaded: str | None
    """Day, UTC; ``None``: no release, or the registry does not say."""
    what: Build | Published


@dataclass(frozen=True, slots=True)
class Step:
    """A build that was tried."""

    build: str
    uploaded: str | None
    found: bool | None
    """Whether the finding is there; ``None``: it could not be tried."""
    shown: int
    """Runs in which it is there."""
    absent: int
    """Runs in which it is not."""
    unusable: int
    """Runs that say nothing."""
    reason: str
    """Why the last of these says nothing, or why the build can't be had; else empty."""


class Trial:
    """A row of builds, and what is known of each."""

    def __init__(
        self,
        row: Sequence[Candidate],
        scenario: Scenario,
        gate: Gate,
        *,
        agree: int,
        runner: matrix.Runner,
        cache: Path | None,
        told: Callable[[Step], None],
    ) -> None:
        self.row = row
        self.scenario = scenario
        self.gate = gate
        self.agree = agree
        self.steps: list[Step] = []
        """In the order they were made."""
        self._runner = runner
        self._cache = cache
        self._told = told
        self._needs_barge_in = scenario.barges_in

    def found(self, place: int) -> bool | None:
        """Whether the finding is there on the build at that place; ``None``: it can't be tried."""
        candidate = self.row[place]
        runs: list[bool | None] = []
        reason = ""

        def take(made: Made) -> None:
            nonlocal reason
            answer, why = self._answer(made)
            runs.append(answer)
            reason = why or reason

        with matrix.told() as say:
            what = candidate.what
            build = released(what, self._cache, say) if isinstance(what, Published) else what
            if isinstance(build, BuildFailed):
                reason = build.reason
            else:
                cell = Cell(self.scenario, build)
                undecided = takewhile(lambda _: decide(runs, self.agree) is None, count(1))
                self._runner.make(
                    (Call(cell, number) for number in undecided),
                    take,
                    lambda call: say(f"{candidate.name}: run {call.run}"),
                )
        decided = decide(runs, self.agree)
        step = Step(
            build=candidate.name,
            uploaded=candidate.uploaded,
            found=decided if isinstance(decided, bool) else None,
            shown=runs.count(True),
            absent=runs.count(False),
            unusable=runs.count(None),
            reason=reason,
        )
        self.steps.append(step)
        self._told(step)
        return step.found

    def _answer(self, made: Made) -> tuple[bool | None, str]:
        """Whether a run has the finding; with a reason where it says nothing."""
        analysis = made.analysis
        if analysis is None:
            return None, made.error
        apart = why_set_apart(analysis, barge_in=self._needs_barge_in)
        if apart is not None:
            return None, apart
        if self.gate.fails(analysis):
            return True, ""
        unjudged = self.gate.unjudged(analysis)
        return (False, "") if unjudged is None else (None, unjudged)
