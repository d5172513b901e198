"""Scripted calls: a real session and a real room output, with scripted participants."""

from probe.scenarios.catalogue import CATALOGUE, DEFAULT, Axes, Scenario, SessionOptions, Step
from probe.scenarios.files import load
from probe.scenarios.runner import Outcome, run_call, run_in_child

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "Axes",
    "Outcome",
    "Scenario",
    "SessionOptions",
    "Step",
    "load",
    "run_call",
    "run_in_child",
]
