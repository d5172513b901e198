"""What the code writes is valid by the JSON Schemas in ``docs``, and what it refuses is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from probe.trace.events import Event, FrameCaptured, Header, Trailer
from probe.trace.parser import TraceParser
from probe.trace.writer import encode
from reports.show import json as json_report
from tests.format_page import FORMAT
from tests.formats import CALLS
from tests.schemas import FILES, published
from tests.test_trace_fuzz import ANY_EVENT
from tests.test_trace_reader import ABSURD

jsonschema = pytest.importorskip("jsonschema", reason="the jsonschema package is not installed")


@pytest.mark.parametrize("name", FILES)
def test_what_is_published_is_a_schema(name: str) -> None:
    document = json.loads(published(name))
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["title"].endswith("schema 1")


@cache
def validator(name: str) -> Any:
    """One by which no key may be there that the schema does not know."""
    document = copy.deepcopy(json.loads(published(name)))
    for definition in document["$defs"].values():
        definition["additionalProperties"] = False
    return jsonschema.Draft202012Validator(document)


# --- Lines of a trace ----------------------------------------------------------------------------


def fits(line: str | bytes) -> bool:
    return bool(validator("trace.schema.json").is_valid(json.loads(line)))


def example() -> Iterator[str]:
    inside = FORMAT.partition("```jsonl\n")[2].partition("```")[0]
    yield from inside.splitlines()


def test_the_lines_of_the_example_fit() -> None:
    lines = [*example()]
    assert len(lines) > 10
    assert [line for line in lines if not fits(line)] == []


@settings(deadline=None, max_examples=150)
@given(ANY_EVENT)
def test_whatever_is_written_fits(event: Event) -> None:
    assert fits(encode(event))


@pytest.mark.parametrize("event", [Header(1, 0, 1.5, speeches=["s1"]), Trailer(1, 5, counts={})])
def test_the_first_and_the_last_line_fit(event: Event) -> None:
    assert fits(encode(event))


def read(line: str) -> list[str]:
    """Kinds of the problems that the reader has with a line."""
    parser = TraceParser("call.jsonl")
    parser.feed(encode(Header(1, 0, 1.5)).encode() + line.encode() + b"\n")
    return [problem.kind for problem in parser.trace().problems if problem.kind != "cut"]


@pytest.mark.parametrize("absurd", ABSURD, ids=str)
def test_what_a_reader_refuses_does_not_fit(absurd: dict[str, object]) -> None:
    values = json.loads(encode(FrameCaptured(1, 1, 0, 480, 24000, 1))) | absurd
    assert read(json.dumps(values)) == ["bad-value"]
    assert not fits(json.dumps(values))


def test_what_is_missing_does_not_fit() -> None:
    values = json.loads(encode(FrameCaptured(1, 1, 0, 480, 24000, 1)))
    for name in values:
        without = json.dumps({key: value for key, value in values.items() if key != name})
        assert not fits(without)
        assert read(without)


def test_a_line_may_have_keys_that_are_not_known() -> None:
    document = json.loads(published("trace.schema.json"))
    line = json.loads(encode(FrameCaptured(1, 1, 0, 480, 24000, 1))) | {"later": 5}
    assert jsonschema.Draft202012Validator(document).is_valid(line)


# --- Reports -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=CALLS)
def document(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    call = CALLS[request.param](tmp_path_factory.mktemp("calls"))
    return json.loads(json_report.render(call.analyses))


def errors(document: Any) -> list[str]:
    check = validator("report.schema.json")
    # Of which of the two it is meant to be, so that the message is about that.
    kind = "ReportOfMany" if "analyses" in document else "Report"
    of_kind = check.evolve(schema=check.schema | {"anyOf": [{"$ref": f"#/$defs/{kind}"}]})
    return [f"{error.json_path}: {error.message[:200]}" for error in of_kind.iter_errors(document)]


def test_reports_of_every_kind_of_call_fit(document: Any) -> None:
    assert errors(document) == []
    assert validator("report.schema.json").is_valid(document)


def test_a_report_with_expectations_fits(tmp_path: Path) -> None:
    from reports import check

    analyses = CALLS["leaking"](tmp_path).analyses
    held = [[check(analysis, "leaked.sent <= 20ms")] for analysis in analyses]
    document = json.loads(json_report.render(analyses, held))
    assert document["expectations"]
    assert errors(document) == []


def test_a_report_that_lacks_something_does_not_fit(document: Any) -> None:
    for name in document:
        assert errors({key: value for key, value in document.items() if key != name})


def test_a_report_with_something_else_does_not_fit(document: Any) -> None:
    one = document["analyses"][0] if "analyses" in document else document
    for place, value in (("balanced", "yes"), ("segments", {}), ("unaccounted_samples", 0.5)):
        assert errors(document) == []
        before, one[place] = one[place], value
        assert errors(document)
        one[place] = before
