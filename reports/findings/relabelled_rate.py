"""Audio of one rate handed to the source as if it were of another, without being resampled: it is
played too fast or too slow, and too high or too low."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.results import Length
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for row, segment in enumerate(case.segments):
        captured, pushed = segment.captured, segment.pushed
        if captured is None or pushed is None or segment.unjoined is not None:
            continue
        if captured.rate_hz is None or pushed.rate_hz is None or not pushed.samples:
            continue
        off = pushed.rate_hz / captured.rate_hz - 1
        if 100 * abs(off) <= limits["off-percent"]:
            continue
        meant = Length(pushed.samples, captured.rate_hz)
        yield Found(
            message=(
                f"Audio captured at {captured.rate_hz} Hz was pushed as {pushed.rate_hz} Hz and "
                f"not resampled: {measured(meant)} were played in "
                f"{measured(Length(pushed.samples, pushed.rate_hz))}, "
                f"{100 * abs(off):.1f} % too {'fast' if off > 0 else 'slow'}."
            ),
            figure=round(100 * abs(off), 1),
            segment=row + 1,
            samples=pushed.samples,
            moments=((case.first_ns[row], "first frame captured"),),
            facts={"captured_hz": captured.rate_hz, "pushed_hz": pushed.rate_hz},
        )


RULE = Rule(
    name="relabelled-rate",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The frames say another rate at the source than they said at the sink, and every sample of "
        "them is the same: somebody writes the source's rate on them."
    ),
    remedy=(
        "Resample the frames to the source's rate, or give the sink the sample_rate of its source, "
        "so that the session does; a wrapper has to hand on the sample_rate of the sink behind it."
    ),
    needs=("captured", "pushed"),
    figure="how much too fast or too slow",
    unit="%",
    judge=_judge,
    counts_audio=True,
    thresholds=(Threshold("off-percent", 0.5, "%", "smaller differences are no finding"),),
)
