"""A verdict of the interruption model about an earlier overlap cut a later speech."""

from __future__ import annotations

from collections.abc import Iterator

from probe.trace.events import OverlapJudged
from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.findings.session import Speech
from reports.units import NS_PER_MS

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    slack = limits["clock-ms"]
    for event in case.session.overlaps:
        speech = case.session.speeches.get(event.speech or "")
        if not event.is_interruption or speech is None or not speech.segments:
            continue
        began = case.first_ns[speech.segments[0]]
        overlap = _overlap(case, event)
        if overlap is None or overlap[0] + slack >= began or overlap[1] + slack >= began:
            continue
        cut = _cut(case, speech, event.at_ns)
        if cut is None:
            continue
        yield Found(
            message=(
                f"A verdict on an overlap that began {(began - overlap[0]) / 1e6:.0f} ms before "
                f"the speech's first frame {cut[1]} the speech."
            ),
            figure=began - overlap[0],
            segment=case.segment_at(event.at_ns) + 1,
            moments=(
                (overlap[0], "the overlap begins"),
                *([] if overlap[1] >= FOREVER else [(overlap[1], "the caller stops")]),
                (began, "first frame of the speech captured"),
                (event.at_ns, "the interruption model says: interruption"),
                cut,
            ),
            facts={"overlap_stamped": event.overlap_started_unix_s is not None},
        )


def _overlap(case: Case, event: OverlapJudged) -> tuple[int, int] | None:
    """Begin of the overlap the verdict is about and end of the caller's turn in it."""
    before = [turn for turn in case.session.turns if turn.start_ns <= event.at_ns]
    if event.overlap_started_unix_s is None:
        return (before[-1].start_ns, before[-1].stop_ns) if before else None
    began = case.session.mono_ns(event.overlap_started_unix_s)
    mine = [turn for turn in before if turn.start_ns <= began + 100 * NS_PER_MS]
    return began, max(began, mine[-1].stop_ns) if mine else began


def _cut(case: Case, speech: Speech, at: int) -> tuple[int, str] | None:
    """What the verdict did to a speech that nothing had stopped before."""
    paused = next(
        (
            m.at_ns
            for m, owner in case.sinks.marks(at - NS_PER_MS, FOREVER, "pause")
            if owner in speech.segments
        ),
        None,
    )
    if speech.committed_ns is not None and speech.committed_ns >= at - NS_PER_MS:
        return speech.committed_ns, "cut"
    return None if paused is None else (paused, "paused")


RULE = Rule(
    name="stale-verdict",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The model's answer came after the overlapped speech had ended, and the session applied "
        "it to whatever was being spoken then."
    ),
    remedy=(
        "Compare overlap_started_at of the event with the start of the current speech before it "
        "is applied; see the handler of the interruption model's verdict."
    ),
    needs=("captured", "session", "overlapping_speech", "every event"),
    figure="how long before the speech the overlap began",
    unit="ms",
    judge=_judge,
    thresholds=(Threshold("clock-ms", 50, "ms", "allowed between wall clock and trace"),),
)
