"""The tap on one speech: who asks it to stop, when it becomes interrupted, when it is done."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Protocol

from probe import compat
from probe.taps.calls import Put
from probe.taps.guard import Guard
from probe.taps.patches import Patches
from probe.trace.events import CallEnd, InterruptCalled, InterruptedBy, SpeechCommitted, SpeechDone

__all__ = ["SpeechListener", "SpeechTap"]


class SpeechListener(Protocol):
    """Another tap that has to know what becomes of speeches, at the moment it happens."""

    def speech_created(self, speech: str) -> None:
        """The session made a speech."""

    def speech_committed(self, speech: str, at_ns: int) -> None:
        """A speech became interrupted at ``at_ns``; its event is written next."""

    def speech_done(self, speech: str, at_ns: int) -> None:
        """A speech is done; its event was written."""


class SpeechTap:
    """Watches one speech handle while the speech lives."""

    def __init__(
        self,
        handle: Any,
        put: Put,
        guard: Guard,
        listener: SpeechListener,
        *,
        stopping: Callable[[int], None],
        over: Callable[[Any], None],
    ) -> None:
        """``stopping`` is called before each interrupt takes effect, with its time; ``over`` with
        the handle once the speech is done and nobody calls back any more."""
        self._handle = handle
        self._put = put
        self._guard = guard
        self._listener = listener
        self._stopping = stopping
        self._over = over
        self._patches = Patches(handle)
        self._removed = False
        self._committed = False

    def install(self) -> None:
        """Begin to watch."""
        handle = self._handle
        self._committed = bool(handle.interrupted)
        self._patches.put("interrupt", self._interrupting(handle.interrupt))
        # A prepared reply that is thrown away is cancelled without an interrupt.
        if callable(getattr(handle, "_cancel", None)):
            self._patches.put("_cancel", self._cancelling(handle._cancel))
        future = compat.commit_future(handle)
        if future is not None and not future.done():
            future.add_done_callback(self._became_interrupted)
        handle.add_done_callback(self._done)

    def remove(self) -> None:
        """Give the speech its own methods back; from any thread."""
        self._removed = True
        self._patches.undo()
        future = compat.commit_future(self._handle)
        if future is not None:
            future.remove_done_callback(self._became_interrupted)
        self._handle.remove_done_callback(self._done)

    def _interrupting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def interrupt(*args: Any, **kwargs: Any) -> Any:
            at_ns = monotonic_ns()
            called = self._called(at_ns, kwargs)
            end: CallEnd = "raised"
            try:
                result = original(*args, **kwargs)
                end = "returned"
                return result
            finally:
                if called is not None:
                    self._guard.attempt("interrupt", self._tell, called[0], at_ns, end)

        return interrupt

    def _called(self, at_ns: int, kwargs: Any) -> tuple[InterruptedBy | None] | None:
        """Who asks, of a call that is about to take effect; None where nothing is left to stop:
        that is no verdict."""
        try:
            if self._removed or self._handle.interrupted or self._handle.done():
                return None
            self._stopping(at_ns)
            return (compat.interrupted_by(kwargs, depth=3),)
        except Exception as error:
            self._guard.failed("interrupt", error)
            return (None,)

    def _tell(self, by: InterruptedBy | None, at_ns: int, end: CallEnd) -> None:
        self._put(InterruptCalled(at_ns, self._handle.id, by, end))
        self._see_commit(at_ns)

    def _cancelling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def cancel(*args: Any, **kwargs: Any) -> Any:
            at_ns = monotonic_ns()
            result = original(*args, **kwargs)
            self._guard.attempt("cancel", self._see_commit, at_ns)
            return result

        return cancel

    def _became_interrupted(self, future: asyncio.Future[Any]) -> None:
        # Only reached first where something sets the future itself; the stamp is then late by
        # one turn of the loop.
        if not future.cancelled():
            self._guard.attempt("commit", self._commit, monotonic_ns())

    def _see_commit(self, at_ns: int) -> None:
        if self._handle.interrupted:
            self._commit(at_ns)

    def _commit(self, at_ns: int) -> None:
        if self._committed or self._removed:
            return
        self._committed = True
        self._listener.speech_committed(self._handle.id, at_ns)
        self._put(SpeechCommitted(at_ns, self._handle.id))

    def _done(self, handle: Any = None) -> None:
        if not self._removed:
            self._guard.attempt("speech done", self._end, monotonic_ns())

    def _end(self, at_ns: int) -> None:
        self._see_commit(at_ns)
        self._put(SpeechDone(at_ns, self._handle.id, bool(self._handle.interrupted)))
        self._listener.speech_done(self._handle.id, at_ns)
        # not now: older releases are iterating over their callbacks
        asyncio.get_running_loop().call_soon(self._over, self._handle)
