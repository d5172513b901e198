"""A part of the matrix of scripted calls: planned, then run in child processes.

It plans and runs; what the traces say is for whoever asks for them (`reports.compare.runs` puts the
runs of one cell together).
"""

from probe.sweep.cells import INSTALLED, Build, Call, Cell, LeftOut, Plan, calls, plan, varied
from probe.sweep.journal import Journal
from probe.sweep.runner import Done, run

__all__ = [
    "INSTALLED",
    "Build",
    "Call",
    "Cell",
    "Done",
    "Journal",
    "LeftOut",
    "Plan",
    "calls",
    "plan",
    "run",
    "varied",
]
