"""The gate was opened while frames of the interrupted speech were parked at it: they go out, or
get lost by luck."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER, PUSHED, SENT
from reports.findings.case import Case
from reports.findings.evidence import crossed_ranges, length_of
from reports.findings.rule import Found, Limits, Rule, plain
from reports.findings.session import Speech
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for barge_in in case.barge_ins:
        if barge_in.verdict_ns is None or barge_in.outcome not in ("committed", "finished"):
            continue
        verdict = barge_in.verdict_ns
        speech = case.session.speeches[barge_in.speech_id or ""]
        if speech.committed_ns is None:
            continue
        at = case.sinks.opened_after(verdict, case.sinks_of(*speech.segments))
        if at >= FOREVER or not speech.segments:
            continue
        parked = _parked(case, speech, at)
        if not parked:
            continue
        after = case.audio.crossed(PUSHED, speech.name, at, FOREVER)
        sent = case.audio.crossed(SENT, speech.name, at, FOREVER)
        rates = after.rates or {case.captured_rate_hz(speech.segments[0])}
        length = length_of(parked, rates)
        yield Found(
            message=(
                f"The gate was opened while {measured(length)} of the interrupted speech "
                f"were still parked at it; {measured(length_of(after.samples, rates))}"
                " were pushed after that."
            ),
            figure=length.ns or 0,
            segment=barge_in.segment,
            samples=parked,
            ranges=crossed_ranges(after, PUSHED),
            moments=(
                *((m.at_ns, m.event) for m in barge_in.story if m.at_ns != at),
                (at, "resume: the gate is open, frames parked at it"),
            ),
            facts={"pushed_samples": after.samples, "sent_samples": sent.samples},
            severity="error" if after.samples else "warning",
        )


def _parked(case: Case, speech: Speech, at: int) -> int:
    """Samples captured before an instant that had neither been pushed nor dropped by then."""
    c, p, parts = case.trace.captured, case.trace.pushed, case.ledger.parts
    frames = case.audio.frames(speech.name)
    frames = frames[c.at_ns[frames] < at]
    rows = case.audio.parts(speech.name)
    rows = rows[(p.at_ns[parts.push[rows]] < at) & ~parts.inherited[rows]]
    dropped = sum(
        lost.stop - lost.start for lost in case.dropped.get(speech.name, ()) if lost.at_ns <= at
    )
    return int(c.samples[frames].sum()) - int(parts.samples[rows].sum()) - dropped


RULE = Rule(
    name="resume-before-clear",
    severity="error, warning where nothing was pushed",
    looks_for=plain(__doc__),
    cause=(
        "The session resumes the sink when the next reply begins, or when a timeout ends the "
        "pause, before the interrupted reply has been cleared."
    ),
    remedy=(
        "Clear first, then resume: see where the session resumes its audio output after an "
        "interruption, and what clear_buffer does with frames that wait at the gate."
    ),
    needs=("captured", "pushed", "session", "pause", "balance"),
    figure="audio parked at the gate when it was opened",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
)
