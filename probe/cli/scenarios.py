"""``sinkprobe scenarios``: what can be run, and what the installed release can't."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from probe.scenarios import releases
from probe.scenarios.catalogue import CATALOGUE, DEFAULT
from probe.scenarios.scenario import Scenario


@click.command("scenarios")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def scenarios(as_json: bool) -> None:
    """List the scripted calls that `sinkprobe run` knows."""
    version = releases.installed()
    entries = [_entry(scenario, version) for scenario in CATALOGUE.values()]
    if as_json:
        click.echo(json.dumps({"livekit_agents": version, "scenarios": entries}, indent=2))
        return
    console = Console(highlight=False)
    for entry in entries:
        default = " (default)" if entry["name"] == DEFAULT else ""
        console.print(Text.assemble((entry["name"], "bold"), default))
        _line(console, "", entry["summary"])
        _line(console, "healthy: ", entry["healthy"])
        if entry["needs"]:
            _line(console, "needs: ", ", ".join(entry["needs"]))
        if entry["note"]:
            _line(console, "note: ", entry["note"])
        if entry["lacking"]:
            _line(console, f"can't run on livekit-agents {version}: ", entry["lacking"])
    console.print()
    if version is None:
        console.print(
            f"livekit-agents is not installed: {releases.INSTALL}", soft_wrap=True, markup=False
        )
    else:
        console.print(f"Installed: livekit-agents {version}.", soft_wrap=True)


def _entry(scenario: Scenario, version: str | None) -> dict[str, Any]:
    lack = releases.missing(scenario) if version is not None else None
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "healthy": scenario.healthy,
        "expect": list(scenario.expect),
        "needs": sorted(scenario.required),
        "note": scenario.note,
        "lacking": lack[1] if lack else None,
    }


def _line(console: Console, label: str, text: str) -> None:
    console.print(Padding(Text.assemble((label, "dim"), text), (0, 0, 0, 4), expand=False))
