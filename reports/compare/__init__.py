"""Runs of several builds side by side, and whether they can be told apart."""

from reports.compare.comparison import (
    SCHEMA,
    Against,
    BuildFacts,
    Call,
    Column,
    Comparison,
    Difference,
    Fired,
    Measured,
    RunFigures,
    RunResult,
    Table,
    Verdict,
    compare,
    read,
)

__all__ = [
    "SCHEMA",
    "Against",
    "BuildFacts",
    "Call",
    "Column",
    "Comparison",
    "Difference",
    "Fired",
    "Measured",
    "RunFigures",
    "RunResult",
    "Table",
    "Verdict",
    "compare",
    "read",
]
