"""What the lines of a trace have to agree on with each other and with their own times.

Every tick of a source hands on one block of 10 ms, so samples and time say the same thing twice.
Where every tick yields a block and the reading knows it (``grouped``), the blocks of a source are
one beat without a hole, and each stretch has to lie on it. Elsewhere blocks are stamped one by one
as they arrive, and a stretch may be squeezed or pulled by as much as arrivals are late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.columns import (
    InsertedColumns,
    Ints,
    ProblemKind,
    PushedColumns,
    SentColumns,
)
from probe.trace.events import (
    Event,
    LoopStalled,
    PlaybackReported,
    QueueCleared,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    Tapped,
    Untapped,
)

__all__ = ["Check", "check_events", "check_rising", "check_wire"]

BLOCK_NS: Final = 10_000_000

LONGEST_RUN_NS: Final = 200_000_000
"""When a run ends at the latest."""

UNKNOWN_RESOLUTION_NS: Final = 20_000_000
"""Taken where a tap does not say how exact its times are: what reading block by block reaches."""

SLIP_NS: Final = 8_000_000
"""How far a stretch may be off the beat: less than a block, so that one left out or added is seen.
Of 690 calls, the worst was off by a third of a millisecond."""

LATE_NS: Final = 150_000_000
"""How much of a stretch may be squeezed where stamps are arrivals: so late are they while Python
code holds the interpreter."""

SETTLING_NS: Final = 2_000_000_000
"""How long a reading may need until one of its stamps is in time and corrects the others."""

SETTLING_LATE_NS: Final = 60_000_000
"""How much a stamp may be corrected until then."""

OPENING_LATE_NS: Final = 500_000_000
"""How late the very first may be, before anything was read: a process that starts is busy with
itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One rule asked of many lines."""

    bad: NDArray[np.bool_]
    line: Ints
    kind: ProblemKind
    text: str


def check_rising(name: str, key: str, numbers: Ints, at_ns: Ints, line: Ints) -> Iterator[Check]:
    """Frames and pushes are numbered in the order of their calls, by the thread that calls."""
    order = np.argsort(numbers, kind="stable")
    times = at_ns[order]
    yield Check(
        times[1:] < times[:-1],
        line[order][1:],
        "time",
        f"{name}: the times of the calls do not rise with their {key} numbers",
    )


def check_events(events: Sequence[Event], lines: Ints) -> Iterator[Check]:
    """Of the rare events, in file order: calls that end before they begin or come before the one
    that the same thread wrote last, speeches that end before they are made, absurd taps."""
    ends = np.zeros(len(events), np.bool_)
    early = np.zeros(len(events), np.bool_)
    back = np.zeros(len(events), np.bool_)
    blocks = np.zeros(len(events), np.bool_)
    latest: dict[tuple[str, int | None], int] = {}
    created: dict[str, int] = {}
    for event in events:
        if isinstance(event, SpeechCreated):
            created[event.speech] = min(event.at_ns, created.get(event.speech, event.at_ns))
    for row, event in enumerate(events):
        if isinstance(event, SinkMarked | QueueCleared | PlaybackReported):
            key = (event.NAME, event.source if isinstance(event, QueueCleared) else None)
            back[row] = event.at_ns < latest.get(key, event.at_ns)
            latest[key] = max(event.at_ns, latest.get(key, event.at_ns))
        if isinstance(event, SinkMarked | QueueCleared):
            ends[row] = event.ended_ns is not None and event.ended_ns < event.at_ns
        elif isinstance(event, LoopStalled):
            ends[row] = event.until_ns < event.at_ns
        elif isinstance(event, SpeechCommitted | SpeechDone):
            early[row] = event.at_ns < created.get(event.speech, event.at_ns)
        elif isinstance(event, Tapped):
            blocks[row] = (
                event.block_samples is not None
                and event.rate_hz is not None
                and event.block_samples != event.rate_hz // 100
            )
    yield Check(ends, lines, "time", "it ended before it began")
    yield Check(back, lines, "time", "a call is written after a later one of its kind")
    yield Check(early, lines, "time", "a speech was committed or done before it was created")
    yield Check(blocks, lines, "inconsistent", "a block is not a hundredth of the rate")


def check_wire(
    events: Sequence[Event], pushed: PushedColumns, sent: SentColumns, inserted: InsertedColumns
) -> Iterator[Check]:
    """What left the sources against its own time and against what left before and after it."""
    wire = _Wire.of(events, pushed, sent, inserted)
    if not len(wire.line):
        return
    yield Check(wire.samples == 0, wire.line, "inconsistent", "a stretch without samples")
    known = wire.block > 0
    yield Check(
        known & wire.is_sent & (wire.offset >= wire.block),
        wire.line,
        "inconsistent",
        "sent: it begins beyond its first block",
    )
    block = np.maximum(wire.block, 1)
    blocks = -(-(wire.offset + wire.samples) // block)
    spare = wire.until_ns - wire.at_ns - blocks * BLOCK_NS
    allowed = np.maximum(wire.resolution_ns, BLOCK_NS)
    yield Check(
        known & (spare > allowed),
        wire.line,
        "inconsistent",
        "a stretch lasts longer than its samples",
    )
    yield Check(
        known & ~wire.grouped & (spare < -LATE_NS),
        wire.line,
        "inconsistent",
        "a stretch is too short for its samples",
    )
    yield Check(
        wire.is_sent & (wire.until_ns - wire.at_ns > LONGEST_RUN_NS + allowed),
        wire.line,
        "inconsistent",
        f"sent: expected runs of at most {LONGEST_RUN_NS // 1_000_000} ms, found a longer one",
    )
    for number in np.unique(wire.source).tolist():
        rows = np.flatnonzero(wire.source == number)
        rows = rows[np.lexsort((wire.line[rows], wire.at_ns[rows]))]
        if wire.grouped[rows[0]]:
            # A reading that was opened anew begins a beat of its own.
            reopened = np.searchsorted(wire.reopened.get(number, ()), wire.at_ns[rows], "right")
            for beat in np.unique(reopened).tolist():
                yield from _check_beat(wire, rows[reopened == beat])
        else:
            yield _check_overlap(wire, rows)


def _check_overlap(wire: _Wire, rows: Ints) -> Check:
    reach = np.maximum.accumulate(wire.until_ns[rows])[:-1]
    filled = (wire.offset + wire.samples)[rows] % np.maximum(wire.block[rows], 1) != 0
    # Two stretches that meet inside a block both lie in it.
    shared = (wire.offset[rows][1:] > 0) | filled[:-1]
    allowed = np.maximum(wire.resolution_ns[rows][1:], BLOCK_NS) + shared * BLOCK_NS
    return Check(
        reach - wire.at_ns[rows][1:] > allowed,
        wire.line[rows][1:],
        "inconsistent",
        "two stretches left one source at the same time",
    )


def _check_beat(wire: _Wire, rows: Ints) -> Iterator[Check]:
    """Stretches of one reading in order, where block follows block without a hole.

    Stamps are late and are corrected to earlier ones, so the beat may come forward, most of all
    while the reading is young. It never falls back.
    """
    at_ns, line, block = wire.at_ns[rows], wire.line[rows], wire.block[rows]
    upto = wire.offset[rows[0]] + np.cumsum(wire.samples[rows])
    before = upto - wire.samples[rows]
    yield Check(
        wire.is_sent[rows] & (wire.offset[rows] != before % block),
        line,
        "inconsistent",
        "sent: it does not begin in its block where the stretch before it stopped",
    )
    phase = np.empty(2 * len(rows), np.int64)
    phase[::2] = at_ns - before // block * BLOCK_NS
    phase[1::2] = wire.until_ns[rows] - -(-upto // block) * BLOCK_NS
    step = np.diff(phase)
    lines = np.repeat(line, 2)[1:]
    yield Check(
        step > SLIP_NS,
        lines,
        "inconsistent",
        "more time passed at a source than blocks left it",
    )
    young = np.repeat(at_ns - at_ns[0] < SETTLING_NS, 2)[1:]
    late = np.where(young, SETTLING_LATE_NS, SLIP_NS)
    late[:2] = OPENING_LATE_NS
    yield Check(
        step < -late, lines, "inconsistent", "more blocks left a source than time passed at it"
    )
    yield Check(
        upto[-1:] % block[-1:] != 0,
        line[-1:],
        "inconsistent",
        "a source stopped in the middle of a block",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Wire:
    """Sent runs and inserted silence in one table, with what the tap of their source says."""

    at_ns: Ints
    until_ns: Ints
    samples: Ints
    offset: Ints
    """Where in its first block it begins; 0 for silence, which does not say."""
    line: Ints
    source: Ints
    is_sent: NDArray[np.bool_]
    block: Ints
    """Samples per block, 0: not known."""
    grouped: NDArray[np.bool_]
    resolution_ns: Ints
    reopened: dict[int, Ints]
    """When the reading of a source stopped, by source, ascending."""

    @classmethod
    def of(
        cls,
        events: Sequence[Event],
        pushed: PushedColumns,
        sent: SentColumns,
        inserted: InsertedColumns,
    ) -> _Wire:
        source = np.concatenate((sent.source, inserted.source))
        taps: dict[int, Tapped] = {}
        stopped: dict[int, list[int]] = {}
        for event in events:
            if isinstance(event, Tapped) and event.boundary == "sent" and event.source is not None:
                taps[event.source] = event
            elif (
                isinstance(event, Untapped)
                and event.boundary == "sent"
                and event.source is not None
            ):
                stopped.setdefault(event.source, []).append(event.at_ns)
        names, where = np.unique(source, return_inverse=True)
        told = [_tap(taps.get(name), pushed, name) for name in names.tolist()]

        def spread(nth: int, dtype: Any) -> Any:
            return np.array([values[nth] for values in told], dtype=dtype)[where]

        return cls(
            at_ns=np.concatenate((sent.at_ns, inserted.at_ns)),
            until_ns=np.concatenate((sent.until_ns, inserted.until_ns)),
            samples=np.concatenate((sent.samples, inserted.samples)),
            offset=np.concatenate((sent.block_offset_samples, np.zeros(len(inserted), np.int64))),
            line=np.concatenate((sent.line, inserted.line)),
            source=source,
            is_sent=np.arange(len(source)) < len(sent),
            block=spread(0, np.int64),
            grouped=spread(1, np.bool_),
            resolution_ns=spread(2, np.int64),
            reopened={name: np.sort(np.array(times)) for name, times in stopped.items()},
        )


def _tap(tap: Tapped | None, pushed: PushedColumns, source: int) -> tuple[int, bool, int]:
    """Samples per block, whether every tick yields one, and how exact the times of a source are."""
    block = None if tap is None else tap.block_samples
    if block is None:
        rate = None if tap is None else tap.rate_hz
        if rate is None:
            rates = pushed.rate_hz[pushed.source == source][:1]
            rate = int(rates[0]) if len(rates) else 0
        block = rate // 100
    resolution = None if tap is None else tap.resolution_ns
    return (
        block,
        tap is not None and tap.grouped and block > 0,
        UNKNOWN_RESOLUTION_NS if resolution is None else resolution,
    )
