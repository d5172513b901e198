"""Thresholds and gates as the user gives them: ``pyproject.toml``, ``--set`` and ``--fail-on``.

    [tool.sinkprobe.rules.leak-after-verdict]
    fade-ms = 50

The file is the nearest ``pyproject.toml`` from the working directory upward; what the command line
says goes before it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from probe.errors import UsageError

if TYPE_CHECKING:
    from reports import Analysis
    from reports.findings import Gate, Settings

__all__ = ["FINDINGS_EXIT", "fails", "gates", "gates_by", "judged_by", "load", "with_thresholds"]

FINDINGS_EXIT: Final = 3
"""Exit code where something is found that ``--fail-on`` forbids."""

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Gate = TypeVar("_Gate")


def judged_by(command: _Command) -> _Command:
    """Adds ``--set`` and ``--fail-on`` to a command, as ``thresholds`` and ``fail_on``."""
    command = click.option(
        "--fail-on",
        "fail_on",
        multiple=True,
        metavar="SEVERITY|RULE|RULE>VALUE",
        help="Exit with 3 where this is found, such as error or 'leak-after-verdict>20ms'.",
    )(command)
    return with_thresholds(command)


def with_thresholds(command: _Command) -> _Command:
    """Adds ``--set`` to a command, as ``thresholds``."""
    return click.option(
        "--set",
        "thresholds",
        multiple=True,
        metavar="RULE.NAME=VALUE",
        help="A threshold, such as leak-after-verdict.fade-ms=50; may be repeated.",
    )(command)


def load(given: Sequence[str], directory: Path | None = None) -> Settings:
    """Thresholds that differ from their defaults: from the file, then from ``--set``.

    Args:
        given: each ``RULE.NAME=VALUE``.
        directory: where the search for the file begins; ``None``: the working directory.

    Raises:
        UsageError: no such rule or threshold, or no value for one; one line that says where.
    """
    settings = _from_file(_find(directory or Path.cwd()))
    for text in given:
        name, equals, value = text.partition("=")
        rule, dot, threshold = name.strip().partition(".")
        try:
            number = float(value)
        except ValueError:
            number = None
        if not (equals and dot) or number is None:
            raise UsageError(f"--set: expected RULE.NAME=NUMBER, found {text!r}")
        settings.setdefault(rule, {})[threshold] = _checked("--set", rule, threshold, number)
    return settings


def gates(given: Sequence[str], *, option: str = "--fail-on") -> list[Gate]:
    """What an option names: a severity, a rule or a limit, each.

    Raises:
        UsageError: one of them is neither a severity nor a rule nor a limit.
    """
    from reports.findings import parse

    return gates_by(parse, given, option)


def gates_by(parse: Callable[[str], _Gate], given: Sequence[str], option: str) -> list[_Gate]:
    """The same of whatever gates ``parse`` knows."""
    from reports.findings import SettingError

    try:
        return [parse(text) for text in given]
    except SettingError as error:
        raise UsageError(f"{option}: {error}") from error


def fails(analyses: Sequence[Analysis], forbidden: Sequence[Gate]) -> int:
    """The exit code that the findings make: 3 where something forbidden was found, else 0.

    A rule that was named and could not be judged can't be passed either: that makes 1. Each comes
    with a line on standard error.
    """
    failed = False
    for gate in forbidden:
        for analysis in analyses:
            if gate.fails(analysis):
                failed = True
                click.echo(
                    f"sinkprobe: {analysis.trace.path}: found what --fail-on {gate.text} forbids",
                    err=True,
                )
    if failed:
        return FINDINGS_EXIT
    unjudged = False
    for gate in forbidden:
        for analysis in analyses:
            reason = gate.unjudged(analysis)
            if reason is not None:
                unjudged = True
                path = analysis.trace.path
                click.echo(
                    f"sinkprobe: {path}: --fail-on {gate.text}: not judged, {reason}", err=True
                )
    return 1 if unjudged else 0


def _find(directory: Path) -> Path | None:
    places = [directory, *directory.absolute().parents]
    return next((p for folder in places if (p := folder / "pyproject.toml").is_file()), None)


def _from_file(path: Path | None) -> dict[str, dict[str, float]]:
    if path is None:
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: expected TOML, found: {error}") from error
    where = f"{path}: [tool.sinkprobe]"
    table = _table(_table(document, "tool", where), "sinkprobe", where)
    for key in table:
        if key != "rules":
            raise UsageError(f"{where}: expected only the table rules, found {key!r}")
    settings: dict[str, dict[str, float]] = {}
    for rule in _table(table, "rules", where):
        values = _table(table["rules"], rule, where)
        settings[rule] = {
            name: _checked(where, rule, name, value) for name, value in values.items()
        }
        if not values:
            _checked_rule(where, rule)
    return settings


def _table(owner: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = owner.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {key}: expected a table, found {value!r}")
    return value


def _checked_rule(where: str, rule: str) -> None:
    from reports.findings import RULES

    if rule not in RULES:
        raise UsageError(f"{where}: rules: `sinkprobe rules` lists them, found {rule!r}")


def _checked(where: str, rule: str, name: str, value: object) -> float:
    from reports.findings import RULES, SettingError, checked

    try:
        return checked(RULES, rule, name, value)
    except SettingError as error:
        raise UsageError(f"{where}: {error}") from error
