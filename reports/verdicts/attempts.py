"""Attempts to interrupt: what happened to one speech between its first sign of trouble and the next
resume.

An attempt opens with the first thing that happens to the speech (a pause, a verdict of the model, a
call to interrupt, the commit) and closes with a resume; after the commit it only takes note of what
follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from probe.trace.events import (
    InterruptCalled,
    InterruptedBy,
    OverlapJudged,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
)
from reports.account.crossings import Audio
from reports.results import Outcome, VerdictKind
from reports.verdicts.caller import Turn

__all__ = ["Attempt", "another_began", "find_attempts"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What happened to one speech, and what was decided on it; instants in nanoseconds."""

    speech: str
    first_ns: int
    pause_ns: int | None = None
    overlap_ns: int | None = None
    call_ns: int | None = None
    called_by: InterruptedBy | None = None
    commit_ns: int | None = None
    clear_ns: int | None = None
    resume_ns: int | None = None
    done_ns: int | None = None
    done_interrupted: bool = False
    verdict_ns: int | None = None
    kind: VerdictKind | None = None
    ended_by: Outcome | None = None
    """What stopped the speech, where that is no interruption of the caller's."""
    onset: Turn | None = None
    """The turn of the caller it began with."""
    ignored: bool = False
    """Whether nothing came of it at all: the caller only spoke over the speech."""

    @property
    def committed_ns(self) -> int | None:
        """The commit, or the latest it can have been where only the end of the speech shows it."""
        if self.commit_ns is not None:
            return self.commit_ns
        return self.done_ns if self.done_interrupted else None

    @property
    def open(self) -> bool:
        """Whether what comes next still belongs to this attempt."""
        return self.resume_ns is None and self.committed_ns is None and self.done_ns is None

    @property
    def notes_marks(self) -> bool:
        """Whether a clear or a resume that comes now is a consequence of this attempt."""
        return self.open or self.committed_ns is not None or self.call_ns is not None

    @property
    def onset_ns(self) -> int | None:
        """When the caller started to speak."""
        return None if self.onset is None else self.onset.start_ns

    @property
    def about_ns(self) -> int:
        """The instant it is about: the verdict or, without one, the pause or what came first."""
        for at_ns in (self.verdict_ns, self.pause_ns):
            if at_ns is not None:
                return at_ns
        return self.first_ns


def find_attempts(audio: Audio) -> list[Attempt]:
    """Every attempt of a trace, in order of their first instants; nothing is decided yet."""
    book = _Book(audio)
    owners = {id(mark): owner for mark, owner in audio.ledger.marks}
    for event in audio.trace.events:
        if isinstance(event, SinkMarked):
            owner = owners[id(event)]
            book.mark(event, audio.segment_speech[owner] if owner >= 0 else None)
        elif isinstance(event, OverlapJudged):
            book.judged(event)
        elif isinstance(event, InterruptCalled):
            book.called(event)
        elif isinstance(event, SpeechCommitted):
            book.committed(event)
        elif isinstance(event, SpeechDone):
            book.done(event)
    return book.attempts


def another_began(audio: Audio, attempt: Attempt, at_ns: int) -> bool:
    """Whether another speech's audio came between the attempt and ``at_ns``."""
    low, high = np.searchsorted(audio.ledger.sums.first_ns, (attempt.first_ns, at_ns), "right")
    return any(speech != attempt.speech for speech in audio.segment_speech[low:high])


