"""Text committed to the conversation for a segment of which nothing was sent."""

from __future__ import annotations

from collections.abc import Iterator

from probe.trace.events import ItemCommitted
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, plain
from reports.findings.session import Speech
from reports.results import Length
from reports.verdicts.explanations import measured

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    for speech in case.session.speeches.values():
        if not speech.segments:
            continue
        for item, rows in _pairs(speech):
            segments = [case.segments[row] for row in rows]
            if not item.chars or any(s.sent is None or s.partial for s in segments):
                continue
            captured = sum(s.captured.samples for s in segments if s.captured is not None)
            tail = sum(s.tail_samples or 0 for s in segments)
            if captured <= tail or any(len(case.wire.rows(row)) for row in rows):
                continue
            rate = case.captured_rate_hz(rows[0])
            how = "as interrupted" if item.interrupted else "as spoken"
            yield Found(
                message=(
                    f"{item.chars} characters were committed to the conversation {how}, and "
                    f"nothing of {measured(Length(captured, rate))} captured of it "
                    "was sent."
                ),
                figure=float(item.chars),
                segment=rows[0] + 1,
                samples=captured,
                moments=(
                    (case.first_ns[rows[0]], "first frame captured"),
                    *case.sinks.moments(case.first_ns[rows[0]], item.at_ns),
                    (item.at_ns, "the text is committed"),
                ),
                facts={"chars": item.chars, "interrupted": item.interrupted},
            )


def _pairs(speech: Speech) -> Iterator[tuple[ItemCommitted, list[int]]]:
    """Messages with their segments: one by one where there are as many, else with all."""
    if len(speech.items) == len(speech.segments):
        for item, row in zip(speech.items, speech.segments, strict=True):
            yield item, [row]
    else:
        for item in speech.items:
            yield item, speech.segments


RULE = Rule(
    name="committed-unheard",
    severity="error",
    looks_for=plain(__doc__),
    cause=(
        "The session commits the text of a reply by its task, not by what the sink reports as "
        "played; where the sink swallowed the audio, the model believes it was said."
    ),
    remedy=(
        "See where the session adds the assistant's message after playout, and which position it "
        "cuts the text at when nothing was played."
    ),
    needs=("captured", "pushed", "sent", "all sent", "session", "balance"),
    figure="characters committed",
    unit="count",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
)
