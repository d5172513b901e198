"""An interrupted segment ended without a clear, although something of it was left to stop."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for barge_in in case.barge_ins:
        left = barge_in.remaining
        if barge_in.outcome != "committed" or barge_in.verdict_ns is None:
            continue
        if left is None or not left.samples or barge_in.segment is None:
            continue
        speech = case.session.speeches[barge_in.speech_id or ""]
        row = barge_in.segment - 1
        ends = [at for at in (speech.done_ns,) if at is not None]
        ends += case.first_ns[row + 1 : row + 2]
        # What was only captured after the verdict was never there to be cleared.
        if not ends or case.first_ns[row] > barge_in.verdict_ns:
            continue
        since = min(barge_in.verdict_ns, speech.committed_ns or FOREVER)
        cleared = any(
            owner in speech.segments or mark.speech == speech.name
            for mark, owner in case.sinks.marks(since, FOREVER, "clear")
        )
        if cleared:
            continue
        yield Found(
            message=(
                f"The speech was interrupted with {measured(left)} of it left, "
                "and the sink was never cleared."
            ),
            figure=left.ns or 0,
            segment=barge_in.segment,
            samples=left.samples,
            moments=(
                *((m.at_ns, m.event) for m in barge_in.story),
                (min(ends), "the segment is over"),
            ),
        )


RULE = Rule(
    name="never-cleared",
    severity="error",
    looks_for=plain(__doc__),
    cause="The reply's task was cancelled on a way that does not reach the sink's clear_buffer.",
    remedy=(
        "Every way out of an interrupted reply has to call clear_buffer on the sink; see where "
        "the session forwards audio and handles the interruption."
    ),
    needs=("captured", "pushed", "sent", "session", "every event"),
    figure="audio of the speech left at the verdict",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
)
