"""What both sides of a realtime model's conversation held over time, for the rules about it.

A message is judged at one instant: the first response after its speech was over, because from there
on the model speaks in the belief of what its side holds; or the end of the trace. What is put right
before that hurt nobody, and what is removed later, such as old turns, was not lost.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from probe.trace.events import (
    ContextSeen,
    ContextSent,
    RealtimeTapped,
    RealtimeUntapped,
    ResponseCreated,
)
from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.realtime.account import SAME_STEP_NS, sessions_with_other_ids
from reports.results import GenerationStop, RealtimeMessage, Response
from reports.units import NS_PER_MS, ns_text

__all__ = [
    "Conversation",
    "Held",
    "interrupted_by",
    "segment_at",
    "stopped",
    "told",
    "watched_until",
]

LOOK_NS: Final = 5 * NS_PER_MS
"""A look that belongs to an instant is written right after it."""


@dataclass(frozen=True, slots=True)
class Held:
    """Where a message was when it came to be judged; of a side ``None``: nobody had looked."""

    at_ns: int
    over_ns: int
    """When its speech was over."""
    server: bool | None
    local: bool | None
    was_on_both: bool
    """Whether both sides held it at once before."""
    next_response: int | None
    """Number of the response that began then; ``None``: none did."""
    other_ids: bool = False
    """Whether the provider's side has its messages under ids of its own."""

    def unseen(self, message: str) -> str:
        """Why a side is not known."""
        if self.other_ids:
            return "the provider's side has none of the messages under the ids of their streams"
        side = "provider's" if self.server is None else "local"
        return f"nobody looked at the {side} side after message {message}"


class Conversation:
    """Both sides over time, from the looks of the tap."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._naming: dict[str, list[ContextSeen]] = {}
        self._looked_ns: dict[tuple[str, int | None], list[int]] = {}
        for look in case.trace.events:
            if not isinstance(look, ContextSeen):
                continue
            for session in {look.session, None}:
                self._looked_ns.setdefault((look.side, session), []).append(look.at_ns)
            for item in dict.fromkeys((*(item for item, _ in look.added), *look.removed)):
                self._naming.setdefault(item, []).append(look)
        self._contexts = [e for e in case.trace.events if isinstance(e, ContextSent)]
        self._created = [e for e in case.trace.events if isinstance(e, ResponseCreated)]
        self._session = {e.response: e.session for e in self._created}
        self._taps = {e.session: e for e in case.trace.events if isinstance(e, RealtimeTapped)}
        self._other_ids = sessions_with_other_ids(case.trace.events)
        realtime = case.realtime
        self._responses = {r.number: r for r in realtime.responses} if realtime else {}

    def session(self, message: RealtimeMessage) -> RealtimeTapped | None:
        """The tap on the session a message came from; ``None``: it can't be told."""
        number = self._session.get(message.response or 0)
        if number is None:
            return next(iter(self._taps.values())) if len(self._taps) == 1 else None
        return self._taps.get(number)

    def held(self, message: RealtimeMessage, *, in_the_end: bool = False) -> Held | None:
        """Where a message was when it came to be judged, or in the end; ``None``: its speech was
        never over."""
        over = self._over_ns(message)
        if over is None:
            return None
        tap = self.session(message)
        session = None if tap is None else tap.session
        following = next(
            (
                e
                for e in self._created
                if e.at_ns >= over and session in (None, e.session) and not in_the_end
            ),
            None,
        )
        until = FOREVER if following is None else following.at_ns + LOOK_NS
        since = 0 if message.created_ns is None else message.created_ns
        there = {"server": False, "local": False}
        was_on_both = False
        other_ids = session in self._other_ids
        for look in self._naming.get(message.id, ()):
            other = look.side == "server" and session is not None and look.session != session
            if look.at_ns > until or other:
                continue
            there[look.side] = any(item == message.id for item, _ in look.added)
            was_on_both |= all(there.values())
        sides = {
            side: held
            or (False if not other_ids and self._looked(side, session, since, until) else None)
            for side, held in there.items()
        }
        return Held(
            at_ns=self._case.trace.last_ns if following is None else following.at_ns,
            over_ns=over,
            server=sides["server"],
            local=sides["local"],
            was_on_both=was_on_both,
            next_response=None if following is None else following.response,
            other_ids=other_ids,
        )

    def _looked(self, side: str, session: int | None, since_ns: int, until_ns: int) -> bool:
        """Whether anybody looked at a side in that time; before there was anything to see, a look
        says nothing."""
        looks = self._looked_ns.get((side, session if side == "server" else None), [])
        return bisect_left(looks, since_ns) < bisect_right(looks, until_ns)

    def kept_by(self, message: RealtimeMessage, until_ns: int) -> ContextSent | None:
        """The last context that was sent between the interrupt of a message's speech and an
        instant, if it did not take the message off the provider's side or was not accepted."""
        speech = self._case.session.speeches.get(message.speech_id or "")
        tap = self.session(message)
        if speech is None or speech.committed_ns is None or tap is None:
            return None
        sent = [
            e
            for e in self._contexts
            if e.session == tap.session and speech.committed_ns <= e.at_ns <= until_ns
        ]
        if not sent or (sent[-1].end == "returned" and message.id in sent[-1].removes):
            return None
        return sent[-1]

    def _over_ns(self, message: RealtimeMessage) -> int | None:
        """When nothing more could be played of a message; ``None``: before the end it always could.

        The end of its speech. Where no speech took its response, the end of that. Where it can't be
        told which response it is of, the end of every speech that was there when it was created.
        """
        if message.speech_id is not None:
            speech = self._case.session.speeches.get(message.speech_id)
            return None if speech is None else speech.done_ns
        response = self._responses.get(message.response or 0)
        if response is not None:
            return None if response.ended_ns is None else response.ended_ns
        if message.created_ns is None:
            return None
        created = message.created_ns
        over = created
        for speech in self._case.session.speeches.values():
            if speech.created_ns is not None and speech.created_ns > created:
                continue
            if speech.done_ns is None:
                return None
            over = max(over, speech.done_ns)
        return over


