"""Events to lines of a trace. Runs in the call, on the recorder's thread: standard library only.

A line is put together from tables that are computed once per event class, because this runs for
every frame of a call and each microsecond here is one the session's loop cannot have.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import MISSING
from json.encoder import encode_basestring_ascii as _quote
from operator import attrgetter
from typing import Any, Final

from probe.trace.events import EVENTS, Event

DURATIONS: Final = frozenset({"started_monotonic_ns", "resolution_ns"})
"""Fields in ``_ns`` that are no instant of the trace and are written as they are."""

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line of a trace. What is longer cannot be told from junk by a reader."""

MAX_TEXT: Final = 4096
"""Longest text in a field, in characters; what is longer is cut, so that no line grows too long."""

_MAX_DEPTH: Final = 6


def _text(value: object) -> str:
    """A JSON string; never fails, whatever somebody used as a name."""
    text = value if isinstance(value, str) else _described(value)
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1] + "…"
    if not text.isascii():
        # A lone surrogate is a str to Python and an error to every JSON reader.
        text = text.encode("utf-8", "replace").decode()
    return _quote(text)


def _described(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _bool(value: object) -> str:
    return "true" if value else "false"


def _float(value: Any) -> str:
    # NaN and the infinities are no JSON; a measurement that is none is an absent one.
    number = float(value)
    return repr(number) if math.isfinite(number) else "null"


def _plain(value: object, depth: int = 0) -> Any:
    """What JSON can hold of a value of the user's or the framework's; the rest as its text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth < _MAX_DEPTH:
        if isinstance(value, dict):
            return {_cut(key): _plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_plain(item, depth + 1) for item in value]
    return _cut(value)


def _cut(value: object) -> str:
    text: str = json.loads(_text(value))
    return text


def _mapping(value: object) -> str:
    return json.dumps(_plain(value), separators=(",", ":"))


def _ranges(value: Any) -> str:
    items = ",".join(
        f"[{'null' if start is None else int(start)},{int(samples)}]" for start, samples in value
    )
    return f"[{items}]"


# Also takes numpy's integers, which print their type where they are merely converted to text.
_int: Final = "%d".__mod__

_ENCODERS: Final[dict[str, Callable[[Any], str]]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
}


def _encoder(annotation: str) -> Callable[[Any], str]:
    """Encoder of a field, by its annotation in `probe.trace.events`."""
    bare = annotation.removesuffix(" | None")
    if bare.startswith("list[tuple[int"):
        return _ranges
    if bare.startswith(("dict[", "list[")):
        return _mapping
    return _ENCODERS.get(bare, _text)


def _is_instant(name: str) -> bool:
    return name.endswith("_ns") and name not in DURATIONS


class _Layout:
    """How one event class is written: a template for what is always there, a table for the rest."""

    __slots__ = ("conversions", "get", "instants", "optional", "required", "template")

    def __init__(self, cls: type[Event]) -> None:
        fields = dataclasses.fields(cls)
        names = [field.name for field in fields]
        # With a single name attrgetter would answer with a bare value; the last one is not used.
        self.get: Callable[[Event], tuple[Any, ...]] = attrgetter(*names, names[0])
        self.template = f'{{"event":{_quote(cls.NAME)}'
        self.required = 0
        self.instants: list[int] = []
        self.conversions: list[tuple[int, Callable[[Any], str]]] = []
        self.optional: list[tuple[int, str, Callable[[Any], str], bool, Any]] = []
        for index, field in enumerate(fields):
            prefix = f",{_quote(field.name)}:"
            encode = _encoder(str(field.type))
            instant = _is_instant(field.name)
            if field.default is MISSING and field.default_factory is MISSING:
                self.required += 1
                always_int = field.type == "int"
                self.template += prefix + ("%d" if always_int else "%s")
                if instant:
                    self.instants.append(index)
                if not always_int:
                    self.conversions.append((index, encode))
                continue
            default = field.default if field.default_factory is MISSING else field.default_factory()
            self.optional.append((index, prefix, encode, instant, default))


_LAYOUTS: Final = {cls: _Layout(cls) for cls in EVENTS.values()}


def encode(event: Event, zero_ns: int = 0) -> str:
    """One event as a line of a trace, newline included.

    Args:
        event: any event of schema 1.
        zero_ns: monotonic clock at the trace's time 0, nanoseconds. It is taken off every instant
            (`at_ns`, `ended_ns`, `until_ns`); give 0 for events whose times are relative already.

    Returns:
        ASCII text, the key ``event`` first, fields that hold their default left out. Text longer
        than 4096 characters is cut; what JSON cannot hold is written as its text, a float that is
        no number as ``null``.

    Raises:
        KeyError: not an event of schema 1.
        TypeError, ValueError: a field holds something its type has no room for.
    """
    layout = _LAYOUTS[type(event)]
    values = layout.get(event)
    required: list[Any] = list(values[: layout.required])
    for index in layout.instants:
        required[index] -= zero_ns
    for index, convert in layout.conversions:
        required[index] = "null" if required[index] is None else convert(required[index])
    line = layout.template % tuple(required)
    for index, prefix, convert, instant, default in layout.optional:
        value = values[index]
        if value == default:
            continue
        if value is None:
            line += prefix + "null"
        else:
            line += prefix + convert(value - zero_ns if instant else value)
    return line + "}\n"
