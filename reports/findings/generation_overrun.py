"""Audio the model generated for a speech after it was interrupted, whether it was captured or not:
it is made, and billed, for nobody."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import CAPTURED, FOREVER
from reports.findings.case import Case
from reports.findings.conversation import segment_at, stopped
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import GenerationStop
from reports.units import ns_text
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    for stop in case.realtime.stops if case.realtime is not None else ():
        made = stop.generated_after
        if made is None:
            yield Unjudged(f"how much was generated of {stop.speech_id} can't be asked")
            continue
        if not made.samples or (made.ns is not None and made.ns <= limits["allowed-ms"]):
            continue
        interrupt = stop.interrupt_ns
        entered = case.audio.crossed(CAPTURED, stop.speech_id, interrupt, FOREVER)
        cause, remedy = _why(stop)
        lasted = "" if stop.generating_ns is None else f", in {ns_text(stop.generating_ns, 0)}"
        yield Found(
            message=(
                f"{measured(made)} of {stop.speech_id} were generated after it "
                f"was interrupted{lasted}."
            ),
            figure=made.ns or 0,
            segment=segment_at(case, stop.speech_id, interrupt),
            samples=made.samples,
            moments=stopped(case, stop),
            facts={
                "speech": stop.speech_id,
                "responses": list(stop.responses),
                "generating_ns": stop.generating_ns,
                "cancel_after_interrupt_ns": stop.cancel_after_interrupt_ns,
                "captured_samples": entered.samples if "captured" in case.tapped else None,
            },
            cause=cause,
            remedy=remedy,
        )


def _why(stop: GenerationStop) -> tuple[str, str]:
    if stop.cancel_ns is None:
        return (
            "No cancel was sent: the response was generated to its own end.",
            "See cancel-missing beside this.",
        )
    if (stop.cancel_after_end_ns or 0) > 0:
        return (
            "The cancel came when the response had been generated to its end.",
            "Send the cancel when the speech becomes interrupted, not when its task is done.",
        )
    after = stop.cancel_after_interrupt_ns or 0
    rest = (stop.generating_ns or 0) - after
    if stop.generating_ns is None or rest >= after:
        return (
            f"The cancel went out {ns_text(after, 0)} after the interrupt, and the provider went "
            "on generating after it.",
            "What a provider makes until a cancel reaches it is its own; see how the plugin sends "
            "the cancel and whether it waits for something first.",
        )
    return (
        f"The cancel went out only {ns_text(after, 0)} after the interrupt.",
        "Send the cancel when the speech becomes interrupted; see what the session awaits before.",
    )


RULE = Rule(
    name="generation-overrun",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The cancel was not sent, or late, or the provider took its time to obey it; a model that "
        "generates faster than it is heard makes seconds of audio in that time."
    ),
    remedy=(
        "Send the cancel when the speech becomes interrupted; see cancel-missing and "
        "cancel-misdirected beside this, and how the plugin sends it."
    ),
    needs=("realtime", "session"),
    figure="audio generated after the interrupt",
    unit="ms",
    judge=_judge,
    counts_audio=True,
    thresholds=(
        Threshold("allowed-ms", 200, "ms", "audio that may still be made until the cancel arrives"),
    ),
)
