"""What really left an `rtc.AudioSource`: its local track, read back on a thread of its own.

The source hands blocks of 10 ms to the encoder of whatever track it feeds. A second local track on
the same source, never published, gets the same blocks, and an `rtc.AudioStream` reads them. The
thread has an event loop of its own, so that a session loop that does not run does not make the
stamps late. Blocks are only put aside here; the recorder's thread compares them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from livekit import rtc

from probe.taps.calls import BLOCKS, Put
from probe.taps.guard import Fault
from probe.trace.events import Tapped, Untapped

__all__ = ["WireTap", "every_tick_yields"]

GROUP_MS: Final = 50
"""How much is read at a time where the number of a block tells its time."""

RESOLUTION_NS: Final = 10_000_000
"""Samples leave by the block; where the blocks keep a grid, a stamp is right to one."""

RESOLUTION_UNGRIDDED_NS: Final = 20_000_000
"""Where blocks are only as good as their arrival: one block, and the usual lateness of a thread."""

_STOP_S: Final = 1.0
_CLOSE_S: Final = 0.5


def every_tick_yields() -> bool:
    """Whether this release's source hands on a block with every tick, silence if it has nothing.

    Up to livekit 1.1.2 nothing comes out for the first 90 ms of an underrun, so blocks cannot be
    counted to tell the time. The wheel does not say so; what it shows is a request field that came
    with a later native library. Taking a release for an older one is safe, only dearer: its blocks
    are read one by one.
    """
    try:
        from livekit.rtc._proto.audio_frame_pb2 import NewAudioStreamRequest

        return "queue_size_frames" in NewAudioStreamRequest.DESCRIPTOR.fields_by_name
    except Exception:
        return False


class WireTap:
    """Reads back what leaves one source, until stopped.

    Args:
        source: the source; nothing on it is changed.
        number: its number in the trace, from 1.
        put: takes records and events; called on the tap's own thread.
        fault: takes the kind and the detail of a failure of the tap.
        mid_speech: whether the agent speaks as the tap comes; `Tapped` says so.
    """

    def __init__(
        self,
        source: rtc.AudioSource,
        number: int,
        put: Put,
        fault: Fault,
        *,
        mid_speech: bool = False,
    ) -> None:
        self._source: rtc.AudioSource | None = source
        self._number = number
        self._put = put
        self._fault = fault
        self._mid_speech = mid_speech
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._cancel: Callable[[], None] | None = None
        self.opened = threading.Event()
        """Set once blocks are being read, or it is certain that they will not be."""

    def start(self) -> None:
        """Begin to read, on a new thread; returns at once. Does nothing the second time."""
        with self._lock:
            if self._thread is not None or self._stopping:
                return
            self._thread = threading.Thread(
                target=self._run, name=f"sinkprobe-wire-{self._number}", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the reading and wait for the thread, a second at most; idempotent, any thread."""
        with self._lock:
            self._stopping = True
            cancel, thread = self._cancel, self._thread
        if cancel is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended by itself
                cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_S)
            if thread.is_alive():
                self._fault("tap_raised", "wire: the reading does not end")
        self._source = None

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except Exception as error:
            self._fault("tap_raised", f"wire: {type(error).__name__}")
        finally:
            self.opened.set()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        reading = asyncio.current_task()
        assert reading is not None
        with self._lock:
            source = self._source
            if self._stopping or source is None:
                return

            def cancel() -> None:
                loop.call_soon_threadsafe(reading.cancel)

            self._cancel = cancel
        number, put = self._number, self._put
        rate_hz, channels = source.sample_rate, source.num_channels
        grouped = every_tick_yields()
        track = rtc.LocalAudioTrack.create_audio_track("sinkprobe", source)
        stream = rtc.AudioStream(
            track,
            loop=loop,
            sample_rate=rate_hz,
            num_channels=channels,
            frame_size_ms=GROUP_MS if grouped else None,
        )
        del source, track
        reason = "ended"
        try:
            put(
                Tapped(
                    monotonic_ns(),
                    "sent",
                    source=number,
                    rate_hz=rate_hz,
                    channels=channels,
                    block_samples=rate_hz // 100,
                    grouped=grouped,
                    resolution_ns=RESOLUTION_NS if grouped else RESOLUTION_UNGRIDDED_NS,
                    mid_speech=self._mid_speech,
                )
            )
            self.opened.set()
            async for event in stream:
                put([BLOCKS, monotonic_ns(), None, None, event.frame, number])
            self._fault("wire_hole", f"source {number}: the stream ended by itself")
        except asyncio.CancelledError:
            reason = "stopped"
        finally:
            put(Untapped(monotonic_ns(), "sent", source=number, reason=reason))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stream.aclose(), _CLOSE_S)
