"""A speech was interrupted and a response of it was generated on, with no cancel that hit it before
it had come to its own end: how long the model went on making what nobody hears."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import NS_PER_MS, Case, at_ns
from reports.findings.conversation import segment_at, stopped, watched_until
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import GenerationStop

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    if case.realtime is None:
        return
    for stop in case.realtime.stops:
        left = [
            r
            for r in case.realtime.responses
            if r.number in stop.responses
            and r.cancel_ms is None
            and (r.ended_ms is None or r.ended_ms > stop.interrupt_ms)
        ]
        if not left:
            continue
        made = stop.generated_after
        ends = [r.ended_ms for r in left if r.ended_ms is not None]
        ended = len(ends) == len(left)
        if not ended and (stop.under_way is None or made is None):
            yield Unjudged(f"whether {stop.speech_id} was still being generated can't be seen")
            continue
        watched = watched_until(case, [r.number for r in left]) / NS_PER_MS
        until = max(ends) if ended else watched
        began = min(r.created_ms for r in left)
        went_on_ms = until - max(began, stop.interrupt_ms)
        if went_on_ms <= limits["grace-ms"]:
            continue
        when = "while its response was being" if began <= stop.interrupt_ms else "before it was"
        end = "to its own end" if ended else "and was not seen to end"
        if ended and any(r.cancelled for r in left):
            end = "until the provider cancelled it by itself"
        yield Found(
            message=(
                f"{stop.speech_id} was interrupted {when} generated; that went on for "
                f"{went_on_ms:.0f} ms {end}, and {_cancel(stop)}."
            ),
            figure=went_on_ms,
            segment=segment_at(case, stop.speech_id, at_ns(stop.interrupt_ms)),
            samples=None if made is None else made.samples,
            moments=stopped(case, stop),
            facts={
                "speech": stop.speech_id,
                "responses": [r.number for r in left],
                "ended": ended,
                "cancel_after_interrupt_ms": stop.cancel_after_interrupt_ms,
                "cancel_after_end_ms": stop.cancel_after_end_ms,
                "generated_after_ms": None if made is None else made.ms,
            },
        )


def _cancel(stop: GenerationStop) -> str:
    """Where the cancel for it was, if there was one."""
    if stop.cancel_ms is None:
        return "no cancel was sent"
    if stop.cancel_after_end_ms is not None and stop.cancel_after_end_ms > 0:
        return f"the cancel came {stop.cancel_after_end_ms:.0f} ms after that"
    return "the cancel did not hit it"


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
