"""What a sink reports of its playback: the framework's claim."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from probe.taps.calls import Put
from probe.taps.guard import Guard
from probe.trace.events import PlaybackReported

__all__ = ["PlaybackTap"]


class PlaybackTap:
    """Listens to the playback events of one sink, which reach everybody else as before."""

    def __init__(self, sink: Any, put: Put, guard: Guard, speech: Callable[[], str | None]) -> None:
        """``speech`` gives the id of the current speech."""
        self._sink = sink
        self._put = put
        self._guard = guard
        self._speech = speech
        self._listeners: list[tuple[str, Callable[[Any], None]]] = []

    def install(self) -> None:
        """Start listening."""
        for name, told in (
            ("playback_started", _started),
            ("playback_progressed", _progressed),
            ("playback_finished", _finished),
        ):
            listener = self._listener(told)
            self._sink.on(name, listener)
            self._listeners.append((name, listener))

    def remove(self) -> None:
        """Stop listening; idempotent."""
        listeners, self._listeners = self._listeners, []
        for name, listener in listeners:
            self._sink.off(name, listener)

    def _listener(
        self, told: Callable[[Any, int, str | None], PlaybackReported]
    ) -> Callable[[Any], None]:
        def report(event: Any) -> None:
            self._put(told(event, monotonic_ns(), self._speech()))

        def heard(event: Any = None) -> None:
            self._guard.attempt("playback", report, event)

        return heard


def _started(event: Any, at_ns: int, speech: str | None) -> PlaybackReported:
    stamp = getattr(event, "created_at", None)
    return PlaybackReported(at_ns, "started", speech, event_unix_s=stamp)


def _progressed(event: Any, at_ns: int, speech: str | None) -> PlaybackReported:
    return PlaybackReported(
        at_ns,
        "progressed",
        speech,
        position_s=getattr(event, "offset", None),
        duration_s=getattr(event, "duration", None),
        event_unix_s=getattr(event, "started_at", None),
    )


def _finished(event: Any, at_ns: int, speech: str | None) -> PlaybackReported:
    transcript = getattr(event, "synchronized_transcript", None)
    return PlaybackReported(
        at_ns,
        "finished",
        speech,
        position_s=getattr(event, "playback_position", None),
        interrupted=getattr(event, "interrupted", None),
        transcript_chars=None if transcript is None else len(transcript),
    )
