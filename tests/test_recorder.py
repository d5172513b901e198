"""The recorder: what is put comes out, in one file of its own, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from probe.faults import Faults
from probe.recorder import CAPACITY, Recorder
from probe.taps.calls import Call
from probe.trace.events import (
    Event,
    Faulted,
    FrameCaptured,
    FramePushed,
    RunSent,
)
from probe.trace.reader import read_trace
from tests.recording import PassOn, bookmark, faults, frame, header, names, wait_for


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    before = threading.active_count()
    yield tmp_path / "call.jsonl"
    wait_for(lambda: threading.active_count() == before)


# What is put comes out


def test_trace_has_the_header_first_everything_put_and_the_trailer_last(path: Path) -> None:
    first = header(labels={"room": "r"})
    recorder = Recorder(path, first, PassOn())
    recorder.start()
    for number in range(1, 1001):
        recorder.put(frame(number))
    recorder.put(bookmark("end"))
    recorder.close("session_closed")

    trace = read_trace(recorder.path)
    assert trace.complete
    assert trace.header == first
    assert trace.captured.frame.tolist() == list(range(1, 1001))
    assert names(trace) == ["end"]
    assert trace.trailer is not None
    assert (trace.trailer.events, trace.trailer.reason) == (1002, "session_closed")
    assert recorder.faults == {}


def test_times_are_written_relative_to_the_header(path: Path) -> None:
    first = header()
    zero = first.started_monotonic_ns
    recorder = Recorder(path, first, PassOn())
    recorder.put(RunSent(zero + 5, zero + 9, 1, 0, 2))
    recorder.close()

    sent = read_trace(path).sent
    assert (sent.at_ns.tolist(), sent.until_ns.tolist()) == ([5], [9])


def test_header_and_events_are_in_the_file_while_the_call_goes_on(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.start()
    recorder.put(bookmark("a"))
    wait_for(lambda: path.stat().st_size and names(read_trace(path)) == ["a"])

    assert [problem.kind for problem in read_trace(path).problems] == ["cut"]
    recorder.close()


def test_events_put_from_many_threads_all_arrive(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.start()

    def put_some(thread: int) -> None:
        for number in range(500):
            recorder.put(bookmark(f"{thread}-{number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put_some, range(8)))
    recorder.close()

    trace = read_trace(path)
    assert trace.complete
    assert len(set(names(trace))) == 4000


def test_assembler_is_asked_in_order_and_on_one_thread(path: Path) -> None:
    asked: list[tuple[str, int]] = []

    class Asked(PassOn):
        def accept(self, record: Call | Event) -> Iterable[Event]:
            asked.append(("accept", threading.get_ident()))
            yield from super().accept(record)

        def tick(self, now_ns: int) -> Iterable[Event]:
            asked.append(("tick", threading.get_ident()))
            yield bookmark("tick")

        def finish(self, now_ns: int) -> Iterable[Event]:
            asked.append(("finish", threading.get_ident()))
            yield bookmark("finish")

    recorder = Recorder(path, header(), Asked())
    recorder.put(bookmark("put"))
    recorder.start()
    wait_for(lambda: "tick" in [step for step, _ in asked])
    recorder.close()

    assert [step for step, _ in asked][:2] == ["accept", "tick"]
    assert asked[-1][0] == "finish"
    assert len({thread for _, thread in asked}) == 1
    assert names(read_trace(path))[0] == "put"
    assert names(read_trace(path))[-1] == "finish"


# The file


def test_existing_file_is_never_overwritten(path: Path) -> None:
    path.write_text("mine")
    recorders = [Recorder(path, header(), PassOn()) for _ in range(3)]
    for recorder in recorders:
        recorder.close()

    assert [recorder.path.name for recorder in recorders] == [
        "call-1.jsonl",
        "call-2.jsonl",
        "call-3.jsonl",
    ]
    assert path.read_text() == "mine"
    assert all(read_trace(recorder.path).complete for recorder in recorders)


def test_recorders_opened_at_once_never_share_a_file(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        recorders = list(pool.map(lambda _: Recorder(path, header(), PassOn()), range(40)))
    for recorder in recorders:
        recorder.close()

    assert len({recorder.path for recorder in recorders}) == 40


def test_missing_folders_are_made(path: Path) -> None:
    recorder = Recorder(path.parent / "a" / "b" / "call.jsonl", header(), PassOn())
    recorder.close()

    assert read_trace(path.parent / "a" / "b" / "call.jsonl").complete


def test_folder_in_place_of_the_file_is_an_error(path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="expected a file"):
        Recorder(path.parent, header(), PassOn())


def test_folder_that_cannot_be_made_is_an_error(path: Path) -> None:
    path.write_text("a file")
    with pytest.raises(OSError, match=r"call\.jsonl"):
        Recorder(path / "sub" / "call.jsonl", header(), PassOn())


@pytest.mark.parametrize("max_mb", [0, -1, float("nan")])
def test_bound_that_is_none_is_refused(path: Path, max_mb: float) -> None:
    with pytest.raises(ValueError, match="max_mb"):
        Recorder(path, header(), PassOn(), max_mb=max_mb)
    assert not path.exists()


def test_header_longer_than_a_line_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="labels or options are too long"):
        Recorder(path, header(labels={str(n): "x" * 4000 for n in range(400)}), PassOn())
    assert not path.exists()


# Closing


def test_close_again_changes_nothing(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.start()
    recorder.close("first")
    content = path.read_bytes()
    recorder.close("second")
    recorder.start()
    recorder.put(bookmark("late"))
    recorder.fault("tap_raised", "late")
    recorder.close()

    assert path.read_bytes() == content
    assert read_trace(path).trailer.reason == "first"  # type: ignore[union-attr]
    assert len(recorder.queue) == 0


def test_close_from_many_threads_at_once_closes_once_and_all_wait(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.start()
    recorder.put(bookmark("a"))

    def close(_: int) -> bool:
        recorder.close()
        return read_trace(path).complete

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(close, range(8)))


def test_close_without_start_writes_everything(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.put(bookmark("a"))
    recorder.close()

    assert names(read_trace(path)) == ["a"]
    assert read_trace(path).complete


def test_close_on_the_recorders_own_thread_does_not_wait_for_itself(path: Path) -> None:
    class Closing(PassOn):
        recorder: Recorder

        def accept(self, record: Call | Event) -> Iterable[Event]:
            self.recorder.close("from within")
            return super().accept(record)

    assembler = Closing()
    recorder = assembler.recorder = Recorder(path, header(), assembler)
    recorder.start()
    recorder.put(bookmark("a"))
    wait_for(lambda: path.stat().st_size and read_trace(path).trailer)

    assert read_trace(path).complete
    assert names(read_trace(path)) == ["a"]
    recorder.close()


def test_recorder_that_gets_no_thread_writes_at_close(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recorder = Recorder(path, header(), PassOn())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        recorder.start()
    recorder.put(bookmark("a"))
    recorder.close()

    trace = read_trace(path)
    assert names(trace) == ["a"]
    assert faults(trace) == {"tap_raised": 1}


def test_thousand_recorders_leave_no_thread_no_file_and_no_object(tmp_path: Path) -> None:
    def open_and_close(number: int) -> weakref.ref[Recorder]:
        recorder = Recorder(tmp_path / f"{number}.jsonl", header(), PassOn())
        recorder.start()
        recorder.put(bookmark("a"))
        recorder.close()
        recorder.path.unlink()
        return weakref.ref(recorder)

    open_and_close(0)
    threads = threading.active_count()
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    with ThreadPoolExecutor(16) as pool:
        references = list(pool.map(open_and_close, range(1, 1001)))

    assert threading.active_count() == threads
    if files:
        assert len(os.listdir("/proc/self/fd")) == files
    gc.collect()
    assert [reference() for reference in references] == [None] * 1000


# Its own failures


@pytest.mark.parametrize("step", ["accept", "tick", "finish"])
def test_assembler_that_raises_is_a_fault_and_the_rest_is_recorded(path: Path, step: str) -> None:
    class Raising(PassOn):
        def accept(self, record: Call | Event) -> Iterable[Event]:
            yield from super().accept(record)
            if step == "accept" and record.name == "bad":  # type: ignore[union-attr]
                raise LookupError("no such frame")

        def tick(self, now_ns: int) -> Iterable[Event]:
            if step == "tick":
                raise LookupError("no such frame")
            return ()

        def finish(self, now_ns: int) -> Iterable[Event]:
            if step == "finish":
                raise LookupError("no such frame")
            return ()

    recorder = Recorder(path, header(), Raising())
    recorder.put(bookmark("bad"))
    recorder.put(bookmark("good"))
    recorder.start()
    wait_for(lambda: not recorder.queue)
    recorder.close()

    trace = read_trace(path)
    assert trace.complete
    assert names(trace) == ["bad", "good"]
    assert recorder.faults == faults(trace)
    assert recorder.faults["tap_raised"] >= 1
    (fault, *_) = [event for event in trace.events if isinstance(event, Faulted)]
    assert "LookupError: no such frame" in fault.detail


def test_event_that_cannot_be_written_is_a_fault(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    recorder.put("no event")  # type: ignore[arg-type]
    recorder.put(FrameCaptured(time.monotonic_ns(), None, 0, 1, 8000, 1))  # type: ignore[arg-type]
    recorder.put(FramePushed(time.monotonic_ns(), 1, 1, 0, 1, 8000, 1, captured=[(0, 1)] * 200_000))
    recorder.put(bookmark("good"))
    recorder.close()

    trace = read_trace(path)
    assert trace.complete
    assert names(trace) == ["good"]
    assert faults(trace) == recorder.faults == {"tap_raised": 2, "events_lost": 1}


def test_faults_that_come_in_a_row_are_one_line_with_their_count(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    for _ in range(500):
        recorder.fault("tap_raised", "boom")
    recorder.put(Faulted(time.monotonic_ns(), "wire_hole", 3, "hole"))
    recorder.put(Faulted(time.monotonic_ns(), "wire_hole", 4))
    recorder.close()

    trace = read_trace(path)
    lines = [event for event in trace.events if isinstance(event, Faulted)]
    assert [(line.kind, line.count, line.detail) for line in lines] == [
        ("tap_raised", 500, "boom"),
        ("wire_hole", 7, "hole"),
    ]
    assert recorder.faults == {"tap_raised": 500, "wire_hole": 7}


def test_fault_at_every_turn_is_counted_and_does_not_fill_the_trace(path: Path) -> None:
    pauses = Faults()
    written = []
    for second in range(3600):
        pauses.note("tap_raised", "", 20, second * 10**9)
        written += pauses.due(second * 10**9)
    written += pauses.due(None)

    assert sum(fault.count for fault in written) == 3600 * 20
    assert len(written) < 80
    assert pauses.totals() == {"tap_raised": 3600 * 20}


def test_what_does_not_fit_into_the_buffer_is_counted(path: Path) -> None:
    recorder = Recorder(path, header(), PassOn())
    event = bookmark("a")
    for _ in range(CAPACITY + 7):
        recorder.put(event)
    assert len(recorder.queue) == CAPACITY
    recorder.close()

    trace = read_trace(path)
    assert trace.complete
    assert len(names(trace)) == CAPACITY
    assert faults(trace) == recorder.faults == {"events_lost": 7}


def test_every_loss_is_counted_once(path: Path) -> None:
    accepted: list[Call | Event] = []
    go_on = threading.Event()

    class Holding(PassOn):
        def accept(self, record: Call | Event) -> Iterable[Event]:
            accepted.append(record)
            go_on.wait()
            return ()

    recorder = Recorder(path, header(), Holding())
    recorder.start()
    event = bookmark("a")
    for lost in (100, 50):
        go_on.clear()
        accepted.clear()
        recorder.put(event)
        wait_for(lambda: accepted)
        for _ in range(CAPACITY + lost):
            recorder.put(event)
        go_on.set()
        wait_for(lambda: len(accepted) == 1 + CAPACITY)
    recorder.close()

    assert recorder.faults == faults(read_trace(path)) == {"events_lost": 150}
