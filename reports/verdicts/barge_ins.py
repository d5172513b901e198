"""From a balanced trace to barge-ins: the verdict on each, and what went out after it.

A barge-in is one attempt on one speech. It opens with the first thing that happened to the speech
(a pause, a verdict of the model, a call to interrupt, the commit) and closes with a resume; after
the commit it only takes note of what follows. Which of these is the verdict is decided at the end,
when it is known what became of the speech.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.account.boundary import FOREVER, SENT
from reports.account.crossings import Audio
from reports.results import Amount, BargeIn, Leak, Outcome
from reports.verdicts.attempts import Attempt, collect
from reports.verdicts.causes import find_causes
from reports.verdicts.decisions import decide, ended_by, find_onset, ignored
from reports.verdicts.leaks import estimated, last_sent, leaks, remaining, source_clear, stalled
from reports.verdicts.scene import Scene
from reports.verdicts.stories import tell

__all__ = ["find_barge_ins"]


def find_barge_ins(audio: Audio) -> list[BargeIn]:
    """Every barge-in of a trace, in time order, with its leak. Exact in samples.

    Which side of a verdict a sample falls on is as exact as the boundary's resolution.
    """
    scene = Scene(audio)
    attempts = []
    began = collect(scene)
    for attempt in began:
        decide(scene, attempt)
        # A call that nothing came of, on a speech that nothing else happened to, is none.
        if attempt.verdict_ns is not None or attempt.pause_ns is not None:
            attempts.append(attempt)
    of_speech = _by_speech(began)
    for attempt in attempts:
        find_onset(scene, attempt, of_speech[attempt.speech])
    attempts += ignored(scene, attempts)
    attempts.sort(key=lambda a: a.about_ns)
    of_speech = _by_speech(attempts)
    return [_barge_in(scene, attempt, of_speech[attempt.speech]) for attempt in attempts]


def _by_speech(attempts: Sequence[Attempt]) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.speech, []).append(attempt)
    return found


def _barge_in(scene: Scene, attempt: Attempt, of_speech: Sequence[Attempt]) -> BargeIn:
    speech, verdict = attempt.speech, attempt.verdict_ns
    later = [a for a in of_speech if a.about_ns > attempt.about_ns]
    next_verdict = min((a.verdict_ns for a in later if a.verdict_ns is not None), default=FOREVER)
    next_start = min(
        (a.about_ns if a.onset_ns is None else a.onset_ns for a in later), default=FOREVER
    )
    next_start = max(next_start, attempt.about_ns)
    leaked = leaks(scene, speech, verdict, next_verdict)
    sent_leak = leaked[SENT.name] if leaked is not None else None
    left = remaining(scene, attempt)
    until = next_start if verdict is None else next_verdict
    seen = scene.audio.unseen(SENT, speech, attempt.about_ns, until) is None
    sent_ns = last_sent(scene, speech, until) if seen else None
    stop_ns, causes, survivors = None, None, None
    if verdict is not None and sent_leak is not None:
        late = sent_ns is not None and sent_ns > verdict and sent_leak.samples
        stop_ns = sent_ns - verdict if late and sent_ns is not None else 0
        causes, survivors = find_causes(scene, attempt, verdict, next_verdict)
    hushed = FOREVER if attempt.onset_until_ns > next_start else attempt.onset_until_ns
    cleared_ns = source_clear(scene, attempt, next_start)
    return BargeIn(
        segment=scene.segment_of(speech, attempt.about_ns),
        speech_id=speech,
        partial=speech == scene.audio.under_way,
        unseen=None
        if verdict is None or sent_leak is not None
        else scene.audio.unseen(SENT, speech, verdict, next_verdict),
        estimated=estimated(scene, speech, verdict, next_verdict),
        onset_ns=attempt.onset_ns,
        pause_ns=attempt.pause_ns,
        verdict_ns=verdict,
        verdict_kind=attempt.kind,
        commit_ns=attempt.commit_ns,
        clear_ns=attempt.clear_ns,
        source_clear_ns=cleared_ns,
        resume_ns=attempt.resume_ns,
        last_sent_ns=sent_ns,
        stop_ns=stop_ns,
        outcome=_outcome(scene, attempt, sent_leak, left),
        leaked=leaked,
        after_onset=leaks(scene, speech, attempt.onset_ns, next_start),
        after_pause=leaks(scene, speech, attempt.pause_ns, next_start),
        after_commit=leaks(scene, speech, attempt.commit_ns, next_start),
        after_clear=leaks(scene, speech, attempt.clear_ns, next_start),
        after_source_clear=leaks(scene, speech, cleared_ns, next_start),
        after_resume=leaks(scene, speech, attempt.resume_ns, next_start),
        over_caller=leaks(scene, speech, attempt.onset_ns, min(hushed, next_start)),
        remaining=left,
        causes=causes,
        survivors=survivors,
        stalled_ns=stalled(scene, attempt, sent_ns),
        story=tell(scene, attempt, next_start, sent_ns),
        explanation="",
    )


def _outcome(
    scene: Scene, attempt: Attempt, sent: Leak | None, left: Amount | None
) -> Outcome | None:
    if attempt.ignored:
        return "ignored"
    ended = ended_by(scene, attempt)
    if ended is not None:
        return ended
    captured = len(scene.audio.frames(attempt.speech)) > 0
    nothing_left = captured and left is not None and left.samples == 0
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
