"""Releases that are not there and calls that are not made: each leaves the trace it stands for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probe.builds import releases
from probe.builds.releases import Published
from probe.errors import BuildError, ScenarioError
from probe.scenarios.runner import Outcome
from probe.scenarios.scenario import Scenario
from probe.sweep import Build, run
from tests.findings_calls import HandCall, barge_in
from tests.report_traces import header


def written(folder: Path) -> dict[str, Path]:
    """Traces of a barge-in that is sound, and of one that leaks 200 ms."""
    return {
        "sound": _written(folder / "sound", barge_in()),
        "leaking": _written(folder / "leaking", barge_in(plays_on=200)),
    }


def _written(folder: Path, call: HandCall) -> Path:
    folder.mkdir()
    run = {"scenario": "barge-in", "pacing": "burst"}
    return Path(call.analysis(folder, head=header(run=run)).trace.path)


class Staged:
    """Makes no calls: leaves the trace that a build's label stands for."""

    def __init__(self, traces: Callable[[str, int], Path | str]) -> None:
        self._traces = traces
        self.made: list[str] = []

    def __call__(
        self,
        scenario: Scenario,
        directory: Path,
        *,
        python: str,
        command: Sequence[str] | None,
        stop: threading.Event,
    ) -> Outcome:
        label = Path(python).name
        self.made.append(label)
        made = self._traces(label, self.made.count(label))
        if isinstance(made, str):
            raise ScenarioError(made)
        directory.mkdir(parents=True, exist_ok=True)
        trace = directory / f"call-{len([*directory.iterdir()])}.jsonl"
        shutil.copy(made, trace)
        return Outcome(trace, trace.with_suffix(".log"))


class Row:
    """Releases 1.0 to 1.9, of which some leak, some can't be installed, some hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, traces: dict[str, Path]) -> None:
        self._traces = traces
        self.leaks: Callable[[str, int], bool] = lambda *_: False
        self.missing: set[str] = set()
        self.hanging: set[str] = set()
        self.asked: dict[str, Any] = {}
        """What the list of releases was asked for."""
        self.staged = Staged(self._trace)

        def since(runtime: str, oldest: str, newest: str | None = None, **more: Any) -> Any:
            self.asked = {"runtime": runtime, **more}
            days = [datetime(2025, 1, day, tzinfo=timezone.utc) for day in range(1, 11)]
            return [
                Published("python", f"1.{minor}", day)
                for minor, day in enumerate(days)
                if oldest <= f"1.{minor}" <= (newest or "1.9")
            ]

        def published(release: Published, *_: Any) -> Build:
            if release.version in self.missing:
                raise BuildError("it has no wheel")
            return self.build(release.version)

        def make(spec: Any, *_: Any) -> Build:
            return self.build(spec.text)

        monkeypatch.setattr(releases, "since", since)
        monkeypatch.setattr("probe.builds.published", published)
        monkeypatch.setattr("probe.builds.make", make)
        monkeypatch.setattr("probe.cli.matrix.run", partial(run, call=self.staged))

    def build(self, name: str) -> Build:
        version = name if name.startswith("1.") else "1.9"
        return Build(f"livekit-agents {name}", f"/{name}", installed={"livekit-agents": version})

    def _trace(self, name: str, number: int) -> Path | str:
        if name in self.hanging:
            return "the call did not end in time"
        return self._traces["leaking" if self.leaks(name, number) else "sound"]
