"""Scripted calls on several releases, as one table: ``python -m tests.matrix --help``.

It is `sinkprobe sweep` with releases for builds. README's table of releases comes from here.
Environments with older releases are made from the package registry and kept (`tests.releases`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from probe.cli.matrix import Made, Runner
from probe.cli.sweep_table import as_json, tabulate
from probe.cli.sweep_text import as_markdown, as_terminal
from probe.scenarios.catalogue import CATALOGUE
from probe.sweep import Build, calls, plan
from tests.releases import RELEASES, python_with

INSTALLED = "installed"
AXES = {"pacing": str, "frame_ms": float, "rate_hz": int, "reply_ms": int}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--releases", nargs="+", default=[*RELEASES, INSTALLED])
    parser.add_argument("--scenarios", nargs="+", default=list(CATALOGUE), choices=list(CATALOGUE))
    for axis, kind in AXES.items():
        parser.add_argument(f"--{axis.replace('_', '-')}", nargs="+", type=kind)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="Calls at a time.")
    parser.add_argument("--format", default="terminal", choices=["terminal", "markdown", "json"])
    parser.add_argument("--out", type=Path, help="Keep the traces here.")
    chosen = parser.parse_args()

    builds = [
        Build(name, sys.executable if name == INSTALLED else str(python_with(name)))
        for name in chosen.releases
    ]
    given: dict[str, list[Any]] = {axis: values for axis in AXES if (values := vars(chosen)[axis])}
    planned = plan([CATALOGUE[name] for name in chosen.scenarios], given, builds)
    cells = sorted(planned.cells, key=lambda cell: builds.index(cell.build))
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.out or Path(scratch)
        made: list[Made] = []
        Runner(folder, {}, chosen.jobs).make_listed(calls(cells, chosen.runs), made)
        table = tabulate(
            cells,
            made,
            expected={cell: cell.scenario.expect for cell in cells},
            left_out=planned.left_out,
            runs=chosen.runs,
            jobs=chosen.jobs,
            folder=str(folder),
        )
    forms = {"json": as_json, "markdown": as_markdown, "terminal": as_terminal}
    print(forms[chosen.format](table), end="")


if __name__ == "__main__":
    main()
