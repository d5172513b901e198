"""Scripted calls on a sink of one's own, each beside the same call on the reference sink."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.runner import run_in_child
from probe.scenarios.scenario import Scenario
from probe.testing.defects import REFERENCE

if TYPE_CHECKING:
    from reports import Analysis
    from reports.results import Finding

__all__ = ["CALLS", "Trial", "check_sink"]


def _call(name: str, **axes: Any) -> Scenario:
    scenario = CATALOGUE[name]
    return scenario.with_axes(replace(scenario.axes, reply_ms=1495, **axes))


CALLS: Final[tuple[Scenario, ...]] = (
    _call("uninterrupted", at=300),
    _call("uninterrupted", at=300, pacing="realtime", frame_ms=98.5),
    _call("barge-in-cut", at=300),
    _call("barge-in-activity", at=300),
    _call("barge-in-activity", at=300, pacing="stalled"),
    _call("false-interruption", at=300),
    _call("programmatic", at="after-last-frame"),
)
"""The calls a sink has to come through. They run on every release that can pause."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One call on the sink, and the same call on the reference sink."""

    scenario: Scenario
    trace: Path
    analysis: Analysis
    reference: Analysis

    @property
    def worse_than_reference(self) -> tuple[Finding, ...]:
        """Findings from ``warning`` up by rules that are silent on the reference sink."""
        known = {finding.rule for finding in self.reference.findings}
        return tuple(
            finding
            for finding in self.analysis.findings
            if finding.severity != "info" and finding.rule not in known
        )


def check_sink(
    sink: str,
    directory: Path | str,
    *,
    calls: Iterable[Scenario] = CALLS,
    python: str = sys.executable,
) -> Iterator[Trial]:
    """Runs ``calls`` on a sink, one after the other, each in a child process.

    Args:
        sink: ``module:attribute`` of what makes it from rate in Hz and number of channels. The
            child imports it, from the working directory or ``PYTHONPATH``. The sink is an
            `AudioOutput` that holds its `rtc.AudioSource` as an attribute.
        directory: where traces and logs go.
        calls: what is tried.
        python: the interpreter, whose livekit-agents it is tried on.

    Raises: `ScenarioError` where the sink can't be made, or a call came to no end.
    """
    from reports import analyze

    for number, scenario in enumerate(calls, 1):
        folder = Path(directory) / f"{number:02}-{scenario.name}"
        own = run_in_child(scenario, folder, sink=sink, python=python)
        reference = run_in_child(scenario, folder / "reference", sink=REFERENCE, python=python)
        yield Trial(scenario, own.trace, analyze(own.trace), analyze(reference.trace))
