"""FORMAT.md says what the events say: no more, no less, and its example is a trace."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from pathlib import Path

import pytest

from probe.trace.events import EVENTS, SCHEMA, Event
from probe.trace.reader import read_trace
from probe.trace.writer import MAX_LINE_BYTES, MAX_TEXT
from tests.format_page import FORMAT, documented


def type_name(hint: object) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (bare,) = (argument for argument in arguments if argument is not type(None))
        return f"{type_name(bare)} or null"
    names = {int: "integer", float: "number", bool: "boolean", str: "text"}
    return {typing.Literal: "text", list: "array", dict: "object"}.get(origin) or names[hint]  # type: ignore[call-overload, no-any-return, index]


def declared(event: type[Event]) -> list[tuple[str, str, str]]:
    hints = typing.get_type_hints(event)
    rows = []
    for field in dataclasses.fields(event):
        default = "\N{EN DASH}"
        if field.default is not dataclasses.MISSING:
            default = f"`{json.dumps(field.default)}`"
        elif field.default_factory is not dataclasses.MISSING:
            default = f"`{json.dumps(field.default_factory())}`"
        rows.append((field.name, type_name(hints[field.name]), default))
    return rows


def test_format_names_every_event_and_no_other() -> None:
    assert list(documented()) == list(EVENTS)


@pytest.mark.parametrize("name", EVENTS)
def test_format_gives_every_field_its_type_and_default(name: str) -> None:
    rows = [(row.field, row.type, row.default) for row in documented()[name].rows]
    assert rows == declared(EVENTS[name])


def test_format_states_the_limits_the_code_has() -> None:
    assert f"schema {SCHEMA}" in FORMAT.splitlines()[0]
    assert f"{MAX_LINE_BYTES:,} bytes" in FORMAT
    assert f"{MAX_TEXT} characters" in FORMAT


def test_example_of_the_format_is_a_sound_trace(tmp_path: Path) -> None:
    example = re.search(r"```jsonl\n(.*?)```", FORMAT, re.DOTALL)
    assert example
    path = tmp_path / "example.jsonl"
    path.write_text(example[1], encoding="utf-8")

    trace = read_trace(path)

    assert trace.complete
    assert trace.problems == ()
    assert trace.captured.samples.sum() == trace.pushed.samples.sum() == 960
    assert trace.pushed.matched.all()
    assert trace.sent.samples.sum() == 720
