"""The view of a trace that rules judge: every event in its place, every stretch of audio indexed.

Times are nanoseconds since the trace began, samples are exact. Whatever a rule asks for once per
segment is worked out once for all of them, so that a call of an hour is judged in moments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import (
    InterruptCalled,
    ItemCommitted,
    LoopStalled,
    OptionsChanged,
    OverlapJudged,
    PlaybackReported,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
)
from probe.trace.reader import NONE
from reports.account.boundary import FOREVER, GAP_NS, SENT, Boundary
from reports.account.crossings import Audio, Crossed
from reports.account.losses import Lost
from reports.results import BargeIn, Length, Range, Realtime, Segment
from reports.units import NS_PER_MS, one_rate
from reports.verdicts.turns import turns_of

__all__ = ["FOREVER", "NS_PER_MS", "Case", "Speech"]

Ints = NDArray[np.int64]

LATE_NS: Final = 600 * NS_PER_MS
"""How much later than it happened something may be written: a run of 200 ms, read in groups, and
the quarter of a second that a killed process loses."""


@dataclass(slots=True)
class Speech:
    """What became of one speech, as the session's events tell it."""

    name: str
    created_ns: int | None = None
    allow_interruptions: bool | None = None
    committed_ns: int | None = None
    """`None`: nobody interrupted it."""
    done_ns: int | None = None
    segments: list[int] = field(default_factory=list)
    """Rows of its segments, from 0."""
    items: list[ItemCommitted] = field(default_factory=list)
    """Its messages of the assistant in the session's history."""


