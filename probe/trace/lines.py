"""What a line of a trace may hold, and how it is decoded."""

from __future__ import annotations

import typing
from dataclasses import MISSING, fields
from typing import Annotated, Any, Final

import msgspec

from probe.trace.events import EVENTS, SCHEMA, Event, PushMatched

_MAX_NS: Final = 10**17
_MAX_POSITION: Final = 10**17

_SAMPLES: Final = (0, 10**9)
_RANGES: Final[dict[str, tuple[int, int]]] = {
    "schema": (1, SCHEMA),
    "started_monotonic_ns": (0, 2**63 - 1),
    "resolution_ns": (0, _MAX_NS),
    "start_sample": (0, _MAX_POSITION),
    "rate_hz": (1, 10**7),
    "channels": (1, 1024),
    "source": (1, 10**9),
    "sink": (1, 10**9),
    "frame": (1, 10**15),
    "push": (1, 10**15),
    "queue_ms": (0, 10**9),
}
"""Least and greatest value by field; wide enough for any real call, narrow enough to add up."""


def _range(event: type[Event], name: str) -> tuple[int, int]:
    if name in _RANGES:
        return _RANGES[name]
    if name.endswith("_ns"):
        return -_MAX_NS, _MAX_NS
    if name.endswith("samples") and event.NAME != "sums":
        return _SAMPLES
    return 0, _MAX_POSITION


def _typed(event: type[Event], name: str, hint: Any) -> Any:
    """Type of a field with its limits, for the decoder."""
    low, high = _range(event, name)
    bounded: Any = Annotated[int, msgspec.Meta(ge=low, le=high)]
    if hint is int:
        return bounded
    if hint == int | None:
        return bounded | None
    if name == "captured":
        ranges: Any = list[
            tuple[
                Annotated[int, msgspec.Meta(ge=0, le=_MAX_POSITION)] | None,
                Annotated[int, msgspec.Meta(ge=_SAMPLES[0], le=_SAMPLES[1])],
            ]
        ]
        return ranges if event is PushMatched else ranges | None
    return hint


def _line_type(event: type[Event]) -> type[msgspec.Struct]:
    """Twin of an event class that the decoder can choose by the key ``event``."""
    hints = typing.get_type_hints(event)
    members: list[Any] = []
    for field in fields(event):
        typed = _typed(event, field.name, hints[field.name])
        if field.default_factory is not MISSING:
            default = msgspec.field(default_factory=field.default_factory)
            members.append((field.name, typed, default))
        elif field.default is not MISSING:
            members.append((field.name, typed, field.default))
        else:
            members.append((field.name, typed))
    return msgspec.defstruct(
        f"{event.__name__}Line",
        members,
        tag_field="event",
        tag=event.NAME,
        frozen=True,
        gc=False,
    )


LINES: Final = {event: _line_type(event) for event in EVENTS.values()}
_EVENT_OF_LINE: Final = {line: event for event, line in LINES.items()}
NESTED: Final = tuple(
    LINES[event]
    for event in EVENTS.values()
    if any(
        typing.get_origin(hint) in (dict, list) for hint in typing.get_type_hints(event).values()
    )
)
"""Lines that hold lists or objects, which take many times their length once they are read."""

DECODER: Final = msgspec.json.Decoder(typing.Union[tuple(LINES.values())])  # noqa: UP007 - built


class _Name(msgspec.Struct, gc=False):
    """What is left of a line that could not be decoded: the name of its event."""

    event: str


NAME_DECODER: Final = msgspec.json.Decoder(_Name)

# A line nested too deeply ends the decoder's patience with a RecursionError.
UNDECODABLE: Final = (msgspec.DecodeError, RecursionError)


def as_event(line: msgspec.Struct) -> Event:
    return _EVENT_OF_LINE[type(line)](*msgspec.structs.astuple(line))


def shown(value: str | bytes) -> str:
    """Something from a file, fit to be printed in one line."""
    text = repr(value[:48])
    return (text if isinstance(value, str) else text[1:]) + ("…" if len(value) > 48 else "")
