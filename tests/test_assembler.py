"""Records become events: numbered, placed, written in time, and adding up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.assemble.assembler import Assembler
from probe.taps.calls import (
    BLOCKS,
    CAPTURE,
    CLEAR,
    ENDED,
    FAILURE,
    MARK,
    PUSH,
)
from probe.taps.failures import Failure
from probe.trace.events import (
    CaptureEnded,
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

MS = 1_000_000
RATE = 24_000
BLOCK = 240


def frame(data: bytes, rate_hz: int = RATE, channels: int = 1) -> SimpleNamespace:
    samples = len(data) // 2 // channels
    return SimpleNamespace(
        data=data, sample_rate=rate_hz, num_channels=channels, samples_per_channel=samples
    )


def noise(seed: int, values: int) -> bytes:
    return np.random.default_rng(seed).integers(-32768, 32767, values, dtype=np.int16).tobytes()


def capture_of(made: Any, at_ns: int, ended_ns: Any, speech: str | None = None) -> list[Any]:
    return [CAPTURE, at_ns / 1e9, ended_ns and ended_ns / 1e9, None, made, speech]


def clear_mark(at_ns: int, sink: int = 1) -> list[Any]:
    return [MARK, at_ns, at_ns + 1000, None, "clear", "speech", sink]


class Trace:
    """An assembler and the events it gave."""

    def __init__(self, *, grouped: bool = True, channels: int = 1, rate_hz: int = RATE) -> None:
        self.assembler = Assembler()
        self.events: list[Any] = []
        self.put(Tapped(0, "pushed", 1, rate_hz, channels, 200))
        self.put(Tapped(0, "sent", 1, rate_hz, channels, None, rate_hz // 100, grouped))

    def put(self, record: Any) -> Any:
        self.events += self.assembler.accept(record)
        return record

    def capture(self, at_ms: float, data: bytes, end: str | None = "returned") -> Any:
        at_ns = int(at_ms * MS)
        return self.put(capture_of(frame(data), at_ns, end and at_ns + MS, "speech"))

    def push(
        self,
        at_ms: float,
        data: bytes,
        end: str | None = "returned",
        *,
        accepted: bool = True,
        source: int = 1,
        rate_hz: int = RATE,
        channels: int = 1,
    ) -> Any:
        at_ns = int(at_ms * MS)
        made = frame(data, rate_hz, channels)
        return self.put([PUSH, at_ns, end and at_ns + MS, None, made, source, accepted])

    def clear(self, at_ms: float, source: int = 1) -> None:
        self.put([CLEAR, int(at_ms * MS), int(at_ms * MS) + 1000, None, source])

    def clear_sink(self, at_ms: float) -> None:
        self.put(clear_mark(int(at_ms * MS)))

    def origins(self) -> dict[int, list[Any]]:
        """The captured ranges of each push, whenever they were written."""
        later = {event.push: event.captured for event in self.of(PushMatched)}
        return {
            event.push: later[event.push] if event.captured is None else event.captured
            for event in self.of(FramePushed)
        }

    def blocks(self, at_ms: float, data: bytes, source: int = 1, channels: int = 1) -> None:
        made = frame(data, RATE, channels)
        self.put([BLOCKS, int(at_ms * MS), None, None, made, source])

    def tick(self, at_ms: float) -> None:
        self.events += self.assembler.tick(int(at_ms * MS))

    def finish(self, at_ms: float) -> None:
        self.events += self.assembler.finish(int(at_ms * MS))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def end(record: Any, at_ms: float, failure: Failure | None = None) -> None:
    record[FAILURE] = failure
    record[ENDED] = int(at_ms * MS)


REFUSED = Failure("raised", "Exception", "InvalidState - the rates differ")


def test_a_frame_is_followed_from_capture_to_push_to_wire() -> None:
    trace = Trace()
    for index in range(3):
        trace.capture(10 * index, noise(index, 480))
    whole = b"".join(noise(index, 480) for index in range(3))
    trace.push(40, whole[: 2 * 1200])
    trace.blocks(90, whole[: 2 * 1200])
    trace.push(95, whole[2 * 1200 :])
    trace.tick(130)
    trace.finish(400)
    captured = trace.of(FrameCaptured)
    assert [(event.frame, event.start_sample) for event in captured] == [(1, 0), (2, 480), (3, 960)]
    first, second = trace.of(FramePushed)
    assert first.captured == [(0, 1200)]
    assert (second.start_sample, second.captured) == (1200, [(1200, 240)])
    (run,) = trace.of(RunSent)
    assert (run.start_sample, run.samples, run.until_ns - run.at_ns) == (0, 1200, 50 * MS)
    assert run.at_ns == 50 * MS


def test_a_call_that_runs_is_written_after_150_ms_and_its_end_later() -> None:
    trace = Trace()
    record = trace.capture(10, noise(1, 480), end=None)
    trace.tick(100)
    assert not trace.of(FrameCaptured)
    trace.tick(161)
    assert trace.of(FrameCaptured)[0].end is None
    record[FAILURE] = Failure("cancelled", "CancelledError")
    record[ENDED] = 0.19
    trace.tick(200)
    (gave_up,) = trace.of(CaptureEnded)
    assert (gave_up.at_ns, gave_up.end, gave_up.error) == (190 * MS, "cancelled", "CancelledError")
    pushed = trace.push(210, noise(1, 480), end=None)
    trace.tick(361)
    assert trace.of(FramePushed)[0].accepted
    end(pushed, 380)
    trace.tick(390)
    (ended,) = trace.of(PushEnded)
    assert (ended.at_ns, ended.end, ended.accepted) == (380 * MS, "returned", True)
    trace.finish(400)
    assert len(trace.of(FramePushed)) == len(trace.of(FrameCaptured)) == 1


def test_a_refused_frame_takes_no_positions_and_can_be_handed_over_again() -> None:
    trace = Trace()
    trace.capture(0, noise(1, 480))
    refused = trace.push(5, noise(1, 480), end=None)
    end(refused, 6, REFUSED)
    trace.tick(20)
    trace.push(30, noise(1, 480))
    trace.finish(300)
    first, again = trace.of(FramePushed)
    assert (first.accepted, first.start_sample, first.error) == (False, 0, "Exception")
    assert first.detail == "InvalidState - the rates differ"
    assert (again.accepted, again.start_sample) == (True, 0)
    assert first.captured == again.captured == [(0, 480)]


def test_a_frame_that_may_be_refused_waits_for_its_end() -> None:
    trace = Trace()
    waiting = trace.push(0, noise(1, 4800), end=None)
    second = trace.push(1, noise(2, 480), end=None)
    other_rate = trace.push(2, noise(3, 480), end=None, rate_hz=16_000)
    trace.tick(200)
    assert len(trace.of(FramePushed)) == 1
    end(second, 210, REFUSED)
    end(other_rate, 211, REFUSED)
    end(waiting, 220)
    trace.push(230, noise(4, 480))
    trace.finish(500)
    accepted = {event.push: event.accepted for event in trace.of(FramePushed)}
    starts = {event.push: event.start_sample for event in trace.of(FramePushed)}
    assert accepted == {1: True, 2: False, 3: False, 4: True}
    assert starts[4] == 4800


def test_a_refused_frame_would_have_begun_where_the_one_that_overtook_it_does() -> None:
    trace = Trace()
    trace.push(0, noise(1, 480))
    refused = trace.push(1, noise(2, 480), end=None, rate_hz=16_000)
    trace.push(2, noise(3, 480))
    end(refused, 200, REFUSED)
    trace.push(210, noise(4, 480))
    trace.finish(500)
    starts = {event.push: (event.accepted, event.start_sample) for event in trace.of(FramePushed)}
    assert starts == {1: (True, 0), 2: (False, 480), 3: (True, 480), 4: (True, 960)}


def test_a_push_that_raises_after_it_was_written_gives_its_positions_back() -> None:
    trace = Trace()
    late = trace.push(0, noise(1, 480), end=None)
    trace.tick(160)
    end(late, 170, REFUSED)
    trace.tick(180)
    trace.push(190, noise(2, 480))
    trace.blocks(240, noise(2, 480) + bytes(2 * 720))
    trace.finish(500)
    (ended,) = trace.of(PushEnded)
    assert (ended.accepted, ended.detail) == (False, "InvalidState - the rates differ")
    assert [event.start_sample for event in trace.of(FramePushed)] == [0, 0]
    assert [(run.start_sample, run.samples) for run in trace.of(RunSent)] == [(0, 480)]


def test_a_closed_source_refuses_in_silence() -> None:
    trace = Trace()
    trace.put(SourceClosed(MS, 1))
    trace.push(5, noise(1, 480))
    trace.push(6, noise(2, 480), accepted=False)
    trace.finish(300)
    assert [event.accepted for event in trace.of(FramePushed)] == [False, False]


def test_odd_frames_never_raise() -> None:
    trace = Trace()
    odd: list[Any] = [
        SimpleNamespace(data=b"", sample_rate=RATE, num_channels=1, samples_per_channel=0),
        SimpleNamespace(data=b"\1\2\3", sample_rate=RATE, num_channels=1, samples_per_channel=1),
        SimpleNamespace(data=b"\1", sample_rate=RATE, num_channels=2, samples_per_channel=5),
        SimpleNamespace(data=None, sample_rate=RATE, num_channels=1, samples_per_channel=3),
        SimpleNamespace(data=b"ab", sample_rate=0, num_channels=0, samples_per_channel=-1),
        None,
    ]
    for index, made in enumerate(odd):
        at_ns = index * MS
        trace.put(capture_of(made, at_ns, at_ns))
        trace.put([PUSH, at_ns, at_ns, None, made, 1, True])
        trace.put([BLOCKS, at_ns, None, None, made, 1])
    trace.put(clear_mark(7 * MS, sink=2))
    trace.finish(400)
    captured = trace.of(FrameCaptured)
    assert [event.samples for event in captured] == [0, 1, 5, 3, 0, 0]
    assert [event.data_bytes for event in captured] == [None, 3, 1, 0, 2, None]
    assert [event.samples for event in trace.of(FramePushed)] == [0, 1, 5, 3, 0, 0]
    for pushed in trace.of(FramePushed):
        matched = [event for event in trace.of(PushMatched) if event.push == pushed.push]
        parts = matched[0].captured if pushed.captured is None else pushed.captured
        assert sum(samples for _, samples in parts) == pushed.samples
    assert {event.kind for event in trace.of(Faulted)} == {"tap_raised"}
    (mark,) = trace.of(SinkMarked)
    assert (mark.mark, mark.sink, mark.ended_ns) == ("clear", 2, 7 * MS + 1000)


def test_stereo_handed_to_a_mono_source_as_it_lies_is_followed_value_by_value() -> None:
    trace = Trace()
    data = noise(1, 960)
    trace.put(capture_of(frame(data, RATE, 2), 0, MS))
    trace.push(5, data[: 2 * 480])
    trace.push(6, data[2 * 480 :])
    trace.finish(300)
    (captured,) = trace.of(FrameCaptured)
    assert (captured.samples, captured.channels) == (480, 2)
    first, second = trace.of(FramePushed)
    assert first.captured == [(0, 480)]
    assert second.captured == [(240, 480)]


def test_runs_end_at_200_ms_and_at_a_gap_and_silence_is_joined_for_a_second() -> None:
    trace = Trace()
    for index in range(10):
        trace.push(5 + 50 * index, noise(index, 1200))
        trace.blocks(55 + 50 * index, noise(index, 1200))
        trace.tick(60 + 50 * index)
    for index in range(30):
        trace.blocks(555 + 50 * index, bytes(2400))
        trace.tick(560 + 50 * index)
    trace.finish(2100)
    runs = trace.of(RunSent)
    assert sum(run.samples for run in runs) == 12_000
    assert all(run.until_ns - run.at_ns <= 200 * MS for run in runs)
    assert all(run.start_sample % BLOCK == 0 for run in runs)
    silence = trace.of(SilenceInserted)
    assert sum(event.samples for event in silence) == 36_000
    assert all(event.until_ns - event.at_ns <= 1000 * MS for event in silence)


def test_a_run_is_written_within_a_quarter_of_a_second() -> None:
    trace = Trace()
    trace.push(5, noise(1, 1200))
    trace.blocks(55, noise(1, 1200))
    trace.tick(60)
    assert not trace.of(RunSent)
    trace.tick(255)
    assert len(trace.of(RunSent)) == 1


def test_late_arrivals_do_not_move_the_stamps_where_blocks_keep_a_grid() -> None:
    trace = Trace()
    for index in range(20):
        late = 140 if index in (7, 8, 9) else 0
        data = noise(index, 1200)
        trace.push(50 * index, data)
        trace.blocks(50 * index + 50 + late, data)
    trace.finish(2000)
    for run in trace.of(RunSent):
        assert run.at_ns == (run.start_sample // BLOCK * 10 + 10) * MS


def test_one_late_block_is_put_right_by_those_that_follow_it() -> None:
    trace = Trace(grouped=False)
    data = noise(1, 20 * BLOCK)
    trace.push(0, data)
    for index in range(20):
        arrival = max(10 * index + 10, 150 if index >= 5 else 0)
        trace.blocks(arrival, data[2 * BLOCK * index : 2 * BLOCK * (index + 1)])
    trace.tick(230)
    trace.finish(600)
    (first, *rest) = trace.of(RunSent)
    assert first.at_ns == 10 * MS
    assert rest == [] or rest[0].start_sample == 5 * BLOCK


@pytest.mark.parametrize("grouped", [True, False])
def test_a_run_takes_its_time_however_late_the_first_of_it_was_read(grouped: bool) -> None:
    trace = Trace(grouped=grouped)
    step = 5 if grouped else 1
    data = noise(1, 20 * BLOCK)
    trace.push(0, data)
    for index in range(0, 20, step):
        left_ms = 10 * (index + step)
        trace.blocks(max(left_ms, 130), data[2 * BLOCK * index : 2 * BLOCK * (index + step)])
        trace.tick(max(left_ms, 130) + 1)
    trace.finish(600)
    runs = trace.of(RunSent)
    assert sum(run.samples for run in runs) == 20 * BLOCK
    assert all(run.until_ns - run.at_ns == run.samples // BLOCK * 10 * MS for run in runs)
    assert runs[-1].until_ns == 210 * MS


def test_a_gap_in_time_ends_a_run_where_nothing_is_put_out_in_it() -> None:
    trace = Trace(grouped=False)
    data = noise(1, 4 * BLOCK)
    trace.push(0, data)
    for index, at_ms in enumerate((10, 20, 60, 70)):
        trace.blocks(at_ms, data[2 * BLOCK * index : 2 * BLOCK * (index + 1)])
    trace.finish(600)
    assert [(run.at_ns // MS, run.start_sample) for run in trace.of(RunSent)] == [
        (10, 0),
        (60, 2 * BLOCK),
    ]


def test_blocks_that_fall_behind_the_clock_for_good_are_a_hole_in_the_reading() -> None:
    trace = Trace()
    for index in range(150):
        trace.blocks(50 * index, bytes(2400))
    for index in range(150, 400):
        trace.blocks(50 * index + 30, bytes(2400))
    trace.finish(30_000)
    (fault,) = trace.of(Faulted)
    assert (fault.kind, fault.count) == ("wire_hole", 3)


def test_a_reading_that_is_late_for_a_while_is_no_hole() -> None:
    trace = Trace()
    for index in range(400):
        late = 100 if 150 <= index < 200 else 0
        trace.blocks(50 * index + late, bytes(2400))
    trace.finish(30_000)
    assert not trace.of(Faulted)


def test_swapped_sources_share_one_count_of_pushed_samples() -> None:
    trace = Trace()
    trace.push(0, noise(1, 480))
    trace.blocks(50, noise(1, 480) + bytes(2 * 720))
    trace.put(Untapped(60 * MS, "sent", 1))
    trace.put(Tapped(70 * MS, "pushed", 2, RATE, 1, 200))
    trace.put(Tapped(70 * MS, "sent", 2, RATE, 1, None, BLOCK, True))
    trace.push(80, noise(2, 480), source=2)
    trace.blocks(130, noise(2, 480) + bytes(2 * 720), source=2)
    trace.finish(500)
    runs = trace.of(RunSent)
    assert [(run.source, run.start_sample, run.samples) for run in runs] == [
        (1, 0, 480),
        (2, 480, 480),
    ]


def test_a_reading_opened_again_goes_on_where_the_audio_is() -> None:
    trace = Trace()
    data = noise(1, 4800)
    trace.push(0, data)
    trace.blocks(50, data[:2400])
    trace.put(Untapped(60 * MS, "sent", 1))
    trace.put(Tapped(120 * MS, "sent", 1, RATE, 1, None, BLOCK, True))
    trace.blocks(200, data[2 * 2640 : 2 * 3840])
    trace.finish(500)
    runs = trace.of(RunSent)
    assert [(run.start_sample, run.samples) for run in runs] == [(0, 1200), (2640, 1200)]


def test_a_clear_is_written_once_with_both_its_times() -> None:
    trace = Trace()
    trace.clear(10)
    trace.tick(20)
    trace.finish(300)
    assert trace.of(QueueCleared) == [QueueCleared(10 * MS, 1, 10 * MS + 1000, None)]


def said(trace: Trace, at_ms: int, data: bytes) -> None:
    for begun in range(0, len(data), 960):
        trace.capture(at_ms, data[begun : begun + 960])


def test_silence_across_a_clear_of_the_sink_goes_to_the_reply_it_was_captured_for() -> None:
    trace = Trace()
    said(trace, 0, noise(1, 6000) + bytes(2 * 18_000))
    for index in range(5):
        trace.push(10 + 50 * index, noise(1, 6000)[2400 * index : 2400 * (index + 1)])
    for index in range(5, 15):
        trace.push(10 + 50 * index, bytes(2400))
    trace.tick(800)
    trace.clear_sink(801)
    trace.clear(802)
    said(trace, 900, bytes(2 * 9600) + noise(2, 4800))
    for index in range(8):
        trace.push(910 + 50 * index, bytes(2400))
        trace.tick(940 + 50 * index)
    for index in range(4):
        trace.push(1310 + 50 * index, noise(2, 4800)[2400 * index : 2400 * (index + 1)])
    trace.finish(2000)
    origins = trace.origins()
    assert [origins[push] for push in range(1, 16)] == [[(1200 * k, 1200)] for k in range(15)]
    assert [origins[push] for push in range(16, 28)] == [
        [(24_000 + 1200 * k, 1200)] for k in range(12)
    ]


def test_the_same_tone_twice_goes_to_the_second_reply_where_the_first_was_cleared() -> None:
    for value in (0, 7000):
        trace = Trace()
        tone = np.full(9600, value, np.int16).tobytes()
        said(trace, 0, tone)
        trace.clear_sink(5)
        said(trace, 10, tone)
        for index in range(8):
            trace.push(20 + 50 * index, tone[:2400])
        trace.tick(600)
        trace.finish(1000)
        assert trace.origins() == {k + 1: [(9600 + 1200 * k, 1200)] for k in range(8)}
        ambiguous = trace.of(FramePushed) + trace.of(PushMatched)
        assert sum(event.ambiguous_samples for event in ambiguous) == 9600


def test_what_leaks_past_a_clear_of_the_sink_belongs_to_what_was_cleared() -> None:
    trace = Trace()
    said(trace, 0, noise(1, 2400) + bytes(2 * 4800))
    trace.push(10, noise(1, 2400)[:2400])
    under_way = trace.push(60, noise(1, 2400)[2400:], end=None)
    trace.clear_sink(70)
    end(under_way, 75)
    trace.push(80, bytes(2400))
    said(trace, 90, bytes(2 * 2400) + noise(2, 1200))
    for index in range(3):
        trace.push(100 + 50 * index, bytes(2400))
    trace.push(260, noise(2, 1200))
    trace.finish(1000)
    assert list(trace.origins().values()) == [
        [(0, 1200)],
        [(1200, 1200)],
        [(2400, 1200)],
        [(3600, 1200)],
        [(7200, 1200)],
        [(8400, 1200)],
        [(9600, 1200)],
    ]


def test_a_clear_of_the_source_bounds_when_the_blocks_it_would_have_taken_had_left() -> None:
    """However late they arrive: what is read after it, and was inside, left before it."""
    for grouped in (True, False):
        for cleared in (True, False):
            trace = Trace(grouped=grouped)
            data = noise(1, 4800)
            trace.push(0, data)
            if cleared:
                trace.clear(62)
            trace.blocks(140, data[:2400])
            trace.blocks(190, bytes(2400))
            trace.finish(800)
            (run,) = trace.of(RunSent)
            assert (run.start_sample, run.samples, run.ambiguous_samples) == (0, 1200, 0)
            last_ns = 62 * MS + 1000 if cleared else 140 * MS
            assert (run.at_ns, run.until_ns) == (last_ns - 40 * MS, last_ns + 10 * MS)


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["capture", "push", "clear", "blocks", "silence", "mark"]),
            st.integers(0, 3),
            st.integers(1, 1500),
        ),
        max_size=40,
    ),
    grouped=st.booleans(),
    channels=st.integers(1, 2),
)
def test_every_sample_read_and_every_sample_pushed_is_accounted_for_once(
    steps: list[Any], grouped: bool, channels: int
) -> None:
    """Whatever arrives, sensible or not, sums add up."""
    trace = Trace(grouped=grouped, channels=channels)
    now, read, captured = 0, 0, 0
    for action, seed, samples in steps:
        now += 50
        data = noise(seed, samples * channels)
        if action == "capture":
            trace.put(capture_of(frame(data, RATE, channels), now * MS, now * MS))
            captured += samples
        elif action == "push":
            trace.push(now, data, channels=channels)
        elif action == "clear":
            trace.clear(now)
        elif action == "mark":
            trace.put(clear_mark(now * MS))
        else:
            content = bytes(len(data)) if action == "silence" else data
            trace.blocks(now, content, channels=channels)
            read += samples
        trace.tick(now + 20)
    trace.finish(now + 1000)
    assert sum(event.samples for event in trace.of(FrameCaptured)) == captured
    told = sum(event.samples for event in trace.of(RunSent) + trace.of(SilenceInserted))
    assert told == read // BLOCK * BLOCK
    matched = {event.push: event.captured for event in trace.of(PushMatched)}
    position = 0
    for event in trace.of(FramePushed):
        assert event.start_sample == position
        position += event.samples
        parts = matched[event.push] if event.captured is None else event.captured
        assert sum(count for _, count in parts) == event.samples
    for run in trace.of(RunSent):
        assert run.start_sample is None or run.start_sample + run.samples <= position
    assert not trace.of(Faulted)
