"""The tap at the head of the sink: what the reply calls, and when, and how each call ended.

A tap forwards everything and answers nothing itself. Segment counts, `wait_for_playout`, sample
rate, label and whatever else a release's `AudioOutput` has come from the next link, so a session
behaves as if the tap were not there.
"""

from __future__ import annotations

import abc
import sys
from collections.abc import Callable, Coroutine
from time import monotonic, monotonic_ns
from typing import Any, Final

from livekit import rtc
from livekit.agents.voice.io import AudioOutput

from probe import compat
from probe.taps.calls import (
    CAPTURE,
    ENDED,
    FAILURE,
    MARK,
    MARK_SINK,
    MARK_SPEECH,
    Call,
    Put,
    forward,
)
from probe.taps.failures import failure
from probe.taps.frames import FrameRecords
from probe.taps.guard import Fault, Guard
from probe.taps.patches import Patches
from probe.taps.playback import PlaybackTap
from probe.trace.events import MarkName

__all__ = ["ProbeAudioOutput", "lead_through"]

_MARKS: Final[dict[MarkName, str]] = {
    "flush": "flush",
    "clear": "clear_buffer",
    "pause": "pause",
    "resume": "resume",
}
"""Marks, and what a sink calls them."""


class _NoSession:
    """Stands where a session would, for a sink that code feeds without one."""

    def __init__(self) -> None:
        self._activity: Any = self
        self._current_speech: Any = None


def _nothing(*_: Any) -> None:
    return None


