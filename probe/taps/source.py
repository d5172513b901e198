"""What an `rtc.AudioSource` is handed, and when its queue is cleared.

The tap replaces three methods on the one instance. A replacement appends its record, calls what
was there before with the same arguments, awaits it directly, and writes into the record how it
ended. Nothing else: frames are read on the recorder's thread.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from livekit import rtc

from probe.taps.calls import (
    CLEAR,
    CLEAR_ENDED,
    CLEAR_ERROR,
    PUSH,
    PUSH_END,
    PUSH_ENDED,
    PUSH_ERROR,
    Call,
)
from probe.taps.patches import InstancePatch
from probe.trace.events import Event, SourceClosed

__all__ = ["SourceTap"]


class SourceTap:
    """Records every ``capture_frame``, ``clear_queue`` and ``aclose`` of one source.

    Args:
        source: the source; only this instance is touched.
        number: its number in the trace, from 1.
        put: takes a record or an event; called on the thread of the call.
    """

    def __init__(
        self, source: rtc.AudioSource, number: int, put: Callable[[Call | Event], None]
    ) -> None:
        self._source = source
        self._number = number
        self._put = put
        self._patches: list[InstancePatch] = []
        self._active = False
        self._closed = False
        self.lost = 0
        """Records that could not be put; the calls went on untouched."""

    def install(self) -> None:
        """Put the tap on. Does nothing if it is on.

        Raises:
            AttributeError: the source takes no attributes, or lacks one of the methods.
        """
        if self._active:
            return
        handle = getattr(self._source, "_ffi_handle", None)
        self._closed = bool(getattr(handle, "disposed", False))
        self._active = True
        replacements = {
            "capture_frame": self._recording_push(self._source.capture_frame),
            "clear_queue": self._recording_clear(self._source.clear_queue),
            "aclose": self._recording_close(self._source.aclose),
        }
        try:
            for name, replacement in replacements.items():
                self._patches.append(InstancePatch(self._source, name, replacement))
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Take the tap off; idempotent.

        A method that somebody replaced in the meantime is left to them; the tap's own part in it
        only forwards from now on.
        """
        self._active = False
        for patch in reversed(self._patches):
            patch.undo()
        self._patches.clear()

    def _record(self, record: Any) -> None:
        try:
            self._put(record)
        except Exception:
            self.lost += 1

    def _recording_push(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        number = self._number

        @functools.wraps(forward)
        async def capture_frame(*args: Any, **kwargs: Any) -> Any:
            if not self._active:
                return await forward(*args, **kwargs)
            frame = args[0] if args else kwargs.get("frame")
            record: Call = [
                PUSH,
                monotonic_ns(),
                frame,
                number,
                not self._closed,
                None,
                None,
                None,
            ]
            self._record(record)
            try:
                result = await forward(*args, **kwargs)
            except BaseException as error:
                left = isinstance(error, (asyncio.CancelledError, GeneratorExit))
                record[PUSH_ERROR] = type(error).__name__
                record[PUSH_ENDED] = monotonic_ns()
                # Last: the recorder's thread takes the end for the sign that all of it is there.
                record[PUSH_END] = "cancelled" if left else "raised"
                raise
            record[PUSH_ENDED] = monotonic_ns()
            record[PUSH_END] = "returned"
            return result

        return capture_frame

    def _recording_clear(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        number = self._number

        @functools.wraps(forward)
        def clear_queue(*args: Any, **kwargs: Any) -> Any:
            if not self._active:
                return forward(*args, **kwargs)
            record: Call = [CLEAR, monotonic_ns(), number, None, None]
            self._record(record)
            try:
                return forward(*args, **kwargs)
            except BaseException as error:
                record[CLEAR_ERROR] = type(error).__name__
                raise
            finally:
                record[CLEAR_ENDED] = monotonic_ns()

        return clear_queue

    def _recording_close(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        async def aclose(*args: Any, **kwargs: Any) -> Any:
            if self._active and not self._closed:
                self._closed = True
                self._record(SourceClosed(monotonic_ns(), self._number))
            return await forward(*args, **kwargs)

        return aclose
