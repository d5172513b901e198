"""The cancel for an interrupted speech went out when its response had ended, and hit a response of
another speech, which nobody had interrupted: a cancel is session-wide."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import Case
from reports.findings.conversation import interrupted_by, segment_at, stopped
from reports.findings.rule import Found, Limits, Rule, Unjudged, plain
from reports.units import ns_text

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    if case.realtime is None:
        return
    responses = {response.number: response for response in case.realtime.responses}
    for stop in case.realtime.stops:
        if stop.cancel_ns is None:
            continue
        at = stop.cancel_ns
        victims = [
            responses[number]
            for number in stop.hit
            if number in responses and not interrupted_by(case, responses[number].speech_id, at)
        ]
        if not victims:
            continue
        if stop.ended_ns is None and stop.under_way is None:
            yield Unjudged(f"when the generation of {stop.speech_id} ended can't be seen")
        if stop.cancel_after_end_ns is None or stop.cancel_after_end_ns < 0:
            continue
        after = stop.cancel_after_end_ns
        hit = " and ".join(
            f"response {r.number}" + (f" of {r.speech_id}" if r.speech_id else "") for r in victims
        )
        yield Found(
            message=(
                f"The cancel for {stop.speech_id} went out {ns_text(after)} after its response had "
                f"ended, and hit {hit}, which nobody had interrupted."
            ),
            figure=after,
            segment=segment_at(case, stop.speech_id, stop.interrupt_ns),
            moments=stopped(case, stop, *victims),
            facts={
                "speech": stop.speech_id,
                "responses": list(stop.responses),
                "hit": [r.number for r in victims],
                "hit_speeches": [r.speech_id for r in victims],
                "hit_cancelled": [r.cancelled for r in victims],
                "cancel_after_interrupt_ns": stop.cancel_after_interrupt_ns,
            },
        )


RULE = Rule(
    name="cancel-misdirected",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The session cancels whenever a speech is interrupted, whether or not its response is "
        "still being generated; audio plays longer than it takes to make, so by then the provider "
        "may be at the next response."
    ),
    remedy=(
        "Cancel only while the response of the interrupted speech is being generated, or by its "
        "id where the provider takes one; see where the session calls interrupt of the realtime "
        "session."
    ),
    needs=("realtime", "session", "every event"),
    figure="from the end of its response to the cancel",
    unit="ms",
    judge=_judge,
    from_absence=True,
)
