"""Why each sample of a leak was sent: by the state that its own sink and its own source were in.

A pause, a resume or a clear says something of the sink it went to, and of no other; and what a sink
pushed although it was paused was not held by that pause. In a trace whose marks do not say which
sink they went to, the states are followed twice, as if such marks had been this sink's and as if
they had not; where that makes a difference, the cause is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import SinkMarked
from reports.account.boundary import FOREVER
from reports.account.crossings import Audio, Crossed
from reports.account.facts import Source
from reports.account.stretches import Bools, Ints, grouped
from reports.account.wire import CLEARED
from reports.results import Cause, LeakCause, LeakSurvival, Survivor
from reports.units import one_rate
from reports.verdicts.attempts import Attempt

__all__ = ["find_causes"]

CAUSES: Final[tuple[LeakCause, ...]] = get_args(LeakCause)


@dataclass(slots=True)
class _Sum:
    samples: int = 0
    rates: set[int] = field(default_factory=set)

    def add(self, crossed: Crossed) -> None:
        self.samples += crossed.samples
        self.rates |= crossed.rates


def find_causes(
    audio: Audio, attempt: Attempt, leaked: Crossed
) -> tuple[tuple[Cause, ...], tuple[Survivor, ...]]:
    """Why a leak was sent, and how what was sent after a clear of its source escaped that.

    The samples of all causes add up to the leak, those of the survivors to its cause
    ``after-clear``. Exact, but for samples that left within the resolution of a change of state.
    """
    sums: dict[LeakCause, _Sum] = {}
    escaped: dict[LeakSurvival, _Sum] = {}
    for number, rows in grouped(audio.ledger.parts.source[leaked.part]):
        source = audio.ledger.facts.sources[number]
        mine = leaked.taken(rows)
        begin, end = int(mine.at_ns.min()), int(mine.until_ns.max())
        for low, high, states in _spans(audio, attempt, source, end):
            if high <= begin or low >= end:
                continue
            crossed = audio.left(np.unique(mine.part), max(low, begin), min(high, end))
            for cause, caused in _told_apart(audio, crossed, states):
                sums.setdefault(cause, _Sum()).add(caused)
                if cause == "after-clear":
                    for how, survivors in _survivors(audio, source, caused):
                        escaped.setdefault(how, _Sum()).add(survivors)
    return (
        tuple(Cause(name, s.samples, one_rate(s.rates)) for name, s in sums.items()),
        tuple(Survivor(how, s.samples, one_rate(s.rates)) for how, s in escaped.items()),
    )


@dataclass(frozen=True, slots=True)
class _State:
    """What a source and its sink were in, from an instant on."""

    since_ns: int
    cause: LeakCause
    paused_ns: int = -FOREVER
    """When the gate was shut, where it was."""

    def causes(self, pushed_ns: Ints) -> NDArray[np.str_]:
        """Why each of some samples was sent. What was pushed after the gate was shut is proof that
        nothing stopped it."""
        through = (self.cause == "queue-played-on") & (pushed_ns > self.paused_ns)
        return np.where(through, "not-stopped", self.cause)


def _told_apart(
    audio: Audio, crossed: Crossed, states: Sequence[_State]
) -> Iterator[tuple[LeakCause, Crossed]]:
    """What left while a source was in one of these states, by its cause."""
    pushed_ns = audio.trace.pushed.at_ns[crossed.frame]
    first, *others = (state.causes(pushed_ns) for state in states)
    for other in others:
        first = np.where(first == other, first, "not-known")
    for cause in CAUSES:
        if (first == cause).any():
            yield cause, crossed.taken(first == cause)


def _spans(
    audio: Audio, attempt: Attempt, source: Source, until_ns: int
) -> Iterator[tuple[int, int, Sequence[_State]]]:
    """From when to when a source was in which states: one, or one of two."""
    every = audio.ledger.marks
    low, high = (bisect_left(every, at, key=_marked_ns) for at in (attempt.first_ns, until_ns))
    marks = [
        mark for mark, _ in every[low:high] if mark.mark != "flush" and _may_be_of(mark, source)
    ]
    certain = [mark for mark in marks if _is_certain(audio, mark, source)]
    ways = [_states(audio, attempt, source, certain, until_ns)]
    if len(certain) < len(marks):
        ways.append(_states(audio, attempt, source, marks, until_ns))
    edges = sorted({state.since_ns for states in ways for state in states})
    for low, high in pairwise([*edges, FOREVER]):
        yield low, high, [[s for s in states if s.since_ns <= low][-1] for states in ways]


def _marked_ns(mark: tuple[SinkMarked, int]) -> int:
    return mark[0].at_ns


def _may_be_of(mark: SinkMarked, source: Source) -> bool:
    """Whether a mark may have gone to the sink of a source."""
    return mark.sink is None or source.sink is None or mark.sink == source.sink


def _is_certain(audio: Audio, mark: SinkMarked, source: Source) -> bool:
    """Whether a mark that may be of the source's sink can be of no other."""
    if mark.sink is not None and source.sink is not None:
        return True
    return len(audio.ledger.facts.sources) == 1


