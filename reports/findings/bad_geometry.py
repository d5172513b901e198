"""Frames of a wrong shape: the rate or the channels change within a segment, frames are empty, or
their data has not the length their samples say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.reader import NONE
from reports.findings.case import Case
from reports.findings.evidence import captured_range
from reports.findings.rule import Found, Limits, Rule, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    c = case.trace.captured
    segment = case.ledger.frame_segment
    order = np.lexsort((c.frame, segment))
    owner, rate, channels = segment[order], c.rate_hz[order], c.channels[order]
    same = owner[1:] == owner[:-1]
    changed = same & ((rate[1:] != rate[:-1]) | (channels[1:] != channels[:-1]))
    empty = c.samples == 0
    odd = (c.data_bytes != NONE) & (c.data_bytes != c.samples * c.channels * 2)
    at_change = order[1:][changed]
    for row in np.unique(segment[np.concatenate((at_change, np.flatnonzero(empty | odd)))]):
        changes = at_change[segment[at_change] == row]
        empties, odds = (
            np.flatnonzero(empty & (segment == row)),
            np.flatnonzero(odd & (segment == row)),
        )
        told = []
        if len(changes):
            pairs = sorted(
                {
                    (int(c.rate_hz[i]), int(c.channels[i]))
                    for i in np.flatnonzero(segment == row).tolist()
                }
            )
            shapes = ", ".join(f"{hz} Hz x {n}" for hz, n in pairs)
            told.append(f"rate or channels change within the segment ({shapes})")
        if len(empties):
            told.append(f"{len(empties)} frames are empty")
        if len(odds):
            told.append(f"{len(odds)} frames have data of another length than they say")
        bad = np.unique(np.concatenate((changes, empties, odds)))
        text = "; ".join(told)
        yield Found(
            message=f"{text[0].upper()}{text[1:]}.",
            figure=float(len(bad)),
            segment=int(row) + 1,
            ranges=tuple(
                captured_range(
                    int(c.start_sample[i]), int(c.start_sample[i] + c.samples[i]), int(c.at_ns[i])
                )
                for i in bad[:5].tolist()
            ),
            moments=(
                (int(c.at_ns[bad].min()), "first such frame captured"),
                (int(c.at_ns[bad].max()), "last such frame captured"),
            ),
            facts={
                "changes": len(changes),
                "empty_frames": len(empties),
                "odd_frames": len(odds),
            },
            severity="error" if len(changes) or len(odds) else "warning",
        )


RULE = Rule(
    name="bad-geometry",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "A TTS that changes its rate between sentences, a decoder that emits empty frames, or a "
        "wrapper that leaves sample_rate unset, so that the session does not resample."
    ),
    remedy=(
        "The source raises on another rate than its own. Give the sink's wrapper the rate of the "
        "next link, or resample in the TTS."
    ),
    needs=("captured",),
    figure="frames of a wrong shape",
    unit="count",
    judge=_judge,
)
