"""The second ledger: what a realtime model made and its server holds, as against what was sent.

Events in, `Realtime` out. A message's audio is counted on the model's side, before any resampling;
what was captured and sent of it comes from the segments that play it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from probe.trace.events import (
    CancelSent,
    ContextSeen,
    Event,
    GenerationCounted,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    MessagePulled,
    RealtimeTapped,
    ResponseCreated,
    ResponseEnded,
    SpeechCommitted,
    SpeechDone,
    TruncateSent,
)
from reports.realtime.conversation import Side, conversation
from reports.results import (
    Amount,
    BargeIn,
    Cancel,
    GenerationStop,
    Length,
    Moment,
    Realtime,
    RealtimeMessage,
    Response,
    Segment,
    Sound,
)
from reports.units import NS_PER_MS, ns_text, one_rate

__all__ = [
    "SAME_STEP_NS",
    "RealtimeAccount",
    "sessions_with_other_ids",
    "story_with_the_model",
    "with_messages",
]

SAME_STEP_NS: Final = 20_000_000
"""How far apart stamps may lie that one step of the loop made: an interrupt, its commit and the
cancel that goes with it are written down in no certain order."""


@dataclass(slots=True)
class _Message:
    """What the events say of one message; times in nanoseconds."""

    id: str
    seen_ns: int
    """The first event that names it."""
    response: int | None = None
    speech: str | None = None
    created: MessageCreated | None = None
    pulled_ns: int | None = None
    opened_ns: int | None = None
    audio: list[MessageAudio] = field(default_factory=list)
    counts: list[GenerationCounted] = field(default_factory=list)
    truncated: TruncateSent | None = None

    @property
    def first_audio_ns(self) -> int | None:
        return next((each.at_ns for each in self.audio if each.frames), None)

    @property
    def read_samples(self) -> int:
        return sum(each.samples for each in self.audio)

    @property
    def rates_hz(self) -> set[int]:
        counted = {each.rate_hz for each in self.counts if each.rate_hz is not None}
        return counted | {each.rate_hz for each in self.audio if each.samples}

    @property
    def generated_samples(self) -> int | None:
        """Generated as far as it was seen or counted; ``None``: it could not be asked."""
        if any(each.ended for each in self.audio):
            return self.read_samples
        if not self.counts or self.counts[-1].unread_samples is None:
            return None
        return max(_total(self.counts[-1]) or 0, self.read_samples)


@dataclass(slots=True)
class _Response:
    """What the events say of one response."""

    created: ResponseCreated
    ended: ResponseEnded | None = None
    cancelled: bool | None = None

    @property
    def ended_ns(self) -> int | None:
        return None if self.ended is None else self.ended.at_ns

    def over_at(self, at_ns: int) -> bool:
        return self.ended is not None and self.ended.at_ns <= at_ns


@dataclass(slots=True)
class _Played:
    """What of the messages reached the sink and the wire."""

    tapped: frozenset[str]
    segments: dict[str, list[Segment]]
    """Message to the segments that play it."""
    nameless: set[str | None]
    """Speeches with audio of which it can't be told whose it is."""

    @classmethod
    def of(cls, segments: Sequence[Segment], tapped: frozenset[str]) -> _Played:
        named: dict[str, list[Segment]] = {}
        nameless: set[str | None] = set()
        for segment in segments:
            if segment.message_id is None:
                nameless.add(segment.speech_id)
            else:
                named.setdefault(segment.message_id, []).append(segment)
        return cls(tapped, named, nameless)

    def by(
        self, message: _Message, speech: str | None
    ) -> tuple[list[Segment], Amount | None, Amount | None]:
        """Segments of a message, and what was captured and sent of it; ``None``: not tapped, or
        its speech has audio that may be this message's."""
        mine = self.segments.get(message.id, [])
        doubtful = bool(self.nameless) if speech is None else speech in self.nameless
        if doubtful and (message.pulled_ns is not None or message.audio):
            return mine, None, None
        captured = _amount([s.captured for s in mine], mine, "captured")
        sent = _amount([s.sent for s in mine], mine, "pushed")
        return (
            mine,
            captured if "captured" in self.tapped else None,
            sent if "sent" in self.tapped else None,
        )


