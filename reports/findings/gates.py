"""When a command fails because of findings: a severity, a rule, or a rule above a value.

gate = parse("leak-after-verdict>20ms")
gate.fails(analysis)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reports.findings.registry import RULES, SEVERITIES
from reports.findings.rule import Rule
from reports.findings.thresholds import SettingError
from reports.results import Analysis, Finding, Unit

__all__ = ["Gate", "parse"]

_LIMIT: Final = re.compile(r"^([a-z-]+)\s*>\s*(\d+(?:\.\d+)?)\s*([a-z%]*)$")

_UNITS: Final[Mapping[Unit, Mapping[str, float]]] = {
    "ms": {"ms": 1e6, "s": 1e9},
    "%": {"%": 1.0},
    "count": {"": 1.0},
    "samples": {"samples": 1.0},
}
"""Units a limit may be given in, by the unit of the rule's figure, and what makes of them the
figure as it is held: nanoseconds or itself."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What must not be found."""

    text: str
    """As it was given."""
    severity: int | None = None
    """Place in `SEVERITIES` from which on a finding fails it."""
    rule: str | None = None
    above: float | None = None
    """Fails above this: nanoseconds where the figure is a time, else its unit, or samples."""
    in_samples: bool = False

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
        if self.in_samples:
            return (finding.evidence.samples or 0) > self.above
        return finding.evidence.figure.exact > self.above


def parse(text: str) -> Gate:
    """A gate from its text: ``warning``, ``late-frames`` or ``leak-after-verdict>20ms``.

    Raises:
        SettingError: it is none of these; says what was expected.
    """
    wanted = text.strip()
    if wanted in SEVERITIES:
        return Gate(text, severity=[*SEVERITIES].index(wanted))
    if wanted in RULES:
        return Gate(text, rule=wanted)
    limit = _LIMIT.match(wanted)
    if limit is None or limit[1] not in RULES:
        severities = ", ".join(SEVERITIES)
        raise SettingError(
            f"expected a severity ({severities}), a rule (`sinkprobe rules` lists them) or "
            f"RULE>VALUE such as leak-after-verdict>20ms, found {text!r}"
        )
    return _limit(text, RULES[limit[1]], float(limit[2]), limit[3])


def _limit(text: str, rule: Rule, value: float, unit: str) -> Gate:
    if unit == "samples" and rule.counts_audio:
        return Gate(text, rule=rule.name, above=value, in_samples=True)
    units = _UNITS[rule.unit]
    if unit not in units:
        names = [*units, *(["samples"] if rule.counts_audio else [])]
        expected = " or ".join(name or "a plain number" for name in names)
        found = repr(unit) if unit else "none"
        raise SettingError(
            f"{text}: {rule.name} is about {rule.figure}, expected the unit {expected}, "
            f"found {found}"
        )
    return Gate(text, rule=rule.name, above=value * units[unit])
