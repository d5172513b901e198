"""A trace for ui.perfetto.dev and `trace_processor`: lanes as tracks, leaks as slices, the depth of
the source's queue as a counter, verdicts as instants.

Perfetto's own protobuf, built with its own Python package. Times are the probe's, in nanoseconds
since the trace began.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from probe.trace.reader import NONE
from reports.renderers.tables import MissingLibraryError
from reports.results import Analysis, BargeIn
from reports.timeline import FATES, Frames, Instant, Stretch, Timeline

__all__ = ["render"]

SEQUENCE: Final = 1
NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Slice:
    start_ns: int
    stop_ns: int
    name: str
    notes: Mapping[str, int | float | str | bool] = field(default_factory=dict)


def render(analysis: Analysis, timeline: Timeline) -> bytes:
    """One call as a Perfetto trace, exact in nanoseconds and samples.

    Slices that overlap in time, as of two sources, get a track each; tracks stand in flow order.

    Raises:
        MissingLibraryError: the `perfetto` package is not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    except ImportError as error:
        raise MissingLibraryError(
            "Perfetto traces need the perfetto package: pip install 'sinkprobe[perfetto]'"
        ) from error
    book = _Book(protos, os.path.basename(analysis.trace.path))
    book.slices("caller", [_of_stretch(s) for s in timeline.caller])
    book.instants("recognition", timeline.words)
    book.slices("agent state", [_of_stretch(s) for s in timeline.agent])
    book.slices("model", [_of_stretch(s) for s in timeline.model])
    book.instants("verdicts", _verdicts(analysis.barge_ins))
    book.slices("captured", _of_frames(timeline.captured))
    book.slices("gate", [_of_stretch(s) for s in timeline.gate])
    book.instants("marks", timeline.marks)
    book.slices("pushed", _of_frames(timeline.pushed))
    for depth in timeline.depth:
        points = zip(depth.at_ns.tolist(), depth.samples.tolist(), strict=True)
        in_ms = [(at, samples * 1000 / depth.rate_hz) for at, samples in points]
        book.counter(f"queue of source {depth.source}", "ms", in_ms)
    book.slices("sent", _of_frames(timeline.sent))
    book.slices("leaked", _leaks(analysis.barge_ins))
    book.slices("inserted silence", _of_frames(timeline.inserted))
    book.slices("lost", [_of_stretch(s) for s in timeline.lost])
    book.slices("claimed playback", [_of_stretch(s) for s in timeline.claimed])
    book.slices("loop stalled", [_of_stretch(s) for s in timeline.stalls])
    book.instants("findings", _findings(analysis))
    return book.serialized()


# --- From lanes to slices and instants -----------------------------------------------------------


def _of_stretch(stretch: Stretch) -> _Slice:
    notes = {
        "segment": stretch.segment,
        "speech": stretch.speech,
        "samples": stretch.samples,
        "rate_hz": stretch.rate_hz,
        "detail": stretch.detail or None,
    }
    known = {name: value for name, value in notes.items() if value is not None}
    return _Slice(stretch.start_ns, stretch.stop_ns, stretch.what, known)


def _of_frames(frames: Frames) -> list[_Slice]:
    columns = (
        frames.at_ns, frames.until_ns, frames.start_sample, frames.samples, frames.rate_hz,
        frames.segment, frames.source, frames.fate, frames.lost,
    )  # fmt: skip
    found = []
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
        found.append(_Slice(at, until, f"{samples * 1000 / max(rate, 1):.1f} ms", notes))
    return found


def _verdicts(barge_ins: Iterable[BargeIn]) -> list[Instant]:
    return [
        Instant(round(b.verdict_ms * NS_PER_MS), f"verdict: {b.verdict_kind}", b.speech_id)
        for b in barge_ins
        if b.verdict_ms is not None
    ]


