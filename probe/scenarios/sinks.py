"""The sink of a scripted call: the framework's room output over a room of straw, or one's own.

Whichever it is, calls on it and on its `rtc.AudioSource` are counted, because a script waits for
them and for nothing else.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

from livekit import rtc

from probe import compat
from probe.errors import ScenarioError
from probe.scenarios import releases
from probe.taps.patches import InstancePatch

SinkFactory = Callable[[int, int], Any]
"""Gets rate in Hz and number of channels, in the running loop, and gives an `AudioOutput`.

The sink holds the `rtc.AudioSource` it plays into as an attribute before its first frame comes. A
coroutine ``start()`` runs beside the call, if there is one, and ``aclose()`` ends it.
"""
Driver = Callable[[Any], Any]
"""Gets the sink as the session would have it, and gives what the session has instead."""


def named(name: str, what: str) -> Any:
    """What ``module:attribute`` names.

    Raises: `ScenarioError` where there is no such thing, or it can't be called.
    """
    module, colon, attribute = name.partition(":")
    try:
        if not (module and colon and attribute):
            raise ImportError("no such form")
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ScenarioError(
            f"{what}: expected module:attribute that can be imported, found {name!r} ({error})"
        ) from error
    if not callable(found):
        raise ScenarioError(f"{what}: expected something to call, found {name} = {found!r}")
    return found


class Signals:
    """Wakes whoever waits for a condition each time something happened."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Waits until the condition holds; False where it did not within the limit."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while not condition():
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            await asyncio.wait([future], timeout=max(deadline - loop.time(), 0.0))
            if not future.done():
                return condition()
        return True


class Counts:
    """What went by at the sinks and sources of a call so far."""

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self.captures = 0
        self.captured_samples = 0
        self.flushes = 0
        self.pushed_samples = 0
        self.pushing = 0
        self.queue_clears = 0
        self.clears_before_pause = 0
        self.resumes = 0
        self.paused = False
        self.finishes = 0
        self._at_finish: list[tuple[int, Callable[[], None]]] = []

    def at_finish(self, number: int, act: Callable[[], None]) -> asyncio.Event:
        """Calls ``act`` the moment the playback of segment ``number`` of the call is reported as
        finished, once everybody was told; the event is set when that has happened."""
        happened = asyncio.Event()

        def finished() -> None:
            act()
            happened.set()
            self.signals.notify()

        if self.finishes >= number:
            finished()
        else:
            self._at_finish.append((number, finished))
        return happened

    def watch(self, sink: Any) -> None:
        """Counts what happens on ``sink`` and its source from now on."""
        capture_frame, flush = sink.capture_frame, sink.flush
        pause, resume = sink.pause, sink.resume
        report_finished = sink.on_playback_finished
        watched = self._watch_source(sink)

        async def counted_capture(frame: rtc.AudioFrame) -> None:
            nonlocal watched
            watched = watched or self._watch_source(sink)
            self.captures += 1
            self.captured_samples += frame.samples_per_channel
            self.signals.notify()
            await capture_frame(frame)

        def counted_flush() -> None:
            flush()
            self.flushes += 1
            self.signals.notify()

        def counted_pause() -> None:
            if not self.paused:
                self.clears_before_pause = self.queue_clears
            self.paused = True
            self.signals.notify()
            pause()

        def counted_resume() -> None:
            self.resumes += self.paused
            self.paused = False
            self.signals.notify()
            resume()

        def counted_finish(*args: Any, **kwargs: Any) -> None:
            report_finished(*args, **kwargs)
            self.finishes += 1
            due = [act for number, act in self._at_finish if number <= self.finishes]
            self._at_finish = [later for later in self._at_finish if later[0] > self.finishes]
            for act in due:
                act()
            self.signals.notify()

        # They stay on: the sink is the call's own and goes with it.
        InstancePatch(sink, "capture_frame", counted_capture)
        InstancePatch(sink, "flush", counted_flush)
        InstancePatch(sink, "pause", counted_pause)
        InstancePatch(sink, "resume", counted_resume)
        InstancePatch(sink, "on_playback_finished", counted_finish)

    def _watch_source(self, sink: Any) -> bool:
        source: Any = compat.find_source(sink)
        if source is None:
            return False
        capture_frame, clear_queue = source.capture_frame, source.clear_queue

        async def counted_push(frame: rtc.AudioFrame) -> None:
            self.pushed_samples += frame.samples_per_channel
            self.pushing += 1
            self.signals.notify()
            try:
                await capture_frame(frame)
            finally:
                self.pushing -= 1
                self.signals.notify()

        def counted_clear() -> None:
            self.queue_clears += 1
            self.signals.notify()
            clear_queue()

        InstancePatch(source, "capture_frame", counted_push)
        InstancePatch(source, "clear_queue", counted_clear)
        return True


class _Publication:
    sid = "TR_scripted"

    def __init__(self, subscribed: asyncio.Event) -> None:
        self._subscribed = subscribed

    async def wait_for_subscription(self) -> None:
        await self._subscribed.wait()


class Room:
    """The part of a room that needs a server: publishing a track and being subscribed to."""

    def __init__(self) -> None:
        self.subscribed = asyncio.Event()
        self.name = "scripted"
        self.local_participant = self
        self.identity = "agent"

    async def publish_track(self, *_: Any) -> _Publication:
        return _Publication(self.subscribed)

    def on(self, *_: Any) -> None: ...

    def off(self, *_: Any) -> None: ...


def room_output(room: Room, rate_hz: int, channels: int) -> Any:
    """The installed framework's room output, playing into ``room``."""
    return releases.room_output_class()(
        room,
        sample_rate=rate_hz,
        num_channels=channels,
        track_publish_options=rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE),
    )


class Driven:
    """Has a session find ``driver(sink)`` wherever it looks for its sink, for as long as it is on.

    Stands for a framework that uses sinks in another way than the installed one does: what it
    makes of the session's calls is what the probe, which comes after it, sees.
    """

    def __init__(self, output: Any, driver: Driver) -> None:
        """``output`` is ``session.output``, with the probe on it already."""
        base: Any = type(output)
        drivers: dict[int, Any] = {}

        def read(output: Any) -> Any:
            sink = base.audio.fget(output)
            if sink is None:
                return None
            if id(sink) not in drivers:
                drivers[id(sink)] = driver(sink)
            return drivers[id(sink)]

        def write(output: Any, sink: Any) -> None:
            base.audio.fset(output, sink)

        self._output = output
        self._base = base
        output.__class__ = type(base.__name__, (base,), {"audio": property(read, write)})

    def undo(self) -> None:
        self._output.__class__ = self._base
