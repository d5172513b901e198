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

from collections.abc import Iterable

from probe.assemble.captured import Captured, rounded_ns
from probe.assemble.pushed import Pushed
from probe.assemble.sent import Wire
from probe.follow import FlowMatcher
from probe.taps import calls
from probe.taps.calls import Call
from probe.trace.events import Event, Faulted, SourceClosed, Tapped, Untapped

__all__ = ["Assembler"]


class Assembler:
    """Turns records into events; times are absolute monotonic nanoseconds, in and out.

    Not thread-safe: one thread calls it. `accept` takes records in the order they were made,
    `tick` is called some twenty times a second, `finish` once.
    """

    def __init__(self) -> None:
        self._flow = FlowMatcher()
        self._captured = Captured(self._flow, self._fault)
        self._pushed = Pushed(self._flow, self._captured, self._wire, self._fault)
        self._wires: dict[int, Wire] = {}
        self._outbox: list[Event] = []
        self._now_ns = 0

    def accept(self, record: Call | Event) -> Iterable[Event]:
        """Take one record; return the events that are due at once."""
        if not isinstance(record, list):
            self._look_at(record)
            return [*self._take_outbox(), record]
        kind = record[calls.KIND]
        if kind == calls.CAPTURE:
            record[calls.AT] = rounded_ns(record[calls.AT])
        self._now_ns = max(self._now_ns, record[calls.AT])
        if kind == calls.CAPTURE:
            self._captured.take(record)
        elif kind == calls.PUSH:
            self._pushed.take(record)
        elif kind == calls.BLOCKS:
            wire = self._wire(record[calls.BLOCKS_SOURCE])
            self._outbox += wire.take(record, self._settle, self._now_ns)
        elif kind == calls.MARK:
            if record[calls.MARK_NAME] == "clear":
                self._pushed.assign(self._flow.clear())
            self._captured.take_mark(record)
        elif kind == calls.CLEAR:
            self._pushed.settle()
            self._wire(record[calls.CLEAR_SOURCE]).clear(record)
        return self._take_outbox()

    def tick(self, now_ns: int) -> Iterable[Event]:
        """Return what is due by age, or was decided since."""
        self._now_ns = max(self._now_ns, now_ns)
        return self._due(last=False)

    def finish(self, now_ns: int) -> Iterable[Event]:
        """Decide and return everything still held. Nothing may be accepted afterwards."""
        self._now_ns = max(self._now_ns, now_ns)
        self._pushed.assign(self._flow.finish())
        events = self._due(last=True)
        for wire in self._wires.values():
            events += wire.close()
        return events + self._take_outbox()

    def _due(self, *, last: bool) -> list[Event]:
        self._pushed.settle()
        events = self._take_outbox()
        events += self._captured.write(self._now_ns, last=last)
        events += self._pushed.write(self._now_ns, last=last)
        for wire in self._wires.values():
            events += wire.write(self._now_ns, last=last)
        return events

    def _settle(self) -> None:
        """Decide what is known of the pushes by now."""
        self._pushed.settle()
        self._pushed.note_ends(self._now_ns)

    def _take_outbox(self) -> list[Event]:
        outbox, self._outbox = self._outbox, []
        return outbox

    def _fault(self, kind: str, detail: str, count: int = 1) -> None:
        self._outbox.append(Faulted(self._now_ns, kind, count, detail))

    def _look_at(self, event: Event) -> None:
        if isinstance(event, Tapped) and event.source is not None:
            wire = self._wire(event.source)
            wire.rate_hz = event.rate_hz or wire.rate_hz
            wire.channels = event.channels or wire.channels
            if event.boundary == "pushed":
                wire.queue_ms = event.queue_ms or wire.queue_ms
            elif event.boundary == "sent":
                wire.beat = event.grouped
                self._outbox += wire.open(self._now_ns)
        elif isinstance(event, Untapped) and event.boundary == "sent":
            if event.source is not None:
                self._outbox += self._wire(event.source).close()
        elif isinstance(event, SourceClosed):
            self._wire(event.source).closed = True

    def _wire(self, number: int) -> Wire:
        wire = self._wires.get(number)
        if wire is None:
            wire = self._wires[number] = Wire(number, self._fault)
        return wire
