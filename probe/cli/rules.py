"""``sinkprobe rules``: every finding there can be, its cause, its remedy and its thresholds."""

from __future__ import annotations

import json
import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from reports.findings import Rule

__all__ = ["rules"]


@click.command("rules")
@click.argument("names", nargs=-1, metavar="[RULE]…")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--markdown", "as_markdown", is_flag=True, help="One table, to be pasted.")
def rules(names: tuple[str, ...], as_json: bool, as_markdown: bool) -> None:
    """List what a report can find: what each rule looks for, its cause, its remedy.

    VALUE in --fail-on RULE>VALUE is compared with the figure named here. Thresholds go into
    pyproject.toml, under [tool.sinkprobe.rules.RULE], or on the command line as
    --set RULE.NAME=VALUE.
    """
    from probe.errors import UsageError
    from reports.findings import RULES

    if as_json and as_markdown:
        raise UsageError("--json and --markdown: expected one of them")
    unknown = [name for name in names if name not in RULES]
    if unknown:
        raise UsageError(f"expected a rule (`sinkprobe rules` lists them), found {unknown[0]!r}")
    chosen = [rule for name, rule in RULES.items() if not names or name in names]
    if as_json:
        click.echo(json.dumps({"rules": [_document(rule) for rule in chosen]}, indent=2))
    elif as_markdown:
        click.echo(_table(chosen))
    else:
        click.echo(_text(chosen, min(max(shutil.get_terminal_size((80, 24)).columns, 60), 100)))


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "looks_for": rule.looks_for,
        "cause": rule.cause,
        "remedy": rule.remedy,
        "needs": list(rule.needs),
        "figure": rule.figure,
        "unit": rule.unit,
        "in_samples": rule.counts_audio,
        "thresholds": [
            {"name": t.name, "default": t.default, "unit": t.unit, "about": t.about}
            for t in rule.thresholds
        ],
    }


def _table(chosen: list[Rule]) -> str:
    rows = ["| rule | severity | looks for | usual cause | remedy |", "| --- " * 5 + "|"]
    rows += [
        f"| `{r.name}` | {r.severity} | {r.looks_for} | {r.cause} | {r.remedy} |" for r in chosen
    ]
    return "\n".join(rows)


def _text(chosen: list[Rule], width: int) -> str:
    lines: list[str] = []

    def entry(label: str, text: str) -> None:
        lines.extend(
            textwrap.wrap(
                text,
                width,
                initial_indent=f"  {label:<12}",
                subsequent_indent=" " * 14,
                break_on_hyphens=False,
            )
        )

    for rule in chosen:
        lines.append(f"{rule.name}  ({rule.severity})")
        entry("looks for", rule.looks_for)
        entry("cause", rule.cause)
        entry("remedy", rule.remedy)
        unit = "" if rule.unit == "count" else f", {rule.unit}"
        also = " or samples" if rule.counts_audio else ""
        entry("figure", f"{rule.figure}{unit}{also}")
        for nth, t in enumerate(rule.thresholds):
            entry("" if nth else "thresholds", f"{t.name} = {t.default:g}: {t.about}")
        entry("needs", ", ".join(rule.needs))
        lines.append("")
    return "\n".join(lines[:-1])
