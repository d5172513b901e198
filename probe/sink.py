"""The tap at the head of the sink: what the reply calls, and when, and how each call ended.

A tap forwards everything and answers nothing itself. Segment counts, `wait_for_playout`, sample
rate, label and whatever else a release's `AudioOutput` has come from the next link, so a session
behaves as if the tap were not there.
"""

from __future__ import annotations

import abc
import asyncio
import sys
from collections.abc import Callable, Coroutine
from time import monotonic_ns
from typing import Any

from livekit import rtc
from livekit.agents.voice.io import AudioOutput

from probe.calls import CAPTURE, MARK, Call
from probe.patches import InstancePatch
from probe.trace.events import Event, PlaybackReported

__all__ = ["ProbeAudioOutput", "SinkHook", "SinkTap"]

Put = Callable[[Any], None]
"""Takes a `Call` or an `Event`; never blocks and never raises."""
Fault = Callable[[str, str], None]
"""Takes a fault's kind and its detail."""

_CANCELLED = (asyncio.CancelledError, GeneratorExit)
_CALLS = ("capture_frame", "flush", "clear_buffer", "pause", "resume")


class _NoSession:
    """Stands where a session would, for a sink that code feeds without one."""

    _current_speech = None

    @property
    def _activity(self) -> _NoSession:
        return self


def _no_segment() -> None:
    return None


def _no_fault(kind: str, detail: str) -> None:
    return None


class SinkTap:
    """Records the calls that reach ``link`` and the playback events that come back from it.

    ``calls`` are drop-in replacements for the link's methods. They are bound once, so that a frame
    pays for one coroutine, one list and two clock reads.
    """

    def __init__(
        self,
        link: AudioOutput,
        put: Put,
        *,
        session: Any = None,
        on_segment: Callable[[], None] = _no_segment,
        fault: Fault = _no_fault,
    ) -> None:
        """``session`` has the attribute path `probe.compat.speaking` vouches for; ``on_segment`` is
        called before the first frame of each segment is recorded."""
        self._link = link
        self._put = put
        self._session = _NoSession() if session is None else session
        self._fault = fault
        self._on_segment = on_segment
        self._listeners: list[tuple[str, Callable[[Any], None]]] = []
        self.owner: Any = None
        """Kept alive for as long as the link calls back, so that it can be found again."""
        self.calls: dict[str, Callable[..., Any]] = self._bind()

    def _speech(self) -> str | None:
        try:
            handle = self._session._activity._current_speech
            return None if handle is None else handle._id
        except AttributeError:
            return None

    def _failed(self, where: str, error: Exception) -> None:
        # the type only: a message may quote what was said
        self._fault("tap_raised", f"{where}: {type(error).__name__}")

    def _bind(self) -> dict[str, Callable[..., Any]]:
        put, session, failed = self._put, self._session, self._failed
        on_segment, speech_now, link = self._on_segment, self._speech, self._link
        # whatever a sink returns is handed on, although none is meant to return anything
        forward: Callable[[rtc.AudioFrame], Coroutine[Any, Any, Any]] = link.capture_frame
        segment_ended = True

        async def capture_frame(frame: rtc.AudioFrame) -> Any:
            nonlocal segment_ended
            if segment_ended:
                segment_ended = False
                try:
                    on_segment()
                except Exception as error:
                    failed("segment", error)
            try:
                # the path is read here and not through a function: a call costs more than the rest
                try:
                    handle = session._activity._current_speech
                    speech = None if handle is None else handle._id
                except AttributeError:
                    speech = None
                record: Call = [CAPTURE, monotonic_ns(), frame, speech, None, None, None]
                put(record)
            except Exception as error:
                record = [CAPTURE, 0, None, None, None, None, None]
                failed("capture_frame", error)
            try:
                result = await forward(frame)
            except BaseException as error:
                record[5] = monotonic_ns()
                record[6] = type(error).__name__
                record[4] = "cancelled" if isinstance(error, _CANCELLED) else "raised"
                raise
            record[5] = monotonic_ns()
            record[4] = "returned"
            return result

        def marked(name: str, method: str) -> Callable[..., Any]:
            forward = getattr(link, method)
            ends_segment = name in ("flush", "clear")

            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal segment_ended
                if ends_segment:
                    segment_ended = True
                try:
                    record: Call = [MARK, monotonic_ns(), name, speech_now(), None, None, None]
                    put(record)
                except Exception as error:
                    record = [MARK, 0, name, None, None, None, None]
                    failed(method, error)
                try:
                    result = forward(*args, **kwargs)
                except BaseException as error:
                    record[5] = monotonic_ns()
                    record[6] = type(error).__name__
                    record[4] = "cancelled" if isinstance(error, _CANCELLED) else "raised"
                    raise
                record[5] = monotonic_ns()
                record[4] = "returned"
                return result

            call.__name__ = method
            return call

        return {
            "capture_frame": capture_frame,
            "flush": marked("flush", "flush"),
            "clear_buffer": marked("clear", "clear_buffer"),
            "pause": marked("pause", "pause"),
            "resume": marked("resume", "resume"),
        }

    def listen(self) -> None:
        """Start recording the playback events of the link."""
        self._listeners = [
            ("playback_started", self._guarded(self._started)),
            ("playback_progressed", self._guarded(self._progressed)),
            ("playback_finished", self._guarded(self._finished)),
        ]
        emitter: Any = self._link
        for name, listener in self._listeners:
            emitter.on(name, listener)

    def unlisten(self) -> None:
        """Stop it; the link's emitter keeps nothing of the tap."""
        emitter: Any = self._link
        for name, listener in self._listeners:
            emitter.off(name, listener)
        self._listeners = []

    def _guarded(self, report: Callable[[Any, int], Event]) -> Callable[[Any], None]:
        def heard(event: Any = None) -> None:
            try:
                self._put(report(event, monotonic_ns()))
            except Exception as error:
                self._failed("playback", error)

        return heard

    def _started(self, event: Any, at_ns: int) -> Event:
        return PlaybackReported(
            at_ns, "started", self._speech(), event_unix_s=getattr(event, "created_at", None)
        )

    def _progressed(self, event: Any, at_ns: int) -> Event:
        return PlaybackReported(
            at_ns,
            "progressed",
            self._speech(),
            position_s=getattr(event, "offset", None),
            duration_s=getattr(event, "duration", None),
            event_unix_s=getattr(event, "started_at", None),
        )

    def _finished(self, event: Any, at_ns: int) -> Event:
        transcript = getattr(event, "synchronized_transcript", None)
        return PlaybackReported(
            at_ns,
            "finished",
            self._speech(),
            position_s=getattr(event, "playback_position", None),
            interrupted=getattr(event, "interrupted", None),
            transcript_chars=None if transcript is None else len(transcript),
        )


