"""Silence inside a segment that no pause explains: starved, where there was nothing to send, told
apart from blocked, where audio was waiting and was not sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.reader import NONE
from reports.findings.case import FOREVER, Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]

_WHERE = {
    "starved": "there was nothing to send",
    "blocked in the sink": "audio had been captured and was not pushed",
    "blocked in the source": "audio had been pushed and was not sent",
}


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    least = min(limits["starved-ms"], limits["blocked-ms"])
    verdicts = {b.speech_id: b.verdict_ns for b in case.barge_ins if b.verdict_ns is not None}
    for row, at, length in sorted(case.ledger.gaps, key=lambda gap: gap[1]):
        # What is sent after a verdict is a leak, whatever came before it.
        if length < least or at + length > verdicts.get(case.audio.segment_speech[row], FOREVER):
            continue
        until = at + length
        unexplained = length - case.shut_within(at, until)
        if unexplained < least:
            continue
        after = case.left(row, until, FOREVER).samples
        if after <= int(case.ledger.sums.tail[row]):
            continue  # the tail, which opens whatever is sent next
        kind, waited = _waited(case, row, at, until)
        limit = limits["starved-ms" if kind == "starved" else "blocked-ms"]
        if unexplained < limit or (kind != "starved" and waited < limit):
            continue
        place = case.last_sent_place(row, until)
        yield Found(
            message=(
                f"{unexplained / 1e6:.0f} ms of silence inside the segment, {kind}: {_WHERE[kind]}."
            ),
            figure=unexplained,
            segment=row + 1,
            ranges=() if place is None else (case.captured_range(place, place, at),),
            moments=(
                (at, "nothing of the segment is sent from here on"),
                *case.mark_moments(at, until),
                (until, "it goes on"),
            ),
            facts={
                "kind": kind,
                "waited_ns": waited,
                "place_ns": None if place is None else case.place_ns(row, place),
            },
        )


def _waited(case: Case, row: int, at: int, until: int) -> tuple[str, int]:
    """What took the longest part of a gap: no audio, the sink, or the source."""
    parts, trace = case.ledger.parts, case.trace
    rows = case.sent_rows(row)
    after = rows[parts.sent_ns[rows] >= until]
    if not len(after):
        return "starved", until - at
    first = after[0]
    push = int(parts.push[first])
    block = case.ledger.block.get(int(trace.pushed.source[push]), 1)
    # A rest shorter than a block waits for more, so the push that makes it whole decides.
    position = int(parts.start[first]) + block - 1
    holds = after[(parts.start[after] <= position) & (parts.stop[after] > position)]
    whole = int(holds[0]) if len(holds) else int(first)
    push = int(parts.push[whole])
    pushed = int(trace.pushed.at_ns[push])
    captured = pushed
    if parts.captured[whole] != NONE:
        last = int(parts.captured[whole])
        same = np.flatnonzero(parts.push == push)
        known = parts.captured[same] != NONE
        if known.any():
            last = int((parts.captured + parts.samples)[same[known]].max()) - 1
        frame = int(np.searchsorted(trace.captured.start_sample, last, "right")) - 1
        if frame >= 0:
            captured = min(int(trace.captured.at_ns[frame]), pushed)
    in_source = until - max(pushed, at)
    in_sink = max(pushed - max(captured, at), 0)
    starved = max(captured - at, 0)
    kinds = (
        (starved, "starved"),
        (in_sink, "blocked in the sink"),
        (in_source, "blocked in the source"),
    )
    longest = max(kinds, key=lambda kind: kind[0])
    return longest[1], longest[0]


RULE = Rule(
    name="gap-in-speech",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "Starved: the TTS is slower than real time or stalls. Blocked: the sink holds frames back "
        "or the session's loop stood still, so that nobody pushed."
    ),
    remedy=(
        "Starved: look at the TTS and its buffering. Blocked: look at what the sink waits for "
        "between capture and push, and at loop-blocked."
    ),
    needs=("captured", "pushed", "sent", "balance"),
    figure="silence that no pause explains",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(
        Threshold("starved-ms", 500, "ms", "shorter gaps with nothing to send are no finding"),
        Threshold("blocked-ms", 100, "ms", "shorter gaps with audio waiting are no finding"),
    ),
)
