"""Why a leak was sent: the state of sink and source in which each of its samples left.

A cause is proven from the marks of the sink whose source a sample was pushed to, and from when it
was pushed. Where several sinks were there and the marks do not say whose they are (older traces),
a cause that needs them is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import Tapped
from probe.trace.reader import NONE
from reports.account.boundary import FOREVER, SENT
from reports.account.crossings import Crossed
from reports.results import Cause, LeakCause, LeakSurvival, Survivor
from reports.units import one_rate
from reports.verdicts.attempts import Attempt
from reports.verdicts.scene import Scene

__all__ = ["find_causes", "survives"]

Bools = NDArray[np.bool_]
Named = TypeVar("Named", LeakCause, LeakSurvival)
_Sums = dict[Named, tuple[int, set[int]]]


def find_causes(
    scene: Scene, attempt: Attempt, verdict: int, until_ns: int
) -> tuple[tuple[Cause, ...], tuple[Survivor, ...]]:
    """The leak by its causes, and how what was sent after a clear of the source escaped it."""
    leaked = scene.audio.crossed(SENT, attempt.speech, verdict, until_ns)
    if not leaked.samples:
        return (), ()
    until_ns = min(until_ns, int(leaked.until_ns.max()))
    sums: _Sums[LeakCause] = {}
    escaped: _Sums[LeakSurvival] = {}
    for source in np.unique(scene.trace.pushed.source[leaked.frame]).tolist():
        states, stopped = _states(scene, attempt, source, until_ns)
        ends = [at_ns for at_ns, _ in states[1:]] + [FOREVER]
        for (begin, cause), end in zip(states, ends, strict=True):
            low, high = max(begin, verdict), min(end, until_ns)
            if low >= high:
                continue
            crossed = scene.audio.crossed(SENT, attempt.speech, low, high)
            crossed = crossed.taken(scene.trace.pushed.source[crossed.frame] == source)
            if cause in ("queue-played-on", "not-known"):
                # What was pushed after the gate was shut is proof that it was not shut for it.
                shut = max((at_ns for at_ns in stopped if at_ns <= begin), default=FOREVER)
                through = scene.trace.pushed.at_ns[crossed.frame] > shut
                _add(sums, "not-stopped", crossed.taken(through))
                crossed = crossed.taken(~through)
            _add(sums, cause, crossed)
            if cause == "after-clear":
                _add_escapes(scene, crossed, escaped)
    return (
        tuple(Cause(cause, samples, one_rate(rates)) for cause, (samples, rates) in sums.items()),
        tuple(Survivor(how, samples, one_rate(rates)) for how, (samples, rates) in escaped.items()),
    )


def _states(
    scene: Scene, attempt: Attempt, source: int, until_ns: int
) -> tuple[list[tuple[int, LeakCause]], list[int]]:
    """The state a source and its sink were in, from when on each, until an instant; and when the
    sink was paused or cleared, if the last that was heard of it is that."""
    facts = scene.ledger.facts
    sink = facts.sources[source].sink if source in facts.sources else None
    marks = [
        mark
        for mark in facts.marks_of(sink)
        if attempt.first_ns <= mark.at_ns < until_ns and mark.mark != "flush"
    ]
    told = len(scene.sources_pushed) == 1 or sink is not None
    unnamed = any(mark.sink is None for mark in marks)
    known = told and (len(scene.sources_pushed) == 1 or not unnamed)
    changes: list[tuple[int, int, str]] = [(m.at_ns, m.at_ns, m.mark) for m in marks]
    changes += [
        (began, _emptied_ns(scene, attempt.speech, began, ended), "emptied")
        for number, began, ended in scene.clears(attempt.first_ns, until_ns)
        if number == source
    ]
    state: LeakCause = "not-stopped"
    cleared = False
    stopped: list[int] = []
    since: list[tuple[int, LeakCause]] = [(-FOREVER, state)]
    for _, effective, what in sorted(changes):
        if what in ("pause", "clear"):
            stopped.append(effective)
        elif what == "resume":
            stopped.clear()
        if what == "emptied":
            state = "after-clear"
        elif not known:
            state = state if state == "after-clear" else "not-known"
        elif what == "pause" and not cleared:
            state = "queue-played-on"
        elif what == "clear":
            cleared = True
            if state != "after-clear":
                state = "clear-pending"
        elif what == "resume" and not cleared:
            state = "resumed"
        while since and since[-1][0] >= effective:
            since.pop()
        since.append((effective, state))
    return since, stopped


def _add(sums: _Sums[Named], name: Named, crossed: Crossed) -> None:
    if crossed.samples:
        samples, rates = sums.get(name, (0, set()))
        sums[name] = (samples + crossed.samples, rates | crossed.rates)


def _add_escapes(scene: Scene, crossed: Crossed, sums: _Sums[LeakSurvival]) -> None:
    """Adds what was sent after a clear of the source, by how it came to be there."""
    p, push = scene.trace.pushed, crossed.frame
    if not len(push):
        return
    clears = scene.ledger.clears
    cleared = [
        max((c for c in clears if c[0] == source and c[1] <= at), default=None)
        for source, at in zip(p.source[push].tolist(), crossed.at_ns.tolist(), strict=True)
    ]
    ended = np.array([-FOREVER if c is None else c[2] for c in cleared], dtype=np.int64)
    late = p.at_ns[push] > ended
    long = ~late & _in_pieces(scene, crossed, ended)
    names: tuple[tuple[LeakSurvival, Bools], ...] = (
        ("pushed-late", late),
        ("rest-of-long-frame", long),
        ("survived-clear", ~late & ~long),
    )
    for how, rows in names:
        _add(sums, how, crossed.taken(rows))


def _in_pieces(scene: Scene, crossed: Crossed, cleared_ns: NDArray[np.int64]) -> Bools:
    """Whether each stretch is of a frame longer than its source's queue; where the queue's size is
    not known, of one whose front had left before the clear that its rest came after."""
    p, parts = scene.trace.pushed, scene.ledger.parts
    queues: Mapping[int, int] = {
        e.source: e.queue_ms
        for e in scene.events
        if isinstance(e, Tapped) and e.source is not None and e.queue_ms
    }
    found = np.zeros(len(crossed.frame), np.bool_)
    for row, (push, ended) in enumerate(
        zip(crossed.frame.tolist(), cleared_ns.tolist(), strict=True)
    ):
        queue_ms = queues.get(int(p.source[push]))
        if queue_ms is not None:
            found[row] = int(p.samples[push]) * 1000 > int(p.rate_hz[push]) * queue_ms
            continue
        mine = (parts.push == push) & (parts.sent_ns != NONE)
        found[row] = bool((parts.sent_until_ns[mine] <= ended).any())
    return found


def _emptied_ns(scene: Scene, speech: str, began_ns: int, ended_ns: int) -> int:
    """From when on what is sent was sent after a clear of the source.

    The stamp of a block may be late by the resolution, so a sample counts as sent after the
    clear only beyond that, unless its position lies behind what the clear took.
    """
    latest = ended_ns + scene.resolution
    taken = scene.taken_until.get(began_ns)
    if taken is not None:
        parts, rows = scene.ledger.parts, scene.audio.parts(speech)
        behind = parts.sent_ns[rows[parts.start[rows] >= taken]]
        latest = min(latest, int(behind.min()) if len(behind) else latest)
    return max(latest, began_ns)


def survives(scene: Scene, speech: str, clear_ns: int) -> bool:
    """Whether a push that was under way when the source was cleared went out all the same."""
    ended = next((ended for _, _, ended in scene.clears(clear_ns, clear_ns + 1)), clear_ns)
    parts, p, rows = scene.ledger.parts, scene.trace.pushed, scene.audio.parts(speech)
    rows = rows[(parts.run[rows] >= 0) & (parts.sent_ns[rows] > ended)]
    push = parts.push[rows]
    return bool(((p.at_ns[push] <= ended) & (p.ended_ns[push] >= clear_ns)).any())
