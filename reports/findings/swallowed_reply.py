"""The reply after a barge-in lost most of its audio although it was reported as spoken. Where not
every sample is accounted for, what was lost for certain counts."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.evidence import captured_range
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.findings.session import Speech
from reports.results import BargeIn, Length
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    judged: set[str] = set()
    if case.doubt is not None:
        yield Unjudged(case.doubt)
    for barge_in in case.barge_ins:
        reply = _reply(case, barge_in)
        if reply is None or reply.name in judged or reply.committed_ns is not None:
            continue
        judged.add(reply.name)
        rows = reply.segments
        if any(case.segments[row].partial for row in rows) or not _spoken(case, reply):
            continue
        sums, first_ns = case.ledger.sums, case.first_ns[rows[0]]
        captured, sent = int(sums.captured[rows].sum()), int(sums.arrived[rows].sum())
        certain = case.doubt is None and not sums.unseen[rows].any()
        lost = captured - sent - int(sums.tail_unsent[rows].sum())
        if not certain:
            lost = sum(case.lost_at_least(row) for row in rows)
        if lost <= 0 or 100 * lost < limits["lost-percent"] * captured:
            continue
        rate = case.captured_rate_hz(rows[0])
        least = "" if certain else "At least "
        yield Found(
            message=(
                f"{least}{measured(Length(lost, rate))} of {measured(Length(captured, rate))} "
                "captured of the reply after the barge-in were never sent, and it was reported as "
                "spoken."
            ),
            figure=round(100 * lost / captured, 1),
            segment=rows[0] + 1,
            beside=tuple(row + 1 for row in rows[1:]),
            samples=lost,
            ranges=(captured_range(int(sums.start[rows[0]]), int(sums.stop[rows[-1]]), first_ns),),
            moments=(
                (_about(barge_in), "the barge-in before it"),
                (first_ns, "first frame of the reply captured"),
                *case.sinks.moments(first_ns, reply.done_ns or FOREVER),
                *((item.at_ns, "its text is committed") for item in reply.items),
                *([(reply.done_ns, "the speech is done")] if reply.done_ns is not None else []),
            ),
            facts={
                "captured_samples": captured,
                "sent_samples": int(sums.sent[rows].sum()),
                "at_least": not certain,
            },
        )


def _about(barge_in: BargeIn) -> int:
    for at in (barge_in.verdict_ns, barge_in.pause_ns, barge_in.onset_ns):
        if at is not None:
            return at
    return 0


def _reply(case: Case, barge_in: BargeIn) -> Speech | None:
    """The first other speech whose audio came after a barge-in."""
    about = _about(barge_in)
    for row in range(case.segment_at(about) + 1, len(case.first_ns)):
        speech = case.session.speech_of(row)
        if speech is not None and speech.name != barge_in.speech_id:
            return speech if speech.segments[0] == row else None
    return None


def _spoken(case: Case, reply: Speech) -> bool:
    """Whether it was said to have been spoken: by the history, the sink, or its own end."""
    return (
        any(item.chars and not item.interrupted for item in reply.items)
        or any(
            case.segments[row].finished_ns is not None and case.segments[row].interrupted is False
            for row in reply.segments
        )
        or reply.done_ns is not None
    )


RULE = Rule(
    name="swallowed-reply",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "What the barge-in left behind took the next reply: a gate still shut, a clear still "
        "pending, a future of the sink that was cancelled."
    ),
    remedy=(
        "Look at what the interruption left in the sink when the next segment's first frame came; "
        "see sink-refuses, gate-left-closed and swallowed-audio beside it."
    ),
    needs=("captured", "pushed", "sent", "session", "every event"),
    figure="share of the reply that was lost",
    unit="%",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(Threshold("lost-percent", 50, "%", "smaller losses are no finding"),),
)
