"""A trace for ui.perfetto.dev and `trace_processor`: lanes as tracks, leaks as slices, the depth of
the source's queue as a counter, verdicts as instants.

Perfetto's own protobuf, built with its own Python package. Times are the probe's, in nanoseconds
since the trace began.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from probe.trace.reader import NONE
from reports.results import Analysis, BargeIn
from reports.show.wording import shown
from reports.timeline import FATES, Frames, Instant, Stretch, Timeline
from reports.units import time_ms

__all__ = ["render"]

SEQUENCE: Final = 1
NS_PER_MS: Final = 1_000_000


_Notes: TypeAlias = Mapping[str, "int | float | str | bool"]
"""What is told of an event beside its name."""


class _Slice(NamedTuple):
    start_ns: int
    stop_ns: int
    name: str
    notes: _Notes


def render(analyses: Sequence[Analysis], timelines: Sequence[Timeline]) -> bytes:
    """One call as a Perfetto trace, exact in nanoseconds and samples.

    Slices that overlap in time, as of two sources, get a track each; tracks stand in flow order.

    Raises:
        ValueError: there are several calls.
    """
    (analysis,), (timeline,) = analyses, timelines
    book = _Book(shown(os.path.basename(analysis.trace.path)))
    book.slices("caller", _of_stretches(timeline.caller))
    book.instants("recognition", timeline.words)
    book.slices("agent state", _of_stretches(timeline.agent))
    book.slices("model", _of_stretches(timeline.model))
    book.instants("verdicts", _verdicts(analysis.barge_ins))
    book.slices("captured", _of_frames(timeline.captured))
    book.slices("gate", _of_stretches(timeline.gate))
    book.instants("marks", timeline.marks)
    book.slices("pushed", _of_frames(timeline.pushed))
    for depth in timeline.depth:
        points = zip(depth.at_ns.tolist(), depth.samples.tolist(), strict=True)
        in_ms = [(at, samples * 1000 / depth.rate_hz) for at, samples in points]
        book.counter(f"queue of source {depth.source}", "ms", in_ms)
    book.slices("sent", _of_frames(timeline.sent))
    book.slices("leaked", _leaks(analysis.barge_ins))
    book.slices("inserted silence", _of_frames(timeline.inserted))
    book.slices("lost", _of_stretches(timeline.lost))
    book.slices("claimed playback", _of_stretches(timeline.claimed))
    book.slices("loop stalled", _of_stretches(timeline.stalls))
    book.instants("findings", list(_findings(analysis)))
    return book.serialized()


# --- From lanes to slices and instants -----------------------------------------------------------


def _of_stretches(stretches: Iterable[Stretch]) -> Iterator[_Slice]:
    for stretch in sorted(stretches, key=lambda s: s.start_ns):
        notes = {
            "segment": stretch.segment,
            "speech": stretch.speech,
            "samples": stretch.samples,
            "rate_hz": stretch.rate_hz,
            "detail": stretch.detail or None,
        }
        known = {name: value for name, value in notes.items() if value is not None}
        yield _Slice(stretch.start_ns, stretch.stop_ns, stretch.what, known)


def _of_frames(frames: Frames) -> Iterator[_Slice]:
    columns = (
        frames.at_ns, frames.until_ns, frames.start_sample, frames.samples, frames.rate_hz,
        frames.segment, frames.source, frames.fate, frames.lost,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for at, until, start, samples, rate, segment, source, fate, lost in rows:
        notes: dict[str, int | float | str | bool] = {"samples": samples}
        if fate:
            notes["fate"] = FATES[fate]
        if start != NONE:
            notes["start_sample"] = start
        if segment:
            notes["segment"] = segment
        if source:
            notes["source"] = source
        if lost:
            notes["lost_samples"] = lost
        yield _Slice(at, until, f"{samples * 1000 / max(rate, 1):.1f} ms", notes)


def _verdicts(barge_ins: Iterable[BargeIn]) -> list[Instant]:
    return [
        Instant(b.verdict_ns, f"verdict: {b.verdict_kind}", b.speech_id)
        for b in barge_ins
        if b.verdict_ns is not None
    ]


def _leaks(barge_ins: Iterable[BargeIn]) -> list[_Slice]:
    found = []
    for barge_in in barge_ins:
        leak = (barge_in.leaked or {}).get("sent")
        if leak is None:
            continue
        whole = "" if leak.ms is None else f" of {leak.ms:.1f} ms"
        for span in leak.spans:
            samples = span.stop_sample - span.start_sample
            notes: dict[str, int | float | str | bool] = {
                "samples": samples,
                "start_sample": span.start_sample,
                "verdict_ms": time_ms(barge_in.verdict_ns) or 0.0,
                "outcome": barge_in.outcome or "undecided",
            }
            if barge_in.speech_id is not None:
                notes["speech"] = barge_in.speech_id
            found.append(_Slice(span.start_ns, span.stop_ns, f"leak{whole}", notes))
    return sorted(found, key=lambda s: s.start_ns)


def _findings(analysis: Analysis) -> Iterator[Instant]:
    """At their first moment, else where their audio begins; what has neither is about no time."""
    for finding in analysis.findings:
        evidence = finding.evidence
        times = [moment.at_ns for moment in evidence.moments[:1]]
        times += [r.start_ns for r in evidence.ranges if r.start_ns is not None]
        if times:
            yield Instant(times[0], finding.rule, None, finding.message)


# --- The file ------------------------------------------------------------------------------------


class _Book:
    """Packets of one trace, each serialized as it comes. Tracks are listed in the order they are
    made.

    A trace is its packets one after the other, so that they need not all be objects at once. Events
    of one shape are written with one packet, of which only what differs is set anew: most of the
    time goes into making packets, and a long call has a million of them.
    """

    def __init__(self, name: str) -> None:
        self._written: list[bytes] = []
        self._uuids = itertools.count(2)
        trace, packet = self._packet()
        root = packet.track_descriptor
        root.uuid = 1
        root.name = f"sinkprobe: {name}"
        root.child_ordering = protos.TrackDescriptor.EXPLICIT
        self._write(trace)

    def serialized(self) -> bytes:
        return b"".join(self._written)

    def _packet(self) -> tuple[Any, Any]:
        """A trace of one packet, and that packet."""
        trace = protos.Trace()
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        return trace, packet

    def _write(self, trace: Any) -> None:
        self._written.append(trace.SerializeToString())

    def _track(self, name: str, unit: str | None = None) -> int:
        trace, packet = self._packet()
        track = packet.track_descriptor
        track.uuid = uuid = next(self._uuids)
        track.parent_uuid = 1
        track.name = name
        track.sibling_order_rank = uuid
        if unit is not None:
            track.counter.unit_name = unit
        self._write(trace)
        return uuid

    def _event(self, track: int, kind: int) -> tuple[Any, Any]:
        trace, packet = self._packet()
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return trace, packet

    def slices(self, name: str, slices: Iterable[_Slice]) -> None:
        """A track of what lasted, or several where it overlaps; none where there is nothing.

        They have to come in order of their start. A slice that began inside another on the same
        track would nest in it, and end it.
        """
        rows: list[_Row] = []
        for one in slices:
            start_ns = max(one.start_ns, 0)
            for row in rows:
                if row.free_ns <= start_ns:
                    break
            else:
                row = self._row(name if not rows else f"{name} ({len(rows) + 1})")
                rows.append(row)
            row.free_ns = row.end.timestamp = max(one.stop_ns, start_ns)
            self._write(row.begins.filled(start_ns, one.name, one.notes))
            self._write(row.ends)

    def _row(self, name: str) -> _Row:
        track = self._track(name)
        begins = _Shapes(lambda: self._event(track, protos.TrackEvent.TYPE_SLICE_BEGIN))
        return _Row(begins, *self._event(track, protos.TrackEvent.TYPE_SLICE_END))

    def instants(self, name: str, instants: Sequence[Instant]) -> None:
        """A track of what happened, in order; none where nothing did."""
        if not instants:
            return
        track = self._track(name)
        shapes = _Shapes(lambda: self._event(track, protos.TrackEvent.TYPE_INSTANT))
        for one in sorted(instants, key=lambda i: i.at_ns):
            told = one.what if one.count == 1 else f"{one.what} ({one.count}x)"
            notes = {"speech": one.speech, "detail": one.detail}
            known = {key: value for key, value in notes.items() if value}
            self._write(shapes.filled(max(one.at_ns, 0), told, known))

    def counter(self, name: str, unit: str, points: Sequence[tuple[int, float]]) -> None:
        """A track of a figure over time."""
        if not points:
            return
        kind = protos.TrackEvent.TYPE_COUNTER
        trace, packet = self._event(self._track(name, unit), kind)
        event = packet.track_event
        for at_ns, value in points:
            packet.timestamp = max(at_ns, 0)
            event.double_counter_value = value
            self._write(trace)


@dataclass(slots=True)
class _Row:
    """A track of slices."""

    begins: _Shapes
    ends: Any
    end: Any
    free_ns: int = 0


_FIELDS: Final = {
    bool: "bool_value", int: "int_value", float: "double_value", str: "string_value",
}  # fmt: skip
"""Of a note, by the type of its value."""


class _Shapes:
    """Packets of the events of one track, one for each set of notes that comes up.

    A note's values are all of one type, whatever the event.
    """

    def __init__(self, make: Callable[[], tuple[Any, Any]]) -> None:
        self._make = make
        self._known: dict[tuple[str, ...], tuple[Any, Any, Any, list[tuple[Any, str]]]] = {}

    def filled(self, at_ns: int, name: str, notes: _Notes) -> Any:
        """A trace of one event; valid until the next one is asked for."""
        shape = tuple(notes)
        if shape not in self._known:
            self._known[shape] = self._made(notes)
        trace, packet, event, places = self._known[shape]
        packet.timestamp = at_ns
        event.name = name
        for (place, field), value in zip(places, notes.values(), strict=True):
            setattr(place, field, value)
        return trace

    def _made(self, notes: _Notes) -> tuple[Any, Any, Any, list[tuple[Any, str]]]:
        trace, packet = self._make()
        places = []
        for name, value in notes.items():
            place = packet.track_event.debug_annotations.add()
            place.name = name
            places.append((place, _FIELDS[type(value)]))
        return trace, packet, packet.track_event, places
