"""The second ledger: what the provider of a realtime model holds."""

from __future__ import annotations

from dataclasses import dataclass

from reports.results.amounts import Amount, Length, Measured


@dataclass(frozen=True, slots=True)
class Sound(Measured):
    """Audio on the model's side, before any resampling towards the sink. Exact."""

    samples: int
    rate_hz: int | None
    """``None``: there was none, so no rate was seen."""


@dataclass(frozen=True, slots=True)
class RealtimeMessage:
    """A message of a realtime model: what the server made, what the agent did with it."""

    id: str
    response: int | None
    """Number of its response; ``None``: not seen."""
    speech_id: str | None
    """Speech that plays it; ``None``: nobody, or it can't be told."""
    created_ns: int | None
    """When the server had it; ``None``: not seen."""
    created_by: str | None
    """``event``, ``context`` or ``stream``; the last two are late."""
    pulled_ns: int | None
    """When the agent took it from the response's stream; ``None``: never."""
    opened_ns: int | None
    """When the agent asked for its audio; ``None``: never."""
    first_audio_ns: int | None
    last_audio_ns: int | None
    """First and last frame the agent read."""
    generated: Sound | None
    """Read, and what lay unread when it was last counted; ``None`` where that can't be asked."""
    read: Sound
    """What the agent took of its audio."""
    segments: tuple[int, ...]
    """Numbers of the segments that play it."""
    captured: Amount | None
    """``None``: not tapped, or its speech has audio of which it can't be told whose it is."""
    sent: Amount | None
    """``None`` as at ``captured``."""
    truncated_to_ns: int | None
    """Position it was truncated at last; ``None``: it was not, or the call raised."""
    truncated_ns: int | None
    """When."""
    sent_position: Length | None
    """Sent of it, as the truncation should have said; ``None`` as at ``sent``."""
    on_server: bool | None
    """At the last look; ``None``: nobody looked after it was created."""
    in_history: bool | None
    """The same of the local history."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of a realtime model."""

    number: int
    """Counted by the probe, from 1."""
    id: str | None
    """The provider's name for it; ``None``: it gave none."""
    speech_id: str | None
    """``None``: no speech took it."""
    user_initiated: bool | None
    """As the plugin says; ``None``: it says nothing."""
    created_ns: int
    ended_ns: int | None
    """``None``: not seen."""
    ended_by: str | None
    cancelled: bool | None
    """What the plugin's metrics say."""
    cancel_ns: int | None
    """The first cancel that hit it."""
    messages: tuple[str, ...]
    """Their ids, in the order they were created."""
    generated: Sound | None
    """Audio of all its messages; ``None`` where that can't be asked."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel sent to a realtime model. A call that raised is none."""

    at_ns: int
    speech_id: str | None
    hits: tuple[int, ...]
    """Numbers of the responses under way."""


@dataclass(frozen=True, slots=True)
class GenerationStop:
    """How the generation of one interrupted speech was stopped, or was not."""

    speech_id: str
    responses: tuple[int, ...]
    """Numbers of the responses the speech played."""
    interrupt_ns: int
    """When the speech became interrupted."""
    under_way: bool | None
    """Whether a response of it was being generated then; ``None``: its end can't be seen."""
    ended_ns: int | None
    """When the last of its responses ended; ``None``: not seen."""
    cancel_ns: int | None
    """The cancel sent for it: the first of this speech, or one that hit its response; ``None``:
    none was."""
    cancel_after_interrupt_ns: int | None
    """Negative: the cancel came first. ``None``: there was none."""
    cancel_after_end_ns: int | None
    """Negative: in time. ``None``: no cancel, or the end of its responses was not seen."""
    hit: tuple[int, ...]
    """Responses that cancel hit, others' too."""
    generated_after: Sound | None
    """Audio generated after the interrupt; ``None``: can't be asked on this plugin."""
    generating_ns: int | None
    """How long the generation went on after the interrupt; 0: it had ended; ``None``: not seen."""


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """One row of the conversation, as both sides hold it at the end of the trace."""

    id: str
    role: str
    """``user``, ``assistant``, ``system``, ``function_call`` …"""
    server: bool | None
    local: bool | None
    """Whether each side holds it; ``None``: nobody looked at that side."""
    message: RealtimeMessage | None
    """``None``: not of the assistant, or from before the probe."""
    difference: str
    """``""``, ``server only``, ``history only`` or ``neither`` (there once, gone now)."""


@dataclass(frozen=True, slots=True)
class Realtime:
    """The second ledger: what the provider holds as against what was played."""

    model: str
    """As its plugin names it."""
    responses: tuple[Response, ...]
    messages: tuple[RealtimeMessage, ...]
    cancels: tuple[Cancel, ...]
    stops: tuple[GenerationStop, ...]
    """One for each speech that was interrupted."""
    conversation: tuple[ConversationItem, ...]
    """Both sides beside each other, in the order of the server."""
