"""Values of the axes on the command line: one, or several with commas between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from probe.scenarios.axes import PACINGS, PLACES, REPLY_KINDS, Place

__all__ = ["AT", "NUMBERS", "PACING_LIST", "PLACE_LIST", "REPLY_LIST", "WHOLE_NUMBERS"]


class _Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """Read by a function that raises `ValueError`."""

    def __init__(self, read: Callable[[str], Any], name: str, expected: str) -> None:
        self.name = name
        self._read = read
        self._expected = expected

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value)
        except ValueError:
            self.fail(f"expected {self._expected}, found {value!r}", param, ctx)


class _Values(_Value):
    """Several, each read by itself."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        convert = super().convert
        return tuple(convert(text.strip(), param, ctx) for text in str(value).split(","))


def _place(text: str) -> int | Place:
    return text if text in PLACES else int(text)


def _some_of(words: Sequence[str], name: str) -> _Values:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return _Values(read, name, f"some of {', '.join(words)}")


_PLACES: Final = ", ".join(PLACES)

AT: Final = _Value(_place, "MS|PLACE", f"milliseconds or one of {_PLACES}")
"""Milliseconds into the reply, or a place by its name."""

PACING_LIST: Final = _some_of(PACINGS, "PACING,…")
REPLY_LIST: Final = _some_of(REPLY_KINDS, "KIND,…")
NUMBERS: Final = _Values(float, "MS,…", "numbers")
WHOLE_NUMBERS: Final = _Values(int, "N,…", "whole numbers")
PLACE_LIST: Final = _Values(_place, "PLACE,…", f"milliseconds or some of {_PLACES}")
