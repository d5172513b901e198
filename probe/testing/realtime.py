"""Realtime models with one defect each: of the server, or of an agent that uses the model wrongly.

What the agent does wrong is done between it and the probe: the probe sees the calls as they reach
the model. The first line of each docstring says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from livekit.agents import llm

from probe.scenarios.realtime import Message, Response, ScriptedModel, ScriptedSession
from probe.taps.patches import InstancePatch

__all__ = [
    "CancelsAnyway",
    "DropsTruncated",
    "NeverCancels",
    "SaysNoWords",
    "TidiesUp",
    "TruncatesElsewhere",
]


class _TidySession(ScriptedSession):
    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self._gone: set[str] = set()

    def _end(self, response: Response) -> None:
        super()._end(response)
        if not response.cancelled:
            return
        for message in response.created:
            if message.untouched:
                self._gone.add(message.id)
                self._drop(message.id)

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        # An agent that still has it in mind does not bring it back.
        wanted = chat_ctx.copy()
        wanted.items[:] = [item for item in wanted.items if item.id not in self._gone]
        await super().update_chat_ctx(wanted)


class TidiesUp(ScriptedModel):
    """Nothing is wrong: what nobody heard of a cancelled response leaves the conversation."""

    session_class = _TidySession


# -- what the server does wrong --


class _TruncatingToNothing(ScriptedSession):
    def truncate(self, *, message_id: str, **told: Any) -> None:
        super().truncate(message_id=message_id, **told)
        self._drop(message_id)


class DropsTruncated(ScriptedModel):
    """A message that is truncated is deleted, although some of it was heard."""

    session_class = _TruncatingToNothing


class _Wordless(ScriptedSession):
    def _words(self, message: Message) -> str:
        return ""


class SaysNoWords(ScriptedModel):
    """Messages come without their text, and the agent commits none that has no text."""

    session_class = _Wordless


# -- what the agent does wrong --


class _Between(ScriptedSession):
    """Gets calls of the agent before the probe does, from the first response on."""

    CALLS: ClassVar[tuple[str, ...]] = ()
    """Names of the calls; ``_instead_of_NAME`` gets each, with what would have been called."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self._patches: list[InstancePatch] = []

    def _begin(self, told: asyncio.Future[Any] | None) -> None:
        if not self._patches:
            for name in self.CALLS:
                instead = partial(getattr(self, f"_instead_of_{name}"), getattr(self, name))
                self._patches.append(InstancePatch(self, name, instead))
        super()._begin(told)

    async def aclose(self) -> None:
        for patch in self._patches:
            patch.undo()
        await super().aclose()


class _NeverCancelled(_Between):
    CALLS = ("interrupt",)

    def _instead_of_interrupt(self, interrupt: Callable[[], None]) -> None:
        return None


class NeverCancels(ScriptedModel):
    """No cancel is ever sent."""

    session_class = _NeverCancelled


class _CancelledAnyway(_Between):
    CALLS = ("truncate",)

    def _instead_of_truncate(self, truncate: Callable[..., None], **told: Any) -> None:
        self.interrupt()
        truncate(**told)


class CancelsAnyway(ScriptedModel):
    """Whatever is cut is cancelled too, whether or not its response is still being generated."""

    session_class = _CancelledAnyway


class _TruncatedElsewhere(_Between):
    CALLS = ("truncate",)

    def _instead_of_truncate(
        self, truncate: Callable[..., None], *, audio_end_ms: int, **told: Any
    ) -> None:
        more_ms = TruncatesElsewhere.MORE_MS
        truncate(audio_end_ms=audio_end_ms + more_ms, **told)


class TruncatesElsewhere(ScriptedModel):
    """A message is truncated ``MORE_MS`` after the position that was played."""

    MORE_MS: ClassVar = 400
    session_class = _TruncatedElsewhere