class SinkHook:
    """A tap on the very object a running reply holds, for a probe that comes in its middle.

    The object stays what it is, its counters and listeners included; only the five calls of this
    one instance pass through the tap. Nothing is detached and nothing cut.
    """

    def __init__(self, link: AudioOutput, tap: SinkTap) -> None:
        self.link = link
        self._tap = tap
        self._patches: list[InstancePatch] = []

    def install(self) -> None:
        """Raises:
        AttributeError: the link takes no attributes; nothing is left on it then."""
        try:
            for name in _CALLS:
                self._patches.append(InstancePatch(self.link, name, self._tap.calls[name]))
            self._tap.listen()
        except Exception:
            self.remove()
            raise

    def remove(self) -> None:
        """Give the link its own methods back; calls under way end as they would have."""
        for patch in self._patches:
            patch.undo()
        self._patches = []
        self._tap.unlisten()


class ProbeAudioOutput(AudioOutput):
    """An instrumented, pure pass-through `AudioOutput`.

    It has no state of its own: every attribute and method that is not one of the five recorded
    calls is the next link's, private ones and those of unknown releases included. Listeners are
    registered on the next link itself, so playback events arrive as the same object, once.
    """

    _probe_next: AudioOutput

    def __init__(
        self,
        next_in_chain: AudioOutput,
        put: Put,
        *,
        session: Any = None,
        on_segment: Callable[[], None] = _no_segment,
        fault: Fault = _no_fault,
        recording: bool = True,
    ) -> None:
        """``session`` gives each frame its speech; None where code feeds the sink itself.
        ``recording=False`` makes a plain pass-through, as after `retire`.
        """
        # The base constructor is left out on purpose. It would wrap a bare leaf in a proxy (from
        # 1.6), listen to the next link a second time, and set up counters nothing may read here.
        own = self.__dict__
        own["_probe_next"] = next_in_chain
        own["_probe_tap"] = None
        if recording:
            tap = SinkTap(next_in_chain, put, session=session, on_segment=on_segment, fault=fault)
            tap.owner = self
            tap.listen()
            own["_probe_tap"] = tap
            own.update(tap.calls)

    def retire(self) -> None:
        """Stop recording and stay as a pass-through for a reply that still holds this object."""
        own = self.__dict__
        tap: SinkTap | None = own.get("_probe_tap")
        if tap is None:
            return
        own["_probe_tap"] = None
        for name in _CALLS:
            own.pop(name, None)
        tap.unlisten()
        tap.owner = None

    @property
    def next_in_chain(self) -> AudioOutput:
        """The link this one stands before."""
        following: AudioOutput = self.__dict__["_probe_next"]
        if sys._getframe(1).f_code is _BASE_CONSTRUCTOR:
            # The constructor of a wrapper put around us asks whether we are a bare leaf that has
            # to be made swappable: what it would find without us decides.
            return following.next_in_chain  # type: ignore[return-value]  # None where it is a leaf
        return following

    @property
    def _next_in_chain(self) -> AudioOutput:  # type: ignore[override]  # the base keeps a field
        return self._probe_next

    def capture_frame(self, frame: rtc.AudioFrame) -> Coroutine[Any, Any, None]:
        """Hand the frame on; the coroutine is the next link's own."""
        return self._probe_next.capture_frame(frame)

    def flush(self) -> None:
        """Hand the flush on."""
        return self._probe_next.flush()

    def clear_buffer(self) -> None:
        """Hand the clear on."""
        return self._probe_next.clear_buffer()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_probe_next":
            raise AttributeError(name)
        return getattr(self.__dict__["_probe_next"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_probe_next"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_probe_next"], name)


_BASE_CONSTRUCTOR = AudioOutput.__init__.__code__


def _delegate_the_rest() -> None:
    """Have everything the base class of this release defines answered by the next link."""

    def method(name: str) -> Callable[..., Any]:
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(self.__dict__["_probe_next"], name)(*args, **kwargs)

        forward.__name__ = name
        return forward

    def attribute(name: str) -> property:
        def read(self: Any) -> Any:
            return getattr(self.__dict__["_probe_next"], name)

        return property(read)

    for name in dir(AudioOutput):
        if name.startswith(("__", "_abc_")) or name in vars(ProbeAudioOutput):
            continue
        inherited = getattr(AudioOutput, name)
        setattr(ProbeAudioOutput, name, method(name) if callable(inherited) else attribute(name))
    abc.update_abstractmethods(ProbeAudioOutput)


_delegate_the_rest()
