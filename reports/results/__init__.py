"""What an analysis consists of. Field names are the keys of the JSON report, in its order.

Units
    ``_samples`` are samples per channel, exact integers, and the only amounts that are ever added
    up; ``ms`` of an amount is derived from them and the rate, and ``None`` where audio of several
    rates is in the one amount. ``_ns`` are nanoseconds, integers: an instant since the trace
    began, on the monotonic clock, or a length of time where it says so. The JSON report shows
    them as milliseconds, under the same name with ``_ms``.

Missing
    ``None`` means that the trace cannot tell: the boundary was not tapped, the trace was cut, or
    it did not happen (said at each field). Zero means that it was looked at and there was none.

Positions (``start_sample``, ``stop_sample``, half open) count over the whole trace at their
boundary: captured positions for what was captured or dropped; pushed positions for what was pushed,
sent or cleared.
"""

from reports.results.amounts import (
    Amount,
    Estimate,
    Gap,
    Leak,
    Length,
    Measured,
    Span,
)
from reports.results.analysis import (
    SCHEMA,
    Analysis,
)
from reports.results.barge_ins import (
    NO_BARGE_IN,
    BargeIn,
    Cause,
    LeakCause,
    LeakSurvival,
    Moment,
    Outcome,
    Survivor,
    Unseen,
    VerdictKind,
)
from reports.results.findings import (
    Evidence,
    Figure,
    Finding,
    InForce,
    NotJudged,
    Part,
    Range,
    Severity,
    Unit,
)
from reports.results.realtime import (
    Cancel,
    ConversationItem,
    GenerationStop,
    Realtime,
    RealtimeMessage,
    Response,
    Sound,
)
from reports.results.segments import (
    Control,
    Geometry,
    Loss,
    LossCause,
    Mark,
    Run,
    Segment,
    Totals,
    Unjoined,
)
from reports.results.trace import (
    Fault,
    Problem,
    Stall,
    TraceFacts,
)

__all__ = [
    "NO_BARGE_IN",
    "SCHEMA",
    "Amount",
    "Analysis",
    "BargeIn",
    "Cancel",
    "Cause",
    "Control",
    "ConversationItem",
    "Estimate",
    "Evidence",
    "Fault",
    "Figure",
    "Finding",
    "Gap",
    "GenerationStop",
    "Geometry",
    "InForce",
    "Leak",
    "LeakCause",
    "LeakSurvival",
    "Length",
    "Loss",
    "LossCause",
    "Mark",
    "Measured",
    "Moment",
    "NotJudged",
    "Outcome",
    "Part",
    "Problem",
    "Range",
    "Realtime",
    "RealtimeMessage",
    "Response",
    "Run",
    "Segment",
    "Severity",
    "Sound",
    "Span",
    "Stall",
    "Survivor",
    "Totals",
    "TraceFacts",
    "Unit",
    "Unjoined",
    "Unseen",
    "VerdictKind",
]
