"""``sinkprobe bench``: what the probe costs on this machine, as ratios taken in one run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from probe.errors import ProbeError

PARTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "frames": ("recording a frame", ("801", "50"), ("201", "50")),
    "wire": ("reading the wire", ("5", "12"), ("1", "4")),
    "analysis": ("analysing an hour", ("60",), ("5",)),
}
"""Part to what it is called, its arguments, and its arguments with ``--quick``."""

TIMEOUT_S = 400

VARIANTS = {
    "pass_through": ("a bare pass-through AudioOutput", 1.0),
    "json_line": ("one json.dumps line per frame", 1 / 5),
    "logging_record": ("one logging record per frame", 1 / 10),
    "span_event": ("one OpenTelemetry span event per frame", None),
}
"""Variant to its description and the most the probe may cost in units of it."""


def _run_part(part: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    command = [sys.executable, "-m", f"probe.bench.{part}", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ProbeError(f"bench: the part '{part}' took longer than {TIMEOUT_S} s") from None
    lines = done.stdout.splitlines()
    if not lines:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ProbeError(f"bench: the part '{part}' gave no figures: {last[0]}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def _table(console: Console, title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def _ratio(value: float) -> str:
    return f"{value:.2f} x"


def _goal(value: float, most: float, text: str) -> str:
    return text if value <= most else f"{text}, missed"


def _print(console: Console, results: dict[str, Any]) -> None:
    machine = results["machine"]
    console.print(
        f"{machine['cores']} cores, {machine['platform']}, Python {machine['python']}\n",
        highlight=False,
    )
    frames = results["frames"]
    rows = [
        [
            name,
            f"{frames['added_ns'][key] / 1000:.2f}",
            _ratio(frames["probe_over"][key]),
            "–" if most is None else _goal(frames["probe_over"][key], most, f"≤ {_ratio(most)}"),
        ]
        for key, (name, most) in VARIANTS.items()
        if key in frames["added_ns"]
    ]
    rows.insert(0, ["the probe", f"{frames['added_ns']['probe'] / 1000:.2f}", "", ""])
    _table(
        console,
        "Added per captured frame (20 ms mono), over a leaf that returns at once",
        ["", "adds, µs", "probe / this", "goal"],
        rows,
    )
    console.print(
        f"The recorder's own thread: {frames['recorder_thread_ns'] / 1000:.1f} µs of CPU per frame,"
        " off the session's loop.\n",
        highlight=False,
    )
    wire = results["wire"]
    analysis = results["analysis"]
    hours = analysis["minutes"] / 60
    _table(
        console,
        "The rest",
        ["", "here", "goal"],
        [
            [
                "wire tap, added share of a core",
                f"{wire['added']:.1%}",
                _goal(wire["added"], 0.04, "≤ 4 %"),
            ],
            [
                f"analysing a call of {analysis['minutes']:.0f} min",
                f"{analysis['seconds']:.2f} s",
                _goal(analysis["seconds"], 3.0 * hours, f"≤ {3.0 * hours:.2f} s"),
            ],
            [
                "peak memory of that",
                f"{analysis['peak_mb']:.0f} MB",
                _goal(analysis["peak_mb"], 300, "≤ 300 MB"),
            ],
            ["events analysed per second", f"{analysis['events_per_second']:,.0f}", "–"],
            ["trace per minute of call", f"{analysis['bytes_per_minute'] / 1000:.0f} kB", "–"],
            [
                "the same compressed",
                f"{analysis['compressed_bytes_per_minute'] / 1000:.0f} kB",
                "–",
            ],
        ],
    )


@click.command()
@click.option("--quick", is_flag=True, help="Fewer rounds: a look, not a measurement.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def bench(quick: bool, as_json: bool) -> None:
    """Measure what the probe costs on this machine.

    Ratios are taken within one run, variants interleaved, medians of rounds. Takes about three
    minutes; needs livekit-agents installed.
    """
    progress = Console(stderr=True)
    results: dict[str, Any] = {
        "schema": 1,
        "machine": {
            "cores": os.cpu_count(),
            "platform": platform.platform(terse=True),
            "python": platform.python_version(),
        },
    }
    for part, (name, thorough, short) in PARTS.items():
        with progress.status(f"measuring: {name}"):
            results[part] = _run_part(part, short if quick else thorough)
    if as_json:
        click.echo(json.dumps(results))
    else:
        _print(Console(), results)
