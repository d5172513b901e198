"""Every scenario on several releases, as one table: ``python -m tests.matrix --help``.

README's table of releases comes from here. Environments with older releases are made from the
package registry and kept (see `tests.releases`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

import reports
from probe.errors import ProbeError
from probe.scenarios.catalogue import CATALOGUE, Scenario
from probe.scenarios.runner import run_in_child
from tests.releases import RESOLVED_ON, python_with

INSTALLED = "installed"


@dataclass(frozen=True)
class Row:
    """One call: what was scripted, and the trace's account of it, or why there is none."""

    release: str
    scenario: str
    axes: str
    analysis: reports.Analysis | None
    error: str = ""

    @property
    def sound(self) -> bool:
        """Whether the call ran and every sample has its place."""
        return self.analysis is not None and self.analysis.balanced is True


def run(release: str, scenario: Scenario, folder: Path) -> Row:
    """Make one call in a child process and analyse what it left."""
    axes = scenario.axes
    described = f"{axes.pacing} {axes.frame_ms:g} ms {axes.rate_hz} Hz"
    python = sys.executable if release == INSTALLED else str(python_with(release))
    try:
        trace = run_in_child(scenario, folder / release, python=python).trace
        return Row(release, scenario.name, described, reports.analyze(trace))
    except ProbeError as error:
        return Row(release, scenario.name, described, None, str(error))


def cells(row: Row) -> list[str]:
    """Release, scenario, axes, kind, outcome, leaked ms, swallowed, control, unaccounted."""
    head = [row.release, row.scenario, row.axes]
    if row.analysis is None:
        return [*head, "can't run", *["–"] * 6]
    analysis = row.analysis
    barge_in = analysis.barge_ins[0] if analysis.barge_ins else None
    leak = barge_in.leaked if barge_in is not None else None
    sent = leak["sent"] if leak is not None else None
    pushed = leak["pushed"] if leak is not None else None
    control = analysis.run.control if analysis.run else None
    return [
        *head,
        str(barge_in.verdict_kind or "–") if barge_in else "–",
        str(barge_in.outcome or "–") if barge_in else "–",
        f"{pushed.ms:.0f}" if pushed is not None and pushed.ms is not None else "–",
        f"{sent.ms:.0f}" if sent is not None and sent.ms is not None else "–",
        str(analysis.totals.swallowed_samples),
        "whole" if control and control.whole else "LOST" if control else "–",
        str(analysis.unaccounted_samples),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--releases", nargs="+", default=[*RESOLVED_ON, INSTALLED])
    parser.add_argument("--scenarios", nargs="+", default=list(CATALOGUE))
    parser.add_argument("--pacings", nargs="+")
    parser.add_argument("--frames-ms", nargs="+", type=float, default=[20])
    parser.add_argument("--rates", nargs="+", type=int, default=[24_000])
    parser.add_argument("--jobs", type=int, default=2, help="Calls at a time.")
    parser.add_argument("--out", type=Path, help="Keep the traces here.")
    chosen = parser.parse_args()

    plan: list[tuple[str, Scenario]] = []
    for release, name, frame_ms, rate in product(
        chosen.releases, chosen.scenarios, chosen.frames_ms, chosen.rates
    ):
        scenario = CATALOGUE[name]
        for pacing in chosen.pacings or [scenario.axes.pacing]:
            axes = replace(scenario.axes, frame_ms=frame_ms, rate_hz=rate, pacing=pacing)
            plan.append((release, scenario.with_axes(axes)))

    table = Table(box=None, pad_edge=False)
    for column in (
        "release", "scenario", "axes", "kind", "outcome", "pushed ms", "sent ms", "swallowed",
        "control", "unaccounted",
    ):  # fmt: skip
        table.add_column(column, no_wrap=True)
    rows = []
    progress = Console(stderr=True)
    for release in {*chosen.releases} - {INSTALLED}:
        python_with(release)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(chosen.jobs) as pool:
        folder = chosen.out or Path(scratch)
        calls = [pool.submit(run, release, scenario, folder) for release, scenario in plan]
        for number, call in enumerate(calls, 1):
            rows.append(call.result())
            table.add_row(*cells(rows[-1]))
            progress.print(f"{number}/{len(calls)} {' '.join(cells(rows[-1]))}", highlight=False)
    Console(width=140).print(table)
    for error in sorted({row.error for row in rows if row.error}):
        print(error)
    sound = sum(row.sound for row in rows)
    ran = sum(row.analysis is not None for row in rows)
    print(f"{sound} of {ran} calls balance to the sample; {len(rows) - ran} could not be run.")


if __name__ == "__main__":
    main()