class RealtimeAccount:
    """The realtime events of a trace, sorted out once."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.models: list[str] = []
        self.responses: dict[int, _Response] = {}
        self.messages: dict[str, _Message] = {}
        self.cancels: list[CancelSent] = []
        self.local = Side()
        self.servers: dict[int | None, Side] = {}
        self.interrupts: dict[str, int] = {}
        """Speech to when it became interrupted."""
        events = tuple(events)
        for event in events:
            self._take(event)
        self._other_ids = sessions_with_other_ids(events)
        self._messages_of: dict[int | None, list[_Message]] = {}
        self._responses_of: dict[str | None, list[_Response]] = {}
        self._cancels_of: dict[str | None, list[CancelSent]] = {}
        self._cancels_on: dict[int, list[CancelSent]] = {}
        self._begun: dict[str | None, list[tuple[int, str]]] = {}
        self._index()

    def _index(self) -> None:
        """What is asked for once per response, speech or segment, so that it is found at once."""
        for message in self.messages.values():
            self._messages_of.setdefault(message.response, []).append(message)
            if message.first_audio_ns is not None:
                begun = self._begun.setdefault(self.speech_of(message), [])
                begun.append((message.first_audio_ns, message.id))
        for read in self._begun.values():
            read.sort()
        for response in self.responses.values():
            self._responses_of.setdefault(response.created.speech, []).append(response)
        for cancel in self.cancels:
            self._cancels_of.setdefault(cancel.speech, []).append(cancel)
            for number in set(cancel.hits):
                self._cancels_on.setdefault(number, []).append(cancel)

    @property
    def seen(self) -> bool:
        """Whether the trace shows a session of a realtime model at all."""
        return bool(self.models or self.responses or self.messages or self.cancels)

    # --- Events -----------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        if isinstance(event, RealtimeTapped):
            self.models.append(event.model)
        elif isinstance(event, ResponseCreated):
            self.responses.setdefault(event.response, _Response(event))
        elif isinstance(event, ResponseEnded):
            self._end(event)
        elif isinstance(event, CancelSent):
            # The provider may never have heard of one that raised.
            if event.end != "raised":
                self.cancels.append(event)
        elif isinstance(event, ContextSeen):
            side = self.local if event.side == "local" else self._server(event.session)
            side.see(event)
        elif isinstance(event, SpeechCommitted) or (
            isinstance(event, SpeechDone) and event.interrupted
        ):
            self.interrupts.setdefault(event.speech, event.at_ns)
        else:
            self._take_message(event)

    def _take_message(self, event: Event) -> None:
        if isinstance(event, MessageCreated):
            message = self._message(event.message, event.at_ns, event.response)
            message.created = message.created or event
        elif isinstance(event, MessagePulled):
            message = self._message(event.message, event.at_ns, event.response)
            message.pulled_ns = event.at_ns if message.pulled_ns is None else message.pulled_ns
        elif isinstance(event, MessageOpened):
            message = self._message(event.message, event.at_ns)
            message.opened_ns = event.at_ns if message.opened_ns is None else message.opened_ns
            message.speech = message.speech or event.speech
        elif isinstance(event, MessageAudio):
            self._message(event.message, event.at_ns).audio.append(event)
        elif isinstance(event, GenerationCounted):
            self._message(event.message, event.at_ns, event.response).counts.append(event)
        elif isinstance(event, TruncateSent) and event.end != "raised":
            self._message(event.message, event.at_ns).truncated = event

    def _message(self, name: str, at_ns: int, response: int | None = None) -> _Message:
        message = self.messages.setdefault(name, _Message(name, at_ns))
        if message.response is None:
            message.response = response
        return message

    def _end(self, event: ResponseEnded) -> None:
        response = self.responses.get(event.response)
        if response is None:
            return
        response.ended = response.ended or event
        if event.cancelled is not None:
            response.cancelled = event.cancelled

    def _server(self, session: int | None) -> Side:
        return self.servers.setdefault(session, Side())

    # --- What belongs to what ---------------------------------------------------------------------

    def speech_of(self, message: _Message) -> str | None:
        """Speech that plays a message; ``None``: it can't be told, or none does."""
        response = self.responses.get(message.response or 0)
        return (None if response is None else response.created.speech) or message.speech

    def message_of_segment(self, speech: str | None, started_ns: int) -> str | None:
        """Message a segment plays: a speech plays its messages one after the other, so it is the
        one whose audio it began to read last. ``None``: it had read none."""
        begun = self._begun.get(speech, []) if speech is not None else []
        nth = bisect_right(begun, started_ns, key=lambda read: read[0])
        return begun[nth - 1][1] if nth else None

    # --- The account ------------------------------------------------------------------------------

    def result(self, segments: Sequence[Segment], tapped: frozenset[str]) -> Realtime | None:
        """The account.

        Args:
            segments: of the whole trace, with their messages.
            tapped: boundaries that were.

        Returns:
            ``None`` where the trace shows no realtime session.
        """
        if not self.seen:
            return None
        ordered = sorted(self.messages.values(), key=lambda m: m.seen_ns)
        played = _Played.of(segments, tapped)
        messages = tuple(self._message_result(each, played) for each in ordered)
        return Realtime(
            model=", ".join(dict.fromkeys(model for model in self.models if model)),
            responses=tuple(self._response_result(each) for each in self.responses.values()),
            messages=messages,
            cancels=tuple(
                Cancel(each.at_ns, each.speech, tuple(each.hits)) for each in self.cancels
            ),
            stops=tuple(self._stops()),
            conversation=conversation(self.local, self.servers.values(), messages),
        )

    def _message_result(self, message: _Message, played: _Played) -> RealtimeMessage:
        speech = self.speech_of(message)
        mine, captured, sent = played.by(message, speech)
        created = message.created
        truncated = message.truncated
        audio = [each for each in message.audio if each.frames]
        server, local = self._sides(message)
        return RealtimeMessage(
            id=message.id,
            response=message.response,
            speech_id=speech,
            created_ns=None if created is None else created.at_ns,
            created_by=None if created is None else created.by,
            pulled_ns=message.pulled_ns,
            opened_ns=message.opened_ns,
            first_audio_ns=message.first_audio_ns,
            last_audio_ns=audio[-1].until_ns if audio else None,
            generated=_sound(message.generated_samples, message.rates_hz),
            read=_certain(message.read_samples, message.rates_hz),
            segments=tuple(s.index for s in mine),
            captured=captured,
            sent=sent,
            truncated_to_ns=None if truncated is None else truncated.audio_end_ms * NS_PER_MS,
            truncated_ns=None if truncated is None else truncated.at_ns,
            sent_position=None if sent is None else Length(sent.samples, sent.rate_hz),
            on_server=server,
            in_history=local,
        )

    def _sides(self, message: _Message) -> tuple[bool | None, bool | None]:
        """Whether the server and the local history hold a message in the end."""
        session = self._session_of(message)
        side = self.servers.get(session)
        server = None if side is None else side.knows(message.id, message.seen_ns)
        local = self.local.knows(message.id, message.seen_ns)
        if session in self._other_ids:
            # Each side may have it under an id of its own.
            return server or None, local or None
        return server, local

    def _session_of(self, message: _Message) -> int | None:
        """The session whose server's side should hold a message: its response's, where that is
        known and was looked at."""
        response = self.responses.get(message.response or 0)
        if response is not None and response.created.session in self.servers:
            return response.created.session
        holding = [number for number, side in self.servers.items() if message.id in side.roles]
        return next(iter(holding or self.servers), None)

    def _response_result(self, response: _Response) -> Response:
        created = response.created
        messages = self._messages_of.get(created.response, [])
        cancels = self._cancels_on.get(created.response)
        return Response(
            number=created.response,
            id=created.id,
            speech_id=created.speech,
            user_initiated=created.user_initiated,
            created_ns=created.at_ns,
            ended_ns=response.ended_ns,
            ended_by=None if response.ended is None else response.ended.by,
            cancelled=response.cancelled,
            cancel_ns=cancels[0].at_ns if cancels else None,
            messages=tuple(message.id for message in messages),
            generated=_together(
                [_sound(m.generated_samples, m.rates_hz) for m in messages]
                if messages
                else [_certain(0, ()) if _came_to_nothing(response) else None]
            ),
        )

    # --- How generation was stopped ---------------------------------------------------------------

    def _stops(self) -> Iterable[GenerationStop]:
        for speech, at_ns in self.interrupts.items():
            mine = self._responses_of.get(speech)
            if mine:
                yield self._stop(speech, at_ns, mine)

    def _stop(self, speech: str, at_ns: int, responses: Sequence[_Response]) -> GenerationStop:
        cancel = self._cancel_for(speech, at_ns, responses)
        ends = [r.ended_ns for r in responses]
        ended = None if None in ends else max(end for end in ends if end is not None)
        generated = [self._generated_after(r, at_ns) for r in responses]
        after = None if cancel is None else _after_end_ns(cancel, responses)
        return GenerationStop(
            speech_id=speech,
            responses=tuple(r.created.response for r in responses),
            interrupt_ns=at_ns,
            under_way=self._under_way(responses, at_ns, generated),
            ended_ns=ended,
            cancel_ns=None if cancel is None else cancel.at_ns,
            cancel_after_interrupt_ns=None if cancel is None else cancel.at_ns - at_ns,
            cancel_after_end_ns=after,
            hit=() if cancel is None else tuple(cancel.hits),
            generated_after=_together(generated),
            generating_ns=None if ended is None else max(ended - at_ns, 0),
        )

    def _cancel_for(
        self, speech: str, at_ns: int, responses: Sequence[_Response]
    ) -> CancelSent | None:
        """The first cancel that goes with an interrupt, or an earlier one that was to stop a
        response which had not ended yet."""
        meant: list[CancelSent] = [*self._cancels_of.get(speech, ())]
        for response in responses:
            meant += self._cancels_on.get(response.created.response, ())
        going = {r.created.response for r in responses if not r.over_at(at_ns)}
        for cancel in sorted(meant, key=lambda cancel: cancel.at_ns):
            if cancel.at_ns >= at_ns - SAME_STEP_NS or (going and going <= set(cancel.hits)):
                return cancel
        return None

    def _under_way(
        self, responses: Sequence[_Response], at_ns: int, generated: Sequence[Sound | None]
    ) -> bool | None:
        states: list[bool | None] = []
        for response, after in zip(responses, generated, strict=True):
            if response.created.at_ns > at_ns or response.over_at(at_ns):
                states.append(False)
            elif response.ended is not None or (after is not None and after.samples):
                states.append(True)
            else:
                states.append(True if self._can_be_asked(response) else None)
        if True in states:
            return True
        return None if None in states else False

    def _can_be_asked(self, response: _Response) -> bool:
        """Whether this plugin's streams say what lies in them unread."""
        messages = self._messages_of.get(response.created.response, ())
        counts = [count for message in messages for count in message.counts]
        return bool(counts) and all(count.unread_samples is not None for count in counts)

    def _generated_after(self, response: _Response, at_ns: int) -> Sound | None:
        """Audio of a response generated after an interrupt; ``None``: it can't be known."""
        if response.over_at(at_ns):
            return _certain(0, ())
        messages = self._messages_of.get(response.created.response)
        if not messages:
            return _certain(0, ()) if _came_to_nothing(response) else None
        askable = self._can_be_asked(response)
        sounds: list[Sound | None] = []
        for message in messages:
            before = _generated_until(message, at_ns, askable)
            total = message.generated_samples
            if before is None or total is None:
                return None
            sounds.append(_certain(max(total - before, 0), message.rates_hz))
        after = _together(sounds)
        looked = any(
            count.at_ns > at_ns + SAME_STEP_NS for message in messages for count in message.counts
        )
        # Of a trace that was cut before anybody counted again, nothing seen is no zero.
        if after is not None and not after.samples and response.ended is None and not looked:
            return None
        return after


