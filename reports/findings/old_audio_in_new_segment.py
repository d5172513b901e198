"""A block or more of one segment, or any sample of an interrupted one, sent while a later one was
playing. The tail of an uninterrupted segment at the head of the next is no finding: the account
shows it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reports.account.boundary import FOREVER, SENT
from reports.account.crossings import Crossed
from reports.findings.case import Case
from reports.findings.evidence import crossed_ranges, length_of
from reports.findings.rule import Found, Limits, Rule, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    played = [row for row, span in enumerate(case.wire.spans) if span is not None]
    verdicts = {
        b.speech_id: b.verdict_ns
        for b in case.barge_ins
        if b.verdict_ns is not None and b.outcome == "committed"
    }
    for nth, row in enumerate(played[:-1]):
        _, left_until = case.wire.spans[row] or (0, 0)
        speech = case.session.speech_of(row)
        for later in played[nth + 1 :]:
            begins, _ = case.wire.spans[later] or (0, 0)
            # Segments are in the order of their first frames; what comes later still is later.
            if case.first_ns[later] > left_until:
                break
            verdict = verdicts.get(speech.name) if speech is not None else None
            interrupted = case.stopped(row) and case.session.speech_of(later) is not speech
            since = begins
            if interrupted:
                since = max(_stretch(case, begins), case.first_ns[later], verdict or 0)
            elif speech is not None and verdict is not None:
                continue  # late audio of the same speech is a leak of it
            old = case.wire.left(row, since, FOREVER)
            if not old.samples or (not interrupted and old.samples < _block(case, old)):
                continue
            length = length_of(old.samples, old.rates)
            kind = "the interrupted segment" if interrupted else "segment"
            yield Found(
                message=(
                    f"{measured(length)} of {kind} {row + 1} were sent while "
                    f"segment {later + 1} was playing."
                ),
                figure=length.ns or 0,
                segment=row + 1,
                samples=old.samples,
                ranges=crossed_ranges(old, SENT),
                moments=(
                    (case.first_ns[later], f"first frame of segment {later + 1} captured"),
                    (begins, f"first sample of segment {later + 1} sent"),
                    (int(old.at_ns.min()), f"old audio of segment {row + 1} sent"),
                    (int(old.until_ns.max()), f"last of segment {row + 1} sent"),
                ),
                facts={"later_segment": later + 1, "interrupted": interrupted},
                severity="error" if interrupted else "warning",
            )
            break


def _stretch(case: Case, at: int) -> int:
    """Begin of the stretch of sent audio without a pause that an instant lies in."""
    begin, _ = case.wire.stretches
    nth = int(np.searchsorted(begin, at, "right")) - 1
    return int(begin[nth]) if nth >= 0 else at


def _block(case: Case, old: Crossed) -> int:
    source = case.trace.pushed.source[old.frame[0]]
    return case.ledger.block.get(int(source), 1)


RULE = Rule(
    name="old-audio-in-new-segment",
    severity="error, warning where not interrupted",
    looks_for=plain(__doc__),
    cause=(
        "The source was not cleared, or frames that waited in the sink were pushed only when the "
        "next reply opened the gate."
    ),
    remedy=(
        "Drop what waits in the sink and clear the source before the next segment's first frame; "
        "see clear_buffer and the task that forwards frames in the room output."
    ),
    needs=("captured", "pushed", "sent", "balance"),
    figure="old audio sent in the later segment",
    unit="ms",
    judge=_judge,
    counts_audio=True,
)
