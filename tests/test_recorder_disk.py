"""A disk that is full, slow or stuck is the recorder's trouble, never the call's."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from probe import recorder as recorder_module
from probe import trace_file
from probe.recorder import Recorder
from probe.trace.reader import read_trace
from tests.recording import PassOn, bookmark, child, faults, frame, header, names, wait_for


class Disk:
    """Stands at the boundary of the operating system, before every `os.write`."""

    def __init__(self) -> None:
        self.full = False
        self.short = 0
        self.open = threading.Event()
        self.open.set()
        self.stuck = threading.Event()
        self._write = os.write

    def write(self, fd: int, data: memoryview) -> int:
        if threading.current_thread().name != "sinkprobe-recorder":
            return self._write(fd, data)
        if not self.open.is_set():
            self.stuck.set()
            self.open.wait()
        if self.full:
            if not self.short:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data, self.short = data[: self.short], 0
        return self._write(fd, data)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(os, "write", disk.write)
    yield disk
    disk.open.set()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "call.jsonl", header(), PassOn())
    recorder.start()
    wait_for(lambda: recorder.path.stat().st_size)
    yield recorder
    recorder.close()


def test_full_disk_is_a_fault_and_what_waits_is_written_once_there_is_room(
    recorder: Recorder, disk: Disk
) -> None:
    recorder.put(bookmark("before"))
    wait_for(lambda: "before" in names(read_trace(recorder.path)))
    disk.short = 30  # in the middle of a line, as a disk that fills up does it
    disk.full = True
    recorder.put(bookmark("meanwhile"))
    wait_for(lambda: recorder.faults.get("write_failed", 0) > 2)
    assert b"meanwhile" not in recorder.path.read_bytes()
    disk.full = False
    recorder.put(bookmark("after"))
    recorder.close()

    trace = read_trace(recorder.path)
    assert trace.complete
    assert names(trace) == ["before", "meanwhile", "after"]
    assert faults(trace) == recorder.faults
    assert faults(trace)["write_failed"] > 2
    assert "No space left" in str(trace.events)


def test_disk_that_stays_full_cuts_the_trace_and_nothing_else(
    recorder: Recorder, disk: Disk
) -> None:
    disk.full = True
    recorder.put(bookmark("lost"))
    wait_for(lambda: recorder.faults.get("write_failed"))
    recorder.close()

    assert [problem.kind for problem in read_trace(recorder.path).problems] == ["cut"]
    assert recorder.faults["events_lost"] >= 2  # the mark and the trailer at the least


def test_memory_stays_bounded_while_the_disk_is_full(
    recorder: Recorder, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "PENDING_BYTES", 10_000)
    disk.full = True
    for number in range(5000):
        recorder.put(bookmark(number))
    wait_for(lambda: not recorder.queue)
    assert len(recorder._file._pending) <= 10_000
    disk.full = False
    wait_for(lambda: not recorder._file._pending)
    recorder.close()

    trace = read_trace(recorder.path)
    assert trace.complete
    kept = names(trace)
    assert kept == [str(number) for number in range(len(kept))]
    assert faults(trace)["events_lost"] == 5000 - len(kept)


def test_stuck_disk_never_holds_up_a_put(recorder: Recorder, disk: Disk) -> None:
    disk.open.clear()
    recorder.put(bookmark("first"))
    assert disk.stuck.wait(10)
    for number in range(1, 20_001):
        recorder.put(frame(number))  # would hang here for good
    assert len(recorder.queue) == 20_000
    disk.open.set()
    recorder.close()

    trace = read_trace(recorder.path)
    assert trace.complete
    assert len(trace.captured) == 20_000


def test_slow_write_is_a_fault(
    recorder: Recorder, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "SLOW_NS", 10_000_000)
    disk.open.clear()
    recorder.put(bookmark("slow"))
    assert disk.stuck.wait(10)
    time.sleep(0.02)
    disk.open.set()
    recorder.close()

    trace = read_trace(recorder.path)
    assert trace.complete
    assert names(trace) == ["slow"]
    assert faults(trace)["write_slow"] >= 1


def test_close_waits_for_a_stuck_disk_only_so_long(
    recorder: Recorder, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "JOIN_S", 0.05)
    disk.open.clear()
    recorder.put(bookmark("late"))
    assert disk.stuck.wait(10)
    recorder.close()
    assert recorder.faults == {"write_failed": 1}
    assert read_trace(recorder.path).trailer is None

    disk.open.set()
    wait_for(lambda: read_trace(recorder.path).trailer)
    assert names(read_trace(recorder.path)) == ["late"]


def test_trace_survives_a_file_that_may_not_grow_for_a_while(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    path = tmp_path / "call.jsonl"
    process = child(
        """
        import resource

        def wait_for(condition):
            for _ in range(2000):
                if condition():
                    return
                time.sleep(0.005)
            os._exit(3)

        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
        recorder = Recorder(Path(sys.argv[1]), header(), PassOn())
        recorder.start()
        for number in range(1000):
            recorder.put(bookmark(number))
        wait_for(lambda: recorder.faults.get("write_failed", 0) > 2)
        if Path(sys.argv[1]).stat().st_size != 5000:
            os._exit(4)
        if sys.argv[2] == "grow":
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        recorder.close()
        print(sorted(recorder.faults))
        """,
        path,
        "grow",
    )
    assert process.communicate()[0] == "['write_failed']\n"

    trace = read_trace(path)
    assert trace.complete
    assert names(trace) == [str(number) for number in range(1000)]
    assert faults(trace)["write_failed"] > 2


def test_trace_in_a_file_that_may_not_grow_is_read_as_cut(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    path = tmp_path / "call.jsonl"
    process = child(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        recorder = Recorder(Path(sys.argv[1]), header(), PassOn())
        recorder.start()
        for number in range(1000):
            recorder.put(bookmark(number))
        recorder.close()
        print(sorted(recorder.faults))
        """,
        path,
    )
    assert process.communicate()[0] == "['events_lost', 'write_failed']\n"

    trace = read_trace(path)
    assert [problem.kind for problem in trace.problems] == ["cut"]
    kept = names(trace)
    assert kept == [str(number) for number in range(len(kept))]
    assert len(kept) > 50
