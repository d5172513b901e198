"""Audio the model generated for a speech after it was interrupted, whether it was captured or not:
it is made, and billed, for nobody."""

from __future__ import annotations

from collections.abc import Iterator

from reports.findings.case import FOREVER, Case, at_ns
from reports.findings.conversation import segment_at, stopped
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import GenerationStop
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    for stop in case.realtime.stops if case.realtime is not None else ():
        made = stop.generated_after
        if made is None:
            yield Unjudged(f"how much was generated of {stop.speech_id} can't be asked")
            continue
        if not made.samples or (made.ms is not None and made.ms <= limits["allowed-ms"]):
            continue
        interrupt = at_ns(stop.interrupt_ms)
        entered = case.audio.crossed("captured", stop.speech_id, interrupt, FOREVER)
        cause, remedy = _why(stop)
        lasted = "" if stop.generating_ms is None else f", in {stop.generating_ms:.0f} ms"
        yield Found(
            message=(
                f"{measured(made.samples, made.ms)} of {stop.speech_id} were generated after it "
                f"was interrupted{lasted}."
            ),
            figure=made.ms or 0.0,
            segment=segment_at(case, stop.speech_id, interrupt),
            samples=made.samples,
            moments=stopped(case, stop),
            facts={
                "speech": stop.speech_id,
                "responses": list(stop.responses),
                "generating_ms": stop.generating_ms,
                "cancel_after_interrupt_ms": stop.cancel_after_interrupt_ms,
                "captured_samples": entered.samples if "captured" in case.tapped else None,
            },
            cause=cause,
            remedy=remedy,
        )


def _why(stop: GenerationStop) -> tuple[str, str]:
    if stop.cancel_ms is None:
        return (
            "No cancel was sent: the response was generated to its own end.",
            "See cancel-missing beside this.",
        )
    if (stop.cancel_after_end_ms or 0.0) > 0:
        return (
            "The cancel came when the response had been generated to its end.",
            "Send the cancel when the speech becomes interrupted, not when its task is done.",
        )
    after = stop.cancel_after_interrupt_ms or 0.0
    rest = (stop.generating_ms or 0.0) - after
    if stop.generating_ms is None or rest >= after:
        return (
            f"The cancel went out {after:.0f} ms after the interrupt, and the provider went on "
            "generating after it.",
            "What a provider makes until a cancel reaches it is its own; see how the plugin sends "
            "the cancel and whether it waits for something first.",
        )
    return (
        f"The cancel went out only {after:.0f} ms after the interrupt.",
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
