"""What there is to call: a scenario at certain axes, on a build, for the so-and-so-many-th time."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from probe.errors import ScenarioError
from probe.scenarios.axes import Axes
from probe.scenarios.scenario import Scenario

__all__ = ["INSTALLED", "Build", "Call", "Cell", "LeftOut", "Plan", "calls", "plan", "varied"]


@dataclass(frozen=True, slots=True)
class Build:
    """Something to try the calls on: an installation of LiveKit Agents.

    Two builds are the same if what runs the calls is the same and has the same label.
    """

    label: str
    """As the user named it, or the release: ``livekit-agents 1.6.5``."""
    python: str = sys.executable
    """The interpreter whose livekit-agents is the build. Of no use to a Node build."""
    runtime: Literal["python", "node"] = "python"
    home: Path | None = None
    """Of a Node build: the folder whose ``node_modules`` holds ``@livekit/agents``."""
    installed: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Package to version; empty where nobody looked."""
    as_of: str | None = field(default=None, compare=False)
    """UTC. No dependency is newer; ``None``: they are whatever is there."""
    source: str | None = field(default=None, compare=False)
    """Of sources: their commit, or a digest of files under no version control. ``None``: a
    release."""

    @property
    def folder(self) -> str:
        """What its traces' folder is called. Unlike that of any build with another label."""
        plain = re.sub(r"[^\w.+=<>~!@^-]+", "-", self.label).strip(".-")
        if plain == self.label:
            return plain
        return f"{plain}-{sha256(self.label.encode()).hexdigest()[:6]}"

    @property
    def command(self) -> list[str] | None:
        """What runs a call on it; ``None``: `probe.scenarios` under its interpreter."""
        if self.runtime == "python" or self.home is None:
            return None
        script = Path(__file__).parents[1] / "node" / "run.mjs"
        return ["node", str(script), "--home", str(self.home), "--json-spec", "-"]


INSTALLED: Final = Build("installed")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: a scenario at certain axes, on a build."""

    scenario: Scenario
    build: Build = INSTALLED

    @property
    def axes(self) -> Axes:
        return self.scenario.axes

    @property
    def folder(self) -> Path:
        """Where its traces go, below the sweep's own folder. Unlike that of any other cell."""
        told = [
            f"{field.name}-{_plain(value)}"
            for field in fields(Axes)
            if (value := getattr(self.axes, field.name)) != field.default
        ]
        return Path(self.build.folder, self.scenario.name, "_".join(told) or "as-it-comes")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A combination that makes no call."""

    scenario: str
    axes: Mapping[str, Any]
    """What was asked for."""
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run, in the order it is listed."""

    cells: tuple[Cell, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a cell."""

    cell: Cell
    run: int
    """From 1."""


def plan(
    scenarios: Sequence[Scenario],
    axes: Mapping[str, Sequence[Any]],
    builds: Sequence[Build] = (INSTALLED,),
) -> Plan:
    """Every combination of scenarios and axes once, on one build after the other.

    Args:
        scenarios: with their axes where they stand by default.
        axes: values to try, by the name of a field of `Axes`; an axis that is not named stays
            where the scenario has it.
        builds: what to run them on.

    A scenario in which nothing lands is not varied along ``at``; a place that no longer lies in a
    shorter reply moves to its middle, unless it was asked for.
    """
    cells: dict[Cell, None] = {}
    left_out: dict[tuple[str, str], LeftOut] = {}
    for scenario in scenarios:
        lands = any(step.do == "land" for step in scenario.steps)
        names = [name for name in axes if name != "at" or lands]
        for values in product(*(axes[name] for name in names)):
            given = dict(zip(names, values, strict=True))
            try:
                one = varied(scenario, given)
            except ScenarioError as error:
                told = LeftOut(scenario.name, given, str(error))
                left_out.setdefault((scenario.name, str(error)), told)
            else:
                cells.update(dict.fromkeys(Cell(one, build) for build in builds))
    return Plan(tuple(cells), tuple(left_out.values()))


def varied(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """The scenario with the axes given, by name; see `plan` for the place of the barge-in.

    Raises:
        ScenarioError: there is no such call.
    """
    place, length = scenario.axes.at, given.get("reply_ms")
    if "at" not in given and length is not None and isinstance(place, int) and place >= length:
        given = {**given, "at": length // 2}
    return scenario.with_axes(replace(scenario.axes, **given))


def calls(cells: Sequence[Cell], runs: int) -> list[Call]:
    """All calls of a sweep: one run of every cell, then the next.

    So a machine that slows down, or a sweep that is broken off, touches all cells alike, and as
    cells are planned every call goes through all builds in turn.
    """
    return [Call(cell, number) for number in range(1, runs + 1) for cell in cells]


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
