"""When a comparison fails a command: what the last build has and the first has not.

    gate = parse("new:started-twice")
    gate.judge(comparison)

Beside these it knows every gate of a single trace (`reports.findings.gates`), which is held against
the runs of the last build.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from reports.compare.comparison import Column, Comparison, Table
from reports.compare.measures import MEASURES
from reports.findings import RULES, Gate
from reports.findings.gates import Limit, gate_of, limit_of, parsed
from reports.grammar import Expression, expected
from reports.units import NS_PER_MS

__all__ = ["Judged", "NewGate", "WorseGate", "parse"]


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
    grown: Limit | None = None
    """Fails where the median of the rule's figure grew by more than this; ``None``: where the rule
    fires in a run of the last build and in none of the first."""

    def judge(self, comparison: Comparison) -> list[Judged]:
        """Tables in which it fails, or could not be judged."""
        return _by_table(comparison, self._in)

    def _in(self, table: Table, first: Column, last: Column) -> Iterator[Judged]:
        before, after = self._values(first), self._values(last)
        for run in (*first.runs, *last.runs):
            if self.rule in run.not_judged:
                yield Judged(table, False, run.not_judged[self.rule])
                return
        if self.grown is None:
            if any(after) and not any(before):
                yield Judged(table, True, f"in {sum(map(bool, after))} of {len(after)} runs")
            return
        in_ms = RULES[self.rule].unit == "ms" and not self.grown.in_samples
        limit = self.grown.figure / (NS_PER_MS if in_ms else 1)
        # To the microsecond, as the figures are: a difference of floats lies a hair beside it.
        if round(median(after) - median(before), 3) > limit:
            yield Judged(table, True, f"{median(before):g} has become {median(after):g}")

    def _values(self, column: Column) -> list[float]:
        """The rule's worst figure in each run, 0 where it did not fire; or whether it fired."""
        fired = [run.fired.get(self.rule) for run in column.runs]
        if self.grown is None:
            return [float(one is not None) for one in fired]
        if self.grown.in_samples:
            return [0.0 if one is None else float(one.samples or 0) for one in fired]
        return [0.0 if one is None else one.value for one in fired]


@dataclass(frozen=True, slots=True)
class WorseGate:
    """The last build must be worse than the first in no figure they are told apart by."""

    text: str
    """As it was given."""

    def judge(self, comparison: Comparison) -> list[Judged]:
        """Tables in which it is, or in which too little is known of a figure."""
        return _by_table(comparison, self._in)

    def _in(self, table: Table, first: Column, last: Column) -> Iterator[Judged]:
        differences = {one.build: one.differences for one in table.against}[last.build]
        worse, unknown = [], []
        for measure in MEASURES:
            difference = differences[measure.name]
            if difference.better is False:
                worse.append(measure.title)
            elif difference.verdict == "too-few-runs":
                unknown.append(f"too few runs to tell {measure.title} apart")
            elif any(column.figures[measure.name] for column in (first, last)) and (
                difference.verdict == "no-figure"
            ):
                unknown.append(f"{measure.title} is not known of both")
        if worse:
            yield Judged(table, True, f"worse: {', '.join(worse)}")
        elif unknown:
            yield Judged(table, False, "; ".join(unknown))


def _by_table(
    comparison: Comparison, judge: Callable[[Table, Column, Column], Iterator[Judged]]
) -> list[Judged]:
    """What is to be said of the first build and the last, table by table."""
    first, last = comparison.builds[0].build, comparison.builds[-1].build
    judged: list[Judged] = []
    for table in comparison.tables:
        columns = {column.build: column for column in table.columns if column.runs}
        missing = [build for build in (first, last) if build not in columns]
        if missing:
            judged.append(Judged(table, False, f"{missing[0]} has no run that counts"))
        else:
            judged += judge(table, columns[first], columns[last])
    return judged


def parse(text: str) -> NewGate | WorseGate | Gate:
    """A gate from its text: ``new:late-frames``, ``leak-after-verdict+20ms``, ``worse``, or one of
    a trace.

    Raises:
        SettingError: it is none of these; says what was expected, and where.
    """
    return parsed(text, _gate_of)


def _gate_of(text: str, e: Expression) -> NewGate | WorseGate | Gate:
    first = e.tokens[0].text
    match e.tree:
        case ast.Call(args=[node]):
            rule = e.first(node)
            if rule.text not in RULES:
                raise expected("new:RULE (`sinkprobe rules` lists them)", rule, RULES)
            return NewGate(text, rule.text)
        case ast.BinOp(left=ast.Name(), op=ast.Add(), right=node) if first in RULES:
            return NewGate(text, first, limit_of(e, first, node))
        case ast.Name() if first == "worse":
            return WorseGate(text)
    return gate_of(text, e)
