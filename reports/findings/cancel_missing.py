"""A speech was interrupted and a response of it was generated on, with no cancel that hit it before
it had come to its own end: how long the model went on making what nobody hears."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.conversation import segment_at, stopped, watched_until
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import GenerationStop
from reports.units import ns_text

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    if case.realtime is None:
        return
    for stop in case.realtime.stops:
        left = [
            r
            for r in case.realtime.responses
            if r.number in stop.responses
            and r.cancel_ns is None
            and (r.ended_ns is None or r.ended_ns > stop.interrupt_ns)
        ]
        if not left:
            continue
        made = stop.generated_after
        ends = [r.ended_ns for r in left if r.ended_ns is not None]
        ended = len(ends) == len(left)
        if not ended and (stop.under_way is None or made is None):
            yield Unjudged(f"whether {stop.speech_id} was still being generated can't be seen")
            continue
        watched = watched_until(case, [r.number for r in left])
        until = max(ends) if ended else watched
        began = min(r.created_ns for r in left)
        went_on_ns = until - max(began, stop.interrupt_ns)
        if went_on_ns <= limits["grace-ms"]:
            continue
        when = "while its response was being" if began <= stop.interrupt_ns else "before it was"
        end = "to its own end" if ended else "and was not seen to end"
        if ended and any(r.cancelled for r in left):
            end = "until the provider cancelled it by itself"
        yield Found(
            message=(
                f"{stop.speech_id} was interrupted {when} generated; that went on for "
                f"{ns_text(went_on_ns, 0)} {end}, and {_cancel(stop)}."
            ),
            figure=went_on_ns,
            segment=segment_at(case, stop.speech_id, stop.interrupt_ns),
            samples=None if made is None else made.samples,
            moments=stopped(case, stop),
            facts={
                "speech": stop.speech_id,
                "responses": [r.number for r in left],
                "ended": ended,
                "cancel_after_interrupt_ns": stop.cancel_after_interrupt_ns,
                "cancel_after_end_ns": stop.cancel_after_end_ns,
                "generated_after_ns": None if made is None else made.ns,
            },
        )


def _cancel(stop: GenerationStop) -> str:
    """Where the cancel for it was, if there was one."""
    if stop.cancel_ns is None:
        return "no cancel was sent"
    if stop.cancel_after_end_ns is not None and stop.cancel_after_end_ns > 0:
        return f"the cancel came {ns_text(stop.cancel_after_end_ns, 0)} after that"
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
