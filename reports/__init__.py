"""Reports on traces of sinkprobe: what leaked after a barge-in, why, and where every sample went.

Works wherever numpy does; livekit is not needed.

    import reports
    analysis = reports.analyze("call.jsonl")
    analysis.balanced
    analysis.barge_ins[0].leaked["sent"].ms
    reports.expect(analysis, "verdict < clear", "leaked.sent <= 20ms")
"""

from reports.analysis import analyze
from reports.assertions import ExpectationError, check, expect
from reports.results import (
    Amount,
    Analysis,
    BargeIn,
    Cause,
    Control,
    Fault,
    Finding,
    Gap,
    Geometry,
    Leak,
    Loss,
    Mark,
    Moment,
    Problem,
    Run,
    Segment,
    Span,
    Stall,
    Totals,
    TraceFacts,
)
from reports.summary import Summary, summarize

__all__ = [
    "Amount",
    "Analysis",
    "BargeIn",
    "Cause",
    "Control",
    "ExpectationError",
    "Fault",
    "Finding",
    "Gap",
    "Geometry",
    "Leak",
    "Loss",
    "Mark",
    "Moment",
    "Problem",
    "Run",
    "Segment",
    "Span",
    "Stall",
    "Summary",
    "Totals",
    "TraceFacts",
    "analyze",
    "check",
    "expect",
    "summarize",
]
