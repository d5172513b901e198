"""Pushes: which the source took, where they lie, and which captured samples they were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from probe.assemble.captured import OPEN_NS, Captured
from probe.assemble.frames import Audio, Fault, read_frame
from probe.assemble.sent import Wire
from probe.follow import FlowMatcher, Match
from probe.taps import calls
from probe.taps.calls import Call
from probe.trace.events import AudioSkipped, Event, FramePushed, PushEnded, PushMatched

__all__ = ["Pushed"]


@dataclass(slots=True)
class Push:
    """One frame handed to a source."""

    record: Call
    push: int
    audio: Audio
    start: int = 0
    overtaken_at: int | None = None
    """Where the first later push begins that was known to be accepted before this one was."""
    value_start: int = 0
    """Position among the values pushed to its source."""
    admitted: bool = False
    refused: bool = False
    match: Match | None = None
    written: bool = False
    ended: bool = False
    """Whether the matcher knows that its call ended."""
    matched: bool = False
    """Whether what it was made of is written."""
    closed: bool = False
    """Whether its end is written."""

    @property
    def source(self) -> int:
        return cast(int, self.record[calls.PUSH_SOURCE])


class Pushed:
    """The boundary *pushed*.

    Args:
        flow: follows what was captured.
        captured: says where captured values lie in samples.
        wire: of a source, by its number.
        fault: takes failures.
    """

    def __init__(
        self,
        flow: FlowMatcher,
        captured: Captured,
        wire: Callable[[int], Wire],
        fault: Fault,
    ) -> None:
        self._flow = flow
        self._captured = captured
        self._wire = wire
        self._fault = fault
        self._pushes: list[Push] = []
        self._doubtful: list[Push] = []
        self._by_number: dict[int, Push] = {}
        self._count = 0
        self._samples = 0
        self._last_admitted: Push | None = None

    def take(self, record: Call) -> None:
        """A frame was handed to a source."""
        audio = read_frame(record[calls.PUSH_FRAME], self._fault)
        record[calls.PUSH_FRAME] = None
        self.settle()
        self._count += 1
        push = Push(record, self._count, audio)
        wire = self._wire(push.source)
        self._by_number[push.push] = push
        self._pushes.append(push)
        if not record[calls.PUSH_OPEN] or wire.closed or calls.end_of(record) == "raised":
            self._refuse(push)
        elif self._may_be_refused(wire, push):
            self._doubtful.append(push)
        else:
            self._admit(push)
        entering = self._captured.is_entering(record[calls.AT])
        self.assign(self._flow.push(push.push, audio.data, entering=entering))
        self._take_back(push)
        if push.admitted or push.refused:
            audio.data = b""

    def settle(self) -> None:
        """Admit or refuse the pushes whose end decided it, in their order."""
        while self._doubtful and self._doubtful[0].record[calls.ENDED] is not None:
            push = self._doubtful.pop(0)
            if calls.end_of(push.record) == "raised" or not push.record[calls.PUSH_OPEN]:
                self._refuse(push)
                self._take_back(push)
            else:
                self._admit(push)
            push.audio.data = b""

    def note_ends(self, now_ns: int) -> None:
        """Tell the matchers of pushes that ended."""
        for push in self._pushes:
            if push.record[calls.ENDED] is not None:
                self._note_end(push, now_ns)

    def assign(self, matches: Iterable[Match]) -> None:
        """Give decided matches to their pushes."""
        for match in matches:
            self._by_number.pop(cast(int, match.key)).match = match

    def write(self, now_ns: int, *, last: bool) -> Iterator[Event]:
        """What is decided, or too old to wait."""
        for push in self._pushes:
            yield from self._write_push(push, now_ns, last)
        self._pushes = [push for push in self._pushes if not (push.closed and push.matched)]

    # --- in or not ----------------------------------------------------------------------------

    def _may_be_refused(self, wire: Wire, push: Push) -> bool:
        if push.record[calls.ENDED] is not None:
            return False
        audio = push.audio
        if wire.rate_hz not in (None, audio.rate_hz):
            return True
        if wire.channels not in (None, audio.channels):
            return True
        return any(
            other is not push
            and other.source == wire.number
            and other.record[calls.ENDED] is None
            and not other.refused
            for other in self._pushes
        )

    def _admit(self, push: Push) -> None:
        """The source takes the frame: give out its positions."""
        push.admitted = True
        push.start = self._samples
        for earlier in self._doubtful:
            if earlier.push < push.push and earlier.overtaken_at is None:
                earlier.overtaken_at = push.start
        self._samples += push.audio.samples
        self._last_admitted = push
        push.value_start = self._wire(push.source).push(
            push.push, push.record, push.audio, push.start
        )

    def _refuse(self, push: Push) -> None:
        push.refused = True
        push.start = self._samples if push.overtaken_at is None else push.overtaken_at

    def _take_back(self, push: Push) -> None:
        """A refused frame may be handed over again: its captured samples are free once more."""
        if push.refused and push.match is not None:
            found = [start for start, _ in push.match.parts if start is not None]
            if found:
                self._flow.rewind(found[0])

    def _note_end(self, push: Push, now_ns: int) -> None:
        if push.admitted and not push.ended:
            push.ended = True
            self._end(push, now_ns)

    def _end(self, push: Push, now_ns: int) -> None:
        """The call of an admitted push ended."""
        record, wire = push.record, self._wire(push.source)
        if calls.end_of(record) != "raised":
            wire.push_ended(push.push, record, now_ns)
            return
        if wire.was_sent(push.value_start):
            return  # Part of a long frame went in before the rest was refused.
        push.refused = True
        push.admitted = False
        # Behind it others may hold positions already: then its own stay unused.
        if push is self._last_admitted and wire.retract(push.push, push.value_start):
            self._samples = push.start
            self._last_admitted = None
        self._take_back(push)

    # --- events -------------------------------------------------------------------------------

    def _write_push(self, push: Push, now_ns: int, last: bool) -> Iterator[Event]:
        record = push.record
        end = calls.end_of(record)
        error, detail = calls.told_of(record)
        if end is not None:
            self._note_end(push, now_ns)
        if not push.written:
            decided = push.admitted or push.refused
            if last and not decided:
                self._refuse(push)
            elif not decided:
                return
            old = last or now_ns - record[calls.AT] >= OPEN_NS
            if not old and (end is None or push.match is None):
                return
            yield self._pushed_event(push)
            push.written = True
            push.closed = end is not None
            push.matched = push.match is not None
            yield from self._skipped(push)
        elif end is not None and not push.closed:
            accepted = not push.refused
            yield PushEnded(record[calls.ENDED], push.push, end, error, accepted, detail)
            push.closed = True
        if push.match is not None and not push.matched:
            match, channels = push.match, push.audio.channels
            yield PushMatched(
                now_ns,
                push.push,
                self._parts(push, match),
                match.ambiguous_values // channels,
                match.added_values // channels,
                match.habit,
            )
            push.matched = True
            yield from self._skipped(push)

    def _pushed_event(self, push: Push) -> FramePushed:
        record, match, audio = push.record, push.match, push.audio
        error, detail = calls.told_of(record)
        return FramePushed(
            record[calls.AT],
            push.push,
            push.source,
            push.start,
            audio.samples,
            audio.rate_hz,
            audio.channels,
            not push.refused,
            None if match is None else self._parts(push, match),
            0 if match is None else match.ambiguous_values // audio.channels,
            calls.end_of(record),
            record[calls.ENDED],
            error,
            0 if match is None else match.added_values // audio.channels,
            None if match is None else match.habit,
            detail,
        )

    def _skipped(self, push: Push) -> Iterator[Event]:
        """What the sink passed over in front of a push, once it is known what that was made of."""
        for position, values in () if push.match is None else push.match.skipped:
            for start, count in self._captured.map.translate(position, values):
                samples = count // push.audio.channels
                if start is not None and samples:
                    yield AudioSkipped(push.record[calls.AT], start, samples)

    def _parts(self, push: Push, match: Match) -> list[tuple[int | None, int]]:
        """The parts of a match in samples."""
        channels = push.audio.channels
        parts: list[tuple[int | None, int]] = []
        values = 0
        for position, count in match.parts:
            pieces: Iterable[tuple[int | None, int]] = (
                [(None, count)]
                if position is None
                else self._captured.map.translate(position, count)
            )
            for start, length in pieces:
                # Borders inside a sample are rounded so that the parts still add up.
                samples = (values + length) // channels - values // channels
                values += length
                if samples:
                    parts.append((start, samples))
        return parts