def watched_until(case: Case, responses: Collection[int]) -> int:
    """Until when one of these responses could have been seen to end: until the tap came off the
    last of their sessions, or to the end of the trace."""
    sessions = {
        e.session
        for e in case.trace.events
        if isinstance(e, ResponseCreated) and e.response in responses
    }
    off = {e.session: e.at_ns for e in case.trace.events if isinstance(e, RealtimeUntapped)}
    return max((off.get(session, case.trace.last_ns) for session in sessions), default=0)


def told(case: Case, message: RealtimeMessage) -> list[tuple[int, str]]:
    """The life of a message and of its speech, as moments of evidence."""
    known = (
        (message.created_ns, "created by the provider"),
        (message.pulled_ns, "pulled by the agent"),
        (message.opened_ns, "its audio is asked for"),
        (message.first_audio_ns, "first audio read"),
        (message.last_audio_ns, "last audio read"),
        (message.truncated_ns, f"truncated at {ns_text(message.truncated_to_ns or 0, 0)}"),
    )
    moments = [(at, what) for at, what in known if at is not None]
    speech = case.session.speeches.get(message.speech_id or "")
    if speech is not None and speech.committed_ns is not None:
        moments.append((speech.committed_ns, "the speech is interrupted"))
    if speech is not None and speech.done_ns is not None:
        moments.append((speech.done_ns, "the speech is done"))
    return moments


def stopped(case: Case, stop: GenerationStop, *hit: Response) -> tuple[tuple[int, str], ...]:
    """How the generation of a speech went on after its interrupt, as moments of evidence; with
    other responses that its cancel hit."""
    own = [
        r for r in (case.realtime.responses if case.realtime else ()) if r.number in stop.responses
    ]
    moments = [(stop.interrupt_ns, "the speech is interrupted")]
    for response in (*own, *hit):
        moments.append((response.created_ns, f"response {response.number} begins"))
        if response.ended_ns is not None:
            how = "is over, cancelled" if response.cancelled else "is over"
            moments.append((response.ended_ns, f"response {response.number} {how}"))
    if stop.cancel_ns is not None:
        numbers = ", ".join(str(number) for number in stop.hit)
        what = f"the cancel is sent and hits {numbers or 'none'}"
        moments.append((stop.cancel_ns, what))
    return tuple(moments)


def segment_at(case: Case, speech_id: str | None, at: int) -> int | None:
    """Segment of a speech that was under way at an instant, else its first; from 1."""
    speech = case.session.speeches.get(speech_id or "")
    if speech is None or not speech.segments:
        return None
    begun = [row for row in speech.segments if case.first_ns[row] <= at]
    return (begun[-1] if begun else speech.segments[0]) + 1


def interrupted_by(case: Case, speech_id: str | None, at: int) -> bool:
    """Whether a speech had been interrupted at an instant, or was in the same step."""
    committed = None
    speech = case.session.speeches.get(speech_id or "")
    if speech is not None:
        committed = speech.committed_ns
    return committed is not None and committed <= at + SAME_STEP_NS