@dataclass(slots=True)
class _Book:
    """The attempts so far. Where an event is about one, the attempt with it takes its place."""

    audio: Audio
    attempts: list[Attempt] = field(default_factory=list)
    latest: dict[str, int] = field(default_factory=dict)
    """Place of the latest attempt on each speech."""
    stopped: dict[str, int] = field(default_factory=dict)
    """Places of the attempts that a resume may let go on."""
    ended: set[str] = field(default_factory=set)

    def _last(self, speech: str) -> Attempt | None:
        nth = self.latest.get(speech)
        return None if nth is None else self.attempts[nth]

    def _current(self, speech: str, at_ns: int) -> Attempt | None:
        """The attempt an event belongs to, a new one if need be; ``None``: the speech is past it.

        Nothing interrupts a speech a second time.
        """
        attempt = self._last(speech)
        if attempt is not None and attempt.open:
            return attempt
        if attempt is not None and attempt.committed_ns is not None:
            return None
        self.latest[speech] = len(self.attempts)
        self.attempts.append(Attempt(speech, at_ns))
        return self.attempts[-1]

    def _note(self, attempt: Attempt | None, name: str, at_ns: int, **more: Any) -> bool:
        """Take note of an instant, the first of its kind; says whether it is one."""
        if attempt is None or getattr(attempt, name) is not None:
            return False
        more[name] = at_ns
        self.attempts[self.latest[attempt.speech]] = replace(attempt, **more)
        return True

    def mark(self, mark: SinkMarked, segment_speech: str | None) -> None:
        if mark.mark == "pause":
            speech = mark.speech or segment_speech
            if speech is not None:
                self._stop(self._current(speech, mark.at_ns), "pause_ns", mark.at_ns)
        elif mark.mark == "resume":
            # There is one gate: whoever waits behind it goes on.
            for speech, nth in list(self.stopped.items()):
                attempt = self.attempts[nth]
                if attempt.resume_ns is not None or another_began(self.audio, attempt, mark.at_ns):
                    del self.stopped[speech]
                elif attempt.notes_marks:
                    self.attempts[nth] = replace(attempt, resume_ns=mark.at_ns)
        elif mark.mark == "clear":
            for speech in {mark.speech, segment_speech} - {None}:
                last = self._last(speech or "")
                if last is not None and last.notes_marks:
                    self._note(last, "clear_ns", mark.at_ns)

    def _stop(self, attempt: Attempt | None, name: str, at_ns: int) -> None:
        if attempt is not None and self._note(attempt, name, at_ns):
            self.stopped[attempt.speech] = self.latest[attempt.speech]

    def judged(self, event: OverlapJudged) -> None:
        if event.is_interruption and event.speech is not None:
            self._stop(self._current(event.speech, event.at_ns), "overlap_ns", event.at_ns)

    def called(self, event: InterruptCalled) -> None:
        if event.end == "returned" and event.speech not in self.ended:
            attempt = self._current(event.speech, event.at_ns)
            self._note(attempt, "call_ns", event.at_ns, called_by=event.by)

    def committed(self, event: SpeechCommitted) -> None:
        last = self._last(event.speech)
        if last is None or not self._resumed_by_commit(last, event.at_ns):
            last = self._current(event.speech, event.at_ns)
        self._note(last, "commit_ns", event.at_ns)

    def done(self, event: SpeechDone) -> None:
        self.ended.add(event.speech)
        last = self._last(event.speech)
        if last is None and event.interrupted:
            last = self._current(event.speech, event.at_ns)
        self._note(last, "done_ns", event.at_ns, done_interrupted=event.interrupted)

    def _resumed_by_commit(self, attempt: Attempt, commit_ns: int) -> bool:
        """Whether the resume before a commit was only the framework opening the gate again.

        The commit is seen a moment after it happened, so a gate that is opened right behind it
        comes first in the trace. It is no resume where the call to interrupt came before it, or
        where nothing was pushed in between.
        """
        if attempt.resume_ns is None or attempt.committed_ns is not None:
            return False
        if attempt.call_ns is not None:
            return attempt.call_ns <= attempt.resume_ns
        if attempt.done_ns is not None:
            return False
        rows = self.audio.parts(attempt.speech)
        at = self.audio.trace.pushed.at_ns[self.audio.ledger.parts.push[rows]]
        return not bool(((at >= attempt.resume_ns) & (at <= commit_ns)).any())
