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
from reports.findings import SettingError
from reports.results import (
    Amount,
    Analysis,
    BargeIn,
    Cancel,
    Cause,
    Control,
    ConversationItem,
    Evidence,
    Fault,
    Figure,
    Finding,
    Gap,
    GenerationStop,
    Geometry,
    InForce,
    Leak,
    Loss,
    Mark,
    Moment,
    NotJudged,
    Part,
    Problem,
    Range,
    Realtime,
    RealtimeMessage,
    Response,
    Run,
    Segment,
    Sound,
    Span,
    Stall,
    Survivor,
    Totals,
    TraceFacts,
)
from reports.summary import Summary, summarize

__all__ = [
    "Amount",
    "Analysis",
    "BargeIn",
    "Cancel",
    "Cause",
    "Control",
    "ConversationItem",
    "Evidence",
    "ExpectationError",
    "Fault",
    "Figure",
    "Finding",
    "Gap",
    "GenerationStop",
    "Geometry",
    "InForce",
    "Leak",
    "Loss",
    "Mark",
    "Moment",
    "NotJudged",
    "Part",
    "Problem",
    "Range",
    "Realtime",
    "RealtimeMessage",
    "Response",
    "Run",
    "Segment",
    "SettingError",
    "Sound",
    "Span",
    "Stall",
    "Summary",
    "Survivor",
    "Totals",
    "TraceFacts",
    "analyze",
    "check",
    "expect",
    "summarize",
]
