"""A short stretch of audio between a resume and the next clear."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER, SENT
from reports.findings.case import Case
from reports.findings.evidence import crossed_ranges, length_of, longest_ns
from reports.findings.rule import Found, Limits, Rule, Threshold, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    most = int(limits["burst-ms"])
    for gate in case.sinks.gates:
        shut, opened = gate.shut_ns, gate.opened_ns
        if opened >= FOREVER:
            continue
        row = case.segment_at(shut)
        clears = case.sinks.marks(opened, opened + most, "clear")
        found = next((each for each in clears if gate.may_be_of(each[0].sink)), None)
        if row < 0 or found is None:
            continue
        clear = found[0].at_ns
        rows = [r for r in range(row, found[1] + 1) if case.first_ns[r] <= shut]
        burst = case.wire.left(row, opened, clear) if rows else None
        if burst is None or not burst.samples:
            continue
        length = longest_ns(burst)
        if length <= case.resolution_ns():
            continue
        sent = measured(length_of(burst.samples, burst.rates))
        yield Found(
            message=(
                f"A burst of {sent} was sent between a resume and the "
                f"clear {(clear - opened) / 1e6:.0f} ms later."
            ),
            figure=length,
            segment=row + 1,
            samples=burst.samples,
            ranges=crossed_ranges(burst, SENT),
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
