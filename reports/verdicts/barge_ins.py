"""From a balanced trace to barge-ins: the verdict on each, and what went out after it.

A barge-in is one attempt on one speech. It opens with the first thing that happened to the speech
(a pause, a verdict of the model, a call to interrupt, the commit) and closes with a resume; after
the commit it only takes note of what follows. Which of these is the verdict is decided at the end,
when it is known what became of the speech.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import (
    Event,
    FalseInterruption,
    InterruptCalled,
    InterruptedBy,
    LoopStalled,
    OverlapJudged,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
    StateChanged,
    Tapped,
    TranscriptReceived,
)
from reports.account.boundary import BOUNDARIES, FOREVER, PUSHED, SENT, SLACK_NS
from reports.account.crossings import Audio, Crossed
from reports.account.estimates import Estimates
from reports.results import (
    Amount,
    BargeIn,
    Cause,
    Estimate,
    Leak,
    LeakCause,
    LeakSurvival,
    Moment,
    Outcome,
    Survivor,
    VerdictKind,
)
from reports.units import one_rate

__all__ = ["Turn", "find_barge_ins", "turns_of"]

Ints = NDArray[np.int64]

AFTERTHOUGHT_NS: Final = 50_000_000
"""How long after a barge-in's end the session may still report on it."""


@dataclass(slots=True)
class _Attempt:
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


@dataclass(frozen=True, slots=True)
class Turn:
    """The caller spoke."""

    start_ns: int
    stop_ns: int


def find_barge_ins(audio: Audio) -> list[BargeIn]:
    """Every barge-in of a trace, in time order, with its leak. Exact in samples.

    Which side of a verdict a sample falls on is as exact as the boundary's resolution.
    """
    return _Finder(audio).barge_ins()


