"""Silence inside a segment that no pause explains: starved, where there was nothing to send, told
apart from audio that was waiting in the sink or the source, and from a loop that stood still."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from probe.trace.reader import NONE
from reports.findings.case import FOREVER, Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]

_WHERE = {
    "starved": "there was nothing to send",
    "held in the sink": "audio had been captured and was not pushed",
    "blocked in the source": "audio had been pushed and was not sent",
    "loop stalled": "the session's loop stood still",
}

_WHY = {
    "starved": (
        "Nothing came from above: the TTS is slower than real time, stalls, or comes in packets "
        "further apart than they are long.",
        "Look at the TTS and its buffering.",
    ),
    "held in the sink": (
        "The sink kept audio back that it had been given, until more came: it hands on frames of "
        "one length and keeps the rest.",
        "Look at what the sink waits for between capture and push; hand on what is there before "
        "the source runs dry.",
    ),
    "blocked in the source": (
        "The source had the audio and did not send it.",
        "Look at who else pushes to or clears this source, and at the processor's load.",
    ),
    "loop stalled": (
        "The session's loop did not run, so nobody captured or pushed in time.",
        "Find what blocks the loop; see loop-blocked.",
    ),
}
"""Cause and remedy by what the gap was spent with."""


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
            cause=_WHY[kind][0],
            remedy=_WHY[kind][1],
        )


def _waited(case: Case, row: int, at: int, until: int) -> tuple[str, int]:
    """What the longest part of a gap was spent with, and how long that was.

    The source goes on with a whole block, so it waits for every sample of the next one: until the
    last of them was captured, then until it was pushed, then for the source itself. What of that
    the session's loop did not run is the loop's.
    """
    parts, trace = case.ledger.parts, case.trace
    rows = case.sent_rows(row)
    after = rows[parts.sent_ns[rows] >= until]
    pushed = captured = until
    if len(after):
        first = int(after[0])
        source = int(trace.pushed.source[int(parts.push[first])])
        position = int(parts.start[first]) + case.ledger.block.get(source, 1) - 1
        holds = after[(parts.start[after] <= position) & (parts.stop[after] > position)]
        whole = int(holds[0]) if len(holds) else first
        position = min(position, int(parts.stop[whole]) - 1)
        pushed = captured = int(trace.pushed.at_ns[int(parts.push[whole])])
        if parts.captured[whole] != NONE:
            place = int(parts.captured[whole]) + position - int(parts.start[whole])
            frame = int(np.searchsorted(trace.captured.start_sample, place, "right")) - 1
            if frame >= 0:
                captured = min(int(trace.captured.at_ns[frame]), pushed)
    spent = {
        "starved": (at, captured),
        "held in the sink": (max(captured, at), pushed),
        "blocked in the source": (max(pushed, at), until),
    }
    stalled = {kind: _overlap(case.stalls, begin, end) for kind, (begin, end) in spent.items()}
    lengths = {kind: max(end - begin, 0) - stalled[kind] for kind, (begin, end) in spent.items()}
    lengths["loop stalled"] = sum(stalled.values())
    longest = max(lengths, key=lambda kind: lengths[kind])
    return longest, lengths[longest]


def _overlap(stalls: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    return sum(max(min(stop, end) - max(start, begin), 0) for start, stop in stalls)


RULE = Rule(
    name="gap-in-speech",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "Starved: the TTS is slower than real time or stalls. Waiting: the sink holds frames back, "
        "or the session's loop stood still, so that nobody pushed."
    ),
    remedy=(
        "Starved: look at the TTS and its buffering. Waiting: look at what the sink waits for "
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
