"""The tap on the session: speeches, states, verdicts, transcripts by their length, and its end.

It listens to the session's own events and, for what no event says, puts replacements on each
speech handle while that speech lives, and on the call that closes the session. Stamps are taken
when the deciding call or event is seen, before it takes effect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from probe import compat
from probe.taps.caller import CallerTap
from probe.taps.calls import Put
from probe.taps.guard import Fault, Guard
from probe.taps.numbers import Numbers
from probe.taps.patches import Patches
from probe.taps.speech import SpeechListener, SpeechTap
from probe.trace.events import (
    FalseInterruption,
    HandedOver,
    ItemCommitted,
    OptionsChanged,
    OverlapJudged,
    SessionClosed,
    SpeechCreated,
    StateChanged,
    TranscriptReceived,
)

__all__ = ["SessionTap"]


class SessionTap:
    """Everything a session says about who speaks, who interrupts whom, and what comes of it."""

    def __init__(
        self,
        session: Any,
        put: Put,
        fault: Fault,
        *,
        on_event: Callable[[], None],
        on_close: Callable[[], None],
        listener: SpeechListener,
    ) -> None:
        """``on_event`` is called at every event, on the session's loop, outside any capture;
        ``on_close`` when the session has closed; ``listener`` hears of speeches."""
        self._session = session
        self._speaking = compat.speaking(session)
        self._put = put
        self._guard = Guard(fault)
        self._on_event = on_event
        self._on_close = on_close
        self._listener = listener
        self._listeners: list[tuple[str, Callable[[Any], None]]] = []
        self._speeches: dict[int, SpeechTap] = {}
        self._options: dict[str, Any] = {}
        self._caller = CallerTap(session, put, self._guard)
        self._agents = Numbers()
        self._agent: Any = None
        self._closing: Patches | None = None
        self._closed = False

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
            ("close", self._has_closed),
        ):
            listener = self._hearing(name, handler)
            self._session.on(name, listener)
            self._listeners.append((name, listener))
        name = compat.CLOSING_CALL
        close = getattr(self._session, name, None)
        if close is not None:
            replacement = {name: self._seeing_it_close(close)}
            self._closing = self._guard.attempt("close", Patches, self._session, replacement)
        for handle in compat.running_speeches(self._session):
            self._watch(handle)
        self.look()
        self._look_at_options()

    def remove(self) -> None:
        """Stop listening and give everything its own methods back; from any thread."""
        for name, listener in self._listeners:
            self._session.off(name, listener)
        self._listeners = []
        if self._closing is not None:
            self._closing.undo()
        for speech in list(self._speeches.values()):
            speech.remove()
        self._speeches.clear()
        self._caller.remove()
        self._agent = None

    def look(self) -> None:
        """See what changed that no event tells of on every release; a hundred times a second."""
        self._guard.attempt("caller", self._caller.look)
        self._guard.attempt("agent", self._look_at_agent, monotonic_ns())

    def _look_at_agent(self, at_ns: int) -> None:
        agent = compat.current_agent(self._session)
        if agent is None or agent is self._agent:
            return
        before, self._agent = self._agent, agent
        old = None if before is None else self._agents.of(before)
        new = self._agents.of(agent)
        if old is not None:
            self._put(HandedOver(at_ns, old, new))

    def _look_at_options(self) -> None:
        if not compat.started(self._session):
            return
        options = compat.interruption_options(self._session)
        if options != self._options:
            self._options = options
            self._put(OptionsChanged(monotonic_ns(), dict(options)))

    def _hearing(self, name: str, handler: Callable[[Any, int], None]) -> Callable[[Any], None]:
        attempt = self._guard.attempt

        def heard(event: Any = None) -> None:
            at_ns = monotonic_ns()
            attempt(name, self._look_at_agent, at_ns)
            attempt(name, handler, event, at_ns)
            attempt(name, self._look_at_options)
            attempt(name, self._on_event)

        return heard

    # -- its end --

    def _seeing_it_close(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def close(*args: Any, **kwargs: Any) -> Any:
            self._guard.attempt("close", self._closes, kwargs.get("reason"), monotonic_ns())
            return original(*args, **kwargs)

        return close

    def _closes(self, reason: Any, at_ns: int) -> None:
        # a session that does not run is not closed by the call
        if compat.started(self._session):
            self._tell_close(reason, at_ns)

    def _tell_close(self, reason: Any, at_ns: int) -> None:
        if not self._closed:
            self._closed = True
            self._put(SessionClosed(at_ns, str(getattr(reason, "value", reason) or "")))

    def _has_closed(self, event: Any, at_ns: int) -> None:
        self._tell_close(getattr(event, "reason", None), at_ns)
        self._on_close()

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
        self._listener.speech_created(handle.id)

    def _watch(self, handle: Any) -> None:
        if id(handle) not in self._speeches:
            speech = self._speeches[id(handle)] = SpeechTap(
                handle,
                self._put,
                self._guard,
                self._listener,
                stopping=self._look_at_agent,
                over=self._let_go,
            )
            speech.install()

    def _let_go(self, handle: Any) -> None:
        speech = self._speeches.pop(id(handle), None)
        if speech is not None:
            speech.remove()

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


def _stamp(event: Any) -> float | None:
    stamp = getattr(event, "created_at", None)
    return float(stamp) if isinstance(stamp, (int, float)) else None
