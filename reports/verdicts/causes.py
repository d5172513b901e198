"""Why each sample of a leak was sent: by the state that its own sink and its own source were in.

A pause, a resume or a clear says something of the sink it went to, and of no other. It shuts a gate
as soon as that sink pushes no more, for one that goes on pushing is open. In a trace whose marks do
not say which sink they went to, the states are followed twice, as if such a mark had and as if it
had not been this sink's; where the two differ, the cause is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from probe.trace.events import SinkMarked
from reports.account.boundary import FOREVER
from reports.account.crossings import Audio, Crossed
from reports.account.facts import Source
from reports.account.stretches import Bools, grouped
from reports.account.wire import CLEARED
from reports.results import Cause, LeakCause, LeakSurvival, Survivor
from reports.units import one_rate
from reports.verdicts.attempts import Attempt

__all__ = ["find_causes"]

ENDLESS_MS: Final = 2**31
"""Taken for the capacity of a queue that is not known: longer than any frame."""


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
        for low, high, cause in _spans(audio, attempt, source, end):
            if high <= begin or low >= end:
                continue
            crossed = audio.left(np.unique(mine.part), max(low, begin), min(high, end))
            if not crossed.samples:
                continue
            sums.setdefault(cause, _Sum()).add(crossed)
            if cause == "after-clear":
                for how, survivors in _survivors(audio, source, crossed):
                    escaped.setdefault(how, _Sum()).add(survivors)
    return (
        tuple(Cause(name, s.samples, one_rate(s.rates)) for name, s in sums.items()),
        tuple(Survivor(how, s.samples, one_rate(s.rates)) for how, s in escaped.items()),
    )


def _spans(
    audio: Audio, attempt: Attempt, source: Source, until_ns: int
) -> Iterator[tuple[int, int, LeakCause]]:
    """From when to when what was sent from a source was sent for one cause."""
    every = audio.ledger.marks
    low, high = (bisect_left(every, at, key=_marked_ns) for at in (attempt.first_ns, until_ns))
    marks = [
        mark for mark, _ in every[low:high] if mark.mark != "flush" and _may_be_of(mark, source)
    ]
    certain = [mark for mark in marks if _is_certain(audio, mark, source)]
    without = _states(audio, attempt, source, certain, until_ns)
    among = _states(audio, attempt, source, marks, until_ns) if certain != marks else without
    edges = sorted({at_ns for states in (without, among) for at_ns, _ in states})
    for low, high in pairwise([*edges, FOREVER]):
        cause = _at(without, low)
        yield low, high, cause if cause == _at(among, low) else "not-known"


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


def _at(states: Sequence[tuple[int, LeakCause]], at_ns: int) -> LeakCause:
    return next(cause for since, cause in reversed(states) if since <= at_ns)


def _states(
    audio: Audio, attempt: Attempt, source: Source, marks: Sequence[SinkMarked], until_ns: int
) -> list[tuple[int, LeakCause]]:
    """Since when what is sent from a source is sent for which cause, in order of time."""
    changes: list[tuple[int, int, str]] = [
        (mark.at_ns, mark.at_ns, mark.mark) for mark in marks if mark.mark != "pause"
    ]
    ends = sorted(at_ns for at_ns, _, _ in changes)
    for mark in marks:
        if mark.mark == "pause":
            until = next((at_ns for at_ns in ends if at_ns > mark.at_ns), until_ns)
            changes.append((mark.at_ns, _shut_ns(audio, source, mark.at_ns, until), "pause"))
    low, high = (bisect_left(source.clears, (at,)) for at in (attempt.first_ns, until_ns))
    changes += [
        (began, _emptied_ns(audio, attempt.speech, source, began, ended), "emptied")
        for began, ended in source.clears[low:high]
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
    return since


def _shut_ns(audio: Audio, source: Source, paused_ns: int, until_ns: int) -> int:
    """When the gate of a paused sink was shut: it pushed nothing more until ``until_ns``."""
    p = audio.trace.pushed
    low = np.searchsorted(p.at_ns, paused_ns, "right")
    between = slice(low, max(low, np.searchsorted(p.at_ns, until_ns, "left")))
    pushed = p.at_ns[between][p.source[between] == source.number]
    return int(pushed.max(initial=paused_ns))


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
    p, push = audio.trace.pushed, crossed.frame
    ended = [
        source.clears[bisect_left(source.clears, (at + 1,)) - 1][1] for at in crossed.at_ns.tolist()
    ]
    late = p.at_ns[push] > np.array(ended)
    queue_ms = source.queue_ms or ENDLESS_MS
    long = ~late & (p.samples[push] * 1000 > p.rate_hz[push] * queue_ms)
    names: tuple[tuple[LeakSurvival, Bools], ...] = (
        ("pushed-late", late),
        ("rest-of-long-frame", long),
        ("survived-clear", ~late & ~long),
    )
    return [(how, crossed.taken(rows)) for how, rows in names if rows.any()]