class Case:
    """One trace, with everything the ledger and the barge-ins say about it. Never changed."""

    def __init__(
        self,
        audio: Audio,
        segments: tuple[Segment, ...],
        barge_ins: tuple[BargeIn, ...],
        realtime: Realtime | None = None,
    ) -> None:
        self.audio = audio
        self.ledger = audio.ledger
        self.trace = audio.trace
        self.segments = segments
        self.barge_ins = barge_ins
        self.counted = tuple(b for b in barge_ins if b.counts)
        """Those that are barge-ins: no session's close, no caller's leaving, no handoff."""
        self.realtime = realtime
        """``None``: the trace shows no session of a realtime model."""

    # --- How far the trace can be trusted ---------------------------------------------------------

    @property
    def tapped(self) -> frozenset[str]:
        """Boundaries that were tapped."""
        return self.ledger.tapped

    @property
    def missing(self) -> Mapping[str, str]:
        """What the release or the attachment could not show, and why."""
        return self.trace.header.missing

    @cached_property
    def gaps(self) -> str | None:
        """Why something that is not in the trace may have happened all the same: it is damaged,
        lost events, or reached its bound. ``None``: what it shows is all there was.

        A trace that was merely cut is whole as far as it goes.
        """
        for reason in self.ledger.incomplete:
            if not reason.startswith("the trace has no end"):
                return f"the trace is incomplete: {reason}"
        return None

    @cached_property
    def doubt(self) -> str | None:
        """Why amounts of audio can't be judged by this trace; ``None``: they can be."""
        if self.gaps is not None:
            return self.gaps
        if self.ledger.total["unaccounted"]:
            return f"{self.ledger.total['unaccounted']} samples are unaccounted for"
        return None

    @cached_property
    def has_session(self) -> bool:
        """Whether the trace shows events of a session at all."""
        kinds = (SpeechCreated, SpeechCommitted, SpeechDone, StateChanged, OptionsChanged)
        return any(isinstance(event, kinds) for event in self.trace.events)

    def resolution_ns(self) -> int:
        """How exact instants at *sent* are; one block where the trace is silent."""
        known = self.ledger.resolution_ns.get(SENT.name)
        return SENT.resolution_ns if known is None else known

    @property
    def end_ns(self) -> int:
        """Until when the trace shows everything: its end or, where it was cut, some time before,
        for what left last is written last."""
        return self.trace.last_ns - (0 if self.trace.trailer is not None else LATE_NS)

    @cached_property
    def seen_until_ns(self) -> int:
        """Until when the wire was read."""
        bounded = self.ledger.bounded_ns
        ends = [self.ledger.sent_seen_until_ns, self.end_ns]
        return min(ends if bounded is None else [*ends, bounded])

    # --- The session ------------------------------------------------------------------------------

    @cached_property
    def speeches(self) -> dict[str, Speech]:
        """Every speech that was created, captured, interrupted or done, by name."""
        found: dict[str, Speech] = {}

        def known(name: str) -> Speech:
            return found.setdefault(name, Speech(name))

        for event in self.trace.events:
            if isinstance(event, SpeechCreated):
                speech = known(event.speech)
                speech.created_ns = event.at_ns
                speech.allow_interruptions = event.allow_interruptions
            elif isinstance(event, SpeechCommitted):
                speech = known(event.speech)
                if speech.committed_ns is None:
                    speech.committed_ns = event.at_ns
            elif isinstance(event, SpeechDone):
                speech = known(event.speech)
                speech.done_ns = event.at_ns
                if event.interrupted and speech.committed_ns is None:
                    speech.committed_ns = event.at_ns
            elif isinstance(event, ItemCommitted):
                if event.role != "assistant" or event.speech is None:
                    continue
                known(event.speech).items.append(event)
        for row, name in enumerate(self.audio.segment_speech):
            if name is not None:
                known(name).segments.append(row)
        return found

    def speech_of(self, row: int) -> Speech | None:
        """Speech of a segment; ``None`` where code fed the sink itself."""
        name = self.audio.segment_speech[row]
        return None if name is None else self.speeches[name]

    def stopped(self, row: int) -> bool:
        """Whether a segment was interrupted: by its speech, or by what the sink reported of it."""
        speech = self.speech_of(row)
        if speech is not None:
            return speech.committed_ns is not None
        return bool(self.segments[row].interrupted)

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        """When the caller spoke, as the session's user state says it."""
        return [(turn.start_ns, turn.stop_ns) for turn in turns_of(self.trace.events)]

    @cached_property
    def agent_speaking(self) -> list[tuple[int, int]]:
        """When the agent's state was ``speaking``; `FOREVER` where it still was at the end."""
        spoke: list[tuple[int, int]] = []
        since: int | None = None
        for event in self.trace.events:
            if not isinstance(event, StateChanged) or event.who != "agent":
                continue
            if event.new == "speaking" and since is None:
                since = event.at_ns
            elif event.new != "speaking" and since is not None:
                spoke.append((since, event.at_ns))
                since = None
        if since is not None:
            spoke.append((since, FOREVER))
        return spoke

    @cached_property
    def stalls(self) -> list[tuple[int, int]]:
        """When the session's loop stood still."""
        return [(e.at_ns, e.until_ns) for e in self.trace.events if isinstance(e, LoopStalled)]

    @cached_property
    def reports(self) -> list[PlaybackReported]:
        """Playback events of the sink, in time order."""
        return [e for e in self.trace.events if isinstance(e, PlaybackReported)]

    @cached_property
    def overlaps(self) -> list[OverlapJudged]:
        """Verdicts of the interruption model."""
        return [e for e in self.trace.events if isinstance(e, OverlapJudged)]

    @cached_property
    def transcripts(self) -> list[TranscriptReceived]:
        """What the STT delivered, lengths only."""
        return [e for e in self.trace.events if isinstance(e, TranscriptReceived)]

    @cached_property
    def calls(self) -> list[InterruptCalled]:
        """Calls to interrupt a speech."""
        return [e for e in self.trace.events if isinstance(e, InterruptCalled)]

    @cached_property
    def _options(self) -> list[OptionsChanged]:
        return [e for e in self.trace.events if isinstance(e, OptionsChanged)]

    def options_at(self, at_ns: int) -> Mapping[str, Any]:
        """Options that decided interruptions at an instant."""
        nth = bisect_right([e.at_ns for e in self._options], at_ns)
        return self._options[nth - 1].options if nth else self.trace.header.options

    @cached_property
    def dropped(self) -> dict[str | None, list[Lost]]:
        """What never reached the source, by speech."""
        found: dict[str | None, list[Lost]] = {}
        for lost in self.ledger.losses:
            if lost.what == "dropped":
                found.setdefault(self.audio.segment_speech[lost.segment], []).append(lost)
        return found

    def mono_ns(self, unix_s: float) -> int:
        """A wall-clock stamp on the trace's own clock; as good as the machine's wall clock."""
        return round((unix_s - self.trace.header.started_unix_s) * 1e9)

    # --- The sink ---------------------------------------------------------------------------------

    @property
    def gate(self) -> list[tuple[int, int]]:
        """When the gate was shut and opened again; `FOREVER`: it was not opened."""
        return self.ledger.gate

    @cached_property
    def _opened(self) -> list[int]:
        return [opened for _, opened in self.gate]

    def opened_after(self, at_ns: int) -> int:
        """When the gate was opened at or after an instant, having been shut; `FOREVER`: never."""
        nth = bisect_left(self._opened, at_ns)
        return self._opened[nth] if nth < len(self._opened) else FOREVER

    def shut_within(self, since_ns: int, until_ns: int) -> int:
        """How long the gate was shut between two instants."""
        nth = bisect_right(self._opened, since_ns)
        total = 0
        for shut, opened in self.gate[nth:]:
            if shut >= until_ns:
                break
            total += min(opened, until_ns) - max(shut, since_ns)
        return total

    @cached_property
    def _marks(self) -> tuple[list[int], list[SinkMarked], list[int]]:
        marks = self.ledger.marks
        return [m.at_ns for m, _ in marks], [m for m, _ in marks], [owner for _, owner in marks]

    def marks(self, since_ns: int, until_ns: int, *names: str) -> Iterator[tuple[SinkMarked, int]]:
        """Marks from one instant to another (both inclusive) with their segments' rows."""
        times, marks, owners = self._marks
        for i in range(bisect_left(times, since_ns), bisect_right(times, until_ns)):
            if not names or marks[i].mark in names:
                yield marks[i], owners[i]

    def mark_moments(self, since_ns: int, until_ns: int) -> list[tuple[int, str]]:
        """The same as moments of evidence."""
        return [(mark.at_ns, mark.mark) for mark, _ in self.marks(since_ns, until_ns)]

    # --- Segments ---------------------------------------------------------------------------------

    @cached_property
    def first_ns(self) -> list[int]:
        """When each segment's first frame was captured."""
        first: list[int] = self.ledger.sums.first_ns.tolist()
        return first

    def segment_at(self, at_ns: int) -> int:
        """Row of the segment whose first frame came last before an instant; -1: none had."""
        return bisect_right(self.first_ns, at_ns) - 1

    def next_start(self, row: int) -> int:
        """When the next segment's first frame was captured; `FOREVER`: there is none."""
        return self.first_ns[row + 1] if row + 1 < len(self.first_ns) else FOREVER

    def rate_hz(self, row: int) -> int:
        """Rate of a segment's pushed samples, or of the captured where none was pushed."""
        geometry = self.segments[row].geometry
        for pairs in (geometry.get("pushed", ()), geometry["captured"]):
            if pairs:
                return pairs[0].rate_hz
        return 1

    # --- What was sent ----------------------------------------------------------------------------

    @cached_property
    def _by_segment(self) -> tuple[Ints, Ints]:
        """Sent parts sorted by segment and time, and where each segment's begin."""
        parts = self.ledger.parts
        rows = np.flatnonzero((parts.run >= 0) & (parts.segment >= 0) & ~parts.inherited)
        rows = rows[np.lexsort((parts.start[rows], parts.sent_ns[rows], parts.segment[rows]))]
        bounds = np.searchsorted(parts.segment[rows], np.arange(self.ledger.count + 1), "left")
        return rows, bounds

    def sent_rows(self, row: int) -> Ints:
        """Rows of the ledger's parts that were sent of a segment, in the order they left."""
        rows, bounds = self._by_segment
        mine: Ints = rows[bounds[row] : bounds[row + 1]]
        return mine

    @cached_property
    def sent_span(self) -> list[tuple[int, int] | None]:
        """When each segment's first block left and its last had; ``None``: nothing was sent."""
        parts = self.ledger.parts
        return [
            (int(parts.sent_ns[rows].min()), int(parts.sent_until_ns[rows].max()))
            if len(rows := self.sent_rows(row))
            else None
            for row in range(self.ledger.count)
        ]

    def left(self, row: int, since_ns: int, until_ns: int) -> Crossed:
        """What of a segment left the source from one instant to another."""
        return self.audio.left(self.sent_rows(row), since_ns, until_ns)

    @cached_property
    def wire(self) -> tuple[Ints, Ints]:
        """Stretches in which audio was sent without a pause over 15 ms: begins and ends."""
        t = self.trace.sent
        if not len(t):
            return t.at_ns, t.until_ns
        order = np.argsort(t.at_ns, kind="stable")
        begin, end = t.at_ns[order], np.maximum.accumulate(t.until_ns[order])
        new = np.append(True, begin[1:] - end[:-1] > GAP_NS)
        return begin[new], end[np.append(new[1:], True)]

    # --- Evidence ---------------------------------------------------------------------------------

    def length(self, samples: int, rates_hz: Iterable[int]) -> Length:
        """Samples of these rates; how long they are is not known where rates mix."""
        return Length(samples, one_rate(rates_hz))

    def longest_ns(self, crossed: Crossed) -> int:
        """Length of what crossed, taken at the lowest rate in it, to hold against a threshold."""
        lowest = int(crossed.rate_hz.min()) if crossed.samples else None
        return Length(crossed.samples, lowest).ns or 0

    def ranges(self, crossed: Crossed, boundary: Boundary) -> tuple[Range, ...]:
        """What crossed, as evidence; neighbours in one."""
        return tuple(
            Range(boundary.name, s.start_sample, s.stop_sample, s.start_ns, s.stop_ns)
            for s in crossed.leak(boundary.gap_ns).spans
        )

    def captured_range(self, start: int, stop: int, at_ns: int | None = None) -> Range:
        """A stretch of the captured axis, as evidence."""
        return Range("captured", start, stop, at_ns, None)

    def place_ns(self, row: int, captured: int) -> int:
        """Place of a captured position within its segment's audio."""
        rates = [g.rate_hz for g in self.segments[row].geometry["captured"]]
        place = Length(captured - int(self.ledger.sums.start[row]), (rates or [1])[0])
        return place.ns or 0

    def last_sent_place(self, row: int, until_ns: int) -> int | None:
        """Captured position behind the last sample of a segment that left before an instant."""
        rows = self.sent_rows(row)
        parts = self.ledger.parts
        crossed = self.left(row, -FOREVER, until_ns)
        if not len(crossed.stop):
            return None
        last = int(crossed.stop.max()) - 1
        mine = rows[(parts.start[rows] <= last) & (parts.stop[rows] > last)]
        if not len(mine) or parts.captured[mine[0]] == NONE:
            return None
        return int(parts.captured[mine[0]]) + last - int(parts.start[mine[0]]) + 1

    def stalled(self, moments: Iterable[tuple[int, str]], slack_ns: int) -> list[tuple[int, int]]:
        """Stalls of the session's loop that one of the moments lies in, or came right after."""
        times = sorted(at for at, _ in moments)
        found = []
        for begin, end in self.stalls:
            nth = bisect_left(times, begin)
            if nth < len(times) and times[nth] <= end + slack_ns:
                found.append((begin, end))
        return found
