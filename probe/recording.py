"""A session under record: from the moment the taps are on to the last line of the file."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from probe.trace.events import Bookmarked, Event

if TYPE_CHECKING:
    from probe.recorder import Recorder

__all__ = ["Recording"]

LINGER_S: Final = 0.5
"""Time after the session's close event in which the last events come in."""


class Recording:
    """One session being recorded into one file; a context manager.

    It ends with `close`, with its ``with`` block, or half a second after the session's close
    event. A process that exits before that closes it on the way out.
    """

    def __init__(self, session: Any, recorder: Recorder, *, wire: bool) -> None:
        """Use `probe.attach`."""
        # livekit comes with it
        from probe.taps.taps import Taps

        self._recorder = recorder
        self._lock = threading.RLock()
        self._closed = False
        self._taps = Taps(
            session,
            recorder.put,
            recorder.fault,
            queue=recorder.queue,
            wire=wire,
            name=str(recorder.path),
            on_close=self._session_closed,
        )
        recorder.start()
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
