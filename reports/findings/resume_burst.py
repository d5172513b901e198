"""A short stretch of audio between a resume and the next clear."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import SENT
from reports.findings.case import FOREVER, Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    most = int(limits["burst-ms"])
    for shut, opened in case.gate:
        if opened >= FOREVER:
            continue
        row = case.segment_at(shut)
        found = next(case.marks(opened, opened + most, "clear"), None)
        if row < 0 or found is None:
            continue
        clear = found[0].at_ns
        rows = [r for r in range(row, found[1] + 1) if case.first_ns[r] <= shut]
        burst = case.left(row, opened, clear) if rows else None
        if burst is None or not burst.samples:
            continue
        length = case.longest_ns(burst)
        if length <= case.resolution_ns():
            continue
        sent = measured(case.length(burst.samples, burst.rates))
        yield Found(
            message=(
                f"A burst of {sent} was sent between a resume and the "
                f"clear {(clear - opened) / 1e6:.0f} ms later."
            ),
            figure=length,
            segment=row + 1,
            samples=burst.samples,
            ranges=case.ranges(burst, SENT),
            moments=(
                (shut, "pause: the gate is closed"),
                (opened, "resume: the gate is open"),
                (clear, "clear of the sink"),
            ),
        )


RULE = Rule(
    name="resume-burst",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The speech was resumed and interrupted for good a moment later: the timeout of the false "
        "interruption ran out just before the transcript came, or the resume came out of order."
    ),
    remedy=(
        "Give false_interruption_timeout the time the STT takes, and see whether the session "
        "resumes on its way to a clear."
    ),
    needs=("captured", "pushed", "sent", "pause", "balance"),
    figure="audio sent between resume and clear",
    unit="ms",
    judge=_judge,
    counts_audio=True,
    thresholds=(Threshold("burst-ms", 1000, "ms", "a clear later than this is another matter"),),
)
