"""Assertions on the command line: read before anything runs, held against traces afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from probe.errors import UsageError
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from reports import Analysis
    from reports.assertions import Assertion, Result

__all__ = ["are_met", "exit_code", "of", "read", "results"]

FAILED: Final = 3
"""Exit code where an assertion does not hold; the same as for what `--fail-on` forbids."""
NOT_JUDGED: Final = 1
"""Exit code where none fails, and one can't be judged: it must not pass for one that holds."""


def of(scenario: Scenario) -> tuple[str, ...]:
    """What has to hold in a scenario's trace.

    What the catalogue says about its own holds at the place it means and so many milliseconds into
    the reply; elsewhere, say in an earlier pause, another story is told.
    """
    listed = CATALOGUE.get(scenario.name)
    at = scenario.axes.at
    if listed is None or scenario.expect != listed.expect or isinstance(at, int):
        return scenario.expect
    return scenario.expect if at == listed.axes.at else ()


def read(texts: Sequence[str], where: str = "") -> list[Assertion]:
    """The assertions that texts stand for.

    Args:
        texts: one assertion each.
        where: the file and key they came from, for the message.

    Raises:
        UsageError: one of them is no assertion.
    """
    from reports.assertions import AssertionSyntaxError, parse

    try:
        return [parse(text) for text in texts]
    except AssertionSyntaxError as error:
        raise UsageError(f"{where}: {error}" if where else str(error)) from None


def results(
    analyses: Sequence[Analysis], assertions: Sequence[Assertion]
) -> tuple[tuple[Result, ...], ...]:
    """Of each analysis, a result for each assertion."""
    from reports import check

    return tuple(tuple(check(a, assertion) for assertion in assertions) for a in analyses)


def are_met(found: Sequence[Sequence[Result]]) -> bool:
    """Whether every assertion holds; one that could not be judged is not met."""
    return all(result.holds is True for of_one in found for result in of_one)


def exit_code(found: Sequence[Sequence[Result]] | None) -> int:
    """3 where an assertion fails, 1 where one could not be judged, else 0."""
    holds = {result.holds for of_one in found or () for result in of_one}
    return FAILED if False in holds else NOT_JUDGED if None in holds else 0