class _Finder:
    def __init__(self, audio: Audio) -> None:
        ledger = self.ledger = audio.ledger
        self.trace = ledger.trace
        self.events = self.trace.events
        self.audio = audio
        self.estimates = Estimates(audio)
        self.segment_speech = audio.segment_speech
        self.first_ns: list[int] = ledger.sums.first_ns.tolist()
        self.created = audio.created
        self.finals = [
            e.at_ns for e in self.events if isinstance(e, TranscriptReceived) and e.final
        ]
        self.afterthoughts = [
            e
            for e in self.events
            if isinstance(e, FalseInterruption) or (isinstance(e, TranscriptReceived) and e.final)
        ]
        self.stalls = [(e.at_ns, e.until_ns) for e in self.events if isinstance(e, LoopStalled)]
        self.turns = turns_of(self.events)
        self.turn_ns = [turn.start_ns for turn in self.turns]
        self.mark_ns = [mark.at_ns for mark, _ in ledger.marks]
        self.clear_ns = [began for _, began, _ in ledger.clears]
        self.taken_until: dict[int, int] = {}
        """Position up to which each clear of a source took audio, by its time."""
        for lost in ledger.losses:
            if lost.what == "cleared":
                taken = self.taken_until.get(lost.at_ns, 0)
                self.taken_until[lost.at_ns] = max(taken, lost.stop)
        self.stopped: dict[str, _Attempt] = {}
        """Attempts that a resume may let go on."""
        self.under_way = audio.under_way
        self.resolution = ledger.resolution_ns.get(SENT.name) or SENT.resolution_ns
        self.latest: dict[str, _Attempt] = {}
        self.attempts: list[_Attempt] = []
        self.attempts_of: dict[str, list[_Attempt]] = {}

    def barge_ins(self) -> list[BargeIn]:
        self._collect()
        attempts = []
        for attempt in self.attempts:
            self._decide(attempt)
            # A call that nothing came of, on a speech that nothing else happened to, is none.
            if attempt.verdict_ns is not None or attempt.pause_ns is not None:
                attempts.append(attempt)
        for attempt in attempts:
            self._find_onset(attempt)
        attempts += self._ignored(attempts)
        attempts.sort(key=lambda a: a.about_ns)
        of_speech: dict[str, list[_Attempt]] = {}
        for attempt in attempts:
            of_speech.setdefault(attempt.speech, []).append(attempt)
        return [self._barge_in(attempt, of_speech[attempt.speech]) for attempt in attempts]

    # --- Attempts --------------------------------------------------------------------------------

    def _current(self, speech: str, at_ns: int) -> _Attempt | None:
        """The attempt an event belongs to, a new one if need be; ``None``: the speech is past it.

        Nothing interrupts a speech a second time.
        """
        attempt = self.latest.get(speech)
        if attempt is not None and attempt.open:
            return attempt
        if attempt is not None and attempt.committed_ns is not None:
            return None
        attempt = self.latest[speech] = _Attempt(speech, at_ns)
        self.attempts.append(attempt)
        self.attempts_of.setdefault(speech, []).append(attempt)
        return attempt

    def _collect(self) -> None:
        owners = {id(mark): owner for mark, owner in self.ledger.marks}
        ended: set[str] = set()
        for event in self.events:
            if isinstance(event, SinkMarked):
                owner = owners[id(event)]
                self._take_mark(event, self.segment_speech[owner] if owner >= 0 else None)
            elif isinstance(event, OverlapJudged) and event.is_interruption:
                if event.speech is None:
                    continue
                attempt = self._current(event.speech, event.at_ns)
                if attempt is not None and attempt.overlap_ns is None:
                    attempt.overlap_ns = event.at_ns
                    self.stopped[attempt.speech] = attempt
            elif isinstance(event, InterruptCalled) and event.end == "returned":
                if event.speech in ended:
                    continue
                attempt = self._current(event.speech, event.at_ns)
                if attempt is not None and attempt.call_ns is None:
                    attempt.call_ns, attempt.called_by = event.at_ns, event.by
            elif isinstance(event, SpeechCommitted):
                last = self.latest.get(event.speech)
                if last is None or not self._resumed_by_commit(last, event.at_ns):
                    last = self._current(event.speech, event.at_ns)
                if last is not None and last.commit_ns is None:
                    last.commit_ns = event.at_ns
            elif isinstance(event, SpeechDone):
                ended.add(event.speech)
                last = self.latest.get(event.speech)
                if last is None and event.interrupted:
                    last = self._current(event.speech, event.at_ns)
                if last is not None and last.done_ns is None:
                    last.done_ns, last.done_interrupted = event.at_ns, event.interrupted

    def _take_mark(self, mark: SinkMarked, segment_speech: str | None) -> None:
        if mark.mark == "pause":
            speech = mark.speech or segment_speech
            attempt = None if speech is None else self._current(speech, mark.at_ns)
            if attempt is not None and attempt.pause_ns is None:
                attempt.pause_ns = mark.at_ns
                self.stopped[attempt.speech] = attempt
        elif mark.mark == "resume":
            # There is one gate: whoever waits behind it goes on.
            for attempt in list(self.stopped.values()):
                if attempt.resume_ns is not None or self._another_began(attempt, mark.at_ns):
                    del self.stopped[attempt.speech]
                elif attempt.notes_marks:
                    attempt.resume_ns = mark.at_ns
        elif mark.mark == "clear":
            for speech in {mark.speech, segment_speech} - {None}:
                attempt = self.latest.get(speech or "")
                if attempt is not None and attempt.notes_marks and attempt.clear_ns is None:
                    attempt.clear_ns = mark.at_ns

    def _another_began(self, attempt: _Attempt, at_ns: int) -> bool:
        """Whether another speech's audio came between the attempt and ``at_ns``."""
        low = bisect_right(self.first_ns, attempt.first_ns)
        high = bisect_right(self.first_ns, at_ns)
        return any(speech != attempt.speech for speech in self.segment_speech[low:high])

    def _resumed_by_commit(self, attempt: _Attempt, commit_ns: int) -> bool:
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
        at = self.trace.pushed.at_ns[self.ledger.parts.push[rows]]
        return not bool(((at >= attempt.resume_ns) & (at <= commit_ns)).any())

    def _decide(self, attempt: _Attempt) -> None:
        """The verdict, by precedence; never later than the commit."""
        commit = attempt.committed_ns
        if attempt.overlap_ns is not None and (commit is None or attempt.overlap_ns <= commit):
            attempt.kind, attempt.verdict_ns = "overlap", attempt.overlap_ns
        elif commit is None:
            return
        elif attempt.pause_ns is not None and attempt.pause_ns <= commit:
            attempt.kind, attempt.verdict_ns = "activity", attempt.pause_ns
        else:
            called = commit if attempt.call_ns is None else min(attempt.call_ns, commit)
            attempt.kind, attempt.verdict_ns = attempt.called_by or self._guess(called), called

    def _guess(self, called_ns: int) -> VerdictKind:
        """Who interrupted, on a release that does not say."""
        turn = self._turn_before(called_ns)
        if turn is None:
            return "programmatic"
        if any(turn.start_ns <= at_ns <= called_ns for at_ns in self.finals):
            return "transcript"
        return "activity" if called_ns < turn.stop_ns else "programmatic"

    # --- The caller ------------------------------------------------------------------------------

    def _turn_before(self, at_ns: int) -> Turn | None:
        nth = bisect_right(self.turn_ns, at_ns)
        return self.turns[nth - 1] if nth else None

    def _find_onset(self, attempt: _Attempt) -> None:
        known = (attempt.pause_ns, attempt.verdict_ns, attempt.call_ns)
        since = min(at_ns for at_ns in known if at_ns is not None)
        turn = self._turn_before(since)
        if turn is None:
            return
        still = turn.stop_ns > since
        begun = min(
            self.created.get(attempt.speech, FOREVER),
            min(
                (self.first_ns[s] for s in self.audio.segments_of.get(attempt.speech, ())),
                default=FOREVER,
            ),
        )
        # A turn that was over before is what the code or the transcript of it reacted to, unless
        # it came before the speech or has had its barge-in already.
        taken = any(
            other.onset_ns == turn.start_ns
            for other in self.attempts_of[attempt.speech]
            if other is not attempt
        )
        if still or (attempt.kind != "programmatic" and turn.start_ns >= begun and not taken):
            attempt.onset_ns, attempt.onset_until_ns = turn.start_ns, turn.stop_ns

    def _ignored(self, attempts: Sequence[_Attempt]) -> list[_Attempt]:
        """The caller spoke over audio that was going out, and neither pause nor verdict came."""
        ignored = []
        boundary = SENT if SENT.name in self.ledger.tapped else PUSHED
        went_out = {
            speech: (int(crossed.at_ns.min()), int(crossed.until_ns.max()))
            for speech in dict.fromkeys(s for s in self.segment_speech if s is not None)
            if (crossed := self.audio.crossed(boundary, speech, -FOREVER, FOREVER)).samples
        }
        of_speech: dict[str, list[_Attempt]] = {}
        for attempt in attempts:
            of_speech.setdefault(attempt.speech, []).append(attempt)
        names, spans = list(went_out), np.array(list(went_out.values()), np.int64).reshape(-1, 2)
        for turn in self.turns:
            over = (spans[:, 0] < turn.stop_ns) & (spans[:, 1] > turn.start_ns)
            for speech in (names[row] for row in np.flatnonzero(over)):
                mine = of_speech.get(speech, [])
                met = any(
                    a.onset_ns == turn.start_ns
                    or turn.start_ns <= a.about_ns <= turn.stop_ns
                    or (a.committed_ns is not None and a.committed_ns <= turn.start_ns)
                    for a in mine
                )
                if met:
                    continue
                if not self.audio.crossed(boundary, speech, -FOREVER, turn.start_ns).samples:
                    continue
                if not self.audio.crossed(boundary, speech, turn.start_ns, turn.stop_ns).samples:
                    continue
                attempt = _Attempt(speech, turn.start_ns)
                attempt.onset_ns, attempt.onset_until_ns = turn.start_ns, turn.stop_ns
                attempt.ignored = True
                ignored.append(attempt)
        return ignored

    # --- What went out ----------------------------------------------------------------------------

    def _leaks(
        self, speech: str, since_ns: int | None, until_ns: int
    ) -> dict[str, Leak | None] | None:
        if since_ns is None:
            return None
        leaks: dict[str, Leak | None] = {}
        for boundary in (boundary for boundary in BOUNDARIES if boundary.unit == "samples"):
            if self.audio.unseen(boundary, speech, since_ns, until_ns) is not None:
                leaks[boundary.name] = None
                continue
            crossed = self.audio.crossed(boundary, speech, since_ns, until_ns)
            leaks[boundary.name] = crossed.leak(boundary.gap_ns)
        return leaks

    def _estimated(
        self, speech: str, since_ns: int | None, until_ns: int
    ) -> dict[str, Estimate | None] | None:
        if since_ns is None:
            return None
        found = {
            boundary.name: self.estimates.crossed(boundary, speech, since_ns, until_ns)
            for boundary in BOUNDARIES
        }
        return found if any(found.values()) else None

    # --- One barge-in ----------------------------------------------------------------------------

    def _barge_in(self, attempt: _Attempt, of_speech: Sequence[_Attempt]) -> BargeIn:
        speech, verdict = attempt.speech, attempt.verdict_ns
        later = [a for a in of_speech if a.about_ns > attempt.about_ns]
        next_verdict = min(
            (a.verdict_ns for a in later if a.verdict_ns is not None), default=FOREVER
        )
        next_start = min(
            (a.about_ns if a.onset_ns is None else a.onset_ns for a in later), default=FOREVER
        )
        next_start = max(next_start, attempt.about_ns)
        leaked = self._leaks(speech, verdict, next_verdict)
        sent_leak = leaked["sent"] if leaked is not None else None
        remaining = self._remaining(attempt)
        outcome = self._outcome(attempt, sent_leak, remaining)
        until = next_start if verdict is None else next_verdict
        known = self.audio.unseen(SENT, speech, attempt.about_ns, until) is None
        last_sent = self._last_sent(speech, until) if known else None
        source_clear = self._source_clear(attempt, next_start)
        stop_ns = None
        if verdict is not None and sent_leak is not None:
            late = last_sent is not None and last_sent > verdict and sent_leak.samples
            stop_ns = last_sent - verdict if late and last_sent is not None else 0
        causes, survivors = None, None
        if verdict is not None and sent_leak is not None:
            causes, survivors = self._causes(attempt, verdict, next_verdict)
        until = FOREVER if attempt.onset_until_ns > next_start else attempt.onset_until_ns
        segment = bisect_right(self.first_ns, attempt.about_ns) - 1
        while segment >= 0 and self.segment_speech[segment] != speech:
            segment -= 1
        return BargeIn(
            segment=segment + 1 if segment >= 0 else None,
            speech_id=speech,
            partial=speech == self.under_way,
            unseen=None
            if verdict is None or sent_leak is not None
            else self.audio.unseen(SENT, speech, verdict, next_verdict),
            estimated=self._estimated(speech, verdict, next_verdict),
            onset_ns=attempt.onset_ns,
            pause_ns=attempt.pause_ns,
            verdict_ns=verdict,
            verdict_kind=attempt.kind,
            commit_ns=attempt.commit_ns,
            clear_ns=attempt.clear_ns,
            source_clear_ns=source_clear,
            resume_ns=attempt.resume_ns,
            last_sent_ns=last_sent,
            stop_ns=stop_ns,
            outcome=outcome,
            leaked=leaked,
            after_onset=self._leaks(speech, attempt.onset_ns, next_start),
            after_pause=self._leaks(speech, attempt.pause_ns, next_start),
            after_commit=self._leaks(speech, attempt.commit_ns, next_start),
            after_clear=self._leaks(speech, attempt.clear_ns, next_start),
            after_source_clear=self._leaks(speech, source_clear, next_start),
            after_resume=self._leaks(speech, attempt.resume_ns, next_start),
            over_caller=self._leaks(speech, attempt.onset_ns, min(until, next_start)),
            remaining=remaining,
            causes=causes,
            survivors=survivors,
            stalled_ns=self._stalled(attempt, last_sent),
            story=self._story(attempt, next_start, last_sent),
            explanation="",
        )

    def _outcome(
        self, attempt: _Attempt, sent: Leak | None, remaining: Amount | None
    ) -> Outcome | None:
        if attempt.ignored:
            return "ignored"
        captured = len(self.audio.frames(attempt.speech)) > 0
        nothing_left = captured and remaining is not None and remaining.samples == 0
        if attempt.committed_ns is not None:
            return "finished" if nothing_left else "committed"
        if attempt.resume_ns is not None:
            return "resumed"
        if nothing_left:
            return "finished"
        if attempt.done_ns is not None:
            went_on = sent is not None and sent.samples > 0
            return "resumed" if attempt.verdict_ns is not None and went_on else "finished"
        return None

    def _remaining(self, attempt: _Attempt) -> Amount | None:
        """What of the speech could still have gone out at the verdict; a tail can't."""
        verdict = attempt.verdict_ns
        samples = None if verdict is None else self.audio.remaining(attempt.speech, verdict)
        if samples is None:
            return None
        frames = len(self.audio.frames(attempt.speech)) if samples else 0
        return Amount(frames, samples.count, one_rate(samples.rates))

    def _last_sent(self, speech: str, until_ns: int) -> int | None:
        """Tick of the block with the last sent sample of a speech."""
        crossed = self.audio.crossed(SENT, speech, -FOREVER, until_ns)
        if not len(crossed.stop):
            return None
        last = int(np.argmax(crossed.until_ns))
        rows = self.audio.sent(speech)
        parts, position = self.ledger.parts, crossed.stop[last : last + 1] - 1
        holds = rows[(parts.start[rows] <= position) & (parts.stop[rows] > position)]
        return int(self.audio.blocks(holds[:1]).tick(position)[0])

    def _source_clear(self, attempt: _Attempt, until_ns: int) -> int | None:
        rows = self.audio.parts(attempt.speech)
        sources = set(self.trace.pushed.source[self.ledger.parts.push[rows]].tolist())
        if attempt.ignored:
            return None
        for source, at_ns, _ in self._clears(attempt.first_ns, until_ns):
            if sources and source not in sources:
                continue
            # Once another speech has begun, every later clear is about that.
            return None if self._another_began(attempt, at_ns) else at_ns
        return None

    def _clears(self, since_ns: int, until_ns: int) -> list[tuple[int, int, int]]:
        """Clears of sources from one instant (inclusive) to another."""
        low, high = bisect_left(self.clear_ns, since_ns), bisect_left(self.clear_ns, until_ns)
        return self.ledger.clears[low:high]

    def _causes(
        self, attempt: _Attempt, verdict: int, until_ns: int
    ) -> tuple[tuple[Cause, ...], tuple[Survivor, ...]]:
        """The leak by the state of sink and source in which each of its samples was sent, and how
        what was sent after a clear of the source escaped it."""
        leaked = self.audio.crossed(SENT, attempt.speech, verdict, until_ns)
        if not leaked.samples:
            return (), ()
        until_ns = min(until_ns, int(leaked.until_ns.max()))
        changes: list[tuple[int, int, str]] = [
            (mark.at_ns, mark.at_ns, mark.mark)
            for mark, _ in self.ledger.marks[
                bisect_left(self.mark_ns, attempt.first_ns) : bisect_left(self.mark_ns, until_ns)
            ]
            if mark.mark != "flush"
        ]
        sources = set(
            self.trace.pushed.source[
                self.ledger.parts.push[self.audio.parts(attempt.speech)]
            ].tolist()
        )
        changes += [
            (began, self._emptied_ns(attempt.speech, began, ended), "emptied")
            for source, began, ended in self._clears(attempt.first_ns, until_ns)
            if source in sources
        ]
        state: LeakCause = "not-stopped"
        cleared = False
        since: list[tuple[int, LeakCause]] = [(-FOREVER, state)]
        for _, effective, what in sorted(changes):
            if what == "pause" and not cleared:
                state = "queue-played-on"
            elif what == "emptied":
                state = "after-clear"
            elif what == "clear":
                cleared = True
                if state != "after-clear":
                    state = "clear-pending"
            elif what == "resume" and not cleared:
                state = "resumed"
            while since and since[-1][0] >= effective:
                since.pop()
            since.append((effective, state))
        sums: dict[LeakCause, tuple[int, set[int]]] = {}
        escaped: dict[LeakSurvival, tuple[int, set[int]]] = {}
        for (begin, cause), end in zip(
            since, [at_ns for at_ns, _ in since[1:]] + [FOREVER], strict=True
        ):
            low, high = max(begin, verdict), min(end, until_ns)
            if low >= high:
                continue
            crossed = self.audio.crossed(SENT, attempt.speech, low, high)
            if crossed.samples:
                samples, rates = sums.get(cause, (0, set()))
                sums[cause] = (samples + crossed.samples, rates | crossed.rates)
                if cause == "after-clear":
                    self._escapes(crossed, escaped)
        return (
            tuple(
                Cause(cause, samples, one_rate(rates)) for cause, (samples, rates) in sums.items()
            ),
            tuple(
                Survivor(how, samples, one_rate(rates)) for how, (samples, rates) in escaped.items()
            ),
        )

    def _escapes(self, crossed: Crossed, sums: dict[LeakSurvival, tuple[int, set[int]]]) -> None:
        """Adds what was sent after a clear of the source, by how it came to be there."""
        p = self.trace.pushed
        push = crossed.frame
        clears = self.ledger.clears
        cleared = [
            max((c for c in clears if c[0] == source and c[1] <= at), default=None)
            for source, at in zip(p.source[push].tolist(), crossed.at_ns.tolist(), strict=True)
        ]
        ended = np.array([-FOREVER if c is None else c[2] for c in cleared], dtype=np.int64)
        late = p.at_ns[push] > ended
        long = ~late & (p.samples[push] * 1000 > p.rate_hz[push] * self._queue_ms(p.source[push]))
        names: tuple[tuple[LeakSurvival, NDArray[np.bool_]], ...] = (
            ("pushed-late", late),
            ("rest-of-long-frame", long),
            ("survived-clear", ~late & ~long),
        )
        for how, rows in names:
            amount = int((crossed.stop - crossed.start)[rows].sum())
            if amount:
                samples, rates = sums.get(how, (0, set()))
                found = set(np.unique(crossed.rate_hz[rows]).tolist())
                sums[how] = (samples + amount, rates | found)

    def _queue_ms(self, source: Ints) -> Ints:
        """Capacity of the sources' queues; where it is not known, longer than any frame."""
        known = {e.source: e.queue_ms for e in self.events if isinstance(e, Tapped) and e.queue_ms}
        names, where = np.unique(source, return_inverse=True)
        return np.array([known.get(int(name), 2**31) for name in names], dtype=np.int64)[where]

    def _emptied_ns(self, speech: str, began_ns: int, ended_ns: int) -> int:
        """From when on what is sent was sent after a clear of the source.

        The stamp of a block may be late by the resolution, so a sample counts as sent after the
        clear only beyond that, unless its position lies behind what the clear took.
        """
        latest = ended_ns + self.resolution
        taken = self.taken_until.get(began_ns)
        if taken is not None:
            parts, rows = self.ledger.parts, self.audio.parts(speech)
            behind = parts.sent_ns[rows[parts.start[rows] >= taken]]
            latest = min(latest, int(behind.min()) if len(behind) else latest)
        return max(latest, began_ns)

    def _survives(self, speech: str, clear_ns: int) -> bool:
        """Whether a push that was under way when the source was cleared went out all the same."""
        nth = bisect_left(self.clear_ns, clear_ns)
        ended = self.ledger.clears[nth][2] if clear_ns in self.clear_ns[nth : nth + 1] else clear_ns
        parts, p, rows = self.ledger.parts, self.trace.pushed, self.audio.parts(speech)
        rows = rows[(parts.run[rows] >= 0) & (parts.sent_ns[rows] > ended)]
        push = parts.push[rows]
        return bool(((p.at_ns[push] <= ended) & (p.ended_ns[push] >= clear_ns)).any())

    def _stalled(self, attempt: _Attempt, last_sent: int | None) -> int:
        known = (attempt.onset_ns, attempt.first_ns, attempt.about_ns)
        # A stall that has just ended is what made the first of them late.
        begin = min(at_ns for at_ns in known if at_ns is not None) - SLACK_NS
        marks = (last_sent, attempt.clear_ns, attempt.commit_ns, attempt.about_ns)
        end = max(at_ns for at_ns in marks if at_ns is not None)
        return max(
            (until - at for at, until in self.stalls if until > begin and at < end), default=0
        )

    def _story(self, attempt: _Attempt, until_ns: int, last_sent: int | None) -> tuple[Moment, ...]:
        """What happened around the verdict, in order; one moment of it is the verdict."""
        source_clear = self._source_clear(attempt, until_ns)
        emptied = "the source's queue is cleared"
        if source_clear is not None and self._survives(attempt.speech, source_clear):
            emptied += "; a push under way survives it"
        called = f" by {attempt.called_by}" if attempt.called_by else ""
        moments = [
            (at_ns, text)
            for at_ns, text in (
                (attempt.onset_ns, "the caller starts to speak"),
                (attempt.pause_ns, "pause: the gate is closed"),
                (attempt.overlap_ns, "the interruption model says: interruption"),
                (attempt.call_ns, f"interrupt called{called}"),
                (attempt.committed_ns, "commit: the speech is interrupted"),
                (attempt.clear_ns, "clear of the sink"),
                (source_clear, emptied),
                (attempt.resume_ns, "resume: the gate is open"),
                (last_sent, "last sample of the speech sent"),
                (attempt.onset_until_ns, "the caller stops"),
            )
            if at_ns is not None and at_ns < FOREVER
        ]
        begin = min(at_ns for at_ns, _ in moments)
        ends = (attempt.commit_ns, attempt.resume_ns, attempt.onset_until_ns, attempt.about_ns)
        end = max(at_ns for at_ns in ends if at_ns is not None and at_ns < FOREVER)
        for event in self.afterthoughts:
            if isinstance(event, TranscriptReceived):
                text = f"final transcript, {event.words} words"
            else:
                text = "the session calls it a false interruption"
            # The session reports these a moment after it has acted on them.
            if begin <= event.at_ns <= min(end + AFTERTHOUGHT_NS, until_ns):
                moments.append((event.at_ns, text))
        deciding = {
            "overlap": ("the interruption model",),
            "activity": ("pause:", "interrupt called", "commit:"),
        }.get(attempt.kind or "", ("interrupt called", "commit:"))
        story: list[Moment] = []
        found = attempt.verdict_ns is None
        for at_ns, text in sorted(moments):
            decides = not found and at_ns == attempt.verdict_ns and text.startswith(deciding)
            found = found or decides
            story.append(Moment(text, at_ns, decides))
        return tuple(story)


def turns_of(events: Sequence[Event]) -> list[Turn]:
    """When the caller spoke, as the session's user state says it."""
    turns: list[Turn] = []
    start: int | None = None
    for event in events:
        if not isinstance(event, StateChanged) or event.who != "user":
            continue
        if event.new == "speaking" and start is None:
            start = event.at_ns
        elif event.new != "speaking" and start is not None:
            turns.append(Turn(start, event.at_ns))
            start = None
    if start is not None:
        turns.append(Turn(start, FOREVER))
    return turns
