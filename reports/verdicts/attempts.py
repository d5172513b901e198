"""Attempts on speeches: what happened to each, in order, until it went on or was over."""

from __future__ import annotations

from dataclasses import dataclass

from probe.trace.events import (
    InterruptCalled,
    InterruptedBy,
    OverlapJudged,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
)
from reports.account.boundary import FOREVER
from reports.results import VerdictKind
from reports.verdicts.scene import Scene

__all__ = ["Attempt", "collect"]


@dataclass(slots=True)
class Attempt:
    """What happened to one speech between its first sign of trouble and the next resume."""

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
    onset_ns: int | None = None
    onset_until_ns: int = FOREVER
    verdict_ns: int | None = None
    kind: VerdictKind | None = None
    ignored: bool = False

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
    def about_ns(self) -> int:
        """The instant it is about: the verdict or, without one, the pause or what came first."""
        for at_ns in (self.verdict_ns, self.pause_ns):
            if at_ns is not None:
                return at_ns
        return self.first_ns


def collect(scene: Scene) -> list[Attempt]:
    """Every attempt of a trace, in the order they began."""
    return _Collector(scene).collected()


class _Collector:
    """Goes through the events once, each to the attempt it belongs to."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._latest: dict[str, Attempt] = {}
        self._attempts: list[Attempt] = []
        self._stopped: dict[str, Attempt] = {}  # those that a resume may let go on
        self._ended: set[str] = set()

    def collected(self) -> list[Attempt]:
        owners = {id(mark): owner for mark, owner in self._scene.ledger.marks}
        for event in self._scene.events:
            if isinstance(event, SinkMarked):
                owner = owners[id(event)]
                self._mark(event, self._scene.segment_speech[owner] if owner >= 0 else None)
            elif isinstance(event, OverlapJudged):
                self._overlap(event)
            elif isinstance(event, InterruptCalled):
                self._call(event)
            elif isinstance(event, SpeechCommitted):
                self._commit(event)
            elif isinstance(event, SpeechDone):
                self._done(event)
        return self._attempts

    def _current(self, speech: str, at_ns: int) -> Attempt | None:
        """The attempt an event belongs to, a new one if need be; ``None``: the speech is past it.

        Nothing interrupts a speech a second time.
        """
        attempt = self._latest.get(speech)
        if attempt is not None and attempt.open:
            return attempt
        if attempt is not None and attempt.committed_ns is not None:
            return None
        attempt = self._latest[speech] = Attempt(speech, at_ns)
        self._attempts.append(attempt)
        return attempt

    def _overlap(self, event: OverlapJudged) -> None:
        if not event.is_interruption or event.speech is None:
            return
        attempt = self._current(event.speech, event.at_ns)
        if attempt is not None and attempt.overlap_ns is None:
            attempt.overlap_ns = event.at_ns
            self._stopped[attempt.speech] = attempt

    def _call(self, event: InterruptCalled) -> None:
        if event.end != "returned" or event.speech in self._ended:
            return
        attempt = self._current(event.speech, event.at_ns)
        if attempt is not None and attempt.call_ns is None:
            attempt.call_ns, attempt.called_by = event.at_ns, event.by

    def _commit(self, event: SpeechCommitted) -> None:
        last = self._latest.get(event.speech)
        if last is None or not self._resumed_by_commit(last, event.at_ns):
            last = self._current(event.speech, event.at_ns)
        if last is not None and last.commit_ns is None:
            last.commit_ns = event.at_ns

    def _done(self, event: SpeechDone) -> None:
        self._ended.add(event.speech)
        last = self._latest.get(event.speech)
        if last is None and event.interrupted:
            last = self._current(event.speech, event.at_ns)
        if last is not None and last.done_ns is None:
            last.done_ns, last.done_interrupted = event.at_ns, event.interrupted

    def _mark(self, mark: SinkMarked, segment_speech: str | None) -> None:
        if mark.mark == "pause":
            speech = mark.speech or segment_speech
            attempt = None if speech is None else self._current(speech, mark.at_ns)
            if attempt is not None and attempt.pause_ns is None:
                attempt.pause_ns = mark.at_ns
                self._stopped[attempt.speech] = attempt
        elif mark.mark == "resume":
            # There is one gate: whoever waits behind it goes on.
            for attempt in list(self._stopped.values()):
                passed = self._scene.another_began(attempt.speech, attempt.first_ns, mark.at_ns)
                if attempt.resume_ns is not None or passed:
                    del self._stopped[attempt.speech]
                elif attempt.notes_marks:
                    attempt.resume_ns = mark.at_ns
        elif mark.mark == "clear":
            for name in {mark.speech, segment_speech} - {None}:
                known = self._latest.get(name or "")
                if known is not None and known.notes_marks and known.clear_ns is None:
                    known.clear_ns = mark.at_ns

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
        scene = self._scene
        rows = scene.audio.parts(attempt.speech)
        at = scene.trace.pushed.at_ns[scene.ledger.parts.push[rows]]
        return not bool(((at >= attempt.resume_ns) & (at <= commit_ns)).any())
