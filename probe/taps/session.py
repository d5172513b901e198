"""The tap on the session: speeches, states, verdicts, commits, transcripts by their length.

It listens to the session's own events and, for what no event says, puts a replacement for
`interrupt` on each speech handle while that speech lives. Stamps are taken when the deciding call
or event is seen, before it takes effect.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Protocol

from probe import compat
from probe.taps.patches import InstancePatch
from probe.trace.events import (
    CallEnd,
    FalseInterruption,
    InterruptCalled,
    ItemCommitted,
    OptionsChanged,
    OverlapJudged,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
)

__all__ = ["SessionTap", "SpeechListener"]

Put = Callable[[Any], None]
Fault = Callable[[str, str], None]


def _nothing() -> None:
    return None


class SpeechListener(Protocol):
    """Another tap that has to know what becomes of speeches, at the moment it happens."""

    def speech_created(self, speech: str) -> None:
        """The session made a speech."""

    def speech_committed(self, speech: str, at_ns: int) -> None:
        """A speech became interrupted at ``at_ns``; its event is written next."""

    def speech_done(self, speech: str, at_ns: int) -> None:
        """A speech is done; its event was written."""


class SessionTap:
    """Everything a session says about who speaks, who interrupts whom, and what comes of it."""

    def __init__(
        self,
        session: Any,
        put: Put,
        fault: Fault,
        *,
        on_event: Callable[[], None] = _nothing,
        on_close: Callable[[], None] = _nothing,
        listener: SpeechListener | None = None,
    ) -> None:
        """``on_event`` is called at every event, on the session's loop, outside any capture;
        ``on_close`` when the session has closed; ``listener`` hears of speeches."""
        self._session = session
        self._speaking = compat.speaking(session)
        self._put = put
        self._fault = fault
        self._on_event = on_event
        self._on_close = on_close
        self._listener = listener
        self._listeners: list[tuple[str, Callable[[Any], None]]] = []
        self._watches: dict[int, _Watch] = {}
        self._options: dict[str, Any] = {}

    def install(self) -> None:
        """Start listening; speeches that already run are taken along."""
        for name, handler in (
            ("speech_created", self._speech_created),
            ("agent_state_changed", self._agent_state),
            ("user_state_changed", self._user_state),
            ("user_input_transcribed", self._transcribed),
            ("agent_false_interruption", self._false_interruption),
            ("overlapping_speech", self._overlap),
            ("conversation_item_added", self._item_added),
            ("close", self._closed),
        ):
            listener = self._guarded(name, handler)
            self._session.on(name, listener)
            self._listeners.append((name, listener))
        for handle in compat.running_speeches(self._session):
            self._watch(handle)
        self.look_at_options()

    def remove(self) -> None:
        """Stop listening and give every speech its own methods back; from any thread."""
        for name, listener in self._listeners:
            self._session.off(name, listener)
        self._listeners = []
        for watch in list(self._watches.values()):
            watch.remove()
        self._watches.clear()

    def look_at_options(self) -> None:
        """Write the interruption options if they are not what was written last."""
        if not compat.started(self._session):
            return
        options = compat.interruption_options(self._session)
        if options != self._options:
            self._options = options
            self._put(OptionsChanged(monotonic_ns(), dict(options)))

    def _guarded(self, name: str, handler: Callable[[Any, int], None]) -> Callable[[Any], None]:
        def heard(event: Any = None) -> None:
            at_ns = monotonic_ns()
            try:
                handler(event, at_ns)
            except Exception as error:
                self._fault("tap_raised", f"{name}: {type(error).__name__}")
            try:
                self.look_at_options()
                self._on_event()
            except Exception as error:
                self._fault("tap_raised", f"{name}: {type(error).__name__}")

        return heard

    # -- speeches --

    def _speech_created(self, event: Any, at_ns: int) -> None:
        handle = event.speech_handle
        self._put(
            SpeechCreated(
                at_ns,
                handle.id,
                str(getattr(event, "source", "")),
                getattr(event, "user_initiated", None),
                getattr(handle, "allow_interruptions", None),
            )
        )
        self._watch(handle)
        if self._listener is not None:
            self._listener.speech_created(handle.id)

    def _watch(self, handle: Any) -> None:
        if id(handle) in self._watches:
            return
        watch = _Watch(handle, self._put, self._fault, self._forget, self._listener)
        self._watches[id(handle)] = watch
        watch.install()

    def _forget(self, handle: Any) -> None:
        watch = self._watches.pop(id(handle), None)
        if watch is not None:
            watch.remove()

    # -- states and verdicts --

    def _agent_state(self, event: Any, at_ns: int) -> None:
        self._put(StateChanged(at_ns, "agent", event.old_state, event.new_state, _stamp(event)))

    def _user_state(self, event: Any, at_ns: int) -> None:
        self._put(StateChanged(at_ns, "user", event.old_state, event.new_state, _stamp(event)))

    def _transcribed(self, event: Any, at_ns: int) -> None:
        text = event.transcript
        self._put(TranscriptReceived(at_ns, bool(event.is_final), len(text), len(text.split())))

    def _false_interruption(self, event: Any, at_ns: int) -> None:
        self._put(FalseInterruption(at_ns, bool(event.resumed)))

    def _overlap(self, event: Any, at_ns: int) -> None:
        stamp = getattr(event, "detected_at", None)
        self._put(
            OverlapJudged(
                at_ns,
                bool(event.is_interruption),
                compat.speech_of(self._speaking),
                _stamp(event) if stamp is None else stamp,
                getattr(event, "overlap_started_at", None),
                getattr(event, "probability", None),
                bool(getattr(event, "agent_ended", False)),
            )
        )

    def _item_added(self, event: Any, at_ns: int) -> None:
        item = event.item
        role = getattr(item, "role", None)
        if role is None:
            # a handoff between agents, not a message
            return
        text = getattr(item, "text_content", None) or ""
        self._put(
            ItemCommitted(
                at_ns,
                str(item.id),
                str(role),
                len(text),
                bool(getattr(item, "interrupted", False)),
                compat.speech_of(self._speaking) if role == "assistant" else None,
            )
        )

    def _closed(self, event: Any, at_ns: int) -> None:
        self._on_close()


def _stamp(event: Any) -> float | None:
    stamp = getattr(event, "created_at", None)
    return float(stamp) if isinstance(stamp, (int, float)) else None


class _Watch:
    """One speech: who asks it to stop, when it becomes interrupted, when it is done."""

    def __init__(
        self,
        handle: Any,
        put: Put,
        fault: Fault,
        forget: Callable[[Any], None],
        listener: SpeechListener | None,
    ) -> None:
        self._handle = handle
        self._put = put
        self._fault = fault
        self._forget = forget
        self._listener = listener
        self._patches: list[InstancePatch] = []
        self._removed = False
        self._committed = False

    def install(self) -> None:
        handle = self._handle
        self._committed = bool(handle.interrupted)
        self._patches.append(InstancePatch(handle, "interrupt", self._interrupting()))
        # A prepared reply that is thrown away is cancelled without an interrupt.
        if callable(getattr(handle, "_cancel", None)):
            self._patches.append(InstancePatch(handle, "_cancel", self._cancelling()))
        future = compat.commit_future(handle)
        if future is not None and not future.done():
            future.add_done_callback(self._became_interrupted)
        handle.add_done_callback(self._done)

    def remove(self) -> None:
        self._removed = True
        for patch in self._patches:
            patch.undo()
        self._patches = []
        future = compat.commit_future(self._handle)
        if future is not None:
            future.remove_done_callback(self._became_interrupted)
        self._handle.remove_done_callback(self._done)

    def _interrupting(self) -> Callable[..., Any]:
        original = self._handle.interrupt

        @functools.wraps(original)
        def interrupt(*args: Any, **kwargs: Any) -> Any:
            at_ns = monotonic_ns()
            asked = self._asked(kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                self._record_interrupt(at_ns, asked, "raised")
                raise
            self._record_interrupt(at_ns, asked, "returned")
            return result

        return interrupt

    def _asked(self, kwargs: dict[str, Any]) -> tuple[Any] | None:
        try:
            if self._removed or self._handle.interrupted or self._handle.done():
                # nothing is left to stop: not a verdict
                return None
            return (compat.interrupted_by(kwargs, depth=3),)
        except Exception as error:
            self._fault("tap_raised", f"interrupt: {type(error).__name__}")
            return (None,)

    def _record_interrupt(self, at_ns: int, asked: tuple[Any] | None, end: CallEnd) -> None:
        if asked is None:
            return
        try:
            self._put(InterruptCalled(at_ns, self._handle.id, asked[0], end))
            if self._handle.interrupted:
                self._commit(at_ns)
        except Exception as error:
            self._fault("tap_raised", f"interrupt: {type(error).__name__}")

    def _cancelling(self) -> Callable[..., Any]:
        original = self._handle._cancel

        @functools.wraps(original)
        def cancel(*args: Any, **kwargs: Any) -> Any:
            at_ns = monotonic_ns()
            result = original(*args, **kwargs)
            try:
                if self._handle.interrupted:
                    self._commit(at_ns)
            except Exception as error:
                self._fault("tap_raised", f"cancel: {type(error).__name__}")
            return result

        return cancel

    def _became_interrupted(self, future: asyncio.Future[Any]) -> None:
        # Only reached first where something sets the future itself; the stamp is then late by
        # one turn of the loop.
        if not future.cancelled():
            self._commit(monotonic_ns())

    def _commit(self, at_ns: int) -> None:
        if self._committed or self._removed:
            return
        self._committed = True
        if self._listener is not None:
            self._listener.speech_committed(self._handle.id, at_ns)
        self._put(SpeechCommitted(at_ns, self._handle.id))

    def _done(self, handle: Any = None) -> None:
        at_ns = monotonic_ns()
        try:
            if self._removed:
                return
            interrupted = bool(self._handle.interrupted)
            if interrupted:
                self._commit(at_ns)
            self._put(SpeechDone(at_ns, self._handle.id, interrupted))
            if self._listener is not None:
                self._listener.speech_done(self._handle.id, at_ns)
            # not now: older releases are iterating over their callbacks
            asyncio.get_running_loop().call_soon(self._forget, self._handle)
        except Exception as error:
            self._fault("tap_raised", f"speech done: {type(error).__name__}")
