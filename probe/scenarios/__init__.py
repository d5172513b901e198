"""Scripted calls: a real session and a real room output, with scripted participants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probe.scenarios.axes import Axes
from probe.scenarios.runner import Outcome, run_call, run_in_child
from probe.scenarios.scenario import Scenario, SessionOptions
from probe.scenarios.script import Step

if TYPE_CHECKING:
    from probe.scenarios.catalogue import CATALOGUE, DEFAULT, load

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


def __getattr__(name: str) -> Any:
    if name not in ("CATALOGUE", "DEFAULT", "load"):
        raise AttributeError(f"module 'probe.scenarios' has no attribute {name!r}")
    # Files are read where calls are asked for: where one is made there may be nothing to read them.
    from probe.scenarios import catalogue

    return getattr(catalogue, name)
