"""The tap on one session of a realtime model: the calls made on it and the events it emits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from probe.taps.failures import Failure, failure
from probe.taps.patches import Patches
from probe.taps.realtime.conversation import AgentSide, ServerSide
from probe.taps.realtime.responses import Responses
from probe.taps.realtime.shared import Shared
from probe.trace.events import CallEnd, CancelSent, TruncateSent

__all__ = ["ModelTap"]

_Original = Callable[..., Any]
_Sending = Callable[[CallEnd], Any]
"""Makes the event of a call, given how that ended."""


class ModelTap:
    """Replaces the calls on one realtime session; each is told and forwarded."""

    def __init__(
        self,
        shared: Shared,
        realtime: Any,
        number: int,
        agent: AgentSide,
        closed: Callable[[ModelTap], None],
    ) -> None:
        """``closed`` is called once the realtime session was closed."""
        self.realtime = realtime
        self.number = number
        self.responses = Responses(shared, number)
        self.server = ServerSide(shared, realtime, number, self.responses)
        self.responses.look = self._look
        self._shared = shared
        self._agent = agent
        self._closed = closed
        self._patches = Patches(realtime)
        self._removed = False

    def install(self) -> None:
        """Put a replacement for each of the calls on the instance."""
        for name, make in (
            ("emit", self._emit),
            ("generate_reply", self._ask),
            ("say", self._ask),
            ("interrupt", self._interrupt),
            ("truncate", self._truncate),
            ("update_chat_ctx", self._update_context),
            ("aclose", self._close),
        ):
            original = getattr(self.realtime, name, None)
            if callable(original):
                self._shared.guard.attempt(name, self._replace, name, original, make)

    def _replace(self, name: str, original: _Original, make: Callable[[_Original], Any]) -> None:
        self._patches.put(name, functools.wraps(original)(make(original)))

    def remove(self) -> None:
        """Give the instance its own methods back."""
        self._removed = True
        self._patches.undo()
        self.responses.close()

    def _attempt(self, where: str, step: Callable[..., Any], *args: Any) -> Any:
        return None if self._removed else self._shared.guard.attempt(where, step, *args)

    def _look(self, at_ns: int) -> None:
        self.server.look(at_ns)
        self._agent.look(at_ns)

    def _told(self, original: _Original, args: Any, kwargs: Any, sending: _Sending | None) -> Any:
        """Forward a call, and write how it ended."""
        end: CallEnd = "returned"
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            end = failure(error).end
            raise
        finally:
            if sending is not None:
                self._attempt("call", lambda: self._shared.put(sending(end)))

    # -- the calls --

    def _emit(self, original: _Original) -> _Original:
        hear = {
            "generation_created": self.responses.heard,
            "remote_item_added": self._heard_item,
            "metrics_collected": self.responses.measured,
        }

        def emit(*args: Any, **kwargs: Any) -> Any:
            heard = hear.get(args[0]) if len(args) > 1 else None
            if heard is None:
                return original(*args, **kwargs)
            response = self._attempt(str(args[0]), heard, args[1], self._shared.now_ns())
            try:
                return original(*args, **kwargs)
            finally:
                if response is not None:
                    self._attempt("response", self.responses.listened, response)

        return emit

    def _heard_item(self, event: Any, at_ns: int) -> None:
        item = event.item
        id_ = str(item.id)
        known = self._shared.knows(id_)
        if getattr(item, "role", None) != "assistant" or known or self._agent.has(id_):
            return
        self.responses.announce_all()
        self.responses.message_seen(at_ns, id_, "event")

    def _ask(self, original: _Original) -> _Original:
        def ask(*args: Any, **kwargs: Any) -> Any:
            speech = self._attempt("reply", self._shared.asking_speech)
            future = original(*args, **kwargs)
            self._attempt("reply", self.responses.asked, future, speech)
            return future

        return ask

    def _interrupt(self, original: _Original) -> _Original:
        def interrupt(*args: Any, **kwargs: Any) -> Any:
            sending = self._attempt("cancel", self._cancelling, self._shared.now_ns())
            return self._told(original, args, kwargs, sending)

        return interrupt

    def _cancelling(self, at_ns: int) -> _Sending:
        self.responses.count_all(at_ns, "cancel")
        hits = [response.number for response in self.responses.live if response.under_way]
        speech = self._shared.asking_speech()
        return functools.partial(CancelSent, at_ns, self.number, speech, hits)

    def _truncate(self, original: _Original) -> _Original:
        def truncate(*args: Any, **kwargs: Any) -> Any:
            at_ns = self._shared.now_ns()
            sending = self._attempt("truncate", self._truncating, original, args, kwargs, at_ns)
            return self._told(original, args, kwargs, sending)

        return truncate

    def _truncating(
        self, original: _Original, args: Any, kwargs: Any, at_ns: int
    ) -> _Sending | None:
        given = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        given = {**given, **given.get("kwargs", {})}
        if not {"message_id", "audio_end_ms"} <= given.keys():
            # the call is about to fail, for whoever made it
            return None
        return functools.partial(
            TruncateSent, at_ns, self.number, str(given["message_id"]), int(given["audio_end_ms"])
        )

    def _update_context(self, original: _Original) -> _Original:
        def sending(args: Any, kwargs: Any) -> Any:
            chat_ctx = args[0] if args else kwargs.get("chat_ctx")
            return self._attempt("context", self.server.sending, chat_ctx)

        if not inspect.iscoroutinefunction(original):
            # a plugin that answers with a future: how it ends is then left open
            return lambda *args, **kwargs: self._told(original, args, kwargs, sending(args, kwargs))

        async def update_chat_ctx(*args: Any, **kwargs: Any) -> Any:
            sent = sending(args, kwargs)
            failed: Failure | None = None
            try:
                return await original(*args, **kwargs)
            except BaseException as error:
                failed = failure(error)
                raise
            finally:
                if sent is not None:
                    self._attempt("context", self.server.sent, sent, failed)

        return update_chat_ctx

    def _close(self, original: _Original) -> _Original:
        async def aclose(*args: Any, **kwargs: Any) -> Any:
            try:
                return await original(*args, **kwargs)
            finally:
                self._attempt("close", self._closed, self)

        return aclose
