"""When a command fails because of findings: a severity, a rule, or a rule above a value.

gate = parse("leak-after-verdict>20ms")
gate.fails(analysis)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from reports.findings.registry import RULES, SEVERITIES
from reports.findings.thresholds import SettingError
from reports.grammar import Expression, GrammarError, expected, read
from reports.results import Analysis, Finding, Unit

_Read = TypeVar("_Read")

__all__ = ["Gate", "Limit", "gate_of", "limit_of", "parse", "parsed"]

_UNITS: Final[Mapping[Unit, tuple[str | None, str]]] = {
    "ms": ("ns", "ms or s"),
    "%": ("%", "%"),
    "count": (None, "a plain number"),
    "samples": ("samples", "samples"),
}
"""What a limit is given in, by the unit of the rule's figure, and in words."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A value of a rule's figure."""

    figure: float
    """Nanoseconds where it is a time, else in its unit, or samples."""
    in_samples: bool
    """Whether it is about the audio that the figure is about."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What must not be found."""

    text: str
    """As it was given."""
    severity: int | None = None
    """Place in `SEVERITIES` from which on a finding fails it."""
    rule: str | None = None
    above: Limit | None = None
    """Fails above this; ``None``: at any value."""

    def fails(self, analysis: Analysis) -> bool:
        """Whether the analysis has a finding that this forbids."""
        return any(self._meets(finding) for finding in analysis.findings)

    def unjudged(self, analysis: Analysis) -> str | None:
        """Why the rule it names could not be judged; ``None``: it was, or none is named."""
        return next((n.reason for n in analysis.not_judged if n.rule == self.rule), None)

    def _meets(self, finding: Finding) -> bool:
        if self.severity is not None:
            return SEVERITIES.index(finding.severity) >= self.severity
        if finding.rule != self.rule:
            return False
        if self.above is None:
            return True
        evidence = finding.evidence
        found = (evidence.samples or 0) if self.above.in_samples else evidence.figure.exact
        return found > self.above.figure


def parse(text: str) -> Gate:
    """A gate from its text: ``warning``, ``late-frames`` or ``leak-after-verdict>20ms``.

    Raises:
        SettingError: it is none of these; says what was expected, and where.
    """
    return parsed(text, gate_of)


def parsed(text: str, gate: Callable[[str, Expression], _Read]) -> _Read:
    """What ``gate`` makes of a text, of which it raises `GrammarError`.

    Raises:
        SettingError: the same, with the column.
    """
    try:
        expression = read(text, RULES, opens=("new",))
        made = gate(text, expression)
        if expression.tokens[-1].text:
            raise expected("the end", expression.tokens[-1])
    except GrammarError as error:
        where = f"column {error.position + 1} of {text!r}"
        raise SettingError(f"{error.message} ({where})") from error
    return made


def gate_of(text: str, e: Expression) -> Gate:
    """The gate of a single trace that an expression is.

    Raises:
        GrammarError: it is none.
    """
    first, second = e.tokens[0].text, e.tokens[1].text
    match e.tree:
        case ast.Name() if first in SEVERITIES:
            return Gate(text, severity=[*SEVERITIES].index(first))
        case ast.Name() if first in RULES:
            return Gate(text, rule=first)
        case ast.Compare(ops=[ast.Gt()], comparators=[node]) if first in RULES and e.quantity(node):
            return Gate(text, rule=first, above=limit_of(e, first, node))
    understood = 0 if first not in RULES else 1 if second != ">" else 2
    raise expected(
        f"a severity ({', '.join(SEVERITIES)}), a rule (`sinkprobe rules` lists them) or "
        "RULE>VALUE such as leak-after-verdict>20ms",
        e.tokens[understood],
        RULES,
    )


def limit_of(e: Expression, name: str, node: ast.expr) -> Limit:
    """The value that a node is of a rule's figure.

    Raises:
        GrammarError: it is none of this rule's.
    """
    rule, quantity = RULES[name], e.quantity(node)
    if quantity is None:
        raise expected("a number with its unit", e.first(node))
    unit, said = _UNITS[rule.unit]
    if quantity.unit == unit:
        return Limit(float(quantity.value), in_samples=unit == "samples")
    if quantity.unit == "samples" and rule.counts_audio:
        return Limit(float(quantity.value), in_samples=True)
    found = repr(e.first(node.right).text) if isinstance(node, ast.BinOp) else "none"
    more = " or samples" if rule.counts_audio else ""
    raise GrammarError(
        e.first(node).at,
        f"{name} is about {rule.figure}, expected the unit {said}{more}, found {found}",
    )