def _leaks(barge_ins: Iterable[BargeIn]) -> list[_Slice]:
    found = []
    for barge_in in barge_ins:
        leak = (barge_in.leaked or {}).get("sent")
        if leak is None:
            continue
        whole = "" if leak.ms is None else f" of {leak.ms:.1f} ms"
        for span in leak.spans:
            start, stop = round(span.start_ms * NS_PER_MS), round(span.stop_ms * NS_PER_MS)
            samples = span.stop_sample - span.start_sample
            notes: dict[str, int | float | str | bool] = {
                "samples": samples,
                "start_sample": span.start_sample,
                "verdict_ms": barge_in.verdict_ms or 0.0,
            }
            found.append(_Slice(start, stop, f"leak{whole}", notes))
    return found


def _findings(analysis: Analysis) -> list[Instant]:
    return [
        Instant(round(f.evidence.moments[0].at_ms * NS_PER_MS), f.rule, None, f.message)
        for f in analysis.findings
        if f.evidence.moments
    ]


# --- The file ------------------------------------------------------------------------------------


class _Book:
    """Packets of one trace. Tracks are listed in the order they are made."""

    def __init__(self, protos: Any, name: str) -> None:
        self._protos = protos
        self._trace = protos.Trace()
        self._uuids = itertools.count(2)
        root = self._packet().track_descriptor
        root.uuid = 1
        root.name = f"sinkprobe: {name}"
        root.child_ordering = protos.TrackDescriptor.EXPLICIT

    def serialized(self) -> bytes:
        data: bytes = self._trace.SerializeToString()
        return data

    def _packet(self) -> Any:
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    def _track(self, name: str) -> Any:
        track = self._packet().track_descriptor
        track.uuid = next(self._uuids)
        track.parent_uuid = 1
        track.name = name
        track.sibling_order_rank = track.uuid
        return track

    def _event(self, track: int, at_ns: int, kind: int) -> Any:
        packet = self._packet()
        packet.timestamp = max(at_ns, 0)
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet.track_event

    def slices(self, name: str, slices: Sequence[_Slice]) -> None:
        """A track of what lasted, or several where it overlaps; none where there is nothing."""
        kinds = self._protos.TrackEvent
        for nth, row in enumerate(_without_overlap(slices)):
            track = self._track(name if nth == 0 else f"{name} ({nth + 1})").uuid
            for one in row:
                begin = self._event(track, one.start_ns, kinds.TYPE_SLICE_BEGIN)
                begin.name = one.name
                self._annotate(begin, one.notes)
                self._event(track, max(one.stop_ns, one.start_ns), kinds.TYPE_SLICE_END)

    def instants(self, name: str, instants: Sequence[Instant]) -> None:
        """A track of what happened; none where nothing did."""
        if not instants:
            return
        track = self._track(name).uuid
        for one in instants:
            event = self._event(track, one.at_ns, self._protos.TrackEvent.TYPE_INSTANT)
            event.name = one.what if one.count == 1 else f"{one.what} ({one.count}x)"
            notes = {"speech": one.speech, "detail": one.detail}
            self._annotate(event, {key: value for key, value in notes.items() if value})

    def counter(self, name: str, unit: str, points: Sequence[tuple[int, float]]) -> None:
        """A track of a figure over time."""
        if not points:
            return
        track = self._track(name)
        track.counter.unit_name = unit
        for at_ns, value in points:
            event = self._event(track.uuid, at_ns, self._protos.TrackEvent.TYPE_COUNTER)
            event.double_counter_value = value

    def _annotate(self, event: Any, notes: Mapping[str, int | float | str | bool]) -> None:
        for name, value in notes.items():
            note = event.debug_annotations.add()
            note.name = name
            if isinstance(value, bool):
                note.bool_value = value
            elif isinstance(value, int):
                note.int_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.string_value = value


def _without_overlap(slices: Sequence[_Slice]) -> list[list[_Slice]]:
    """Slices on as few rows as need be, for a slice that begins inside another nests in it."""
    rows: list[list[_Slice]] = []
    for one in sorted(slices, key=lambda s: (s.start_ns, s.stop_ns)):
        for row in rows:
            if row[-1].stop_ns <= one.start_ns:
                row.append(one)
                break
        else:
            rows.append([one])
    return rows
