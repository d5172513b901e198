"""A speech went on after a confirmed verdict, with or without a false-interruption event."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.evidence import leak_ranges
from reports.findings.rule import Found, Limits, Rule, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for barge_in in case.barge_ins:
        if barge_in.outcome != "resumed" or barge_in.verdict_ns is None:
            continue
        leaked = barge_in.leaked or {}
        boundary = "sent" if leaked.get("sent") is not None else "pushed"
        leak = leaked.get(boundary)
        if leak is None or (leak.ns or 0) <= case.resolution_ns():
            continue
        called_false = any("false interruption" in m.event for m in barge_in.story)
        event = "with" if called_false else "without"
        yield Found(
            message=(
                f"The speech went on after a confirmed verdict, {event} a false-interruption "
                f"event: {measured(leak)} were {boundary} after it."
            ),
            figure=leak.ns or 0,
            segment=barge_in.segment,
            samples=leak.samples,
            ranges=leak_ranges(leak),
            moments=tuple((m.at_ns, m.event) for m in barge_in.story),
            facts={"false_interruption": called_false, "verdict": barge_in.verdict_kind},
        )


RULE = Rule(
    name="resumed-after-verdict",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "No final transcript committed the verdict before false_interruption_timeout, and the "
        "timer does not know that the model had confirmed the interruption."
    ),
    remedy=(
        "Cancel the false-interruption timer when the verdict comes, or commit on the verdict; "
        "see where the session starts that timer. Until then a longer timeout helps."
    ),
    needs=("pushed", "session", "overlapping_speech"),
    figure="audio that went out after the verdict",
    unit="ms",
    judge=_judge,
    counts_audio=True,
)
