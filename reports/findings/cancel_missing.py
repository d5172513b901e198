"""A speech was interrupted while its response was being generated, and no cancel went out before
the response had come to its own end: how long the model went on making what nobody hears."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import NS_PER_MS, Case, at_ns
from reports.findings.conversation import segment_at, stopped
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    if case.realtime is None:
        return
    for stop in case.realtime.stops:
        if stop.cancel_ms is not None and (stop.cancel_after_end_ms or 0.0) <= 0:
            continue
        if stop.under_way is None:
            yield Unjudged(f"whether {stop.speech_id} was still being generated can't be seen")
        if not stop.under_way:
            continue
        went_on_ms, end = stop.generating_ms, "to its own end"
        if went_on_ms is None:
            went_on_ms = case.trace.last_ns / NS_PER_MS - stop.interrupt_ms
            end = "and was not seen to end before the trace did"
        elif any(r.cancelled for r in case.realtime.responses if r.number in stop.responses):
            end = "until the provider cancelled it by itself"
        if went_on_ms <= limits["grace-ms"]:
            continue
        sent = "no cancel was sent"
        if stop.cancel_after_end_ms is not None:
            sent = f"the cancel came {stop.cancel_after_end_ms:.0f} ms after that"
        made = stop.generated_after
        yield Found(
            message=(
                f"{stop.speech_id} was interrupted while its response was being generated; that "
                f"went on for {went_on_ms:.0f} ms {end}, and {sent}."
            ),
            figure=went_on_ms,
            segment=segment_at(case, stop.speech_id, at_ns(stop.interrupt_ms)),
            samples=None if made is None else made.samples,
            moments=stopped(case, stop),
            facts={
                "speech": stop.speech_id,
                "responses": list(stop.responses),
                "ended": stop.generating_ms is not None,
                "cancel_after_end_ms": stop.cancel_after_end_ms,
                "generated_after_ms": None if made is None else made.ms,
            },
        )


RULE = Rule(
    name="cancel-missing",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The speech was interrupted on a way that stops its playback and does not reach the "
        "realtime session, such as the speech handle itself, or from inside an agent task."
    ),
    remedy=(
        "Cancel the response wherever its speech becomes interrupted, not only where the session "
        "is told to interrupt; see what the realtime reply does after wait_if_not_interrupted. "
        "Until then call session.interrupt instead of the handle's."
    ),
    needs=("realtime", "session", "every event"),
    figure="how long the generation went on after the interrupt",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(
        Threshold("grace-ms", 100, "ms", "a response that ends this soon by itself is let pass"),
    ),
)
