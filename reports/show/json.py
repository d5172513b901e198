"""The JSON report: the analysis as it is, one document.

Results hold nanoseconds and samples; here they become milliseconds, each under the name of its
field with ``_ms`` for ``_ns``. Amounts are shown with their length in ``ms``.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from reports.assertions import Result
from reports.results import SCHEMA, Analysis, Figure, Length, Measured, Sound
from reports.summary import summarize
from reports.units import time_ms

__all__ = ["Key", "document", "keys", "plain", "render"]


def document(
    analyses: Sequence[Analysis], expected: Sequence[Sequence[Result]] | None = None
) -> dict[str, Any]:
    """What the JSON report says, as plain dicts, lists and numbers.

    One analysis: its fields, with a ``summary``. Otherwise ``{"schema", "analyses", "summary"}``,
    the analyses in the order given. Missing figures are ``None``. Where assertions were held
    against the traces, each analysis has its results under ``expectations``.
    """
    summary = plain(summarize(analyses))
    documents = [plain(analysis) for analysis in analyses]
    for one, results in zip(documents, expected or (), strict=expected is not None):
        one["expectations"] = [plain(result) for result in results]
    if len(analyses) == 1:
        return {**documents[0], "summary": summary}
    return {"schema": SCHEMA, "analyses": documents, "summary": summary}


def render(analyses: Sequence[Analysis], expected: Sequence[Sequence[Result]] | None = None) -> str:
    """One JSON document, indented, with a newline at its end. ASCII, so it survives any pipe."""
    return json.dumps(document(analyses, expected), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """A result as dicts, lists and numbers, its times in milliseconds."""
    if is_dataclass(value):
        kind: type = type(value)
        return {key.name: key.shown(value) for key in keys(kind)}
    if isinstance(value, Mapping):
        return dict(_item(key, item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _item(key: Any, value: Any) -> tuple[Any, Any]:
    """Of a mapping: what a rule looked at, resolutions."""
    if not isinstance(key, str) or not _is_time(key):
        return key, plain(value)
    return _in_ms(key), _times(value)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the report, and what of a result it shows."""

    name: str
    of: str
    """Field or property of the result."""
    hint: Any
    """Type of what is shown, before it is made plain."""
    shown: Callable[[Any], Any]


@cache
def keys(kind: type) -> tuple[Key, ...]:
    """Keys that a type of result has in the report, in their order."""
    hints = typing.get_type_hints(kind)
    found: list[Key] = []
    for field in fields(kind):
        name, hint = field.name, hints[field.name]
        if kind is Figure and name == "exact":
            found.append(Key("value", "value", float, attrgetter("value")))
        elif name == "rate_hz" and issubclass(kind, Measured):
            if kind is Sound:
                found.append(Key(name, name, hint, attrgetter(name)))
            found.append(Key("ms", "ms", float | None, attrgetter("ms")))
        elif Length in (hint, *typing.get_args(hint)):
            found.append(Key(f"{name}_ms", name, float | None, _length_of(name)))
        elif _is_time(name):
            found.append(Key(_in_ms(name), name, _as_time(hint), _time_of(name)))
        else:
            found.append(Key(name, name, hint, _part_of(name)))
    return tuple(found)


def _as_time(hint: Any) -> Any:
    """Type of milliseconds where nanoseconds had ``hint``: one, or several by name."""
    if hint is int:
        return float
    arguments = tuple(_as_time(argument) for argument in typing.get_args(hint))
    if typing.get_origin(hint) is Mapping:
        return types.GenericAlias(Mapping, arguments)
    return typing.Union[arguments] if arguments else hint  # noqa: UP007 - built


def _is_time(name: str) -> bool:
    return name == "ns" or name.endswith("_ns")


def _in_ms(name: str) -> str:
    return f"{name[:-2]}ms"


def _times(value: Any) -> Any:
    """Nanoseconds, or several by name."""
    if isinstance(value, Mapping):
        return {key: time_ms(ns) for key, ns in value.items()}
    return time_ms(value)


def _length_of(name: str) -> Callable[[Any], Any]:
    def shown(value: Any) -> Any:
        length = getattr(value, name)
        return None if length is None else length.ms

    return shown


def _time_of(name: str) -> Callable[[Any], Any]:
    return lambda value: _times(getattr(value, name))


def _part_of(name: str) -> Callable[[Any], Any]:
    return lambda value: plain(getattr(value, name))
