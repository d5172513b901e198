"""The position a message was truncated at on the provider's side, against what was sent of it; or
a message that was cut and never truncated, so that the provider holds it whole."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.conversation import Conversation, told
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import Length, RealtimeMessage
from reports.units import ns_text

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    conversation = Conversation(case)
    doubt = case.resolution_ns() + limits["tolerance-ms"]
    for message in case.realtime.messages if case.realtime is not None else ():
        sent_ns = None if message.sent_position is None else message.sent_position.ns
        if sent_ns is None or any(case.segments[s - 1].partial for s in message.segments):
            if message.truncated_to_ns is not None:
                yield Unjudged(f"how much of message {message.id} was sent can't be told")
            continue
        held_ns = message.truncated_to_ns
        if held_ns is None:
            held_ns = _whole(case, conversation, message)
        if held_ns is None or abs(held_ns - sent_ns) <= doubt:
            continue
        by = held_ns - sent_ns
        side = "more" if by > 0 else "less"
        facts = {
            "message": message.id,
            "speech": message.speech_id,
            "response": message.response,
            "truncated_to_ns": message.truncated_to_ns,
            "sent_ns": sent_ns,
            "allowed_ns": doubt,
        }
        if message.truncated_ns is not None:
            facts["sent_by_then_ns"] = _sent_by(case, message, message.truncated_ns)
            text = (
                f"Message {message.id} was truncated at {ns_text(held_ns, 0)}, {ns_text(abs(by))} "
                f"{side} than the {ns_text(sent_ns)} that were sent of it."
            )
            cause, remedy = "", ""
        else:
            text = (
                f"Message {message.id} was cut after {ns_text(sent_ns)} and never truncated: the "
                f"provider holds the {ns_text(held_ns)} it had generated."
            )
            cause = (
                "The agent did not count the message as partly played when it was interrupted, so "
                "it told the provider nothing."
            )
            remedy = (
                "Truncate every message that was begun and not played to its end; see where the "
                "session decides what is partial."
            )
        yield Found(
            message=text,
            figure=abs(by),
            segment=message.segments[-1] if message.segments else None,
            moments=(
                *told(case, message),
                *(
                    moment
                    for s in message.segments
                    for moment in case.sinks.moments(case.first_ns[s - 1], _finish(case, s - 1))
                ),
            ),
            facts=facts,
            cause=cause,
            remedy=remedy,
        )


def _whole(case: Case, conversation: Conversation, message: RealtimeMessage) -> int | None:
    """What the provider holds of a message that was cut and not truncated; ``None``: nothing more
    than was played, or it can't be told or truncated."""
    speech = case.session.speeches.get(message.speech_id or "")
    tap = conversation.session(message)
    if speech is None or speech.committed_ns is None or tap is None or not tap.can_truncate:
        return None
    if message.generated is None or message.sent is None or not message.sent.samples:
        return None
    held = conversation.held(message)
    if held is None or not held.server or case.gaps is not None:
        return None
    return message.generated.ns


def _sent_by(case: Case, message: RealtimeMessage, at: int) -> int:
    """How much of a message had been sent at an instant."""
    lengths = (
        Length(case.wire.left(s - 1, -FOREVER, at).samples, case.pushed_rate_hz(s - 1))
        for s in message.segments
    )
    return sum(length.ns or 0 for length in lengths)


def _finish(case: Case, row: int) -> int:
    finished = case.segments[row].finished_ns
    return case.first_ns[row] if finished is None else finished


RULE = Rule(
    name="truncation-off",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "The message is truncated at the sink's playback position, which is reckoned from a clock "
        "and not from what was sent, or audio of it still went out after that; see position-off "
        "and leak-after-verdict beside this."
    ),
    remedy=(
        "Truncate at what the source has sent once it is cleared; see where the session turns the "
        "playback position into audio_end_ms."
    ),
    needs=("realtime", "captured", "pushed", "sent", "all sent", "balance"),
    figure="what the provider holds of it, less what was sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(Threshold("tolerance-ms", 20, "ms", "allowed beside the resolution"),),
)
