"""Findings: every way the audio goes wrong, one rule per module.

from reports.findings import RULES
RULES["leak-after-verdict"].remedy
"""

from reports.findings.gates import Gate, parse
from reports.findings.registry import RULES, SEVERITIES, judge
from reports.findings.rule import Rule, Threshold
from reports.findings.thresholds import SettingError, Settings, checked, in_force

__all__ = [
    "RULES",
    "SEVERITIES",
    "Gate",
    "Rule",
    "SettingError",
    "Settings",
    "Threshold",
    "checked",
    "in_force",
    "judge",
    "parse",
]
