"""From a balanced trace to barge-ins: the verdict on each, and what went out after it.

One direction, from value to value: attempts (what happened to each speech), the decision (which
instant is the verdict, and whose), what left from there on, why it left, what became of it all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from probe.trace.events import LoopStalled
from reports.account.boundary import FOREVER, SENT
from reports.account.crossings import Audio
from reports.account.estimates import Estimates
from reports.results import Amount, BargeIn, Leak, Unseen
from reports.units import one_rate
from reports.verdicts.attempts import Attempt, another_began, find_attempts
from reports.verdicts.caller import Caller
from reports.verdicts.causes import find_causes
from reports.verdicts.decision import Endings, decide, find_ignored, with_onset
from reports.verdicts.leak import estimates_after, last_sent, leaks_after
from reports.verdicts.outcome import outcome_of
from reports.verdicts.story import afterthoughts_of, longest_stall, tell

__all__ = ["find_barge_ins"]


def find_barge_ins(audio: Audio) -> list[BargeIn]:
    """Every barge-in of a trace, in time order, with its leak. Exact in samples.

    Which side of a verdict a sample falls on is as exact as the boundary's resolution.
    """
    events = audio.trace.events
    estimates, afterthoughts = Estimates(audio), afterthoughts_of(events)
    stalls = [event for event in events if isinstance(event, LoopStalled)]
    of_speech: dict[str, list[Attempt]] = {}
    attempts = _decided(audio)
    for attempt in attempts:
        of_speech.setdefault(attempt.speech, []).append(attempt)
    return [
        _barge_in(audio, attempt, of_speech[attempt.speech], estimates, stalls, afterthoughts)
        for attempt in attempts
    ]


def _decided(audio: Audio) -> list[Attempt]:
    """Every attempt that something came of, decided, by the instants they are about."""
    events = audio.trace.events
    caller, endings = Caller.of(events), Endings.of(events)
    attempts: list[Attempt] = []
    of_speech: dict[str, list[Attempt]] = {}
    for attempt in find_attempts(audio):
        begun_ns = _begun_ns(audio, attempt.speech)
        decided = decide(attempt, caller, endings, begun_ns)
        # A call that nothing came of, on a speech that nothing else happened to, is none.
        if decided.verdict_ns is None and decided.pause_ns is None and decided.ended_by is None:
            continue
        mine = of_speech.setdefault(attempt.speech, [])
        mine.append(with_onset(decided, caller, begun_ns, mine))
        attempts.append(mine[-1])
    attempts += find_ignored(audio, caller, attempts)
    return sorted(attempts, key=lambda attempt: attempt.about_ns)


def _begun_ns(audio: Audio, speech: str) -> int:
    """When a speech was created, or its first frame captured; `FOREVER`: never, as far as known."""
    if speech == audio.under_way:
        return -FOREVER
    segments = audio.segments_of.get(speech, ())
    first = [int(audio.ledger.sums.first_ns[row]) for row in segments[:1]]
    return min([audio.created.get(speech, FOREVER), *first])


def _barge_in(
    audio: Audio,
    attempt: Attempt,
    of_speech: Sequence[Attempt],
    estimates: Estimates,
    stalls: Sequence[LoopStalled],
    afterthoughts: Sequence[tuple[int, str]],
) -> BargeIn:
    speech, verdict = attempt.speech, attempt.verdict_ns
    later = [a for a in of_speech if a.about_ns > attempt.about_ns]
    next_verdict = min((a.verdict_ns for a in later if a.verdict_ns is not None), default=FOREVER)
    next_start = min(
        (a.about_ns if a.onset_ns is None else a.onset_ns for a in later), default=FOREVER
    )
    next_start = max(next_start, attempt.about_ns)
    hush_ns = FOREVER if attempt.onset is None else attempt.onset.stop_ns

    def after(since_ns: int | None, until_ns: int = next_start) -> dict[str, Leak | None] | None:
        return leaks_after(audio, speech, since_ns, until_ns)

    leaked = after(verdict, next_verdict)
    sent = leaked[SENT.name] if leaked is not None else None
    until = next_start if verdict is None else next_verdict
    last_sent_ns = last_sent(audio, speech, attempt.about_ns, until)
    stop_ns = causes = survivors = None
    if verdict is not None and sent is not None:
        stop_ns = 0
        if sent.samples and last_sent_ns is not None:
            stop_ns = max(last_sent_ns - verdict, 0)
        crossed = audio.crossed(SENT, speech, verdict, next_verdict)
        causes, survivors = find_causes(audio, attempt, crossed)
    remaining = _remaining(audio, attempt)
    segment = _segment(audio, attempt)
    source_clear_ns = _source_clear(audio, attempt, next_start)
    began_ns = None
    if segment is not None and audio.ledger.sums.first_ns[segment - 1] > attempt.about_ns:
        began_ns = int(audio.ledger.sums.first_ns[segment - 1])
    return BargeIn(
        segment=segment,
        speech_id=speech,
        partial=speech == audio.under_way,
        unseen=_unseen(audio, attempt, until),
        estimated=estimates_after(audio, estimates, speech, verdict, next_verdict),
        onset_ns=attempt.onset_ns,
        pause_ns=attempt.pause_ns,
        verdict_ns=verdict,
        verdict_kind=attempt.kind,
        commit_ns=attempt.commit_ns,
        clear_ns=attempt.clear_ns,
        source_clear_ns=source_clear_ns,
        resume_ns=attempt.resume_ns,
        last_sent_ns=last_sent_ns,
        stop_ns=stop_ns,
        outcome=outcome_of(attempt, sent, remaining, has_audio=len(audio.frames(speech)) > 0),
        leaked=leaked,
        after_onset=after(attempt.onset_ns),
        after_pause=after(attempt.pause_ns),
        after_commit=after(attempt.commit_ns),
        after_clear=after(attempt.clear_ns),
        after_source_clear=after(source_clear_ns),
        after_resume=after(attempt.resume_ns),
        over_caller=after(attempt.onset_ns, min(hush_ns, next_start)),
        remaining=remaining,
        causes=causes,
        survivors=survivors,
        stalled_ns=longest_stall(stalls, attempt, last_sent_ns),
        story=tell(
            audio,
            attempt,
            afterthoughts,
            began_ns=began_ns,
            source_clear_ns=source_clear_ns,
            last_sent_ns=last_sent_ns,
            until_ns=next_start,
        ),
        explanation="",
    )


def _unseen(audio: Audio, attempt: Attempt, until_ns: int) -> Unseen | None:
    """Why it is not known what was sent after the verdict, or over the caller who was ignored."""
    if attempt.verdict_ns is not None:
        return audio.unseen(SENT, attempt.speech, attempt.verdict_ns, until_ns)
    if attempt.ignored and attempt.onset is not None:
        until_ns = min(until_ns, attempt.onset.stop_ns)
        return audio.unseen(SENT, attempt.speech, attempt.onset.start_ns, until_ns)
    return None


def _segment(audio: Audio, attempt: Attempt) -> int | None:
    """Number of the speech's segment under way, or of its first; ``None``: it never had one."""
    segments = audio.segments_of.get(attempt.speech, [])
    nth = bisect_right(
        segments, attempt.about_ns, key=lambda row: int(audio.ledger.sums.first_ns[row])
    )
    return segments[max(nth - 1, 0)] + 1 if segments else None


def _remaining(audio: Audio, attempt: Attempt) -> Amount | None:
    """What of the speech could still have gone out at the verdict; a tail can't."""
    verdict = attempt.verdict_ns
    samples = None if verdict is None else audio.remaining(attempt.speech, verdict)
    if samples is None:
        return None
    frames = len(audio.frames(attempt.speech)) if samples else 0
    return Amount(frames, samples.count, one_rate(samples.rates))


def _source_clear(audio: Audio, attempt: Attempt, until_ns: int) -> int | None:
    """The first clear of a source of the speech since the attempt began."""
    if attempt.ignored:
        return None
    ledger = audio.ledger
    sources = set(ledger.parts.source[audio.parts(attempt.speech)].tolist())
    low, high = (
        bisect_left(ledger.clears, at_ns, key=lambda clear: clear[1])
        for at_ns in (attempt.first_ns, until_ns)
    )
    for source, at_ns, _ in ledger.clears[low:high]:
        if not sources or source in sources:
            # Once another speech has begun, every later clear is about that.
            return None if another_began(audio, attempt, at_ns) else at_ns
    return None
