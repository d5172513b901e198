"""What left the sources against its own time: which stamps came late, and which can't be true.

Every tick of a source hands on one block of 10 ms, so samples and time say the same thing twice.
Where every tick yields a block and the reading knows it (``grouped``), the blocks of a reading are
one beat without a hole. Elsewhere they may leave gaps, but still come 10 ms apart at the least.

A stamp is the time of an arrival: late by all sorts of things and never early. A writer corrects
stamps by the earliest arrivals it has seen in the last five seconds; what it finds out too late for
a line that is written, a reader finds there as well. So a beat that *comes forward* says that the
stamps before it were late, and by how much: they are put right. It cannot come forward to before
the reading began: then there are more blocks than time. A beat that *falls back* for good was late
for five seconds on end, or blocks are missing; the first is named and bounds what the stamps are
worth, and where it can't be the case the trace contradicts itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.columns import Ints, PushedColumns
from probe.trace.events import Event
from probe.trace.problems import TraceProblem, found
from probe.trace.stretches import BLOCK_NS, Bools, Stretches

__all__ = ["Settled", "settle"]

LONGEST_RUN_NS: Final = 200_000_000
"""When a run ends at the latest."""

SLIP_NS: Final = 8_000_000
"""How far a stretch may be off the beat: less than a block, so that one left out or added is seen.
Of 690 calls, the worst was off by a third of a millisecond."""

LATE_NS: Final = 150_000_000
"""How late stamps may be that are bare arrivals: so late they are while Python
code holds the interpreter."""

BEHIND_NS: Final = 500_000_000
"""How far a beat may fall back for good."""

YOUNG_NS: Final = 2_000_000_000
"""How long stamps that are put right later are nothing to talk of: a process that starts is busy
with itself."""

WINDOW_NS: Final = 4_500_000_000
"""A beat can't fall back in less time after its start or after it came forward: a writer goes by
the earliest arrival of five seconds, less what it may hold back."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Sent runs and inserted silence, late stamps put right where later ones say how late."""

    sent: dict[str, Any]
    inserted: dict[str, Any]
    problems: tuple[TraceProblem, ...]
    late_ns: int
    """How late stamps may be of which no later one says so; 0: not that one knows."""


