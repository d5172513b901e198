"""The JSON Schemas in ``docs`` are those of the code, and say what every field means."""

from __future__ import annotations

import json

import pytest

from probe.trace.events import EVENTS
from tests.schemas import FILES, FOLDER, published


@pytest.mark.parametrize("name", FILES)
def test_what_is_published_is_current(name: str) -> None:
    found = (FOLDER / name).read_text(encoding="utf-8")
    assert found == published(name), "python -m tests.schemas writes it anew"


@pytest.mark.parametrize("name", FILES)
def test_every_field_says_what_it_means(name: str) -> None:
    definitions = json.loads(published(name))["$defs"]
    assert all(definition["description"] for definition in definitions.values())
    if name == "trace.schema.json":
        silent = [
            (definition["title"], field)
            for definition in definitions.values()
            for field, found in definition["properties"].items()
            if field != "event" and not found.get("description")
        ]
        assert silent == []


def test_every_event_has_a_definition() -> None:
    definitions = json.loads(published("trace.schema.json"))["$defs"]
    assert [definition["title"] for definition in definitions.values()] == [*EVENTS]
