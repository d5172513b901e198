"""A realtime model in front of the simulated sink: traces of it, in virtual time.

`Provider` keeps a conversation of its own, as a server does: a message is in it from the moment it
is created. What it generates lies unread until `play` hands it to the sink. Nothing happens by
itself, so every defect is one call left out or one too many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from probe.trace.events import (
    CancelSent,
    ContextSeen,
    Event,
    GenerationCounted,
    InterruptCalled,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    MessagePulled,
    RealtimeTapped,
    ResponseCreated,
    ResponseEnded,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    TruncateSent,
)
from tests.report_traces import Simulation


@dataclass
class _Made:
    """A message as the provider knows it, in samples of the sink's rate."""

    response: int
    generated: int = 0
    read: int = 0
    ended: bool = False


@dataclass
class Provider:
    """A scripted realtime model and the session's dealings with it."""

    sim: Simulation = field(default_factory=Simulation)
    askable: bool = True
    """Whether the streams say what lies in them unread."""
    can_truncate: bool = True
    can_edit_context: bool = True

    def __post_init__(self) -> None:
        self.messages: dict[str, _Made] = {}
        self.speeches: dict[int, str | None] = {}
        self.open: list[int] = []
        self.server: dict[str, str] = {}
        self.local: dict[str, str] = {}
        self._seen: dict[str, dict[str, str]] = {"server": {}, "local": {}}
        self.sim.happens(
            RealtimeTapped,
            1,
            "scripted",
            self.can_truncate,
            self.can_edit_context,
            True,
        )

    # What the provider does

    def respond(self, speech: str | None = "s1", **fields: Any) -> int:
        """A response begins, and with it the speech that plays it."""
        number = len(self.speeches) + 1
        if speech is not None and speech not in self.speeches.values():
            self.sim.happens(SpeechCreated, speech, "generate_reply")
        self.speeches[number] = speech
        self.open.append(number)
        fields = {"id": f"resp_{number}", "speech": speech, "user_initiated": False, **fields}
        self.sim.happens(ResponseCreated, number, 1, **fields)
        return number

    def create(self, message: str, response: int | None = None, **fields: Any) -> None:
        """A message begins: the server holds it from here on."""
        self.messages[message] = _Made(response or len(self.speeches))
        self.server[message] = "assistant"
        owner = self.messages[message].response
        self.sim.happens(MessageCreated, message, **{"response": owner, **fields})

    def generate(self, message: str, samples: int) -> None:
        self.messages[message].generated += samples

    def end(self, response: int | None = None, by: str = "closed", **fields: Any) -> None:
        """A response ends: its streams close."""
        number = response or len(self.speeches)
        for message in self.messages.values():
            message.ended = message.ended or message.response == number
        self.sim.happens(ResponseEnded, number, by, **fields)
        self.count("ended", [number])
        self.open.remove(number)

    # What the agent does

    def pull(self, message: str) -> None:
        self.sim.happens(MessagePulled, message, self.messages[message].response)

    def opens(self, message: str) -> None:
        self.sim.happens(MessageOpened, message, self.speeches[self.messages[message].response])

    def play(self, message: str, samples: int, frame: int = 480, *, last: bool = False) -> None:
        """Reads this much, generated if it is not yet, and captures it frame by frame."""
        made = self.messages[message]
        speech = self.speeches[made.response]
        made.generated = max(made.generated, made.read + samples)
        for begin in range(0, samples, frame):
            size = min(frame, samples - begin)
            made.read += size
            ended = last and begin + size == samples
            at = self.sim.now + 1000
            self.sim.happens(MessageAudio, at, message, 1, size, self.sim.rate_hz, ended=ended)
            self.sim.capture(size, speech)

    def interrupt(self, speech: str = "s1", by: str = "programmatic") -> None:
        self.sim.happens(InterruptCalled, speech, by)
        at = self.sim.now
        self.sim.events.append(SpeechCommitted(at, speech))
        self.count("interrupt")

    def cancel(self, speech: str | None = "s1", **fields: Any) -> None:
        """Hits whatever is under way. It does not end it: `end` does."""
        self.sim.happens(CancelSent, 1, speech, **{"hits": list(self.open), **fields})
        self.count("cancel")

    def truncate(self, message: str, audio_end_ms: int) -> None:
        self.sim.happens(TruncateSent, 1, message, audio_end_ms)

    def remember(self, item: str, role: str = "assistant") -> None:
        """The local history takes an item."""
        self.local[item] = role

    def done(self, speech: str = "s1", interrupted: bool = True) -> None:
        """The speech is done: both sides are looked at."""
        self.sim.happens(SpeechDone, speech, interrupted)
        self.count("speech_done")
        self.look(speech)

    # What the probe looks at

    def count(self, why: str, responses: list[int] | None = None) -> None:
        for name, made in self.messages.items():
            if made.response in (self.open if responses is None else responses):
                unread = made.generated - made.read if self.askable else None
                self.sim.happens(
                    GenerationCounted,
                    made.response,
                    name,
                    made.read,
                    unread,
                    self.sim.rate_hz,
                    why=why,
                )

    def look(self, speech: str | None = None) -> None:
        sides = (("server", self.server, 1), ("local", self.local, None))
        for side, now, session in sides:
            before = self._seen[side]
            self.sim.happens(
                ContextSeen,
                side,
                [(item, role) for item, role in now.items() if item not in before],
                [item for item in before if item not in now],
                session,
                speech,
            )
            self._seen[side] = dict(now)

    def finish(self) -> list[Event]:
        """All events; the responses still open are counted and both sides looked at once more."""
        self.count("detached")
        self.look()
        return self.sim.end()