def settle(
    events: Sequence[Event],
    event_lines: Ints,
    pushed: PushedColumns,
    sent: Mapping[str, Any],
    inserted: Mapping[str, Any],
    *,
    whole: bool,
) -> Settled:
    """Puts late stamps right and checks what left the sources.

    Args:
        events: the rare events, in the order of the file, and their lines.
        pushed: the pushes, for the rate of a source whose tap does not say it.
        sent: columns of `RunSent` in the order of the file.
        inserted: the same of `SilenceInserted`.
        whole: whether the trace was closed; one that was cut may end anywhere.
    """
    wire = Stretches.of(events, event_lines, pushed, sent, inserted)
    if not len(wire.line):
        return Settled(dict(sent), dict(inserted), (), 0)
    beat = _Beat.of(wire)
    problems, sound = _check_beat(wire, beat)
    late = np.empty((len(wire.line), 2), np.int64)
    late[wire.order] = np.where(sound, beat.late_ns, 0).reshape(-1, 2)
    at_ns, until_ns = (np.concatenate((sent[n], inserted[n])) for n in ("at_ns", "until_ns"))
    at_ns, until_ns = at_ns - late[:, 0], until_ns - late[:, 1]
    count = len(sent["line"])
    return Settled(
        {**sent, "at_ns": at_ns[:count], "until_ns": until_ns[:count]},
        {**inserted, "at_ns": at_ns[count:], "until_ns": until_ns[count:]},
        (*_check_stretches(wire), *_check_blocks(wire, beat, whole), *problems),
        int(np.max(beat.behind_ns, where=sound, initial=0)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Beat:
    """Blocks against time, at both edges of each stretch; two rows of it to one of the wire."""

    before: Ints
    """Samples of the reading before each stretch, those missing in its first block included."""
    upto: Ints
    at_ns: Ints
    """Of the edge."""
    step_ns: Ints
    """How far the beat fell back (above 0) or came forward from the edge before it."""
    fell: Bools
    """Whether it came forward by more than stamps are off."""
    late_ns: Ints
    """How late the stamp is, as later ones say."""
    lost_ns: Ints
    """How much of the step no later stamp makes up for: late for good, or blocks are missing."""
    behind_ns: Ints
    """The same of all steps of the reading up to here."""
    since_ns: Ints
    """When its reading began, or came forward last."""
    reading: Ints

    @classmethod
    def of(cls, wire: Stretches) -> _Beat:
        reading = np.cumsum(wire.first) - 1
        begin = np.flatnonzero(wire.first)
        total = np.cumsum(wire.samples)
        base = (total - wire.samples - wire.offset)[begin][reading]
        upto = total - base
        before = upto - wire.samples
        block = np.maximum(wire.block, 1)
        at_ns = _edges(wire.at_ns, wire.until_ns)
        phase = at_ns - _edges(before // block, -(-upto // block)) * BLOCK_NS
        step = np.append(0, np.diff(phase))
        opens = _edges(wire.first, np.zeros_like(wire.first))
        step[opens | np.repeat(wire.block == 0, 2)] = 0
        grouped = np.repeat(wire.grouped, 2)
        slip = np.where(grouped, SLIP_NS, np.repeat(np.maximum(wire.resolution_ns, BLOCK_NS), 2))
        fell = step < -slip
        late, lost = _lateness(step, fell, opens, grouped)
        total_lost = np.cumsum(lost)
        edge_reading = np.repeat(reading, 2)
        marks = np.maximum.accumulate(np.where(opens | fell, np.arange(len(step)), 0))
        return cls(
            before=before,
            upto=upto,
            at_ns=at_ns,
            step_ns=step,
            fell=fell,
            late_ns=late,
            lost_ns=lost,
            behind_ns=total_lost - (total_lost - lost)[2 * begin][edge_reading],
            since_ns=at_ns[marks],
            reading=edge_reading,
        )


def _lateness(step: Ints, fell: Bools, opens: Bools, grouped: Bools) -> tuple[Ints, Ints]:
    """How late each stamp is by what comes after it, and what of each step is never made up for.

    A beat that comes forward says that all stamps before it were late, back to where it fell back.
    """
    rose = grouped & (step > SLIP_NS)
    late, lost = np.zeros_like(step), np.where(rose, step, 0)
    if fell.any():
        owed = 0
        for edge in range(len(step) - 1, -1, -1):
            late[edge] = owed
            if opens[edge]:
                owed = 0
            elif fell[edge]:
                owed -= int(step[edge])
            elif owed and (rose[edge] or (step[edge] > 0 and not grouped[edge])):
                paid = min(owed, int(step[edge]))
                owed -= paid
                lost[edge] = max(lost[edge] - paid, 0)
        lost[lost <= SLIP_NS] = 0
    return late, lost


def _edges(begin: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
    """Both edges of each stretch, one behind the other."""
    return np.stack((begin, end), axis=1).ravel()


# --- Checks --------------------------------------------------------------------------------------


def _check_stretches(wire: Stretches) -> Iterator[TraceProblem]:
    """Each stretch by itself."""
    line, known = wire.line, wire.block > 0
    yield from found(wire.samples == 0, line, "inconsistent", "a stretch without samples")
    yield from found(
        known & wire.is_sent & (wire.offset >= wire.block),
        line,
        "inconsistent",
        "sent: it begins beyond its first block",
    )
    blocks = -(-(wire.offset + wire.samples) // np.maximum(wire.block, 1))
    allowed = np.maximum(wire.resolution_ns, BLOCK_NS)
    length = np.where(wire.grouped, blocks * BLOCK_NS, wire.until_ns - wire.at_ns)
    yield from found(
        known & ~wire.grouped & (length - blocks * BLOCK_NS > allowed),
        line,
        "inconsistent",
        "a stretch lasts longer than its samples",
    )
    yield from found(
        wire.is_sent & (length > LONGEST_RUN_NS + allowed),
        line,
        "inconsistent",
        f"sent: expected runs of at most {LONGEST_RUN_NS // 1_000_000} ms, found a longer one",
    )
    # Late stamps may be alike by chance, but not those of neighbours, to the nanosecond.
    same = [np.diff(values) == 0 for values in (wire.at_ns, wire.until_ns, wire.samples)]
    again = np.append(False, np.logical_and.reduce(same)) & ~wire.first & ~wire.is_sent
    yield from found(again, line, "inconsistent", "inserted: a stretch is written twice")


def _check_blocks(wire: Stretches, beat: _Beat, whole: bool) -> Iterator[TraceProblem]:
    """Where every tick yields a block, each stretch goes on where the one before it stopped."""
    block = np.maximum(wire.block, 1)
    yield from found(
        wire.grouped & wire.is_sent & (wire.offset != beat.before % block),
        wire.line,
        "inconsistent",
        "sent: it does not begin in its block where the stretch before it stopped",
    )
    last = np.append(wire.first[1:], True)
    yield from found(
        whole & last & wire.grouped & (beat.upto % block != 0),
        wire.line,
        "inconsistent",
        "a source stopped in the middle of a block",
    )


def _contradictions(wire: Stretches, beat: _Beat) -> Iterator[tuple[Bools, str]]:
    """Edges at which a beat does what no lateness explains, and what to say of them."""
    grouped = np.repeat(wire.grouped, 2)
    rose = beat.lost_ns > 0
    lost = rose & ((beat.at_ns - beat.since_ns < WINDOW_NS) | (beat.behind_ns > BEHIND_NS))
    yield lost, "more time passed at a source than blocks left it"
    # Stamps are put right, but to no time before their reading began.
    begin = 2 * np.flatnonzero(wire.first)
    room = (beat.at_ns - beat.late_ns)[begin] - wire.since_ns[wire.first]
    crowded = (wire.grouped[wire.first] & (room < -BLOCK_NS))[beat.reading]
    opens = np.zeros_like(crowded)
    opens[begin] = True
    yield crowded & (beat.fell | opens), "more blocks left a source than time passed at it"
    owed = np.append(0, beat.late_ns[:-1])
    squeezed = ~grouped & beat.fell & (owed > LATE_NS)
    inside = np.arange(len(grouped)) % 2 == 1
    yield squeezed & inside, "a stretch is too short for its samples"
    yield squeezed & ~inside, "two stretches left one source at the same time"


def _check_beat(wire: Stretches, beat: _Beat) -> tuple[list[TraceProblem], Bools]:
    """What contradicts itself, and what came late.

    Returns:
        Problems, and for each edge whether nothing contradicts itself in its reading.
    """
    line = np.repeat(wire.line, 2)
    problems: list[TraceProblem] = []
    sound = np.ones(len(line), np.bool_)
    for bad, text in _contradictions(wire, beat):
        problems += found(bad, line, "inconsistent", text)
        sound &= ~np.isin(beat.reading, beat.reading[bad])
    begin = 2 * np.flatnonzero(wire.first)
    rises = np.cumsum(np.repeat(wire.grouped, 2) & (beat.step_ns > SLIP_NS))
    told = (beat.at_ns - beat.at_ns[begin][beat.reading] > YOUNG_NS) | (
        rises > rises[begin][beat.reading]
    )
    told &= sound & beat.fell
    late_ns = int(np.max(-beat.step_ns, where=told, initial=0))
    problems += found(
        told,
        line,
        "late",
        f"stamps of what left a source before came up to {late_ns / 1e6:.1f} ms late: put right",
    )
    behind_ns = int(np.max(beat.behind_ns, where=sound, initial=0))
    problems += found(
        sound & (beat.lost_ns > 0),
        line,
        "late",
        f"stamps of what left a source may be up to {behind_ns / 1e6:.1f} ms late from here on",
    )
    return problems, sound
