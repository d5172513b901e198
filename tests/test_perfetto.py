"""The Perfetto trace: what `trace_processor` relies on holds in every packet; lanes are exact."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probe.trace.reader import read_trace
from reports import analyze
from reports.show import FORMS
from reports.timeline import Stretch, Timeline, lay_out
from reports.units import time_ms
from tests.formats import CALLS
from tests.report_traces import write_hour

protos = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="the perfetto package is not installed",
)
Event = protos.TrackEvent


class Loaded:
    """A file as it is read back; every rule of the format is held against every packet."""

    def __init__(self, data: bytes) -> None:
        self.tracks: dict[int, Any] = {}
        self.events: dict[int, list[Any]] = defaultdict(list)
        for packet in protos.Trace.FromString(data).packet:
            assert packet.trusted_packet_sequence_id
            if packet.HasField("track_descriptor"):
                self._track(packet.track_descriptor)
            else:
                assert packet.HasField("track_event")
                assert packet.HasField("timestamp")
                assert packet.track_event.track_uuid in self.tracks, "a track is told of first"
                self.events[packet.track_event.track_uuid].append(packet)
        for uuid, track in self.tracks.items():
            self._lane(track, self.events[uuid])

    def _track(self, track: Any) -> None:
        assert track.uuid
        assert track.uuid not in self.tracks
        assert track.name
        if self.tracks:
            assert track.parent_uuid in self.tracks
            assert track.sibling_order_rank == track.uuid
        else:
            assert not track.HasField("parent_uuid")
            assert track.child_ordering == protos.TrackDescriptor.EXPLICIT
        self.tracks[track.uuid] = track

    @staticmethod
    def _lane(track: Any, packets: list[Any]) -> None:
        times = [packet.timestamp for packet in packets]
        assert times == sorted(times), track.name
        open_slices = 0
        for packet in packets:
            event = packet.track_event
            assert (event.type == Event.TYPE_COUNTER) == track.HasField("counter")
            assert bool(event.name) == (event.type in (Event.TYPE_SLICE_BEGIN, Event.TYPE_INSTANT))
            open_slices += {Event.TYPE_SLICE_BEGIN: 1, Event.TYPE_SLICE_END: -1}.get(event.type, 0)
            assert open_slices in (0, 1), "no slice in another, none ends that did not begin"
            for note in event.debug_annotations:
                assert note.name
                assert note.WhichOneof("value")
            if event.type == Event.TYPE_COUNTER:
                assert event.double_counter_value >= 0
        assert open_slices == 0, track.name

    def named(self, name: str) -> list[Any]:
        """Events of the tracks of a lane."""
        uuids = [u for u, t in self.tracks.items() if t.name in (name, f"{name} (2)")]
        return [packet for uuid in uuids for packet in self.events[uuid]]

    def slices(self, name: str) -> list[tuple[int, int, str, dict[str, Any]]]:
        """Begin, end, name and notes."""
        packets = self.named(name)
        begins, ends = packets[::2], packets[1::2]
        return [
            (b.timestamp, e.timestamp, b.track_event.name, notes(b.track_event))
            for b, e in zip(begins, ends, strict=True)
        ]


def notes(event: Any) -> dict[str, Any]:
    return {n.name: getattr(n, n.WhichOneof("value")) for n in event.debug_annotations}


def rendered(analysis: Any, timeline: Timeline) -> bytes:
    made = FORMS["perfetto"].render([analysis], timelines=[timeline])
    assert isinstance(made, bytes)
    return made


def loaded(folder: Path, call: str) -> tuple[Loaded, Any, Timeline]:
    made = CALLS[call](folder)
    analysis, timeline = made.analyses[0], made.timelines[0]
    return Loaded(rendered(analysis, timeline)), analysis, timeline


@pytest.mark.parametrize("call", [call for call in CALLS if call != "several"])
def test_every_call_keeps_the_rules_of_the_format(call: str, tmp_path: Path) -> None:
    file, _, timeline = loaded(tmp_path, call)
    assert next(iter(file.tracks.values())).name.startswith("sinkprobe: ")
    names = {t.name for t in file.tracks.values()}
    lanes = {
        "caller": timeline.caller, "recognition": timeline.words, "agent state": timeline.agent,
        "model": timeline.model, "captured": timeline.captured, "gate": timeline.gate,
        "marks": timeline.marks, "pushed": timeline.pushed, "sent": timeline.sent,
        "inserted silence": timeline.inserted, "lost": timeline.lost,
        "claimed playback": timeline.claimed, "loop stalled": timeline.stalls,
        **{f"queue of source {depth.source}": depth.at_ns for depth in timeline.depth},
    }  # fmt: skip
    assert {name for name, lane in lanes.items() if len(lane)} <= names
    assert not {name for name, lane in lanes.items() if not len(lane)} & names


def test_frames_are_exact_in_nanoseconds_and_samples(tmp_path: Path) -> None:
    file, _, timeline = loaded(tmp_path, "leaking")
    for name in ("captured", "pushed", "sent"):
        lane = getattr(timeline, name)
        slices = file.slices(name)
        assert [s[0] for s in slices] == lane.at_ns.tolist()
        assert [s[1] for s in slices] == lane.until_ns.tolist()
        assert [s[3]["samples"] for s in slices] == lane.samples.tolist()
        assert [s[3]["start_sample"] for s in slices] == lane.start_sample.tolist()
        assert [s[3]["segment"] for s in slices] == lane.segment.tolist()


def test_a_leak_is_a_slice_and_its_verdict_an_instant(tmp_path: Path) -> None:
    file, analysis, _ = loaded(tmp_path, "leaking")
    leak = analysis.barge_ins[0].leaked["sent"]
    found = file.slices("leaked")
    assert [(s[0], s[1]) for s in found] == [
        (round(time_ms(span.start_ns) * 1e6), round(time_ms(span.stop_ns) * 1e6))
        for span in leak.spans
    ]
    assert sum(s[3]["samples"] for s in found) == leak.samples
    assert found[0][2] == "leak of 200.0 ms"
    (verdict,) = file.named("verdicts")
    assert verdict.timestamp == round(time_ms(analysis.barge_ins[0].verdict_ns) * 1e6)
    assert verdict.track_event.name == "verdict: activity"
    assert {p.track_event.name for p in file.named("findings")} == {"leak-after-verdict"}


def test_a_finding_is_where_its_first_moment_or_its_audio_is(tmp_path: Path) -> None:
    made = CALLS["leaking"](tmp_path)
    (finding,) = made.analyses[0].findings
    evidence = replace(finding.evidence, moments=())
    found = (
        replace(finding, rule="with-moments"),
        replace(finding, rule="with-audio", evidence=evidence),
        replace(finding, rule="without-a-place", evidence=replace(evidence, ranges=())),
    )
    analysis = replace(made.analyses[0], findings=found)
    file = Loaded(rendered(analysis, made.timelines[0]))
    told = {p.track_event.name: p.timestamp for p in file.named("findings")}
    assert told == {
        "with-moments": round(time_ms(finding.evidence.moments[0].at_ns) * 1e6),
        "with-audio": round((time_ms(finding.evidence.ranges[0].start_ns) or 0) * 1e6),
    }


def test_the_depth_of_the_queue_is_a_counter_in_milliseconds(tmp_path: Path) -> None:
    file, _, timeline = loaded(tmp_path, "leaking")
    (depth,) = timeline.depth
    points = file.named("queue of source 1")
    assert [p.timestamp for p in points] == depth.at_ns.tolist()
    values = [p.track_event.double_counter_value for p in points]
    assert values == (depth.samples / 24).tolist()
    track = next(t for t in file.tracks.values() if t.HasField("counter"))
    assert track.counter.unit_name == "ms"


def test_what_overlaps_gets_a_track_of_its_own(tmp_path: Path) -> None:
    made = CALLS["clean"](tmp_path)
    lost = tuple(
        Stretch(start, start + 30, f"dropped {nth}")
        for nth, start in enumerate((50, 10, 20, 40, 50))
    )
    timeline = replace(made.timelines[0], lost=lost)
    file = Loaded(rendered(made.analyses[0], timeline))
    assert [t.name for t in file.tracks.values() if t.name.startswith("lost")] == [
        "lost",
        "lost (2)",
        "lost (3)",
    ]


def test_instants_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    made = CALLS["leaking"](tmp_path)
    marks = made.timelines[0].marks[::-1]
    file = Loaded(rendered(made.analyses[0], replace(made.timelines[0], marks=marks)))
    assert len(file.named("marks")) == len(marks)


def test_a_time_before_the_trace_is_its_beginning(tmp_path: Path) -> None:
    made = CALLS["clean"](tmp_path)
    early = (Stretch(-20, -10, "listening"), Stretch(-10, 40, "speaking"))
    timeline = replace(made.timelines[0], agent=early)
    file = Loaded(rendered(made.analyses[0], timeline))
    assert [s[:3] for s in file.slices("agent state")] == [(0, 0, "listening"), (0, 40, "speaking")]


def test_of_a_long_call_every_frame_is_there(tmp_path: Path) -> None:
    trace = read_trace(write_hour(tmp_path / "call.jsonl", minutes=3))
    timeline = lay_out(trace)
    file = Loaded(rendered(analyze(trace), timeline))
    for name in ("captured", "pushed", "sent"):
        assert len(file.slices(name)) == len(getattr(timeline, name)), name
    assert len(file.slices("captured")) == 9000
    leaked = sum(s[3]["samples"] for s in file.slices("leaked"))
    amounts = [(b.leaked or {})["sent"] for b in analyze(trace).barge_ins]
    assert leaked == sum(a.samples for a in amounts if a is not None)


def test_trace_processor_finds_the_same(tmp_path: Path) -> None:
    """With its binary, where it is installed: the perfetto package would fetch it from the net."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    binary = shutil.which("trace_processor_shell")
    if binary is None:
        pytest.skip("there is no trace_processor_shell on the path")
    file, analysis, timeline = loaded(tmp_path, "leaking")
    path = tmp_path / "call.pftrace"
    path.write_bytes(rendered(analysis, timeline))
    config = TraceProcessorConfig(bin_path=binary)
    with TraceProcessor(trace=str(path), config=config) as processor:
        tracks = "select t.name as name, count(*) as n from {} s join track t on s.track_id = t.id"
        found = {
            row.name: row.n for row in processor.query(f"{tracks.format('slice')} group by t.name")
        }
        counted = Counter(
            file.tracks[uuid].name
            for uuid, packets in file.events.items()
            for packet in packets
            if packet.track_event.type in (Event.TYPE_SLICE_BEGIN, Event.TYPE_INSTANT)
        )
        assert found == counted
        (leak,) = processor.query("select sum(dur) as dur from slice where name like 'leak of%'")
        assert leak.dur == sum(stop - start for start, stop, *_ in file.slices("leaked"))
        (deep,) = processor.query("select max(value) as value from counter")
        assert deep.value == float(np.max(timeline.depth[0].samples)) / 24
        wrong = processor.query("select name, value from stats where severity = 'error' and value")
        assert [(row.name, row.value) for row in wrong] == []
