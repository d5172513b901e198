"""Putting the probe on a session and taking it off, leaving nothing behind.

livekit is imported when a session is attached to, not before, so that `import probe` costs a
process nothing it does not use.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probe.errors import ProbeError, UsageError
from probe.trace.events import SCHEMA, Bookmarked, Event, Header, Tapped, Untapped

if TYPE_CHECKING:
    from types import TracebackType

    from livekit import rtc
    from livekit.agents import AgentSession

    from probe.recorder import Recorder
    from probe.taps.sink import ProbeAudioOutput

__all__ = ["Recording", "SessionTaps", "attach"]

LINGER_S = 0.5
"""Time after the session's close event in which the last events come in."""

_STAMP_NS = max(1_000, int(time.get_clock_info("monotonic").resolution * 1e9))
"""Resolution of a stamp taken in a call: what reading the clock and the call around it take."""

_OPENING_S = 0.1
"""Longest wait for the wire tap to open, at the moment a sink is set."""

_STOPPING_S = 2.0
_PLAYED_OUT_NS = 5_000_000_000
"""After how long a source that is no longer used has nothing left inside, whatever its queue."""
"""Longest wait for the wire tap of a source used before to stop."""

_FULL = 60_000
"""Records waiting for the writer from which frames take the way that is counted and bounded."""

_TAPS = "_sinkprobe_taps"
"""Attribute of ``session.output`` that leads to the taps while they are on."""


def attach(
    session: AgentSession[Any],
    path: str | os.PathLike[str],
    *,
    wire: bool = True,
    labels: Mapping[str, str] | None = None,
    max_mb: float | None = None,
    run: Mapping[str, Any] | None = None,
) -> Recording:
    """Record a session, from now until `Recording.close` or shortly after the session closes.

    Works before ``session.start()``, so that a greeting is recorded whole, and after it, also
    while the agent speaks: that speech goes on, and its segment is partial.

    Args:
        session: the `AgentSession`. One recording at a time.
        path: file to write. One that exists is left alone: ``call.jsonl`` becomes
            ``call-1.jsonl``; `Recording.path` says which.
        wire: whether to read back what leaves the source. Without it *sent* is not tapped.
        labels: the user's own, written into the header.
        max_mb: bound of the file, in millions of bytes; None for none.
        run: of a scripted call, what was scripted; written into the header.

    Raises:
        ProbeError: not a session, recorded already, or the file can't be made.
    """
    try:
        from probe import compat
    except ImportError as error:
        raise ProbeError(
            f"expected livekit-agents to be installed, found: {type(error).__name__}: {error}"
        ) from error

    if not compat.is_session(session):
        raise UsageError(f"expected an AgentSession, found {type(session).__name__}")
    current = vars(session.output).get(_TAPS)
    if current is not None:
        raise UsageError(
            f"expected a session without a probe, found one recorded already ({current.name}); "
            "close that recording first"
        )
    file = Path(path)
    if file.is_dir():
        raise UsageError(f"expected a file to write, found a directory: {file}")

    from probe.assemble.assembler import Assembler
    from probe.recorder import Recorder

    header = _header(session, compat, wire=wire, labels=labels, run=run)
    try:
        recorder = Recorder(file, header, Assembler(), max_mb=max_mb)
    except (OSError, ValueError) as error:
        raise ProbeError(f"expected to write {file}, found: {error}") from error
    recording = Recording(session, recorder, wire=wire)
    recording._begin()
    return recording


def _header(
    session: Any,
    compat: Any,
    *,
    wire: bool,
    labels: Mapping[str, str] | None,
    run: Mapping[str, Any] | None,
) -> Header:
    monotonic_ns, unix_s = _paired_clocks()
    missing = compat.missing(session)
    if not wire:
        missing["sent"] = "the wire tap was switched off"
    return Header(
        schema=SCHEMA,
        started_monotonic_ns=monotonic_ns,
        started_unix_s=unix_s,
        boundaries=["captured", "pushed", "sent"] if wire else ["captured", "pushed"],
        missing=missing,
        runtime=compat.runtime(),
        options=compat.interruption_options(session) if compat.started(session) else {},
        labels={str(key): str(value) for key, value in (labels or {}).items()},
        run=None if run is None else dict(run),
    )


