"""From the raw records of the taps to the events of a trace.

Runs on the recorder's thread, the only one that reads frames. Calls become events once they have
ended or have run for 150 ms; what was captured is followed to what was pushed, and what was pushed
to what was sent (`probe.follow`), and positions are given out.

Positions
    ``start_sample`` counts what frames say of themselves: samples per channel. Captured frames
    are numbered over the whole trace. Pushed positions are given out when a push is handed to the
    native side. A push that is refused gives its positions back, as long as no later push holds
    any; if one does (sinks that push concurrently), they stay unused, so sums are taken over
    accepted pushes, never over positions.

Refused pushes
    The native side answers at once: it refuses a frame of another geometry, and a frame handed
    over while an earlier one waits for room. A push that can be refused for one of these reasons is
    held until its call ended; every other one is taken for accepted. A source that was closed
    takes nothing and says nothing. A cancelled call was handed over all the same: it is accepted.

Where geometries differ
    Content is compared as it lies in the frames, as interleaved int16 values, because that is what
    LiveKit's room output hands on. In ``FramePushed.captured`` a start is then a captured sample,
    and counts are samples of the push; both are the same thing where the channels agree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from probe.follow import VALUE_BYTES, FlowMatcher, Kind, Match, Stretch, WireMatcher
from probe.taps import calls
from probe.taps.calls import Call
from probe.trace.events import (
    CaptureEnded,
    Event,
    Faulted,
    FrameCaptured,
    FramePushed,
    PushEnded,
    PushMatched,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SourceClosed,
    Tapped,
    Untapped,
)

__all__ = ["Assembler"]

BLOCK_NS: Final = 10_000_000
"""Every tick of a source hands on one block, whatever its rate."""

OPEN_NS: Final = 150_000_000
"""A call that runs for longer is written as running."""

RUN_NS: Final = 200_000_000
"""The longest run; and the age at which a shorter one is written."""

SILENCE_NS: Final = 1_000_000_000
"""The longest stretch of inserted silence in one event."""

GAP_NS: Final = 15_000_000
"""Blocks further apart than this are not one run."""

STRAY_NS: Final = 250_000_000
"""For how long a block nobody knows waits for the next one to explain it."""

HOLE_NS: Final = 12_000_000
"""Blocks that fall behind the clock by more than this, for good, were missed."""

HOLE_AFTER_BLOCKS: Final = 500

GRID_SLACK_NS: Final = 60_000_000
"""How far stamps may be wrong where the grid of the blocks corrects them."""

ARRIVAL_SLACK_NS: Final = 200_000_000
"""How far they may be wrong where they are arrivals."""

QUIET_NS: Final = 80_000_000
"""Where not every tick yields a block, nothing comes out for longer than this before silence."""

MAX_PUSHED_BYTES: Final = 16 << 20

EARLY_PUSHES: Final = 64
"""Pushes kept for a reading that may still be opened."""


@dataclass(slots=True)
class _Audio:
    """What a frame says, and what is in it."""

    samples: int
    rate_hz: int
    channels: int
    data: bytes
    data_bytes: int | None
    """Length of the frame's own data where it is not what its geometry says."""


class _Map:
    """Positions of values to positions of samples, piece by piece."""

    __slots__ = ("_channels", "_samples", "_values")

    def __init__(self) -> None:
        self._values: list[int] = []
        self._samples: list[int] = []
        self._channels: list[int] = []

    def add(self, value: int, sample: int, channels: int) -> None:
        if (
            self._values
            and self._channels[-1] == channels
            and value - self._values[-1] == (sample - self._samples[-1]) * channels
        ):
            return
        if self._values and self._values[-1] == value:
            self._samples[-1] = sample
            self._channels[-1] = channels
            return
        self._values.append(value)
        self._samples.append(sample)
        self._channels.append(channels)

    def cut(self, value: int) -> None:
        """Forget what was added at ``value`` or behind it."""
        while self._values and self._values[-1] >= value:
            self._values.pop()
            self._samples.pop()
            self._channels.pop()

    def translate(self, value: int, count: int) -> Iterator[tuple[int | None, int]]:
        """``(sample, values)`` for each piece of the range."""
        while count:
            index = bisect_right(self._values, value) - 1
            following = self._values[index + 1] if index + 1 < len(self._values) else None
            step = count if following is None else min(count, following - value)
            if index < 0:
                yield None, step
            else:
                offset = (value - self._values[index]) // self._channels[index]
                yield self._samples[index] + offset, step
            value += step
            count -= step

    def forget_before(self, value: int) -> None:
        index = bisect_right(self._values, value) - 1
        if index > 256:
            del self._values[:index]
            del self._samples[:index]
            del self._channels[:index]