def sessions_with_other_ids(events: Iterable[Event]) -> frozenset[int]:
    """Sessions whose provider's side has its messages under other ids than the model's streams, or
    never has them: not one that came in a stream was ever found there. What one of them lacks can't
    be told by its ids."""
    session_of: dict[int | None, int] = {}
    streamed: dict[int, set[str]] = {}
    held: set[str] = set()
    looked: set[int | None] = set()
    for event in events:
        if isinstance(event, ResponseCreated):
            session_of.setdefault(event.response, event.session)
        elif isinstance(event, MessageCreated) and event.by == "event":
            held.add(event.message)
        elif isinstance(event, MessagePulled | MessageCreated):
            from_stream = isinstance(event, MessagePulled) or event.by == "stream"
            if from_stream and event.response in session_of:
                streamed.setdefault(session_of[event.response], set()).add(event.message)
        elif isinstance(event, ContextSeen) and event.side == "server":
            held.update(item for item, _ in event.added)
            looked.add(event.session)
    return frozenset(
        number for number, items in streamed.items() if number in looked and not items & held
    )


def with_messages(
    account: RealtimeAccount, segments: Sequence[Segment], first_ns: Sequence[int]
) -> tuple[Segment, ...]:
    """Segments with the message each of them plays."""
    return tuple(
        replace(segment, message_id=account.message_of_segment(segment.speech_id, at_ns))
        for segment, at_ns in zip(segments, first_ns, strict=True)
    )


