"""A message that stands in the provider's conversation, though nothing of it was sent and the local
history does not have it: the model believes it has said what the caller never heard. Told apart:
never pulled, pulled and never opened, opened and never played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from probe.trace.events import ContextSent
from reports.findings.case import Case
from reports.findings.conversation import Conversation, Held, segment_at, told
from reports.findings.rule import Found, Limits, Rule, Unjudged, plain
from reports.results import RealtimeMessage
from reports.verdicts.explanations import measured

__all__ = ["RULE"]

_CLEAN_UP: Final = (
    "When a speech was interrupted, send the provider a context without every message of its "
    "responses of which nothing was played"
)

_WHY: Final = {
    "never pulled": (
        "The agent stopped reading the response's messages when the speech was interrupted; what "
        "it never took it does not know of, so nothing removed it from the provider's side.",
        f"{_CLEAN_UP}, those included that were never pulled; see what the session does with a "
        "response's messages after an interrupt, and when it calls update_chat_ctx.",
    ),
    "pulled, never opened": (
        "The agent took the message from the response and let go of it when it saw that the speech "
        "was interrupted, without counting it among those to remove.",
        f"{_CLEAN_UP}; see where the loop over the response's messages ends on an interrupt, and "
        "whether what it drops counts as skipped.",
    ),
    "opened, never played": (
        "The agent had begun to forward the message, the sink was cleared before any of it was "
        "sent, and nothing removed it from the provider's side.",
        f"{_CLEAN_UP}; see how the session decides that a forwarded message was skipped.",
    ),
}
"""Cause and remedy by how far the message came."""

_KEPT: Final = (
    "A context was sent to the provider when the speech was interrupted, and it still held the "
    "message: what the provider announces is copied into the agent's context, played or not.",
    "Take what was not played out of the agent's context before it is sent; see what the session "
    "does on remote_item_added, and what it hands to update_chat_ctx after an interrupt.",
)

_REFUSED: Final = (
    "The context that was to take the message off the provider's side was not accepted.",
    "Send it again, or start a new session of the model with the local history; see what the "
    "session does when update_chat_ctx raises.",
)

_FIXED: Final = (
    "The provider's context can't be edited, so the agent has no way to take the message back.",
    "Tell the model with the next request what was not heard, or start a new session of it with "
    "the local history.",
)


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    conversation = Conversation(case)
    for message in case.realtime.messages if case.realtime is not None else ():
        if message.sent is not None and message.sent.samples:
            continue
        held = _standing(conversation, message)
        if held is None:
            continue
        if message.sent is None:
            yield Unjudged(f"whether anything was sent of message {message.id} can't be told")
            continue
        if held.server is None or held.local is None:
            yield Unjudged(held.unseen(message.id))
            continue
        how = _how(message)
        made = message.generated or (message.read if message.read.samples else None)
        empty = message.truncated_to_ns == 0 or (made is not None and not made.samples)
        amount = "How much audio it has can't be asked"
        if made is not None:
            amount = f"{measured(made)} of it had been generated"
        if message.truncated_to_ns == 0:
            amount += ", and it was truncated to nothing"
        then = "at the end of the trace"
        if held.next_response is not None:
            then = f"when response {held.next_response} began"
        context = conversation.kept_by(message, held.over_ns)
        cause, remedy = _why(conversation, message, context)
        yield Found(
            message=(
                f"Message {message.id} was {how}; {then} it stood in the provider's conversation "
                f"and not in the local history. {amount}."
            ),
            figure=0 if made is None else made.ns or 0,
            segment=segment_at(case, message.speech_id, held.at_ns),
            samples=None if made is None else made.samples,
            moments=(
                *told(case, message),
                (held.at_ns, "the provider's side has it, the local one has not"),
            ),
            facts={
                "message": message.id,
                "speech": message.speech_id,
                "response": message.response,
                "how": how,
                "generated_ns": None if message.generated is None else message.generated.ns,
                "read_ns": message.read.ns,
                "truncated_to_ns": message.truncated_to_ns,
                "context_sent": None if context is None else context.end,
                "next_response": held.next_response,
                "on_server_at_the_end": message.on_server,
            },
            severity="warning" if empty or held.next_response is None else "error",
            cause=cause,
            remedy=remedy,
        )


def _standing(conversation: Conversation, message: RealtimeMessage) -> Held | None:
    """Where a message stood, or may have stood, on the provider's side alone: when the next
    response began or, for one that came there late, in the end. ``None``: it did not."""
    looks = (conversation.held(message), conversation.held(message, in_the_end=True))
    open_ = [h for h in looks if h is not None and h.server is not False and not h.local]
    sure = [h for h in open_ if h.server and h.local is False]
    return next(iter(sure or open_), None)


def _why(
    conversation: Conversation, message: RealtimeMessage, context: ContextSent | None
) -> tuple[str, str]:
    """Cause and remedy: what stood in the way of taking it back, else how far it came."""
    tap = conversation.session(message)
    if tap is not None and tap.can_edit_context is False:
        return _FIXED
    if context is not None:
        return _KEPT if context.end == "returned" else _REFUSED
    return _WHY[_how(message)]


def _how(message: RealtimeMessage) -> str:
    if message.opened_ns is not None:
        return "opened, never played"
    return "never pulled" if message.pulled_ns is None else "pulled, never opened"


RULE = Rule(
    name="ghost-message",
    severity="error, warning where it holds no audio or no response followed",
    looks_for=plain(__doc__),
    cause=(
        "The provider commits a message when it creates it, the agent plays it later or never, and "
        "after an interrupt it only takes back the messages it knows it skipped."
    ),
    remedy=f"{_CLEAN_UP}, those never pulled included; see when the session calls update_chat_ctx.",
    needs=("realtime", "captured", "sent", "session", "every event"),
    figure="audio of it that is known to have been generated",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
)
