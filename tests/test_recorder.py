"""The recorder: what is put comes out, in one file of its own, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from probe import bound
from probe.faults import Faults
from probe.recorder import CAPACITY, Recorder
from probe.taps.calls import Call
from probe.trace.events import (
    AudioSkipped,
    CaptureEnded,
    Event,
    Faulted,
    FrameCaptured,
    FramePushed,
    PlaybackReported,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SizeBounded,
    SumsKept,
)
from probe.trace.reader import Trace, read_trace
from tests.recording import PassOn, bookmark, child, faults, frame, header, names, wait_for


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


# The bound


def bounded(path: Path, events: Iterable[Event], max_mb: float = 0.001) -> Trace:
    recorder = Recorder(path, header(), PassOn(), max_mb=max_mb)
    for event in events:
        recorder.put(event)
    recorder.close()
    return read_trace(recorder.path)


def test_bounded_file_keeps_marks_session_events_and_sums(path: Path) -> None:
    at_ns = time.monotonic_ns()
    filling = [bookmark(number) for number in range(30)]
    trace = bounded(
        path,
        [
            frame(1),
            *filling,
            frame(2),
            frame(3, 100),
            CaptureEnded(at_ns, 2, "returned"),
            FramePushed(at_ns, 1, 1, 0, 50, 8000, 1, end="returned"),
            FramePushed(at_ns, 2, 1, 50, 60, 8000, 1),
            FramePushed(at_ns, 3, 1, 110, 70, 8000, 1),
            FramePushed(at_ns, 4, 1, 180, 80, 8000, 1, accepted=False, end="raised"),
            FramePushed(at_ns, 5, 1, 180, 90, 8000, 1),
            PushEnded(at_ns, 2, "returned"),
            PushEnded(at_ns, 3, "raised", accepted=False),
            PushMatched(at_ns, 1, [(0, 50)]),
            RunSent(at_ns, at_ns, 1, 0, 30),
            SilenceInserted(at_ns, at_ns, 1, 40),
            PlaybackReported(at_ns, "progressed"),
            PlaybackReported(at_ns, "finished"),
            SinkMarked(at_ns, "clear"),
            bookmark("after"),
        ],
    )

    assert trace.complete
    assert len(trace.captured) == 1
    assert len(trace.pushed) == len(trace.sent) == len(trace.inserted) == 0
    kinds = [type(event) for event in trace.events]
    assert kinds.count(SizeBounded) == kinds.count(SinkMarked) == 1
    assert kinds.count(PlaybackReported) == 1
    assert "after" in names(trace)
    (sums,) = [event for event in trace.events if isinstance(event, SumsKept)]
    assert sums.captured_frames == 2
    assert sums.captured_samples == 580
    assert (sums.pushed_frames, sums.pushed_samples) == (3, 50 + 60 + 90)
    assert (sums.sent_samples, sums.inserted_samples) == (30, 40)


def test_calls_written_before_the_bound_still_get_their_end(path: Path) -> None:
    first = frame(1)
    at_ns = time.monotonic_ns()
    trace = bounded(
        path,
        [
            first,
            FramePushed(at_ns, 1, 1, 0, 480, 24000, 1),
            *[bookmark(number) for number in range(30)],
            CaptureEnded(at_ns, 1, "cancelled"),
            PushEnded(at_ns, 1, "returned"),
            PushMatched(at_ns, 1, [(0, 480)]),
        ],
    )

    assert trace.complete
    assert trace.captured.end.tolist() == [1]
    assert trace.pushed.end.tolist() == [0]
    assert trace.pushed.matched.tolist() == [True]


def test_what_a_sink_skipped_is_not_told_of_frames_that_are_only_counted(path: Path) -> None:
    skipped = [AudioSkipped(time.monotonic_ns(), 0, 480) for _ in range(3)]
    trace = bounded(path, [*[bookmark(number) for number in range(30)], *skipped])

    assert not [event for event in trace.events if isinstance(event, AudioSkipped)]
    assert trace.complete


def test_bound_without_end_is_none(path: Path) -> None:
    trace = bounded(path, [frame(number) for number in range(1, 100)], max_mb=float("inf"))

    assert trace.complete
    assert len(trace.captured) == 99


def test_bounded_file_stays_near_its_bound(path: Path) -> None:
    # Made one by one: stamped all at once, the last would be told long after their time.
    frames = (frame(number) for number in range(1, 20_001))
    bookmarks = (bookmark(number) for number in range(20_000))
    trace = bounded(path, chain[Event](frames, bookmarks), max_mb=0.1)

    assert path.stat().st_size < 100_000 * 1.25 + 70_000
    assert faults(trace)["events_lost"] > 10_000
    assert trace.complete


def test_sums_are_written_while_the_call_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound, "SUMS_NS", 1)
    recorder = Recorder(path, header(), PassOn(), max_mb=0.000001)
    recorder.start()
    recorder.put(frame(1))
    wait_for(
        lambda: (
            path.stat().st_size
            and any(isinstance(event, SumsKept) for event in read_trace(path).events)
        )
    )
    recorder.close()

    assert read_trace(path).complete


# Processes that end


def test_killed_process_loses_no_more_than_a_quarter_of_a_second(path: Path) -> None:
    script = """
        recorder = Recorder(Path(sys.argv[1]), header(), PassOn())
        recorder.start()
        for number in range(1, 10**6):
            event = bookmark(number)
            recorder.put(event)
            os.write(1, b"%d %d\\n" % (number, event.at_ns))
            time.sleep(0.001)
    """
    # A machine under load may hold up the child itself; what counts is that it can be kept.
    losses = []
    for _ in range(3):
        process = child(script, path)
        assert process.stdout is not None
        put: dict[str, int] = {}
        for line in process.stdout:
            name, at_ns = line.split()
            put[name] = int(at_ns)
            if len(put) == 500:
                process.send_signal(signal.SIGKILL)
        process.communicate()

        trace = read_trace(path)
        assert [problem.kind for problem in trace.problems] == ["cut"]
        kept = names(trace)
        assert kept == list(put)[: len(kept)]
        losses.append(list(put.values())[-1] - put[kept[-1]])
        path.unlink()
        if losses[-1] <= 250_000_000:
            break
    assert min(losses) <= 250_000_000


def test_process_that_exits_without_closing_closes_at_exit(path: Path) -> None:
    process = child(
        """
        recorder = Recorder(Path(sys.argv[1]), header(), PassOn())
        recorder.start()
        recorder.put(bookmark("last words"))
        """,
        path,
    )
    process.communicate()

    trace = read_trace(path)
    assert process.returncode == 0
    assert trace.complete
    assert names(trace) == ["last words"]
    assert trace.trailer is not None
    assert trace.trailer.reason == "exit"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_leaves_the_parents_trace_alone(path: Path) -> None:
    process = child(
        """
        recorder = Recorder(Path(sys.argv[1]), header(), PassOn())
        recorder.start()
        recorder.put(bookmark("before"))
        time.sleep(0.2)
        if os.fork() == 0:
            recorder.put(bookmark("child"))
            recorder.fault("tap_raised", "child")
            recorder.close("child")
            sys.exit(0)
        os.wait()
        recorder.put(bookmark("after"))
        recorder.close()
        """,
        path,
    )
    process.communicate()

    trace = read_trace(path)
    assert process.returncode == 0
    assert trace.complete
    assert names(trace) == ["before", "after"]
    assert faults(trace) == {}


def test_recorder_loads_nothing_but_the_standard_library_and_itself() -> None:
    script = "import sys, probe.recorder; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    listed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout.split()

    assert "probe" in listed
    assert not {"msgspec", "zstandard", "numpy", "livekit", "reports"} & set(listed)
