"""Every renderer on calls of every kind, held against files that were looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reports.show import COMPARED, FORMS, tables
from tests.formats import (
    CALLS,
    Call,
    compact,
    comparison,
    page_text,
    parquet_dump,
    perfetto_dump,
)
from tests.golden import FOLDER, Golden


def _json(document: str) -> str:
    return compact(json.loads(document)) + "\n"


def _csv(call: Call) -> str:
    return "".join(
        f"--- {kind}\n{FORMS['csv'].render(call.analyses, table=kind)}" for kind in tables.KINDS
    ).replace("\r\n", "\n")


def _binary(form: str, call: Call, **given: object) -> bytes:
    library = FORMS[form].library
    pytest.importorskip(library, reason=f"{library} is not installed")
    made = FORMS[form].render(call.analyses, **given)
    assert isinstance(made, bytes)
    return made


def _parquet(call: Call) -> str:
    return "".join(
        f"--- {kind}, {parquet_dump(_binary('parquet', call, table=kind))}" for kind in tables.KINDS
    )


def _perfetto(call: Call) -> str:
    return perfetto_dump(_binary("perfetto", call, timelines=call.timelines))


def _text(form: str) -> Callable[[Call], str]:
    return lambda call: str(FORMS[form].render(call.analyses, timelines=call.timelines))


RENDERERS: Mapping[str, Callable[[Call], str]] = {
    "terminal.txt": _text("terminal"),
    "report.json": lambda call: _json(_text("json")(call)),
    "markdown.md": _text("markdown"),
    "html.txt": lambda call: page_text(_text("html")(call)),
    "perfetto.txt": _perfetto,
    "csv.txt": _csv,
    "parquet.txt": _parquet,
}


def _compared(form: str) -> Callable[[Any], str]:
    return lambda found: str(COMPARED[form].render(found))


COMPARISONS: Mapping[str, Callable[[Any], str]] = {
    "terminal.txt": _compared("terminal"),
    "markdown.md": _compared("markdown"),
    "html.txt": lambda found: page_text(_compared("html")(found)),
    "report.json": lambda found: _json(_compared("json")(found)),
}


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("call", CALLS)
def test_what_a_renderer_makes_of_a_call(
    call: str, renderer: str, tmp_path: Path, golden: Golden
) -> None:
    if call == "several" and renderer in ("report.json", "perfetto.txt", "parquet.txt"):
        pytest.skip("nothing new in it: each call as it is alone")
    folder = tmp_path / call
    folder.mkdir()
    golden.check(f"{call}/{renderer}", RENDERERS[renderer](CALLS[call](folder)))


@pytest.mark.parametrize("renderer", COMPARISONS)
def test_what_a_renderer_makes_of_a_comparison(
    renderer: str, tmp_path: Path, golden: Golden
) -> None:
    golden.check(f"comparison/{renderer}", COMPARISONS[renderer](comparison(tmp_path)))


# --- The golden files themselves -----------------------------------------------------------------


def test_no_golden_file_is_left_over() -> None:
    made = {f"{call}/{name}" for call in CALLS for name in (*RENDERERS, "notebook.txt")}
    made |= {f"comparison/{renderer}" for renderer in COMPARISONS}
    there = {str(p.relative_to(FOLDER).as_posix()) for p in FOLDER.rglob("*") if p.is_file()}
    assert there <= made


def test_a_difference_is_shown_with_the_way_to_accept_it(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("same\nold\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as failed:
        Golden(update=False, folder=tmp_path).check("kept.txt", "same\nnew\n")
    told = str(failed.value)
    assert "-old\n+new" in told
    assert "--update-golden" in told
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "same\nold\n"


def test_a_missing_file_is_a_failure_until_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="there is no such golden file"):
        Golden(update=False, folder=tmp_path).check("call/new.txt", "text\r\n")
    Golden(update=True, folder=tmp_path).check("call/new.txt", "text\r\n")
    assert (tmp_path / "call" / "new.txt").read_bytes() == b"text\r\n"
    Golden(update=False, folder=tmp_path).check("call/new.txt", "text\r\n")
