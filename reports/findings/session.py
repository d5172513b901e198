"""What the session's events say of a trace, for the rules: speeches, turns, reports, options."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from probe.trace.events import (
    InterruptCalled,
    ItemCommitted,
    LoopStalled,
    OptionsChanged,
    OverlapJudged,
    PlaybackReported,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
)
from reports.account.boundary import FOREVER
from reports.account.crossings import Audio
from reports.verdicts.caller import Turn, turns_of

__all__ = ["Session", "Speech"]

Kind = TypeVar("Kind")


@dataclass(slots=True)
class Speech:
    """What became of one speech, as the session's events tell it."""

    name: str
    created_ns: int | None = None
    allow_interruptions: bool | None = None
    committed_ns: int | None = None
    """`None`: nobody interrupted it."""
    done_ns: int | None = None
    segments: list[int] = field(default_factory=list)
    """Rows of its segments, from 0."""
    items: list[ItemCommitted] = field(default_factory=list)
    """Its messages of the assistant in the session's history."""


class Session:
    """The events of a session, each kind in order of time. Never changed."""

    def __init__(self, audio: Audio) -> None:
        self._trace = audio.trace
        self._segment_speech = audio.segment_speech

    def _every(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self._trace.events if isinstance(event, kind)]

    @cached_property
    def seen(self) -> bool:
        """Whether the trace shows events of a session at all."""
        kinds = (SpeechCreated, SpeechCommitted, SpeechDone, StateChanged, OptionsChanged)
        return any(isinstance(event, kinds) for event in self._trace.events)

    @cached_property
    def speeches(self) -> dict[str, Speech]:
        """Every speech that was created, captured, interrupted or done, by name."""
        found: dict[str, Speech] = {}

        def known(name: str) -> Speech:
            return found.setdefault(name, Speech(name))

        for event in self._trace.events:
            if isinstance(event, SpeechCreated):
                speech = known(event.speech)
                speech.created_ns = event.at_ns
                speech.allow_interruptions = event.allow_interruptions
            elif isinstance(event, SpeechCommitted):
                speech = known(event.speech)
                if speech.committed_ns is None:
                    speech.committed_ns = event.at_ns
            elif isinstance(event, SpeechDone):
                speech = known(event.speech)
                speech.done_ns = event.at_ns
                if event.interrupted and speech.committed_ns is None:
                    speech.committed_ns = event.at_ns
            elif isinstance(event, ItemCommitted):
                if event.role != "assistant" or event.speech is None:
                    continue
                known(event.speech).items.append(event)
        for row, name in enumerate(self._segment_speech):
            if name is not None:
                known(name).segments.append(row)
        return found

    def speech_of(self, row: int) -> Speech | None:
        """Speech of a segment; ``None`` where code fed the sink itself."""
        name = self._segment_speech[row]
        return None if name is None else self.speeches[name]

    @cached_property
    def turns(self) -> list[Turn]:
        """When the caller spoke, as the session's user state says it."""
        return turns_of(self._trace.events)

    def turn_around(self, at_ns: int, doubt_ns: float) -> Turn | None:
        """The turn that an instant lies in, by more than ``doubt_ns``."""
        nth = bisect_left(self.turns, at_ns - doubt_ns, key=lambda turn: turn.start_ns)
        turn = self.turns[nth - 1] if nth else None
        return turn if turn is not None and at_ns < turn.stop_ns - doubt_ns else None

    @cached_property
    def agent_speaking(self) -> list[tuple[int, int]]:
        """When the agent's state was ``speaking``; `FOREVER` where it still was at the end."""
        spoke: list[tuple[int, int]] = []
        since: int | None = None
        for event in self._every(StateChanged):
            if event.who != "agent":
                continue
            if event.new == "speaking" and since is None:
                since = event.at_ns
            elif event.new != "speaking" and since is not None:
                spoke.append((since, event.at_ns))
                since = None
        if since is not None:
            spoke.append((since, FOREVER))
        return spoke

    @cached_property
    def stalls(self) -> list[tuple[int, int]]:
        """When the session's loop stood still."""
        return [(e.at_ns, e.until_ns) for e in self._every(LoopStalled)]

    def stalls_around(
        self, moments: Iterable[tuple[int, str]], slack_ns: int
    ) -> list[tuple[int, int]]:
        """Stalls of the session's loop that one of the moments lies in, or came right after."""
        times = sorted(at for at, _ in moments)
        found = []
        for begin, end in self.stalls:
            nth = bisect_left(times, begin)
            if nth < len(times) and times[nth] <= end + slack_ns:
                found.append((begin, end))
        return found

    @cached_property
    def reports(self) -> list[PlaybackReported]:
        """Playback events of the sink."""
        return self._every(PlaybackReported)

    @cached_property
    def overlaps(self) -> list[OverlapJudged]:
        """Verdicts of the interruption model."""
        return self._every(OverlapJudged)

    @cached_property
    def transcripts(self) -> list[TranscriptReceived]:
        """What the STT delivered, lengths only."""
        return self._every(TranscriptReceived)

    @cached_property
    def calls(self) -> list[InterruptCalled]:
        """Calls to interrupt a speech."""
        return self._every(InterruptCalled)

    @cached_property
    def _options(self) -> list[OptionsChanged]:
        return self._every(OptionsChanged)

    def options_at(self, at_ns: int) -> Mapping[str, Any]:
        """Options that decided interruptions at an instant."""
        nth = bisect_right(self._options, at_ns, key=lambda changed: changed.at_ns)
        return self._options[nth - 1].options if nth else self._trace.header.options

    def mono_ns(self, unix_s: float) -> int:
        """A wall-clock stamp on the trace's own clock; as good as the machine's wall clock."""
        return round((unix_s - self._trace.header.started_unix_s) * 1e9)