class ProbeAudioOutput(AudioOutput):
    """An instrumented, pure pass-through `AudioOutput`.

    Recorded are the five calls a reply makes, each before it is forwarded, and how it ended. All
    else is the next link's: what the base class of this release defines, and the attributes of
    the sink itself. Listeners are registered on the next link, so playback events arrive as they
    were emitted, once. Names of its own begin with ``_probe_``, so that none hides one of the sink.
    """

    # Slots, and no __getattr__: with it a lookup on this class costs a quarter of a frame.
    __slots__ = (
        "_probe_forward",
        "_probe_frames",
        "_probe_guard",
        "_probe_marked",
        "_probe_next",
        "_probe_number",
        "_probe_on_segment",
        "_probe_playback",
        "_probe_put",
        "_probe_put_frame",
        "_probe_segment_ended",
        "_probe_session",
    )
    _probe_forward: Callable[[rtc.AudioFrame], Coroutine[Any, Any, Any]]
    _probe_frames: FrameRecords
    _probe_guard: Guard
    _probe_marked: dict[MarkName, Any]
    _probe_next: AudioOutput
    _probe_number: Callable[[], int | None]
    _probe_on_segment: Callable[[], None]
    _probe_playback: PlaybackTap
    _probe_put: Put
    _probe_put_frame: Put
    _probe_segment_ended: bool
    _probe_session: Any

    def __init__(
        self,
        next_in_chain: AudioOutput,
        put: Put,
        *,
        put_frame: Put | None = None,
        session: Any = None,
        number: Callable[[], int | None] = _nothing,
        on_segment: Callable[[], None] = _nothing,
        fault: Fault = _nothing,
    ) -> None:
        """Stand before ``next_in_chain`` and record to ``put``.

        Args:
            next_in_chain: the sink, untouched but for listeners to its playback events.
            put: takes records and events.
            put_frame: takes the records of frames instead.
            session: has the attribute path that `probe.compat.speaking` vouches for; None where
                code feeds the sink without a session.
            number: gives the number of the sink that a mark goes to; asked at each mark.
            on_segment: called before the first frame of each segment is recorded.
            fault: takes the kind and detail of a failure of the tap itself.
        """
        # The base constructor is left out on purpose. It would wrap a bare leaf in a proxy (from
        # 1.6), listen to the next link a second time, and set up counters nothing may read here.
        link: Any = next_in_chain
        guard = Guard(fault)
        for name, value in (
            ("next", next_in_chain),
            ("put", put),
            ("put_frame", put_frame or put),
            ("frames", FrameRecords(put_frame or put, self._probe_put_frames_to)),
            ("session", _NoSession() if session is None else session),
            ("number", number),
            ("on_segment", on_segment),
            ("guard", guard),
            ("segment_ended", True),
            ("playback", PlaybackTap(link, put, guard, self._probe_speech)),
            # bound once, so that a hook on the very same sink does not lead back here
            ("forward", link.capture_frame),
            ("marked", {mark: getattr(link, name, None) for mark, name in _MARKS.items()}),
        ):
            _own(self, f"_probe_{name}", value)
        self._probe_adopt()
        self._probe_playback.install()

    # -- the recorded calls --

    async def capture_frame(self, frame: rtc.AudioFrame) -> Any:
        """Record the frame, hand it on, note how that ended."""
        if self._probe_segment_ended:
            _own(self, "_probe_segment_ended", False)
            self._probe_guard.attempt("segment", self._probe_on_segment)
            self._probe_frames.begin()
            _own(self, "_probe_put_frame", self._probe_frames.put)
        try:
            # the path is read here and not through a function: a call costs more than the rest
            handle = self._probe_session._activity._current_speech
            speech = None if handle is None else handle._id
            self._probe_put_frame(record := [CAPTURE, monotonic(), None, None, frame, speech])
        except Exception as error:
            record = self._probe_unspoken(frame, error)
        try:
            return await self._probe_forward(frame)
        except BaseException as error:
            record[FAILURE] = failure(error)
            raise
        finally:
            record[ENDED] = monotonic()

    def _probe_unspoken(self, frame: rtc.AudioFrame, error: Exception) -> Call:
        """The record of a frame for which no speech could be read: there is no activity, and code
        feeds the sink itself. Whatever else went wrong is a fault, and the record goes nowhere."""
        record: Call = [CAPTURE, monotonic(), None, None, frame, None]
        try:
            if not isinstance(error, AttributeError):
                raise error
            self._probe_put_frame(record)
        except Exception as failed:
            self._probe_guard.failed("capture_frame", failed)
        return record

    def flush(self) -> Any:
        """Record the flush and hand it on."""
        _own(self, "_probe_segment_ended", True)
        return self._probe_mark("flush")

    def clear_buffer(self) -> Any:
        """Record the clear and hand it on."""
        _own(self, "_probe_segment_ended", True)
        return self._probe_mark("clear")

    def pause(self) -> Any:
        """Record the pause and hand it on."""
        return self._probe_mark("pause")

    def resume(self) -> Any:
        """Record the resume and hand it on."""
        return self._probe_mark("resume")

    def _probe_mark(self, mark: MarkName) -> Any:
        record: Call = [MARK, monotonic_ns(), None, None, mark, None, None]
        try:
            record[MARK_SPEECH] = self._probe_speech()
            record[MARK_SINK] = self._probe_number()
            self._probe_put(record)
        except Exception as error:
            self._probe_guard.failed(mark, error)
        return forward(record, self._probe_marked[mark])

    def _probe_speech(self) -> str | None:
        return compat.speech_of(self._probe_session)

    # -- what is not recorded --

    @property
    def next_in_chain(self) -> AudioOutput:
        """The link this one stands before."""
        following = self._probe_next
        if sys._getframe(1).f_code is _BASE_CONSTRUCTOR:
            # The constructor of a wrapper put around us asks whether we are a bare leaf that has
            # to be made swappable: what it would find without us decides.
            return following.next_in_chain  # type: ignore[return-value]  # None where it is a leaf
        return following

    @property
    def _next_in_chain(self) -> AudioOutput:  # type: ignore[override]  # the base keeps a field
        return self._probe_next

    def _probe_adopt(self) -> None:
        """Answer for the attributes the sink has now, private ones included."""
        known = vars(ProbeAudioOutput)
        for name in (*getattr(self._probe_next, "__dict__", ()), *dir(type(self._probe_next))):
            if name not in known and not name.startswith(("__", "_abc_", "_probe_")):
                setattr(ProbeAudioOutput, name, _attribute(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._probe_next, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._probe_next, name)

    # -- how it is used by the one who put it there --

    def _probe_frames_to(self, target: Put) -> None:
        """Have the records of frames go to ``target`` from now on."""
        self._probe_frames.target = target
        if self._probe_put_frame != self._probe_frames.put:
            self._probe_put_frames_to(target)

    def _probe_put_frames_to(self, target: Put) -> None:
        _own(self, "_probe_put_frame", target)

    def _probe_retire(self) -> None:
        """Stop recording for good, and stay as a plain pass-through for whoever still holds it."""
        self._probe_playback.remove()
        # somebody may have kept one of the bound methods
        _own(self, "_probe_put", _nothing)
        self._probe_frames_to(_nothing)
        _own(self, "__class__", _RetiredProbe)


_own = object.__setattr__
"""Sets what is the probe's own; an ordinary assignment is the next link's."""


class _RetiredProbe(ProbeAudioOutput):
    """A probe that records nothing any more."""

    __slots__ = ()

    def capture_frame(self, frame: rtc.AudioFrame) -> Coroutine[Any, Any, Any]:
        return self._probe_next.capture_frame(frame)

    def flush(self) -> Any:
        return self._probe_next.flush()

    def clear_buffer(self) -> Any:
        return self._probe_next.clear_buffer()

    def pause(self) -> Any:
        return self._probe_next.pause()

    def resume(self) -> Any:
        return self._probe_next.resume()

    def _probe_retire(self) -> None:
        return None


_BASE_CONSTRUCTOR = AudioOutput.__init__.__code__


def _attribute(name: str) -> property:
    """The next link's attribute of that name, as if it were the probe's."""

    def read(self: Any) -> Any:
        return getattr(self._probe_next, name)

    def write(self: Any, value: Any) -> None:
        setattr(self._probe_next, name, value)

    def delete(self: Any) -> None:
        delattr(self._probe_next, name)

    return property(read, write, delete)


def _delegate_the_base() -> None:
    """Have everything the base class of this release defines answered by the next link."""
    for name in dir(AudioOutput):
        if not name.startswith(("__", "_abc_")) and name not in vars(ProbeAudioOutput):
            setattr(ProbeAudioOutput, name, _attribute(name))
    for made in (ProbeAudioOutput, _RetiredProbe):
        abc.update_abstractmethods(made)


_delegate_the_base()


def lead_through(probe: ProbeAudioOutput) -> Patches:
    """Lead the calls on the sink behind ``probe`` through it, until undone.

    For a reply that holds the sink itself because it began before the probe came. The sink stays
    what it is, its counters and listeners included; nothing is detached and nothing cut, and calls
    under way at the end of it end as they would have.

    Raises:
        AttributeError: the sink takes no attributes; nothing is left on it then.
    """
    return Patches(
        probe.next_in_chain,
        {name: getattr(probe, name) for name in ("capture_frame", *_MARKS.values())},
    )
