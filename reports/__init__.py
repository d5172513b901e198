"""Reports on traces of sinkprobe: what leaked after a barge-in, why, and where every sample went.

Works wherever numpy does; livekit is not needed.

    import reports
    analysis = reports.analyze("call.jsonl")
    analysis                                # in a notebook: the report, as HTML
    analysis.balanced
    analysis.barge_ins[0].leaked["sent"].ms
    reports.expect(analysis, "verdict < clear", "leaked.sent <= 20ms")

What an analysis consists of, and what its fields mean, stands in `reports.results`: they are the
keys of the JSON report. What is not in an `Analysis` because there is so much of it, where every
frame lies in time, is in a `Timeline`, as columns of numpy:

    timeline = reports.lay_out("call.jsonl")
    timeline.sent.at_ns, timeline.sent.samples

Pages, tables and everything else that is written come from `reports.show`, one module a form, all
of them listed in `reports.show.FORMS`:

    from reports.show import html, tables
    Path("call.html").write_text(html.render([analysis], [timeline]), encoding="utf-8")
    pandas.DataFrame(tables.rows([analysis], "segments"))

Builds are compared by `reports.compare`, and looked back on by `reports.compare.history`.
"""

from reports.analysis import analyze
from reports.assertions import Check, ExpectationError, Result, check, expect
from reports.display import install
from reports.findings import SettingError
from reports.results import (
    Amount,
    Analysis,
    BargeIn,
    Cancel,
    Cause,
    Control,
    ConversationItem,
    Estimate,
    Evidence,
    Fault,
    Figure,
    Finding,
    Gap,
    GenerationStop,
    Geometry,
    InForce,
    Leak,
    LeakCause,
    LeakSurvival,
    Length,
    Loss,
    LossCause,
    Mark,
    Moment,
    NotJudged,
    Outcome,
    Part,
    Problem,
    Range,
    Realtime,
    RealtimeMessage,
    Response,
    Run,
    Segment,
    Severity,
    Sound,
    Span,
    Stall,
    Survivor,
    Totals,
    TraceFacts,
    Unit,
    Unjoined,
    Unseen,
    VerdictKind,
)
from reports.summary import Spread, Summary, summarize, worst_first
from reports.timeline import Depth, Frames, Instant, Stretch, Timeline, lay_out

__all__ = [
    "Amount",
    "Analysis",
    "BargeIn",
    "Cancel",
    "Cause",
    "Check",
    "Control",
    "ConversationItem",
    "Depth",
    "Estimate",
    "Evidence",
    "ExpectationError",
    "Fault",
    "Figure",
    "Finding",
    "Frames",
    "Gap",
    "GenerationStop",
    "Geometry",
    "InForce",
    "Instant",
    "Leak",
    "LeakCause",
    "LeakSurvival",
    "Length",
    "Loss",
    "LossCause",
    "Mark",
    "Moment",
    "NotJudged",
    "Outcome",
    "Part",
    "Problem",
    "Range",
    "Realtime",
    "RealtimeMessage",
    "Response",
    "Result",
    "Run",
    "Segment",
    "SettingError",
    "Severity",
    "Sound",
    "Span",
    "Spread",
    "Stall",
    "Stretch",
    "Summary",
    "Survivor",
    "Timeline",
    "Totals",
    "TraceFacts",
    "Unit",
    "Unjoined",
    "Unseen",
    "VerdictKind",
    "analyze",
    "check",
    "expect",
    "lay_out",
    "summarize",
    "worst_first",
]

install(Analysis)
