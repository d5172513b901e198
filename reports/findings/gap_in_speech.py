"""Silence inside a segment that no pause explains: starved, where there was nothing to send, told
apart from audio held in the sink, audio blocked in the source, and a loop that stood still."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.evidence import captured_range
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Gap
from reports.units import ns_text

__all__ = ["RULE"]

_KINDS = {
    "starved": (
        "there was nothing to send",
        "The TTS is slower than real time or stalls.",
        "Look at the TTS and its buffering.",
    ),
    "held in the sink": (
        "audio had been captured and was not pushed",
        "The sink kept audio back that it had been given, until more came or something else did.",
        "Look at what the sink waits for between capture and push: one that cuts frames keeps "
        "their rest until the next one.",
    ),
    "blocked in the source": (
        "audio had been pushed and was not sent",
        "The source had audio in its queue and did not hand it on in time.",
        "Look at the load of the machine: a source hands on a block every 10 ms by its own clock.",
    ),
    "loop stalled": (
        "the session's loop stood still, so that nothing was captured or pushed",
        "The session's loop stood still, so that nobody captured or pushed.",
        "See loop-blocked, and what runs on the loop without awaiting.",
    ),
}
"""Why nothing was sent, what brings that about, and what to do."""


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    verdicts = {b.speech_id: b.verdict_ns for b in case.barge_ins if b.verdict_ns is not None}
    gaps = [(gap, row) for row, segment in enumerate(case.segments) for gap in segment.gaps]
    for gap, row in sorted(gaps, key=lambda pair: pair[0].at_ns):
        until = gap.at_ns + gap.ns
        # What is sent after a verdict is a leak, whatever came before it.
        if until > verdicts.get(case.audio.segment_speech[row], FOREVER):
            continue
        waited = _waited(gap)
        kind = max(waited, key=lambda name: waited[name])
        limit = limits["starved-ms" if kind == "starved" else "blocked-ms"]
        unexplained = gap.ns - gap.paused_ns
        if unexplained < limit or (kind != "starved" and waited[kind] < limit):
            continue
        after = case.wire.left(row, until, FOREVER).samples
        if after <= int(case.ledger.sums.tail[row]):
            continue  # the tail, which opens whatever is sent next
        place = case.wire.last_place(row, until)
        why, cause, remedy = _KINDS[kind]
        yield Found(
            message=f"{ns_text(unexplained, 0)} of silence inside the segment, {kind}: {why}.",
            figure=unexplained,
            segment=row + 1,
            ranges=() if place is None else (captured_range(place, place, gap.at_ns),),
            moments=(
                (gap.at_ns, "nothing of the segment is sent from here on"),
                *case.sinks.moments(gap.at_ns, until),
                (until, "it goes on"),
            ),
            facts={
                "kind": kind,
                "waited_ns": waited[kind],
                "place_ns": None if place is None else case.place_ns(row, place),
            },
            cause=cause,
            remedy=remedy,
        )


def _waited(gap: Gap) -> dict[str, int]:
    """How long it waited for what, a pause left out."""
    lasted = (gap.starved_ns, gap.held_ns, gap.blocked_ns, gap.stalled_ns)
    return dict(zip(_KINDS, lasted, strict=True))


RULE = Rule(
    name="gap-in-speech",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "Starved: the TTS is slower than real time or stalls. Held or blocked: the sink keeps "
        "frames back, or the session's loop stood still, so that nobody pushed."
    ),
    remedy=(
        "Starved: look at the TTS and its buffering. Held or blocked: look at what the sink waits "
        "for between capture and push, and at loop-blocked."
    ),
    needs=("captured", "pushed", "sent", "all sent", "balance"),
    figure="silence that no pause explains",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(
        Threshold("starved-ms", 500, "ms", "shorter gaps with nothing to send are no finding"),
        Threshold("blocked-ms", 100, "ms", "shorter gaps with audio waiting are no finding"),
    ),
)