def story_with_the_model(barge_in: BargeIn, realtime: Realtime | None) -> tuple[Moment, ...]:
    """The story of a barge-in, with what the realtime model was told and when it stopped."""
    stops = realtime.stops if realtime is not None and barge_in.commit_ns is not None else ()
    stop = next((s for s in stops if s.speech_id == barge_in.speech_id), None)
    if stop is None or realtime is None:
        return barge_in.story
    more = [(stop.cancel_ns, "cancel sent to the realtime model")]
    if stop.ended_ns is not None and stop.ended_ns > stop.interrupt_ns:
        more.append((stop.ended_ns, "the realtime model's response ends"))
    more += [
        (m.truncated_ns, f"its message is truncated at {ns_text(m.truncated_to_ns or 0, 0)}")
        for m in realtime.messages
        if m.speech_id == stop.speech_id
    ]
    told = [Moment(text, at_ns) for at_ns, text in more if at_ns is not None]
    return tuple(sorted((*barge_in.story, *told), key=lambda moment: moment.at_ns))


def _generated_until(message: _Message, at_ns: int, askable: bool) -> int | None:
    """Samples of a message that existed when its speech became interrupted."""
    if any(each.ended and each.until_ns <= at_ns for each in message.audio):
        return message.read_samples
    near = [
        count
        for count in message.counts
        if count.why in ("interrupt", "cancel") and abs(count.at_ns - at_ns) <= SAME_STEP_NS
    ]
    if near:
        return _total(min(near, key=lambda count: abs(count.at_ns - at_ns)))
    if message.created is None or message.seen_ns < at_ns:
        return None
    # One that was only seen later may have been there already, unless its stream would have shown.
    return 0 if message.created.by == "event" or askable else None