def _paired_clocks() -> tuple[int, float]:
    """Both clocks read together, as closely as a few tries allow: monotonic ns, unix seconds."""
    best: tuple[int, int, float] | None = None
    for _ in range(5):
        before = time.monotonic_ns()
        unix_s = time.time()
        width = time.monotonic_ns() - before
        if best is None or width < best[0]:
            best = (width, before + width // 2, unix_s)
    assert best is not None
    return best[1], best[2]


class Recording:
    """One session being recorded into one file; a context manager.

    It ends with `close`, with its ``with`` block, or half a second after the session's close
    event. A process that exits before that closes it on the way out.
    """

    def __init__(self, session: Any, recorder: Recorder, *, wire: bool) -> None:
        self._recorder = recorder
        self._lock = threading.RLock()
        self._closed = False
        self._taps = SessionTaps(
            session,
            recorder.put,
            recorder.fault,
            queue=recorder.queue,
            wire=wire,
            name=str(recorder.path),
            on_close=self._session_closed,
        )

    def _begin(self) -> None:
        self._recorder.start()
        try:
            self._taps.install()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The file that is really written."""
        return self._recorder.path

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    @property
    def faults(self) -> dict[str, int]:
        """How often the probe failed at something so far, by kind, also where the file could not
        take it any more (``write_failed``). Empty for a sound recording."""
        return self._recorder.faults

    def put(self, event: Event) -> None:
        """Add an event of the caller's own; its ``at_ns`` is absolute monotonic nanoseconds."""
        self._recorder.put(event)

    def mark(self, name: str) -> None:
        """Put a bookmark into the trace, with the time of the call."""
        self._recorder.put(Bookmarked(time.monotonic_ns(), str(name)))

    def close(self) -> None:
        """End the recording: taps off, file complete. Idempotent, from any thread, also when the
        session's loop is gone. A speech under way goes on."""
        self._close("closed")

    def _close(self, reason: str) -> None:
        # held throughout: whoever comes second finds the file complete
        with self._lock:
            if self._closed:
                return
            try:
                self._taps.remove()
            finally:
                self._recorder.close(reason)
                self._closed = True

    def _session_closed(self) -> None:
        """Let the last events through, then end without holding up the loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._close("session_closed")
            return
        loop.call_later(LINGER_S, self._end_soon)

    def _end_soon(self) -> None:
        if self._closed:
            return
        self._taps.remove(wire_in_background=True)
        threading.Thread(
            target=self._close, args=("session_closed",), name="sinkprobe-close", daemon=True
        ).start()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class SessionTaps:
    """All taps of one session, and where what they see goes.

    The sink is reached through ``session.output``: while the taps are on, reading its ``audio``
    gives a `ProbeAudioOutput` in front of the sink that is set, which itself stays as it is. So
    whatever the session, a room or a user sets is recorded from its first frame, and nothing has
    to be put back afterwards. A reply that already holds the sink when the probe comes is recorded
    on that very object.
    """

    def __init__(
        self,
        session: Any,
        put: Callable[[Any], None],
        fault: Callable[[str, str], None],
        *,
        queue: deque[Any] | None = None,
        wire: bool = True,
        name: str = "",
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """``put`` takes raw calls and events, ``fault`` a kind and a detail; neither raises.

        ``queue`` is what ``put`` appends to. Given it, frames are appended without the detour
        through ``put``, which costs as much as the rest of the record, and whether there is room
        is looked up a hundred times a second instead.
        """
        from probe import compat
        from probe.taps.heartbeat import Heartbeat
        from probe.taps.realtime import RealtimeTap
        from probe.taps.session import SessionTap

        def put_safely(record: Any) -> None:
            try:
                put(record)
            except Exception as error:
                fault("tap_raised", f"put: {type(error).__name__}")

        self.name = name
        self._session = session
        self._put = put_safely
        self._fault = fault
        self._speaking = compat.speaking(session)
        self._probe: ProbeAudioOutput | None = None
        self._probes: weakref.WeakSet[ProbeAudioOutput] = weakref.WeakSet()
        self._attributes = 0
        self._hook: Any = None
        self._removed = False
        self._tapped_head = False
        self._sources = _SourceTaps(put_safely, fault, wire=wire)
        self._queue = queue
        self._put_frame = put if queue is None else queue.append
        self._full = False
        self._heartbeat = Heartbeat(put_safely, on_beat=self._beat)
        self._realtime = RealtimeTap(session, put_safely, fault)
        self._session_tap = SessionTap(
            session,
            put_safely,
            fault,
            on_event=self._occasion,
            on_close=on_close,
            listener=self._realtime,
        )

    # -- on and off --

    def install(self) -> None:
        """Put everything on. Call it on the session's loop, or before there is one."""
        from probe import compat

        self._occasion()
        self._session_tap.install()
        output = self._session.output
        if not compat.output_is_tappable(output):
            return
        head = output.audio
        speaking = self._session.current_speech is not None
        if head is not None and compat.started(self._session):
            self._install_hook(head)
        vars(output)[_TAPS] = self
        try:
            output.__class__ = _tapped_class(type(output))
        except TypeError as error:
            del vars(output)[_TAPS]
            self._failed("output", error)
            return
        if head is not None:
            self._head_set(head, mid_speech=speaking)

    def _install_hook(self, head: Any) -> None:
        from probe.taps.sink import SinkHook

        hook = SinkHook(self._probe_for(head))
        try:
            hook.install()
        except Exception as error:
            # the sink takes no attributes: the running reply is missed, the next one is not
            self._failed("running sink", error)
            return
        self._hook = hook

    def remove(self, *, wire_in_background: bool = False) -> None:
        """Take everything off; idempotent, from any thread."""
        if not self._removed:
            self._removed = True
            for step in (
                self._restore_output,
                self._remove_hook,
                self._retire_probes,
                self._realtime.remove,
                self._session_tap.remove,
                self._heartbeat.stop,
            ):
                self._attempt(step)
        if not wire_in_background:
            self._sources.remove_all("detached")

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._failed(step.__name__, error)

    def _restore_output(self) -> None:
        output = self._session.output
        if vars(output).pop(_TAPS, None) is not None:
            output.__class__ = type(output).__bases__[0]
        if self._tapped_head:
            self._put(Untapped(time.monotonic_ns(), "captured", reason="detached"))

    def _remove_hook(self) -> None:
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()

    def _retire_probes(self) -> None:
        self._probe = None
        for probe in list(self._probes):
            probe._probe_retire()

    def _failed(self, where: str, error: BaseException) -> None:
        self._fault("tap_raised", f"{where}: {type(error).__name__}")

    def _beat(self) -> None:
        self._look_for_room()
        self._realtime.beat()

    def _look_for_room(self) -> None:
        """Where the writer is stuck and the queue full, have `put` turn frames away and count."""
        full = self._queue is not None and len(self._queue) >= _FULL
        if full is self._full:
            return
        self._full = full
        target = self._put if full else self._put_frame
        for probe in list(self._probes):
            probe._probe_frames_to(target)

    def _occasion(self) -> None:
        """Something happened on the session's loop, outside any capture."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._heartbeat.start(loop)
        self._realtime.look()
        probe = self._probe
        if probe is not None and not self._removed:
            self._sources.follow(probe.next_in_chain)

    # -- the sink, as session.output hands it out --

    def head(self, sink: Any) -> Any:
        """What reading ``session.output.audio`` gives while ``sink`` is set."""
        if sink is None or self._removed:
            return sink
        probe = self._probe
        if probe is None or probe._probe_next is not sink:
            try:
                self._head_set(sink)
            except Exception as error:
                self._failed("sink", error)
                return sink
            probe = self._probe
        elif _attribute_count(sink) != self._attributes:
            self._attributes = _attribute_count(sink)
            probe._probe_adopt()
        return probe

    def _probe_for(self, sink: Any) -> ProbeAudioOutput:
        """The probe that stands before ``sink``; one each, or its events would be heard twice."""
        from probe.taps.sink import ProbeAudioOutput

        for known in self._probes:
            if known._probe_next is sink:
                return known
        probe = ProbeAudioOutput(
            sink,
            self._put,
            put_frame=self._put if self._full else self._put_frame,
            session=self._speaking,
            on_segment=lambda: self._sources.settle(sink),
            fault=self._fault,
        )
        self._probes.add(probe)
        return probe

    def _head_set(self, sink: Any, *, mid_speech: bool = False) -> None:
        probe = self._probe_for(sink)
        self._probe = probe
        self._attributes = _attribute_count(sink)
        self._tapped_head = True
        self._put(
            Tapped(
                time.monotonic_ns(),
                "captured",
                rate_hz=sink.sample_rate,
                resolution_ns=_STAMP_NS,
                mid_speech=mid_speech,
            )
        )
        self._sources.follow(sink, mid_speech=mid_speech, wait=not mid_speech)

    def bare(self, sink: Any) -> Any:
        """``sink`` as it would be without a probe: none in front of it and none inside.

        A wrapper made around ``session.output.audio`` holds our probe; it is given the sink behind
        it, or audio would be counted twice.
        """
        from probe import compat
        from probe.taps.sink import ProbeAudioOutput

        while isinstance(sink, ProbeAudioOutput):
            sink = sink.next_in_chain
        for link in compat.chain(sink):
            for name, value in list(getattr(link, "__dict__", {}).items()):
                if isinstance(value, ProbeAudioOutput):
                    setattr(link, name, value.next_in_chain)
            following = link.next_in_chain
            if isinstance(following, ProbeAudioOutput):
                # kept where it can't be reached: it stays, as a plain pass-through
                following._probe_retire()
        if self._hook is not None and self._hook.sink is not sink:
            inside = any(link is self._hook.sink for link in compat.chain(sink))
            if inside:
                self._remove_hook()
        return sink

    def sink_set(self, sink: Any) -> None:
        """``session.output.audio`` was set to ``sink``."""
        self.head(sink)

    def tail_replaced(self) -> None:
        """The leaf under the head was exchanged."""
        self._occasion()


def _attribute_count(sink: Any) -> int:
    return len(getattr(sink, "__dict__", ()))


class _SourceTaps:
    """The taps on the audio sources, which follow the sink from one source to the next."""

    def __init__(
        self,
        put: Callable[[Any], None],
        fault: Callable[[str, str], None],
        *,
        wire: bool,
    ) -> None:
        self._put = put
        self._fault = fault
        self._wire = wire
        self._lock = threading.Lock()
        self._taps: dict[int, _SourceTapped] = {}
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._stoppers: list[threading.Thread] = []
        self._closed = False

    def follow(self, head: Any, *, mid_speech: bool = False, wait: bool = False) -> None:
        """Tap the source under ``head``. Others stay tapped: their queue may still play.

        ``wait``: until the reading has begun, or a moment at most. What is pushed before is lost
        to it; where a sink has just been set nothing is being said and a few ms do no harm.
        """
        self._find(head, mid_speech=mid_speech, wait=wait)

    def settle(self, head: Any) -> None:
        """A segment begins at ``head``: tap its source, and let go of those that have played out.

        What was inside a source when the sink was swapped still goes out, and has to be seen.
        """
        source = self._find(head)
        if source is None or len(self._taps) < 2:
            return
        now_ns = time.monotonic_ns()
        for key, tapped in list(self._taps.items()):
            if key == id(source):
                tapped.left_ns = None
            elif tapped.left_ns is None:
                tapped.left_ns = now_ns
            elif now_ns - tapped.left_ns > _PLAYED_OUT_NS:
                self._untap(key, "swapped", wait=False)

    def _find(self, head: Any, *, mid_speech: bool = False, wait: bool = False) -> Any:
        from probe import compat

        try:
            found = compat.find_source(head)
            if found is None:
                return None
            link, source = found
            with self._lock:
                if id(source) not in self._taps and not self._closed:
                    self._tap(link, source, mid_speech=mid_speech, wait=wait)
        except Exception as error:
            self._fault("tap_raised", f"source: {type(error).__name__}")
            return None
        return source

    def _tap(self, link: Any, source: rtc.AudioSource, *, mid_speech: bool, wait: bool) -> None:
        from probe import compat
        from probe.taps.source import SourceTap
        from probe.taps.wire import WireTap

        number = self._numbers.setdefault(source, len(self._numbers) + 1)
        pushed = SourceTap(source, number, self._put)
        pushed.install()
        tapped = _SourceTapped(source, number, pushed)
        self._taps[id(source)] = tapped
        self._put(
            Tapped(
                time.monotonic_ns(),
                "pushed",
                source=number,
                rate_hz=source.sample_rate,
                channels=source.num_channels,
                queue_ms=compat.queue_ms(link, source),
                resolution_ns=_STAMP_NS,
                mid_speech=mid_speech,
            )
        )
        if self._wire:
            put = _put_mid_speech(self._put) if mid_speech else self._put
            tapped.wire = WireTap(source, number, put, self._fault)
            tapped.wire.start()
            if wait:
                tapped.wire.opened.wait(_OPENING_S)

    def _untap(self, key: int, reason: str, *, wait: bool) -> None:
        with self._lock:
            tapped = self._taps.pop(key, None)
        if tapped is None:
            return
        try:
            tapped.pushed.remove()
            self._put(Untapped(time.monotonic_ns(), "pushed", source=tapped.number, reason=reason))
            if tapped.wire is not None and wait:
                tapped.wire.stop()
            elif tapped.wire is not None:
                # it waits for its thread, and this may be the first capture of a segment
                stopper = threading.Thread(target=tapped.wire.stop, daemon=True)
                self._stoppers.append(stopper)
                stopper.start()
        except Exception as error:
            self._fault("tap_raised", f"source: {type(error).__name__}")

    def remove_all(self, reason: str) -> None:
        """Take all of them off; idempotent, from any thread."""
        with self._lock:
            self._closed = True
        for key in list(self._taps):
            self._untap(key, reason, wait=True)
        for stopper in self._stoppers:
            stopper.join(_STOPPING_S)
        self._stoppers = []


def _put_mid_speech(put: Callable[[Any], None]) -> Callable[[Any], None]:
    """``put``, for a wire tap that came while the agent spoke: its `Tapped` says so."""

    def put_marked(record: Any) -> None:
        put(replace(record, mid_speech=True) if isinstance(record, Tapped) else record)

    return put_marked


class _SourceTapped:
    """One tapped source."""

    __slots__ = ("left_ns", "number", "pushed", "source", "wire")

    def __init__(self, source: Any, number: int, pushed: Any) -> None:
        # kept, so that its id stays its own
        self.source = source
        self.number = number
        self.pushed = pushed
        self.wire: Any = None
        self.left_ns: int | None = None
        """When the first segment on another source began; ``None``: this one is in use."""


_TAPPED_CLASSES: dict[type, type] = {}


def _tapped_class(base: Any) -> type:
    """A subclass of the class of ``session.output`` that hands out the probe; made once a class."""
    made = _TAPPED_CLASSES.get(base)
    if made is not None:
        return made
    inherited: Any = base.audio

    def read(self: Any) -> Any:
        sink = inherited.fget(self)
        taps = self.__dict__.get(_TAPS)
        return sink if taps is None else taps.head(sink)

    def write(self: Any, sink: Any) -> None:
        taps = self.__dict__.get(_TAPS)
        if taps is not None:
            sink = _guarded(taps, taps.bare, sink)
        inherited.fset(self, sink)
        if taps is not None:
            taps.sink_set(sink)

    def replace_audio_tail(self: Any, sink: Any) -> None:
        taps = self.__dict__.get(_TAPS)
        if taps is not None:
            sink = _guarded(taps, taps.bare, sink)
        base.replace_audio_tail(self, sink)
        if taps is not None:
            taps.tail_replaced()

    namespace: dict[str, Any] = {
        "audio": property(read, write, doc=inherited.__doc__),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    if hasattr(base, "replace_audio_tail"):
        namespace["replace_audio_tail"] = replace_audio_tail
    made = type(base.__name__, (base,), namespace)
    _TAPPED_CLASSES[base] = made
    return made


def _guarded(taps: SessionTaps, action: Callable[[Any], Any], sink: Any) -> Any:
    try:
        return action(sink)
    except Exception as error:
        taps._failed("sink", error)
        return sink
