"""A process that ends, in whatever way, and what is left of the trace it recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from probe.trace.reader import read_trace
from tests.recording import child, faults, names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "call.jsonl"


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
