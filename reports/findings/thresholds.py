"""Thresholds: their defaults, what replaces them, and what was in force."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from reports.findings.rule import Limits, Rule
from reports.results import InForce
from reports.units import NS_PER_MS

__all__ = ["SettingError", "Settings", "checked", "in_force", "limits_of"]

Settings = Mapping[str, Mapping[str, float]]
"""Thresholds by rule and name, in the unit each rule gives."""


class SettingError(ValueError):
    """A threshold that does not exist, or a value it can't have. One line."""


def checked(rules: Mapping[str, Rule], rule: str, name: str, value: object) -> float:
    """A threshold's new value.

    Raises:
        SettingError: there is no such rule or threshold, or the value is no finite number from 0.
    """
    if rule not in rules:
        raise SettingError(f"expected a rule (`sinkprobe rules` lists them), found {rule!r}")
    names = [threshold.name for threshold in rules[rule].thresholds]
    if name not in names:
        expected = f"one of {', '.join(names)}" if names else "nothing: it has no thresholds"
        raise SettingError(f"{rule}: expected {expected}, found {name!r}")
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or not 0 <= value <= sys.float_info.max
    ):
        raise SettingError(f"{rule}.{name}: expected a number from 0, found {value!r}")
    return float(value)


def limits_of(rule: Rule, settings: Settings) -> Limits:
    """Thresholds of one rule with what replaces their defaults, as rules compare them."""
    chosen = _chosen(rule, settings)
    return {
        t.name: round(chosen[t.name] * NS_PER_MS) if t.unit == "ms" else chosen[t.name]
        for t in rule.thresholds
    }


def _chosen(rule: Rule, settings: Settings) -> dict[str, float]:
    """In the unit of each threshold, as a user gives and reads it."""
    chosen = settings.get(rule.name, {})
    return {t.name: float(chosen.get(t.name, t.default)) for t in rule.thresholds}


def in_force(rules: Iterable[Rule], settings: Settings) -> tuple[InForce, ...]:
    """Every threshold as it is applied, in the order of the rules."""
    return tuple(
        InForce(rule.name, t.name, _chosen(rule, settings)[t.name], t.unit, float(t.default))
        for rule in rules
        for t in rule.thresholds
    )
