"""What is told of an exception: its type always, its words only where they can be no one's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from probe.taps.failures import MAX_DETAIL, failure


def raised_in(module: str, error: BaseException) -> BaseException:
    """``error``, as it is after a function of that module has raised it through one of ours."""
    names: dict[str, Any] = {"__name__": module}
    exec("def fail(error):\n    raise error", names)
    try:
        names["fail"](error)
    except BaseException as caught:
        return caught
    raise AssertionError("it did not raise")


def test_the_words_of_a_source_are_kept_and_cut() -> None:
    source = "livekit.rtc.audio_source"
    assert failure(raised_in(source, Exception("rates differ"))) == (
        "raised",
        "Exception",
        "rates differ",
    )
    long = failure(raised_in(source, Exception("x" * 5000))).detail
    assert long is not None
    assert len(long) == MAX_DETAIL
    assert failure(raised_in(source, Exception())).detail is None


@pytest.mark.parametrize(
    "module", ["my_agent", "livekit.agents.voice.generation", "livekit.rtc.participant", "__main__"]
)
def test_words_that_may_be_of_the_call_are_not(module: str) -> None:
    told = failure(raised_in(module, ValueError("the caller said hello")))
    assert told == ("raised", "ValueError", None)


def test_who_gave_up_is_told_from_what_raised() -> None:
    for error in (asyncio.CancelledError(), GeneratorExit()):
        assert failure(raised_in("my_agent", error)).end == "cancelled"


def test_an_exception_that_cannot_say_its_words_is_told_without() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert failure(raised_in("livekit.rtc.audio_source", MuteError())) == (
        "raised",
        "MuteError",
        None,
    )
    assert failure(ValueError("never raised")) == ("raised", "ValueError", None)
