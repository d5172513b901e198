"""The JSON Schemas that are published: ``python -m tests.schemas`` writes them anew into ``docs``.

Both are made of the types that the code itself goes by: a line of a trace of what the reader
decodes it into, a report of the results and of the names they have in it. What a field means is
taken from FORMAT.md, or from the docstring below it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from probe.trace.events import EVENTS
from probe.trace.events import SCHEMA as TRACE_SCHEMA
from probe.trace.lines import LINES
from reports.assertions import Result
from reports.results import SCHEMA, Analysis
from reports.show.json import keys
from reports.summary import Summary
from tests.format_page import documented

__all__ = ["FILES", "published"]

FOLDER: Final = Path(__file__).parent.parent / "docs"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def trace_schema() -> dict[str, Any]:
    """Of one line of a trace."""
    union: Any = typing.Union[tuple(LINES.values())]  # noqa: UP007 - built
    (line,), definitions = msgspec.json.schema_components([union])
    for event in EVENTS.values():
        section, definition = documented()[event.NAME], definitions[LINES[event].__name__]
        definition |= {"title": event.NAME, "description": section.meaning}
        for row in section.rows:
            definition["properties"][row.field]["description"] = row.meaning
    return {
        "$schema": DIALECT,
        "title": f"A line of a trace, schema {TRACE_SCHEMA}",
        "description": "What the lines have to agree on with each other stands in FORMAT.md.",
        **line,
        "$defs": definitions,
    }


def report_schema() -> dict[str, Any]:
    """Of the document that ``sinkprobe report --format json`` writes."""
    made: dict[type, Any] = {}
    analysis, summary = _shape(Analysis, made), _shape(Summary, made)
    results: Any = list[_shape(Result, made)]  # type: ignore[misc]
    expected = ("expectations", results | msgspec.UnsetType, msgspec.UNSET)
    one = msgspec.defstruct(
        "Report", [("summary", summary), expected], bases=(analysis,), kw_only=True
    )
    each: Any = msgspec.defstruct("AnalysisOfMany", [expected], bases=(analysis,), kw_only=True)
    many = msgspec.defstruct(
        "ReportOfMany", [("schema", int), ("analyses", list[each]), ("summary", summary)]
    )
    roots, definitions = msgspec.json.schema_components([one, many])
    for kind, shape in made.items():
        if shape.__name__ in definitions:
            _describe(definitions[shape.__name__], kind)
    for name in ("Report", "AnalysisOfMany"):
        _describe(definitions[name], Analysis)
    definitions["ReportOfMany"]["description"] = "Several traces, in the order they were given."
    return {
        "$schema": DIALECT,
        "title": f"A report, schema {SCHEMA}",
        "description": "Of one trace, or of several.",
        "anyOf": list(roots),
        "$defs": definitions,
    }


def _shape(hint: Any, made: dict[type, Any]) -> Any:
    """The type that a result has once it is plain JSON, under the names it has there."""
    if dataclasses.is_dataclass(hint):
        kind: Any = hint
        if kind not in made:
            made[kind] = msgspec.defstruct(
                kind.__name__, [(key.name, _shape(key.hint, made)) for key in keys(kind)]
            )
        return made[kind]
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if not arguments or origin is typing.Literal:
        return hint
    if origin in (tuple, list):
        return list[_shape(arguments[0], made)]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, _shape(arguments[1], made)]  # type: ignore[misc]
    return typing.Union[tuple(_shape(argument, made) for argument in arguments)]  # noqa: UP007


def _describe(definition: dict[str, Any], kind: type) -> None:
    """Puts the docstrings of a type of result and of its fields into what describes it."""
    definition["description"] = _in_json(inspect.getdoc(kind) or "")
    said = _fields_said(kind)
    for key in keys(kind):
        if key.of in said and "description" not in definition["properties"][key.name]:
            definition["properties"][key.name]["description"] = _in_json(said[key.of])


def _in_json(text: str) -> str:
    """A docstring's text, with the names that values have in JSON."""
    for python, here in (("``None``", "`null`"), ("True: ", "true: "), ("False: ", "false: ")):
        text = text.replace(python, here)
    return text.replace("``", "`")


def _fields_said(kind: type) -> dict[str, str]:
    """What stands below each field or property of a type and of those it is made of."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(field, ast.FunctionDef):
                said[field.name] = ast.get_docstring(field) or ""
            elif (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                said[field.target.id] = inspect.cleandoc(str(below.value.value))
    return said


FILES: Final = {"trace.schema.json": trace_schema, "report.schema.json": report_schema}


def published(name: str) -> str:
    """What stands in a file of `FILES`."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in FILES:
        (FOLDER / name).write_text(published(name), encoding="utf-8")
