"""What lies where in time: the lanes a picture of a call is drawn from.

    timeline = lay_out("call.jsonl")
    timeline.sent.at_ns, timeline.sent.until_ns

Pure, and the same for every picture: times in nanoseconds since the trace began, audio in samples.
Two kinds of lanes: *dense* ones, columns with a row per frame or run, which `Frames.merged` and
`Depth.merged` make coarser for a view from afar; and *sparse* ones, a few `Stretch` or `Instant`
objects. What a barge-in leaked is no lane: it is in the `Analysis`, in spans of its own.
"""

from __future__ import annotations

from reports.account.boundary import NAMES
from reports.account.source import Source, ledger_of
from reports.timeline import audio, events
from reports.timeline.lanes import FATES, Depth, Frames, Instant, Stretch, Timeline

__all__ = ["FATES", "Depth", "Frames", "Instant", "Stretch", "Timeline", "lay_out"]


def lay_out(source: Source) -> Timeline:
    """The lanes of a trace: of a file, of one already read, or of its ledger.

    Raises:
        TraceError: nothing can be read; the message is one line.
    """
    ledger = ledger_of(source)
    trace, end = ledger.trace, ledger.trace.last_ns
    return Timeline(
        duration_ns=end,
        boundaries=tuple(b for b in NAMES if b in ledger.tapped),
        caller=tuple(s for s in events.states(trace, "user") if s.what == "speaking"),
        words=events.words(trace),
        agent=events.states(trace, "agent"),
        model=events.responses(trace),
        captured=audio.captured(ledger),
        gate=events.gate(ledger),
        pushed=audio.pushed(ledger),
        depth=audio.depths(ledger),
        sent=audio.sent(ledger),
        inserted=audio.inserted(ledger),
        lost=events.lost(ledger),
        claimed=events.claimed(ledger),
        marks=events.marks(trace),
        stalls=events.stalls(trace),
    )
