"""What an `rtc.AudioSource` is handed, and when its queue is cleared.

The tap replaces three methods on the one instance. A replacement appends its record, calls what
was there before with the same arguments, awaits it directly, and writes into the record how it
ended. Nothing else: frames are read on the recorder's thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from livekit import rtc

from probe.taps.calls import CLEAR, ENDED, FAILURE, PUSH, Call, Put, forward
from probe.taps.failures import failure
from probe.taps.patches import Patches
from probe.trace.events import SourceClosed

__all__ = ["SourceTap"]


class SourceTap:
    """Records every ``capture_frame``, ``clear_queue`` and ``aclose`` of one source.

    Args:
        source: the source; only this instance is touched.
        number: its number in the trace, from 1.
        put: takes a record or an event; called on the thread of the call.
    """

    def __init__(self, source: rtc.AudioSource, number: int, put: Put) -> None:
        self._source = source
        self._number = number
        self._put = put
        self._patches: Patches | None = None
        self._closed = False

    def install(self) -> None:
        """Put the tap on. Does nothing if it is on.

        Raises:
            AttributeError: the source takes no attributes, or lacks one of the methods.
        """
        if self._patches is not None:
            return
        source = self._source
        handle = getattr(source, "_ffi_handle", None)
        self._closed = bool(getattr(handle, "disposed", False))
        self._patches = Patches(
            source,
            {
                "capture_frame": self._recording_push(source.capture_frame),
                "clear_queue": self._recording_clear(source.clear_queue),
                "aclose": self._recording_close(source.aclose),
            },
        )

    def remove(self) -> None:
        """Take the tap off; idempotent.

        A method that somebody replaced in the meantime is left to them; the tap's own part in it
        only forwards from now on.
        """
        patches, self._patches = self._patches, None
        if patches is not None:
            patches.undo()

    def _recording_push(self, push: Callable[..., Any]) -> Callable[..., Any]:
        number = self._number

        @functools.wraps(push)
        async def capture_frame(*args: Any, **kwargs: Any) -> Any:
            if self._patches is None:
                return await push(*args, **kwargs)
            frame = args[0] if args else kwargs.get("frame")
            record: Call = [PUSH, monotonic_ns(), None, None, frame, number, not self._closed]
            self._put(record)
            try:
                return await push(*args, **kwargs)
            except BaseException as error:
                record[FAILURE] = failure(error)
                raise
            finally:
                record[ENDED] = monotonic_ns()

        return capture_frame

    def _recording_clear(self, clear: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(clear)
        def clear_queue(*args: Any, **kwargs: Any) -> Any:
            if self._patches is None:
                return clear(*args, **kwargs)
            record: Call = [CLEAR, monotonic_ns(), None, None, self._number]
            self._put(record)
            return forward(record, clear, *args, **kwargs)

        return clear_queue

    def _recording_close(self, close: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(close)
        async def aclose(*args: Any, **kwargs: Any) -> Any:
            if self._patches is not None and not self._closed:
                self._closed = True
                self._put(SourceClosed(monotonic_ns(), self._number))
            return await close(*args, **kwargs)

        return aclose
