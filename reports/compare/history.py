"""Releases in their order: what each does, and what is otherwise than in the one before.

Each call of a release is compared with the last release before it that has runs of the same call.
Pure: runs in, rows out; the fields are the keys of the JSON document.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from reports.compare.comparison import Against, BuildFacts, Call, Column, RunResult, compare

__all__ = ["SCHEMA", "History", "Row", "Step", "step"]

SCHEMA: Final = 1
"""Number of the JSON document of a history."""


@dataclass(frozen=True, slots=True)
class Row:
    """One call on one release."""

    call: Call
    column: Column
    against: Against | None
    """What changed; ``None``: no release before has runs of this call, or this one has none."""


@dataclass(frozen=True, slots=True)
class Step:
    """One release."""

    version: str
    uploaded: str | None
    """Day, UTC; ``None``: the registry does not say."""
    build: BuildFacts
    rows: tuple[Row, ...]
    """In the order the calls were planned."""
    results: tuple[RunResult, ...]
    """Of all its calls; what a later release is compared with."""


@dataclass(frozen=True, slots=True)
class History:
    """All of it, as far as it came."""

    package: str
    asked: int
    """Runs of each call on each release."""
    steps: tuple[Step, ...]
    complete: bool
    folder: str
    """Where the traces are."""


def step(
    version: str,
    uploaded: str | None,
    build: BuildFacts,
    results: Sequence[RunResult],
    before: Sequence[Step],
    *,
    with_barge_in: Collection[str] = (),
) -> Step:
    """A release with what changed in it.

    Args:
        version: of the release.
        uploaded: the day it came out.
        build: what ran.
        results: of all its calls.
        before: the releases before it, the last one last.
        with_barge_in: scenarios that can't do without a barge-in; see `reports.compare.comparison`.
    """
    rows = []
    for table in compare({build.build: results}, with_barge_in=with_barge_in).tables:
        against = None
        for earlier in reversed(before):
            both = {earlier.build.build: earlier.results, build.build: results}
            tables = compare(both, with_barge_in=with_barge_in).tables
            (same,) = (one for one in tables if one.call == table.call)
            if same.against:
                (against,) = same.against
                break
        rows.append(Row(table.call, table.columns[0], against))
    return Step(version, uploaded, build, tuple(rows), tuple(results))