def _total(count: GenerationCounted) -> int | None:
    return None if count.unread_samples is None else count.read_samples + count.unread_samples


def _came_to_nothing(response: _Response) -> bool:
    """Whether a response without a message is known to have had none: its stream was seen whole."""
    return response.ended is not None and response.ended.by != "metrics"


def _after_end_ns(cancel: CancelSent, responses: Sequence[_Response]) -> int | None:
    """How long after the end of the responses it was meant for a cancel went out."""
    ends = [r.ended_ns for r in responses if r.created.at_ns <= cancel.at_ns]
    known = [end for end in ends if end is not None]
    return cancel.at_ns - max(known) if known and len(known) == len(ends) else None


def _sound(samples: int | None, rates_hz: Iterable[int]) -> Sound | None:
    return None if samples is None else _certain(samples, rates_hz)


def _certain(samples: int, rates_hz: Iterable[int]) -> Sound:
    return Sound(samples, one_rate(rates_hz))


def _together(sounds: Sequence[Sound | None]) -> Sound | None:
    """Several sounds as one; ``None``: one of them is not known."""
    known = [sound for sound in sounds if sound is not None]
    if len(known) != len(sounds):
        return None
    rates = {sound.rate_hz for sound in known if sound.samples}
    # One unknown rate makes the length of all unknown.
    named = {rate for rate in rates if rate is not None} if None not in rates else set()
    return _certain(sum(sound.samples for sound in known), named)


def _amount(
    parts: Sequence[Amount | None], segments: Sequence[Segment], boundary: str
) -> Amount | None:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    samples = sum(part.samples for part in known)
    rates = {g.rate_hz for s in segments for g in s.geometry.get(boundary, ())}
    return Amount(sum(part.frames for part in known), samples, one_rate(rates))
