"""Audio of one rate pushed as if it were of another, sample for sample: it plays too fast or too
slow, and at the wrong pitch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probe.trace.reader import NONE
from reports.account.stretches import grouped
from reports.findings.case import Case
from reports.findings.evidence import captured_range
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Length
from reports.units import ns_text
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    parts, frames = case.ledger.parts, case.ledger.segments.frames
    rows = np.flatnonzero((parts.captured != NONE) & ~parts.inherited & (parts.segment >= 0))
    frame = frames.holding(parts.captured[rows])
    rates = case.trace.captured.rate_hz[frames.row[frame]]
    off = (frame >= 0) & (rates != parts.rate_hz[rows])
    rows, rates = rows[off], rates[off]
    for segment, mine in grouped(parts.segment[rows]):
        # Where several rates are mixed up in one segment, the pair that has most of the audio.
        pairs = np.stack((rates[mine], parts.rate_hz[rows[mine]]), axis=1)
        names, where = np.unique(pairs, axis=0, return_inverse=True)
        samples = np.bincount(where.reshape(-1), parts.samples[rows[mine]]).astype(np.int64)
        main = int(samples.argmax())
        captured_hz, pushed_hz = names[main].tolist()
        true, played = (Length(int(samples[main]), rate) for rate in (captured_hz, pushed_hz))
        share = 100 * abs(pushed_hz - captured_hz) / captured_hz
        if share <= limits["off-percent"]:
            continue
        how = "fast" if pushed_hz > captured_hz else "slow"
        found = rows[mine[where.reshape(-1) == main]]
        first, last = found[0], found[-1]
        at = case.trace.pushed.at_ns[parts.push[[first, last]]].tolist()
        yield Found(
            message=(
                f"Audio captured at {captured_hz} Hz was pushed as {pushed_hz} Hz and not "
                f"resampled: {measured(true)} were played in {ns_text(played.ns or 0)}, "
                f"{share:.1f} % too {how}."
            ),
            figure=round(share, 1),
            segment=segment + 1,
            samples=true.samples,
            ranges=(
                captured_range(
                    int(parts.captured[first]),
                    int(parts.captured[last] + parts.samples[last]),
                    case.first_ns[segment],
                ),
            ),
            moments=(
                (at[0], "first push at another rate"),
                (at[1], "last push at another rate"),
            ),
            facts={"captured_hz": captured_hz, "pushed_hz": pushed_hz, "played_ns": played.ns},
        )


RULE = Rule(
    name="relabelled-rate",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "Something between the TTS and the source gives the frames another rate than their samples "
        "have, such as a sink that makes frames of its own at the source's rate."
    ),
    remedy=(
        "Resample the frames to the source's rate (rtc.AudioResampler), or give the sink the "
        "sample_rate of its source, so that the session does."
    ),
    needs=("captured", "pushed"),
    figure="how much too fast or too slow it plays",
    unit="%",
    judge=_judge,
    counts_audio=True,
    thresholds=(Threshold("off-percent", 0.5, "%", "smaller differences are no finding"),),
)
