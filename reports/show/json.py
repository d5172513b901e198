"""The JSON report: the analysis as it is, one document.

Results hold nanoseconds and samples; here they become milliseconds, each under the name of its
field with ``_ms`` for ``_ns``. Amounts are shown with their length in ``ms``.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from reports.assertions import Result
from reports.results import SCHEMA, Analysis, Figure, Length, Measured, Sound
from reports.summary import summarize
from reports.units import time_ms

__all__ = ["document", "plain", "render"]


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
        return {key: shown(value) for key, shown in _keys(kind)}
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


@cache
def _keys(kind: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Keys of a type of result, and what each shows of it."""
    hints = typing.get_type_hints(kind)
    keys: list[tuple[str, Callable[[Any], Any]]] = []
    for field in fields(kind):
        name = field.name
        if kind is Figure and name == "exact":
            keys.append(("value", lambda value: value.value))
        elif name == "rate_hz" and issubclass(kind, Measured):
            if kind is Sound:
                keys.append((name, lambda value: value.rate_hz))
            keys.append(("ms", lambda value: value.ms))
        elif Length in (hints[name], *typing.get_args(hints[name])):
            keys.append((f"{name}_ms", _length_of(name)))
        elif _is_time(name):
            keys.append((_in_ms(name), _time_of(name)))
        else:
            keys.append((name, _part_of(name)))
    return tuple(keys)


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