@dataclass(slots=True)
class _Capture:
    record: Call
    frame: int
    start: int
    audio: _Audio
    written: bool = False


@dataclass(slots=True)
class _Push:
    record: Call
    push: int
    audio: _Audio
    start: int = 0
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


class _Grid:
    """The times of blocks from the times they arrived.

    Arrivals are late by all sorts of things and never early, so the earliest of many, relative to
    the source's own beat, tells the time of all. Where every tick yields a block, the number of a
    block is its beat. Where it does not, only blocks that follow it closely bear on a block's time.
    """

    _WINDOW: Final = 500

    def __init__(self, beat: bool) -> None:
        self._beat = beat
        self._phases: deque[tuple[int, int]] = deque()  # (last block, phase), phases ascending
        self._arrivals: deque[tuple[int, int]] = deque()
        self._behind: tuple[int, int] | None = None

    def arrived(self, block: int, at_ns: int) -> None:
        """``block`` is the last one of what arrived at ``at_ns``."""
        if not self._beat:
            self._arrivals.append((block, at_ns))
            return
        self._note(block, at_ns - block * BLOCK_NS)
        while self._phases[0][0] < block - self._WINDOW:
            self._phases.popleft()

    def left_by(self, block: int, at_ns: int) -> None:
        """``block`` is known to have left by ``at_ns``: as good as an arrival."""
        if not self._beat:
            self._arrivals.append((block, at_ns))
        elif self._phases:
            self._note(self._phases[-1][0], at_ns - block * BLOCK_NS)

    def _note(self, block: int, phase: int) -> None:
        while self._phases and self._phases[-1][1] >= phase:
            self._phases.pop()
        self._phases.append((block, phase))

    def missed(self, block: int, at_ns: int) -> int:
        """Blocks that were missed for certain when ``block`` arrived; asked before `arrived`.

        The reading is behind for good if nothing arrived in time for five seconds.
        """
        if not self._beat or not self._phases:
            return 0
        phase = at_ns - block * BLOCK_NS
        if self._behind is None:
            if phase - self._phases[0][1] > HOLE_NS:
                self._behind = (block, self._phases[0][1])
            return 0
        since, before = self._behind
        if phase - before <= HOLE_NS:
            self._behind = None
            return 0
        if block - since < HOLE_AFTER_BLOCKS:
            return 0
        now = min([phase, *(known for last, known in self._phases if last >= since)])
        self._behind = None
        return round((now - before) / BLOCK_NS)

    def time_of(self, block: int) -> int:
        """When ``block`` left, absolute nanoseconds."""
        if self._beat:
            return self._phases[0][1] + block * BLOCK_NS
        times = [at - (last - block) * BLOCK_NS for last, at in self._arrivals if last >= block]
        return min(times)

    def forget_before(self, block: int) -> None:
        while len(self._arrivals) > 1 and self._arrivals[0][0] < block:
            self._arrivals.popleft()


@dataclass(slots=True)
class _Run:
    """A run or a stretch of silence that is still being joined."""

    kind: Kind
    start: int | None
    samples: int
    offset: int
    at_ns: int
    last_block: int
    last_ns: int
    ambiguous: int


