"""How a call that was handed on ended where it did not return, and what may be told of it."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from probe.trace.events import CallEnd

__all__ = ["Failure", "failure"]

MAX_DETAIL: Final = 200
"""Characters of an exception's text that are kept."""

_WORDLESS: Final = "livekit.rtc.audio_"
"""Modules that handle nothing but audio: what they raise quotes no word of the call."""


class Failure(NamedTuple):
    """What a call raised."""

    end: CallEnd
    """``cancelled`` where whoever waited gave up, else ``raised``."""
    error: str
    """Name of the exception's type."""
    detail: str | None = None
    """What it said, cut to `MAX_DETAIL`; None where the words are not LiveKit's own or may hold
    some of the call."""


def failure(error: BaseException) -> Failure:
    """What may be told of an exception that is being handled."""
    given_up = isinstance(error, (asyncio.CancelledError, GeneratorExit))
    return Failure("cancelled" if given_up else "raised", type(error).__name__, _own_words(error))


def _own_words(error: BaseException) -> str | None:
    raised_in = error.__traceback__
    if raised_in is None:
        return None
    while raised_in.tb_next is not None:
        raised_in = raised_in.tb_next
    if not str(raised_in.tb_frame.f_globals.get("__name__")).startswith(_WORDLESS):
        return None
    try:
        said = str(error)
    except Exception:
        return None
    return (said if len(said) <= MAX_DETAIL else f"{said[: MAX_DETAIL - 1]}…") or None
