"""A message of which audio was sent, and which one side of the conversation lacks: the provider's,
the local history, or both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.findings.case import Case
from reports.findings.conversation import Conversation, told
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.verdicts.explanations import measured

__all__ = ["RULE"]

_WHY: Final = {
    "server": (
        "The provider was sent a context without the message, or the message was deleted with what "
        "was cut off it: the model does not know that it said this.",
        "Send the provider a context only when the history has every message that was heard; see "
        "the order in which the session commits messages and calls update_chat_ctx.",
    ),
    "local": (
        "The session commits a message only with text, and the text that had been forwarded when "
        "it was cut was empty, or the task ended before it committed: the next agent and every "
        "tool that reads the history do not know of it.",
        "Commit what was heard by its audio, not by its text; see where the session adds the "
        "messages of a realtime response to the history.",
    ),
    "both": (
        "The message was never committed to the history, and the provider was sent that history: "
        "what the caller heard is nowhere.",
        "Commit what was heard before the provider's context is replaced by the history.",
    ),
}
"""Cause and remedy by the side that lacks it."""

_LACKS: Final = {
    "server": "the provider's conversation lacks it",
    "local": "the local history lacks it",
    "both": "neither the provider's conversation nor the local history has it",
}


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    conversation = Conversation(case)
    least_ns = max(case.resolution_ns(), limits["least-ms"])
    for message in case.realtime.messages if case.realtime is not None else ():
        sent = message.sent
        if sent is None or not sent.samples:
            continue
        held = conversation.held(message)
        if held is None or (sent.ns is not None and sent.ns <= least_ns):
            continue
        if held.server is False and held.local is False:
            if held.was_on_both:
                continue
            lacking = "both"
        elif held.server is False or held.local is False:
            lacking = "server" if held.server is False else "local"
        else:
            if held.server is None or held.local is None:
                yield Unjudged(held.unseen(message.id))
            continue
        cause, remedy = _WHY[lacking]
        yield Found(
            message=(f"{measured(sent)} of message {message.id} were sent, and {_LACKS[lacking]}."),
            figure=sent.ns or 0,
            segment=message.segments[0] if message.segments else None,
            samples=sent.samples,
            moments=(*told(case, message), (held.at_ns, _LACKS[lacking])),
            facts={
                "message": message.id,
                "speech": message.speech_id,
                "response": message.response,
                "missing": lacking,
                "on_server": held.server,
                "in_history": held.local,
                "truncated_to_ns": message.truncated_to_ns,
            },
            severity="warning" if lacking == "local" else "error",
            cause=cause,
            remedy=remedy,
        )


RULE = Rule(
    name="lost-message",
    severity="error, warning where only the history lacks it",
    looks_for=plain(__doc__),
    cause=(
        "The session commits a message by its text and takes messages off the provider's side by "
        "the history, so that what has no text yet is on one side only or on none."
    ),
    remedy=(
        "Commit what was heard by its audio, and before the provider's context is replaced; see "
        "where the session adds the messages of a realtime response to the history."
    ),
    needs=("realtime", "captured", "sent", "session", "every event"),
    figure="audio of it that was sent",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(
        Threshold(
            "least-ms", 0, "ms", "a message of which no more was sent is let pass; a block is so"
        ),
    ),
)