@dataclass(slots=True)
class _Source:
    """One audio source: what was pushed to it and what came out of it."""

    number: int
    rate_hz: int | None = None
    channels: int | None = None
    queue_ms: int | None = None
    closed: bool = False
    beat: bool = False
    map: _Map = field(default_factory=_Map)
    matcher: WireMatcher | None = None
    early: list[tuple[_Push, bytes]] = field(default_factory=list)
    """The last pushes from before the wire was read."""
    values: int = 0
    grid: _Grid | None = None
    rest: bytearray = field(default_factory=bytearray)
    blocks: int = 0
    ready: deque[Stretch] = field(default_factory=deque)
    run: _Run | None = None
    clears: list[Call] = field(default_factory=list)
    last_arrival_ns: int = 0

    @property
    def block_samples(self) -> int:
        return max((self.rate_hz or 0) // 100, 1)


def _ns(seconds: float) -> int:
    """The nanosecond nearest to a reading of the monotonic clock in seconds."""
    return round(seconds * 1e9)


class Assembler:
    """Turns records into events; times are absolute monotonic nanoseconds, in and out.

    Not thread-safe: one thread calls it. `accept` takes records in the order they were made,
    `tick` is called some twenty times a second, `finish` once.
    """

    def __init__(self) -> None:
        self._flow = FlowMatcher()
        self._captured_map = _Map()
        self._frames = 0
        self._captured_samples = 0
        self._captures: list[_Capture] = []
        self._marks: list[Call] = []
        self._pushes: list[_Push] = []
        self._doubtful: list[_Push] = []
        self._by_number: dict[int, _Push] = {}
        self._pushed = 0
        self._pushed_samples = 0
        self._last_admitted: _Push | None = None
        self._sources: dict[int, _Source] = {}
        self._outbox: list[Event] = []
        self._now_ns = 0

    # --- records ------------------------------------------------------------------------------

    def accept(self, record: Call | Event) -> Iterable[Event]:
        """Take one record; return the events that are due at once."""
        if not isinstance(record, list):
            self._look_at(record)
            return [*self._take_outbox(), record]
        kind = record[calls.KIND]
        if kind == calls.CAPTURE:
            record[calls.AT] = _ns(record[calls.AT])
        self._now_ns = max(self._now_ns, record[calls.AT])
        if kind == calls.CAPTURE:
            self._capture(record)
        elif kind == calls.PUSH:
            self._push(record)
        elif kind == calls.BLOCKS:
            self._blocks(record)
        elif kind == calls.MARK:
            if record[calls.MARK_NAME] == "clear":
                self._assign(self._flow.clear())
            self._marks.append(record)
        elif kind == calls.CLEAR:
            self._clear(record)
        return self._take_outbox()

    def tick(self, now_ns: int) -> Iterable[Event]:
        """Return what is due by age, or was decided since."""
        self._now_ns = max(self._now_ns, now_ns)
        return list(self._due(last=False))

    def finish(self, now_ns: int) -> Iterable[Event]:
        """Decide and return everything still held. Nothing may be accepted afterwards."""
        self._now_ns = max(self._now_ns, now_ns)
        self._assign(self._flow.finish())
        events = list(self._due(last=True))
        for source in self._sources.values():
            events += self._close_reading(source)
        return events + self._take_outbox()

    def _take_outbox(self) -> list[Event]:
        outbox, self._outbox = self._outbox, []
        return outbox

    def _fault(self, kind: str, detail: str, count: int = 1) -> None:
        self._outbox.append(Faulted(self._now_ns, kind, count, detail))

    def _look_at(self, event: Event) -> None:
        if isinstance(event, Tapped) and event.source is not None:
            source = self._source(event.source)
            if event.boundary == "pushed":
                source.rate_hz = event.rate_hz or source.rate_hz
                source.channels = event.channels or source.channels
                source.queue_ms = event.queue_ms or source.queue_ms
            elif event.boundary == "sent":
                source.rate_hz = event.rate_hz or source.rate_hz
                source.channels = event.channels or source.channels
                source.beat = event.grouped
                self._open_reading(source)
        elif isinstance(event, Untapped) and event.boundary == "sent":
            if event.source is not None:
                self._outbox += self._close_reading(self._source(event.source))
        elif isinstance(event, SourceClosed):
            self._source(event.source).closed = True

    def _source(self, number: int) -> _Source:
        source = self._sources.get(number)
        if source is None:
            source = self._sources[number] = _Source(number)
        return source

    def _read(self, frame: Any) -> _Audio:
        """Geometry and content of a frame, whatever it is."""
        try:
            samples = max(int(frame.samples_per_channel), 0)
            channels = max(int(frame.num_channels), 1)
            rate_hz = int(frame.sample_rate)
        except Exception as error:
            self._fault("tap_raised", f"frame without geometry: {type(error).__name__}")
            return _Audio(0, 0, 1, b"", None)
        expected = samples * channels * VALUE_BYTES
        try:
            data = bytes(frame.data)
        except Exception as error:
            self._fault("tap_raised", f"frame without data: {type(error).__name__}")
            data = b""
        if len(data) == expected:
            return _Audio(samples, rate_hz, channels, data, None)
        # The native side reads what the geometry says, from the front.
        fitted = data[:expected] + bytes(max(expected - len(data), 0))
        return _Audio(samples, rate_hz, channels, fitted, len(data))

    # --- captured -----------------------------------------------------------------------------

    def _capture(self, record: Call) -> None:
        audio = self._read(record[calls.CAPTURE_FRAME])
        record[calls.CAPTURE_FRAME] = None
        self._frames += 1
        self._captures.append(_Capture(record, self._frames, self._captured_samples, audio))
        if audio.samples:
            self._captured_map.add(self._flow.end, self._captured_samples, audio.channels)
            forgotten = self._flow.capture(audio.data)
            if forgotten:
                self._fault("audio_forgotten", "captured, not pushed yet", forgotten)
            self._captured_map.forget_before(self._flow.needed_from)
        self._captured_samples += audio.samples
        audio.data = b""

    def _write_captures(self, last: bool) -> Iterator[Event]:
        kept = []
        for capture in self._captures:
            record = capture.record
            end = calls.end_of(record)
            error, detail = calls.told_of(record)
            ended_ns = None if end is None else _ns(record[calls.ENDED])
            open_ns = self._now_ns - record[calls.AT]
            if capture.written:
                if end is not None:
                    yield CaptureEnded(ended_ns or self._now_ns, capture.frame, end, error, detail)
                    continue
            elif end is not None or last or open_ns >= OPEN_NS:
                audio = capture.audio
                yield FrameCaptured(
                    record[calls.AT],
                    capture.frame,
                    capture.start,
                    audio.samples,
                    audio.rate_hz,
                    audio.channels,
                    record[calls.CAPTURE_SPEECH],
                    end,
                    ended_ns,
                    error,
                    audio.data_bytes,
                    detail,
                )
                capture.written = True
                if end is not None:
                    continue
            kept.append(capture)
        self._captures = kept

    def _write_marks(self, last: bool) -> Iterator[Event]:
        kept = []
        for record in self._marks:
            ended = record[calls.ENDED]
            if ended is None and not last and self._now_ns - record[calls.AT] < OPEN_NS:
                kept.append(record)
                continue
            yield SinkMarked(
                record[calls.AT],
                record[calls.MARK_NAME],
                record[calls.MARK_SPEECH],
                calls.end_of(record) or "returned",
                ended,
                calls.told_of(record)[0],
                record[calls.MARK_SINK],
            )
        self._marks = kept

    # --- pushed -------------------------------------------------------------------------------

    def _push(self, record: Call) -> None:
        source = self._source(record[calls.PUSH_SOURCE])
        audio = self._read(record[calls.PUSH_FRAME])
        record[calls.PUSH_FRAME] = None
        self._settle_doubtful()
        self._pushed += 1
        push = _Push(record, self._pushed, audio)
        self._by_number[push.push] = push
        self._pushes.append(push)
        if not record[calls.PUSH_OPEN] or source.closed or calls.end_of(record) == "raised":
            self._refuse(push)
        elif self._may_be_refused(source, push):
            self._doubtful.append(push)
        else:
            self._admit(push)
        self._assign(self._flow.push(push.push, audio.data))
        self._take_back(push)
        if push.admitted or push.refused:
            audio.data = b""

    def _may_be_refused(self, source: _Source, push: _Push) -> bool:
        if push.record[calls.ENDED] is not None:
            return False
        audio = push.audio
        if source.rate_hz not in (None, audio.rate_hz):
            return True
        if source.channels not in (None, audio.channels):
            return True
        return any(
            other is not push
            and other.record[calls.PUSH_SOURCE] == source.number
            and other.record[calls.ENDED] is None
            and not other.refused
            for other in self._pushes
        )

    def _settle_doubtful(self) -> None:
        """Admit or refuse the pushes whose end decided it, in their order."""
        while self._doubtful and self._doubtful[0].record[calls.ENDED] is not None:
            push = self._doubtful.pop(0)
            if calls.end_of(push.record) == "raised" or not push.record[calls.PUSH_OPEN]:
                self._refuse(push)
            else:
                self._admit(push)
            push.audio.data = b""

    def _admit(self, push: _Push) -> None:
        """The source takes the frame: give out its positions."""
        push.admitted = True
        push.start = self._pushed_samples
        self._pushed_samples += push.audio.samples
        self._last_admitted = push
        source = self._source(push.record[calls.PUSH_SOURCE])
        push.value_start = source.values
        if push.audio.samples:
            source.map.add(source.values, push.start, push.audio.channels)
            source.values += len(push.audio.data) // VALUE_BYTES
            if source.matcher is None:
                source.early.append((push, push.audio.data))
                # A wire that is not tapped never opens; what still can be inside a queue is little.
                del source.early[:-EARLY_PUSHES]
            else:
                self._hand_to(source, source.matcher, push, push.audio.data)

    def _hand_to(self, source: _Source, matcher: WireMatcher, push: _Push, data: bytes) -> None:
        forgotten = matcher.push(push.push, data, push.record[calls.AT])
        if forgotten:
            self._fault("audio_forgotten", "pushed, not sent yet", forgotten)
        source.map.forget_before(matcher.needed_from)

    def _refuse(self, push: _Push) -> None:
        push.refused = True
        push.start = self._pushed_samples

    def _take_back(self, push: _Push) -> None:
        """A refused frame may be handed over again: its captured samples are free once more."""
        if push.refused and push.match is not None:
            found = [start for start, _ in push.match.parts if start is not None]
            if found:
                self._flow.rewind(found[0])

    def _end_of_push(self, push: _Push) -> None:
        """The call of an admitted push ended."""
        record = push.record
        source = self._source(record[calls.PUSH_SOURCE])
        matcher = source.matcher
        if calls.end_of(record) != "raised":
            if matcher is not None:
                self._tell_end(matcher, push)
            return
        if matcher is not None and matcher.was_sent(push.value_start):
            return  # Part of a long frame went in before the rest was refused.
        push.refused = True
        push.admitted = False
        if push is not self._last_admitted:
            return
        if matcher is not None and push.audio.samples and not matcher.retract(push.push):
            return
        source.early = [entry for entry in source.early if entry[0] is not push]
        source.values = push.value_start
        source.map.cut(push.value_start)
        self._pushed_samples = push.start
        self._last_admitted = None
        self._take_back(push)

    def _tell_end(self, matcher: WireMatcher, push: _Push) -> None:
        ended_ns = push.record[calls.ENDED] or self._now_ns
        matcher.push_ended(push.push, ended_ns, returned=calls.end_of(push.record) == "returned")

    def _assign(self, matches: Iterable[Match]) -> None:
        for match in matches:
            push = self._by_number.pop(cast(int, match.key))
            push.match = match

    def _captured_parts(self, push: _Push, match: Match) -> list[tuple[int | None, int]]:
        """The parts of a match in samples."""
        channels = push.audio.channels
        parts: list[tuple[int | None, int]] = []
        values = 0
        for position, count in match.parts:
            pieces: Iterable[tuple[int | None, int]] = (
                [(None, count)]
                if position is None
                else self._captured_map.translate(position, count)
            )
            for start, length in pieces:
                # Borders inside a sample are rounded so that the parts still add up.
                samples = (values + length) // channels - values // channels
                values += length
                if samples:
                    parts.append((start, samples))
        return parts

    def _write_pushes(self, last: bool) -> Iterator[Event]:
        for push in self._pushes:
            yield from self._write_push(push, last)
        self._pushes = [push for push in self._pushes if not (push.closed and push.matched)]

    def _write_push(self, push: _Push, last: bool) -> Iterator[Event]:
        record = push.record
        end = calls.end_of(record)
        error, detail = calls.told_of(record)
        if end is not None:
            self._note_end(push)
        if not push.written:
            decided = push.admitted or push.refused
            if last and not decided:
                self._refuse(push)
            elif not decided:
                return
            old = last or self._now_ns - record[calls.AT] >= OPEN_NS
            if not old and (end is None or push.match is None):
                return
            yield self._pushed_event(push)
            push.written = True
            push.closed = end is not None
            push.matched = push.match is not None
        elif end is not None and not push.closed:
            accepted = not push.refused
            yield PushEnded(record[calls.ENDED], push.push, end, error, accepted, detail)
            push.closed = True
        if push.match is not None and not push.matched:
            yield PushMatched(
                self._now_ns,
                push.push,
                self._captured_parts(push, push.match),
                push.match.ambiguous_values // push.audio.channels,
            )
            push.matched = True

    def _pushed_event(self, push: _Push) -> FramePushed:
        record = push.record
        match = push.match
        audio = push.audio
        error, detail = calls.told_of(record)
        return FramePushed(
            record[calls.AT],
            push.push,
            record[calls.PUSH_SOURCE],
            push.start,
            audio.samples,
            audio.rate_hz,
            audio.channels,
            not push.refused,
            None if match is None else self._captured_parts(push, match),
            0 if match is None else match.ambiguous_values // audio.channels,
            calls.end_of(record),
            record[calls.ENDED],
            error,
            detail=detail,
        )

    # --- the source's queue -------------------------------------------------------------------

    def _clear(self, record: Call) -> None:
        source = self._source(record[calls.CLEAR_SOURCE])
        source.clears.append(record)
        self._settle_doubtful()
        if source.matcher is None:
            # Only a push still under way can outlive the clear.
            while source.early and source.early[0][0].record[calls.ENDED] is not None:
                source.early.pop(0)
        else:
            source.matcher.clear(record[calls.AT], record[calls.ENDED])

    def _write_clears(self, source: _Source, last: bool) -> Iterator[Event]:
        kept = []
        for record in source.clears:
            ended = record[calls.ENDED]
            if ended is None and not last and self._now_ns - record[calls.AT] < OPEN_NS:
                kept.append(record)
                continue
            error, _ = calls.told_of(record)
            yield QueueCleared(record[calls.AT], source.number, ended, error)
        source.clears = kept

    # --- sent ---------------------------------------------------------------------------------

    def _close_reading(self, source: _Source) -> list[Event]:
        """A reading of the wire ended: decide what of it is undecided."""
        if source.matcher is not None:
            source.ready.extend(source.matcher.finish())
        events = list(self._join(source))
        if source.run is not None:
            events.append(self._close_run(source, source.run))
        return events

    def _open_reading(self, source: _Source) -> None:
        """A reading of the wire begins: its blocks are counted from 0."""
        self._outbox += self._close_reading(source)
        source.grid = _Grid(source.beat)
        source.rest.clear()
        source.blocks = 0
        if source.matcher is None:
            channels = source.channels or 1
            kept = sum(len(data) for _, data in source.early) // VALUE_BYTES
            piece = None
            if source.queue_ms:
                piece = source.queue_ms // 10 * source.block_samples * channels
            source.matcher = WireMatcher(
                source.block_samples * channels,
                piece,
                slack_ns=GRID_SLACK_NS if source.beat else ARRIVAL_SLACK_NS,
                quiet_ns=0 if source.beat else QUIET_NS,
                limit_bytes=MAX_PUSHED_BYTES,
                start=source.values - kept,
            )
            for push, data in source.early:
                self._hand_to(source, source.matcher, push, data)
                if push.ended:
                    self._tell_end(source.matcher, push)
            source.early.clear()

    def _blocks(self, record: Call) -> None:
        source = self._source(record[calls.BLOCKS_SOURCE])
        frame = record[calls.BLOCKS_FRAME]
        record[calls.BLOCKS_FRAME] = None
        audio = self._read(frame)
        if source.grid is None or source.matcher is None:
            source.rate_hz = source.rate_hz or audio.rate_hz
            source.channels = source.channels or audio.channels
            self._open_reading(source)
        grid, matcher = source.grid, source.matcher
        assert grid is not None
        assert matcher is not None
        self._settle_doubtful()
        self._note_ends()
        at_ns = record[calls.AT]
        source.rest += audio.data
        size = source.block_samples * (source.channels or 1) * VALUE_BYTES
        whole = len(source.rest) // size
        begun = len(source.rest) > whole * size
        # What arrives now left with the block that completed it, which may not be whole yet.
        last = source.blocks + whole - (0 if begun else 1)
        missed = grid.missed(last, at_ns)
        if missed > 0:
            self._fault(
                "wire_hole", f"source {source.number}: blocks fell behind the clock", missed
            )
        grid.arrived(last, at_ns)
        source.last_arrival_ns = at_ns
        if not whole:
            return
        data = bytes(source.rest[: whole * size])
        del source.rest[: whole * size]
        source.ready.extend(matcher.blocks(source.blocks, data, grid.time_of(source.blocks)))
        source.blocks += whole

    def _note_ends(self) -> None:
        for push in self._pushes:
            if push.record[calls.ENDED] is not None:
                self._note_end(push)

    def _note_end(self, push: _Push) -> None:
        """Tell the matcher once that an admitted push ended."""
        if push.admitted and not push.ended:
            push.ended = True
            self._end_of_push(push)

    def _join(self, source: _Source) -> Iterator[Event]:
        """Join what is decided to runs, and yield those that are complete."""
        grid = source.grid
        channels = source.channels or 1
        if grid is None:
            return
        for stretch in source.ready:
            if stretch.latest_ns is not None and not stretch.ambiguous_values:
                grid.left_by(stretch.block, stretch.latest_ns)
        while source.ready:
            stretch = source.ready.popleft()
            yield from self._join_stretch(source, grid, channels, stretch)
        held = 0 if source.matcher is None else source.matcher.undecided_blocks
        grid.forget_before(source.blocks - held)

    def _join_stretch(
        self, source: _Source, grid: _Grid, channels: int, stretch: Stretch
    ) -> Iterator[Event]:
        size = source.block_samples
        offset = stretch.offset // channels
        block = stretch.block
        ambiguous = stretch.ambiguous_values // channels
        pieces: list[tuple[int | None, int]] = []
        values = 0
        parts: Iterable[tuple[int | None, int]] = (
            [(None, stretch.values)]
            if stretch.position is None
            else source.map.translate(stretch.position, stretch.values)
        )
        for start, length in parts:
            first = stretch.offset + values
            values += length
            pieces.append((start, (stretch.offset + values) // channels - first // channels))
        for start, samples in pieces:
            while samples:
                # One block at a time, so that a run ends where time has a gap or it gets too long.
                count = min(size - offset, samples)
                doubt = min(ambiguous, count)
                ambiguous -= doubt
                closed = self._extend(
                    source, grid, stretch.kind, start, count, block, offset, doubt
                )
                if closed is not None:
                    yield closed
                if start is not None:
                    start += count
                samples -= count
                offset += count
                if offset == size:
                    offset = 0
                    block += 1

    def _extend(
        self,
        source: _Source,
        grid: _Grid,
        kind: Kind,
        start: int | None,
        samples: int,
        block: int,
        offset: int,
        ambiguous: int,
    ) -> Event | None:
        """Add samples of one block to the run, or begin another and return the one that ended."""
        at_ns = grid.time_of(block)
        run = source.run
        if run is not None:
            longest = SILENCE_NS if kind == "inserted" else RUN_NS
            expected = None if run.start is None else run.start + run.samples
            if (
                run.kind == kind
                and expected == start
                and block - run.last_block <= 1
                and at_ns - run.last_ns <= GAP_NS
                and at_ns + BLOCK_NS - run.at_ns <= longest
            ):
                run.samples += samples
                run.last_block = block
                run.last_ns = at_ns
                run.ambiguous += ambiguous
                return None
        closed = None if run is None else self._close_run(source, run)
        source.run = _Run(kind, start, samples, offset, at_ns, block, at_ns, ambiguous)
        return closed

    def _close_run(self, source: _Source, run: _Run) -> Event:
        source.run = None
        until_ns = run.last_ns + BLOCK_NS
        if run.kind == "inserted":
            return SilenceInserted(run.at_ns, until_ns, source.number, run.samples, run.ambiguous)
        return RunSent(
            run.at_ns,
            until_ns,
            source.number,
            run.start,
            run.samples,
            run.offset,
            run.ambiguous,
        )

    def _due(self, last: bool) -> Iterator[Event]:
        self._settle_doubtful()
        yield from self._take_outbox()
        yield from self._write_captures(last)
        yield from self._write_marks(last)
        yield from self._write_pushes(last)
        for source in self._sources.values():
            yield from self._write_clears(source, last)
            matcher = source.matcher
            if matcher is None:
                continue
            if matcher.has_stray and self._now_ns - source.last_arrival_ns > STRAY_NS:
                source.ready.extend(matcher.give_up_stray())
            yield from self._join(source)
            run = source.run
            if run is not None:
                longest = SILENCE_NS if run.kind == "inserted" else RUN_NS
                if self._now_ns - run.at_ns >= longest:
                    yield self._close_run(source, run)
