"""When a comparison fails a command: what the last build has and the first has not.

    gate = parse("new:started-twice")
    gate.judge(comparison)

Beside these it knows every gate of a single trace (`reports.findings.gates`), which is held against
the runs of the last build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from reports.compare.comparison import Column, Comparison, RunFigures, Table
from reports.findings import RULES, Gate, SettingError
from reports.findings import parse as parse_gate
from reports.units import NS_PER_MS

__all__ = ["Judged", "NewGate", "parse"]

_NEW: Final = "new:"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a gate says of one table."""

    table: Table
    fails: bool
    reason: str
    """What was found, or why it could not be judged."""


@dataclass(frozen=True, slots=True)
class NewGate:
    """What the last build must not have more of than the first."""

    text: str
    """As it was given."""
    rule: str
    grown: float | None = None
    """Fails where the median of the rule's figure grew by more than this; ``None``: where the rule
    fires in a run of the last build and in none of the first."""
    in_samples: bool = False

    def judge(self, comparison: Comparison) -> list[Judged]:
        """Tables in which it fails, or could not be judged."""
        first, last = comparison.builds[0].build, comparison.builds[-1].build
        judged = [self._in(table, first, last) for table in comparison.tables]
        return [one for one in judged if one is not None]

    def _in(self, table: Table, first_build: str, last_build: str) -> Judged | None:
        columns = {column.build: column for column in table.columns if column.runs}
        for build in (first_build, last_build):
            if build not in columns:
                return Judged(table, False, f"{build} has no run that counts")
        first, last = columns[first_build], columns[last_build]
        before, after = self._values(first), self._values(last)
        unjudged = _unjudged(self.rule, [*first.runs, *last.runs])
        if unjudged is not None:
            return Judged(table, False, unjudged)
        if self.grown is not None:
            if median(after) - median(before) > self.grown:
                return Judged(table, True, f"{median(before):g} has become {median(after):g}")
        elif any(after) and not any(before):
            return Judged(table, True, f"in {sum(map(bool, after))} of {len(after)} runs")
        return None

    def _values(self, column: Column) -> list[float]:
        """The rule's worst figure in each run, 0 where it did not fire; or whether it fired."""
        fired = [run.fired.get(self.rule) for run in column.runs]
        if self.grown is None:
            return [float(one is not None) for one in fired]
        if self.in_samples:
            return [0.0 if one is None else float(one.samples or 0) for one in fired]
        return [0.0 if one is None else one.value for one in fired]


def _unjudged(rule: str, runs: Sequence[RunFigures]) -> str | None:
    """Why the rule could not be judged in one of the runs; ``None``: it was in all of them."""
    return next((run.not_judged[rule] for run in runs if rule in run.not_judged), None)


def parse(text: str) -> NewGate | Gate:
    """A gate from its text: ``new:late-frames``, ``leak-after-verdict+20ms``, or one of a trace.

    Raises:
        SettingError: it is none of these; says what was expected.
    """
    wanted = text.strip()
    if wanted.startswith(_NEW):
        rule = wanted.removeprefix(_NEW).strip()
        if rule not in RULES:
            raise SettingError(f"expected new:RULE (`sinkprobe rules` lists them), found {text!r}")
        return NewGate(text, rule)
    rule, plus, value = wanted.partition("+")
    if not plus:
        return parse_gate(text)
    try:
        limit = parse_gate(f"{rule}>{value}")
    except SettingError as error:
        # Told in the words of what was given, where nothing but the sign is another.
        raise SettingError(str(error).replace(f"{rule}>{value}", text)) from error
    assert limit.rule is not None
    above = limit.above
    if above is not None and not limit.in_samples and RULES[limit.rule].unit == "ms":
        above /= NS_PER_MS
    return NewGate(text, limit.rule, above, limit.in_samples)
