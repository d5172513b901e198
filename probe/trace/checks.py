"""What the lines of a trace have to agree on with each other: this is what makes it a valid one.

Nothing else checks it again: a report relies on what is said here of a trace without problems.

* Frames and pushes are numbered from 1 without a gap, in the order of their calls.
* Captured positions begin at 0 and leave no hole. So do pushed ones, but for the room that a push
  keeps if it was refused only after the next one was numbered.
* What a push was made of adds up to it and is in a captured frame. Whether it was pushed in order,
  and once, is a matter of the sink, and of the account.
* What left a source was pushed to it, left once, and in order.
* A speech that is spoken of was created, or was there when the probe came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from probe.trace.columns import NONE, CapturedColumns, Ints, PushedColumns, SentColumns
from probe.trace.events import (
    Event,
    Header,
    LoopStalled,
    PlaybackReported,
    QueueCleared,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    Tapped,
)
from probe.trace.lines import shown
from probe.trace.problems import TraceProblem, found

__all__ = [
    "check_captured",
    "check_events",
    "check_order",
    "check_origins",
    "check_pushed",
    "check_sent",
    "check_span",
    "check_speeches",
]

ORDINARY_DISORDER_NS: Final = 1_000_000_000
"""How far lines may run backwards in time because several threads write."""

LATE_MATCH_NS: Final = 60_000_000_000
"""The same for what left the source: silence is told from speech only by what comes after it."""


# --- Frames and pushes ---------------------------------------------------------------------------


def check_captured(captured: CapturedColumns) -> Iterator[TraceProblem]:
    """Numbers, positions and times of the captured frames."""
    order = np.argsort(captured.frame, kind="stable")
    number, line = captured.frame[order], captured.line[order]
    start, stop = _positions(captured, order)
    yield from _check_numbers("captured", "frame", number, line, captured.at_ns[order])
    yield from found(
        _follows(number) & (start != np.append(0, stop)[:-1]),
        line,
        "inconsistent",
        "a captured frame does not start where the one before it stopped",
    )
    yield from check_span("captured", captured.line, captured.at_ns, captured.ended_ns)


def check_pushed(pushed: PushedColumns) -> Iterator[TraceProblem]:
    """Numbers, positions and times of the pushes."""
    order = np.argsort(pushed.push, kind="stable")
    number, line = pushed.push[order], pushed.line[order]
    start, stop = _positions(pushed, order)
    yield from _check_numbers("pushed", "push", number, line, pushed.at_ns[order])
    # Positions of a refused push are nobody's: what comes next takes them, or leaves them out.
    accepted = pushed.accepted[order]
    taken = np.append(0, np.maximum.accumulate(np.where(accepted, stop, 0)))[:-1]
    edges = np.unique(np.concatenate((start[~accepted], stop[~accepted])))
    kept = np.append(0, np.maximum.accumulate(np.where(accepted, 0, stop)))[:-1]
    fits = (start == taken) | ((start > taken) & (start <= kept) & np.isin(start, edges))
    yield from found(
        _follows(number) & ~fits,
        line,
        "inconsistent",
        "a push does not start where the one before it stopped",
    )
    yield from check_span("pushed", pushed.line, pushed.at_ns, pushed.ended_ns)


def check_origins(
    captured: CapturedColumns, pushed: PushedColumns, *, whole: bool
) -> Iterator[TraceProblem]:
    """What the pushes were made of.

    ``whole``: whether every line was written; of a trace that was cut the newest frames and the
    ends of the newest pushes are missing.
    """
    count = np.diff(pushed.range_offset)
    summed = np.append(0, np.cumsum(pushed.range_samples))[pushed.range_offset]
    yield from found(
        pushed.matched & (np.diff(summed) != pushed.samples),
        pushed.line,
        "inconsistent",
        "the captured ranges of a push do not add up to its samples",
    )
    yield from found(
        whole & (len(captured) > 0) & pushed.accepted & ~pushed.matched & (pushed.samples > 0),
        pushed.line,
        "missing",
        "what a push was made of was never written",
    )
    row = np.repeat(np.arange(len(pushed)), count)
    known = (pushed.range_start != NONE) & (pushed.range_samples > 0)
    stop = (pushed.range_start + pushed.range_samples)[known]
    reach = int((captured.start_sample + captured.samples).max()) if len(captured) else 0
    yield from found(
        whole & (stop > reach),
        pushed.line[row[known]],
        "inconsistent",
        "a push is made of a captured position that no frame has",
    )


def check_sent(pushed: PushedColumns, sent: SentColumns, *, whole: bool) -> Iterator[TraceProblem]:
    """What left the sources, against what was pushed to them."""
    known = np.flatnonzero(sent.start_sample != NONE)
    by_position = known[np.argsort(sent.start_sample[known], kind="stable")]
    start, stop = _positions(sent, by_position)
    yield from found(
        start[1:] < stop[:-1], sent.line[by_position][1:], "inconsistent", "a sample is sent twice"
    )
    # In the order of the file: of one source, what was written first left first.
    in_order = known[np.lexsort((sent.line[known], sent.source[known]))]
    start, stop = _positions(sent, in_order)
    source, line = sent.source[in_order], sent.line[in_order]
    yield from found(
        (start[1:] < start[:-1]) & (source[1:] == source[:-1]),
        line[1:],
        "inconsistent",
        "samples left a source in another order than they entered it",
    )
    pushes = np.flatnonzero(pushed.accepted & (pushed.samples > 0))
    pushes = pushes[np.lexsort((pushed.start_sample[pushes], pushed.source[pushes]))]
    held = _held(pushed, pushes, source, start, stop)
    reach = int((pushed.start_sample + pushed.samples).max()) if len(pushed) else 0
    yield from found(
        (held != stop - start) & (whole | (stop <= reach)),
        line,
        "inconsistent",
        "samples left a source that never took them",
    )


def _held(pushed: PushedColumns, rows: Ints, source: Ints, start: Ints, stop: Ints) -> Ints:
    """Of stretches of positions: how many samples of them were pushed to the source of each.

    ``rows``: of accepted pushes, by source and position. ``source``: ascending.
    """
    held = np.zeros_like(start)
    for name in np.unique(source).tolist():
        runs = slice(*np.searchsorted(source, (name, name + 1)).tolist())
        mine = rows[slice(*np.searchsorted(pushed.source[rows], (name, name + 1)).tolist())]
        if len(mine):
            begin, samples = pushed.start_sample[mine], pushed.samples[mine]
            before = np.cumsum(samples) - samples
            for sign, position in ((1, stop[runs]), (-1, start[runs])):
                row = np.maximum(np.searchsorted(begin, position, "right") - 1, 0)
                held[runs] += sign * (before[row] + np.clip(position - begin[row], 0, samples[row]))
    return held


def check_span(name: str, line: Ints, begin: Ints, end: Ints) -> Iterator[TraceProblem]:
    """What ended before it began."""
    bad = (end != NONE) & (end < begin)
    yield from found(bad, line, "time", f"{name}: it ended before it began")


def _positions(columns: Any, rows: Ints) -> tuple[Ints, Ints]:
    start = columns.start_sample[rows]
    return start, start + columns.samples[rows]


def _follows(number: Ints) -> Any:
    """Whether each number is the one after that before it, the first whether it is 1."""
    return np.diff(number, prepend=0) == 1


def _check_numbers(
    name: str, key: str, number: Ints, line: Ints, at_ns: Ints
) -> Iterator[TraceProblem]:
    """Frames and pushes are numbered in the order of their calls, by the thread that calls."""
    if len(number) and number[-1] != len(number):
        row = int(np.argmax(number != np.arange(1, len(number) + 1)))
        text = f"{name}: expected {key} {row + 1}, found {key} {number[row]}"
        yield TraceProblem(int(line[row]), "missing", text, int(number[-1]) - len(number))
    yield from found(
        at_ns[1:] < at_ns[:-1],
        line[1:],
        "time",
        f"{name}: the times of the calls do not rise with their {key} numbers",
    )


# --- Events --------------------------------------------------------------------------------------


def check_events(events: Sequence[Event], lines: Ints) -> Iterator[TraceProblem]:
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
    yield from found(ends, lines, "time", "it ended before it began")
    yield from found(back, lines, "time", "a call is written after a later one of its kind")
    yield from found(early, lines, "time", "a speech was committed or done before it was created")
    yield from found(blocks, lines, "inconsistent", "a block is not a hundredth of the rate")


def check_speeches(
    header: Header,
    events: Sequence[Event],
    lines: Ints,
    captured: CapturedColumns,
    texts: Sequence[str],
) -> Iterator[TraceProblem]:
    """Speeches that nobody made. Where none was seen being made, or the session went on before the
    probe came and nothing says which speeches it had, nothing can be said.

    ``texts``: what ``captured.speech`` points into.
    """
    known = {event.speech for event in events if isinstance(event, SpeechCreated)}
    if not known or (header.speeches is None and header.options):
        return
    known.update(header.speeches or ())
    spoken_of, row = np.unique(captured.speech, return_index=True)
    spoken = [
        (int(captured.line[at]), texts[index])
        for index, at in zip(spoken_of.tolist(), row.tolist(), strict=True)
        if index >= 0
    ]
    spoken += [
        (line, speech)
        for event, line in zip(events, lines.tolist(), strict=True)
        if (speech := getattr(event, "speech", None)) is not None
    ]
    unknown = sorted(
        (line, name) for line, name in spoken if name is not None and name not in known
    )
    if unknown:
        line, name = unknown[0]
        text = f"a speech was never created: {shown(name)}"
        yield TraceProblem(line, "missing", text, len({name for _, name in unknown}))


# --- Order ---------------------------------------------------------------------------------------


def check_order(kinds: Iterable[tuple[Ints, Ints, Ints, bool]]) -> Iterator[TraceProblem]:
    """Lines whose time is far before that of lines above them.

    ``kinds``: of lines of a kind their numbers, their times, when what they tell of was over, and
    whether they may be written late.
    """
    line, at_ns, seen, late = (
        np.concatenate(columns)
        for columns in zip(
            *((line, at_ns, seen, np.full(len(line), late)) for line, at_ns, seen, late in kinds),
            strict=True,
        )
    )
    order = np.argsort(line, kind="stable")
    latest = np.maximum.accumulate(at_ns[order])
    back = latest - seen[order]
    bad = back > np.where(late[order], LATE_MATCH_NS, ORDINARY_DISORDER_NS)
    if bad.any():
        first = int(np.argmax(bad))
        text = f"time runs backwards by {back[first] / 1e9:.3f} s"
        yield TraceProblem(int(line[order][first]), "time", text, int(bad.sum()))