def _states(
    audio: Audio, attempt: Attempt, source: Source, marks: Sequence[SinkMarked], until_ns: int
) -> list[_State]:
    """The states of a source with these marks of its sink, in order of time."""
    low, high = (bisect_left(source.clears, (at,)) for at in (attempt.first_ns, until_ns))
    changes: list[tuple[int, int, str]] = [(mark.at_ns, mark.at_ns, mark.mark) for mark in marks]
    changes += [
        (began, _emptied_ns(audio, attempt.speech, source, began, ended), "emptied")
        for began, ended in source.clears[low:high]
    ]
    state = _State(-FOREVER, "not-stopped")
    cleared = False
    found = [state]
    for _, effective, what in sorted(changes):
        if what == "pause" and not cleared:
            state = _State(effective, "queue-played-on", effective)
        elif what == "emptied":
            state = _State(effective, "after-clear")
        elif what == "clear":
            cleared = True
            if state.cause != "after-clear":
                state = _State(effective, "clear-pending")
        elif what == "resume" and not cleared:
            state = _State(effective, "resumed")
        while found and found[-1].since_ns >= effective:
            found.pop()
        found.append(replace(state, since_ns=effective))
    return found


def _emptied_ns(audio: Audio, speech: str, source: Source, began_ns: int, ended_ns: int) -> int:
    """From when on what is sent was sent after a clear of the source.

    The stamp of a block may be late by the resolution, so a sample counts as sent after the clear
    only beyond that, unless its position lies behind what the clear took.
    """
    latest = ended_ns + source.resolution_ns
    parts, rows = audio.ledger.parts, audio.parts(speech)
    rows = rows[parts.source[rows] == source.number]
    taken = rows[(parts.fate[rows] == CLEARED) & (parts.gone_ns[rows] == began_ns)]
    if len(taken):
        behind = rows[parts.start[rows] >= parts.stop[taken].max()]
        latest = min(latest, int(parts.sent_ns[behind].min(initial=FOREVER)))
    return max(latest, began_ns)


def _survivors(
    audio: Audio, source: Source, crossed: Crossed
) -> Iterable[tuple[LeakSurvival, Crossed]]:
    """What was sent after a clear of the source, by how it came to be there."""
    ended = [
        source.clears[bisect_left(source.clears, (at + 1,)) - 1][1] for at in crossed.at_ns.tolist()
    ]
    late = audio.trace.pushed.at_ns[crossed.frame] > np.array(ended)
    pieces = zip(crossed.frame.tolist(), ended, strict=True)
    long = ~late & np.array([_in_pieces(audio, source, push, at) for push, at in pieces])
    names: tuple[tuple[LeakSurvival, Bools], ...] = (
        ("pushed-late", late),
        ("rest-of-long-frame", long),
        ("survived-clear", ~late & ~long),
    )
    return [(how, crossed.taken(rows)) for how, rows in names if rows.any()]


def _in_pieces(audio: Audio, source: Source, push: int, cleared_ns: int) -> bool:
    """Whether a frame is longer than its source's queue; where the queue's size is not known,
    whether its front had left before the clear that its rest came after."""
    p, parts = audio.trace.pushed, audio.ledger.parts
    if source.queue_ms is not None:
        return int(p.samples[push]) * 1000 > int(p.rate_hz[push]) * source.queue_ms
    low, high = np.searchsorted(
        parts.start, (p.start_sample[push], p.start_sample[push] + p.samples[push]), "left"
    )
    return bool((parts.sent_until_ns[low:high] <= cleared_ns).any())
