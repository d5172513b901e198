"""From records to a file: a bounded buffer, one thread, and what to do when the disk fails.

The session's loop, the reader of the wire and the heartbeat all `Recorder.put` what they saw; a
thread of the recorder's own turns it into events, encodes and writes it, some twenty times a
second. So neither a slow disk nor a full one is ever felt in the call, and a process that is killed
loses no more than what came since the thread woke last.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from probe.bound import Bound
from probe.faults import Faults
from probe.taps.calls import Call
from probe.trace.events import (
    Event,
    Faulted,
    Header,
    Trailer,
)
from probe.trace.writer import MAX_LINE_BYTES, encode
from probe.trace_file import TraceFile

__all__ = ["Assembling", "Recorder"]

WAKE_S: Final = 0.05
"""How often the thread writes; five times as often as a killed process may lose."""

CAPACITY: Final = 65_536
"""Records that may wait for the thread. A record holds a frame: this bounds memory as well."""

SLOW_NS: Final = 500_000_000
"""A write that takes longer than this is a fault worth knowing of."""

JOIN_S: Final = 5.0
"""How long `Recorder.close` waits for a disk that hangs."""

_BATCH: Final = 64


class Assembling(Protocol):
    """What the recorder asks of an assembler; absolute times in and out."""

    def accept(self, record: Call | Event, /) -> Iterable[Event]: ...

    def tick(self, now_ns: int, /) -> Iterable[Event]: ...

    def finish(self, now_ns: int, /) -> Iterable[Event]: ...


class Recorder:
    """Writes one trace. Nothing public but the constructor raises, and any thread may call it.

    Args:
        path: file to write; missing folders are made. A file that exists is left alone, and the
            trace goes to ``name-1.jsonl``, ``name-2.jsonl``, … beside it.
        header: first line; its ``started_monotonic_ns`` becomes time 0 of the trace.
        assembler: turns records into events; it runs on the recorder's thread only.
        max_mb: bound of the file in millions of bytes, ``None`` for none. Once reached, only marks,
            session events, faults and sums are written, and after a quarter more only the last two.

    Raises:
        OSError: the file cannot be created.
        ValueError: ``max_mb`` is no positive number, or the header is longer than a line may be.
    """

    put: Callable[[Call | Event], None]
    """Hands over a record or an event with absolute times. Any thread; never raises, never blocks,
    costs a length and an append. What does not fit any more is counted as ``events_lost``."""

    def __init__(
        self, path: Path, header: Header, assembler: Assembling, *, max_mb: float | None = None
    ) -> None:
        if max_mb is not None and not max_mb > 0:
            raise ValueError(f"expected max_mb to be above 0 or None, found {max_mb!r}")
        line = encode(header).encode()
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(
                f"expected a header of at most {MAX_LINE_BYTES} bytes, found {len(line)}: "
                "labels or options are too long"
            )
        self.queue: deque[Call | Event] = deque()
        self.put, self._shut, self._lost = _gate(self.queue)
        self._file = TraceFile(Path(path))
        self._file.add(line)
        self._counts = Counter({Header.NAME: 1})
        self._zero_ns = header.started_monotonic_ns
        self._assembler = assembler
        self._faults = Faults()
        self._bound = None if max_mb is None else Bound(max_mb * 1_000_000)
        self._failing = False
        self._lost_noted = 0
        self._lost_read = 0
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._reason: str | None = None
        at_exit = weakref.WeakMethod(self.close)
        self._at_exit = lambda: (close := at_exit()) and close("exit")
        atexit.register(self._at_exit)

    @property
    def path(self) -> Path:
        """The file that was really created."""
        return self._file.path

    @property
    def faults(self) -> dict[str, int]:
        """How often the probe failed so far, by kind; also what could not be written any more."""
        return self._faults.totals()

    def start(self) -> None:
        """Starts the thread that writes. Where none can be had, all is written at close."""
        with self._lock:
            if self._thread is not None or self._reason is not None:
                return
            thread = threading.Thread(target=self._run, name="sinkprobe-recorder", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self.fault("tap_raised", f"recorder: {error}")
            else:
                self._thread = thread

    def fault(self, kind: str, detail: str = "", count: int = 1) -> None:
        """Notes that the probe failed at something: counted at once, written soon.

        Faults of one kind that come in quick succession are written as one line with their count.
        """
        if os.getpid() == self._pid:
            self._faults.note(kind, detail, count, time.monotonic_ns())

    def close(self, reason: str = "closed") -> None:
        """Writes what is left and the trailer, and ends the thread. Waits until that is done, but
        not longer than five seconds for a disk that hangs; the thread then ends by itself.

        Called again, or in a forked child, it does nothing. Called on the recorder's own thread it
        cannot wait: the thread ends with what it is doing.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            first = self._reason is None
            if first:
                self._reason = reason
                self._shut()
                self._stop.set()
                atexit.unregister(self._at_exit)
            thread = self._thread
        if thread is threading.current_thread():
            return
        if thread is not None:
            thread.join(JOIN_S)
            if first and thread.is_alive():
                self.fault("write_failed", f"the disk hung for {JOIN_S:.0f} s at the end")
        elif first:
            self._end()

    # On the recorder's thread --------------------------------------------------------------------

    def _run(self) -> None:
        stopped = False
        while not stopped:
            self._guarded(self._turn)
            stopped = self._stop.wait(WAKE_S)
        self._end()

    def _end(self) -> None:
        self._guarded(self._finish)
        unwritten = self._file.close()
        if unwritten:
            self.fault("events_lost", "the disk did not take them before the end", unwritten)
        self.queue.clear()

    def _guarded(self, step: Callable[[], None]) -> None:
        """One thing that goes wrong must not end the thread, and with it the trace."""
        try:
            step()
        except Exception as error:
            self._raised("recorder", error)

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        self._failing = False
        self._drain()
        self._assemble(self._assembler.tick, now_ns)
        self._note_lost()
        self._keep_sums(now_ns)
        self._write()
        # Not while the disk refuses lines: the fault waits and is written once, with its count.
        if not self._failing and self._emit_faults(now_ns):
            self._write()

    def _finish(self) -> None:
        self._drain()
        now_ns = time.monotonic_ns()
        self._assemble(self._assembler.finish, now_ns)
        self._note_lost()
        self._failing = False
        self._write()
        self._keep_sums(now_ns, last=True)
        self._emit_faults(None)
        lines = self._counts.total()
        self._add(Trailer(now_ns, lines, self._reason or "closed", dict(self._counts)))
        self._failing = False
        self._write()

    def _drain(self) -> None:
        queue = self.queue
        accept = self._assembler.accept
        for taken in range(1, len(queue) + 1):
            self._assemble(accept, queue.popleft())
            if not taken % _BATCH:
                # A burst is worked off in pieces: none of them waits for the last one to be
                # written, and the session's loop is let in between.
                self._write()
                time.sleep(0)

    def _assemble(self, step: Callable[[Any], Iterable[Event]], argument: Any) -> None:
        try:
            for event in step(argument):
                self._emit(event)
        except Exception as error:
            self._raised("assembler", error)

    def _raised(self, where: str, error: Exception) -> None:
        self.fault("tap_raised", f"{where}: {type(error).__name__}: {error}")

    def _emit(self, event: Event) -> None:
        """One event on its way to the file; faults wait, and once bounded not all is written."""
        admitted: Iterable[Event] = (event,)
        if self._bound is not None and not isinstance(event, Faulted):
            admitted = self._bound.admit(event, self._file.size)
        for each in admitted:
            if isinstance(each, Faulted):
                self._faults.note(each.kind, each.detail, each.count, each.at_ns)
            else:
                self._add(each)

    def _add(self, event: Event) -> None:
        """One event as a line, to be written next."""
        try:
            line = encode(event, self._zero_ns).encode()
        except Exception as error:
            self._raised(f"writing {type(event).__name__}", error)
            return
        if len(line) > MAX_LINE_BYTES:
            self.fault("events_lost", f"{type(event).__name__}: longer than a line may be")
        elif not self._file.add(line):
            self.fault("events_lost", "the disk takes no more")
        else:
            self._counts[event.NAME] += 1

    def _keep_sums(self, now_ns: int, *, last: bool = False) -> None:
        if self._bound is not None:
            for sums in self._bound.sums(now_ns, last=last):
                self._add(sums)

    def _note_lost(self) -> None:
        # The count can only be read by counting on: its own readings are taken off again.
        lost = next(self._lost) - self._lost_read
        self._lost_read += 1
        if lost > self._lost_noted:
            self.fault("events_lost", "the buffer was full", lost - self._lost_noted)
            self._lost_noted = lost

    def _emit_faults(self, now_ns: int | None) -> bool:
        faults = self._faults.due(now_ns)
        for fault in faults:
            self._add(fault)
        return bool(faults)

    def _write(self) -> None:
        if self._failing:
            return
        began_ns = time.monotonic_ns()
        try:
            self._file.write()
        except OSError as error:
            self._failing = True
            self.fault("write_failed", error.strerror or str(error))
        took_ns = time.monotonic_ns() - began_ns
        if took_ns > SLOW_NS:
            self.fault("write_slow", f"a write took {took_ns / 1e9:.1f} s")


def _gate(
    queue: deque[Call | Event],
) -> tuple[Callable[[Call | Event], None], Callable[[], None], itertools.count[int]]:
    """`Recorder.put`, what shuts it, and the count of what it turned away.

    A closure and not a method, because it runs in the call: it costs half of what a method does.
    """
    limit = CAPACITY
    append = queue.append
    lost = itertools.count()

    def put(record: Call | Event) -> None:
        if len(queue) < limit:
            append(record)
        else:
            next(lost)

    def shut() -> None:
        nonlocal limit
        limit = 0

    return put, shut, lost
