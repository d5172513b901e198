"""An analysis in a notebook and at a console: what it shows of itself, and what that costs."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from reports import Analysis
from reports.results import SCHEMA
from reports.show import json as json_report
from reports.show import terminal
from reports.show.wording import shown
from tests.formats import CALLS, page_text
from tests.golden import Golden
from tests.html_calls import HOSTILE

VOID = {"br"}


class Fragment(HTMLParser):
    """Elements of a fragment; every one that begins has to end, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.top = 0
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in VOID:
            return
        self.top += not self._open
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def analysis_of(folder: Path, call: str = "leaking") -> Analysis:
    folder = folder / call
    folder.mkdir(exist_ok=True)
    return CALLS[call](folder).analyses[0]


def printed(analysis: object, width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
    )
    console.print(analysis)
    return out.getvalue()


# --- HTML ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [call for call in CALLS if call != "several"])
def test_what_a_notebook_shows(call: str, tmp_path: Path, golden: Golden) -> None:
    golden.check(f"{call}/notebook.txt", page_text(analysis_of(tmp_path, call)._repr_html_()))


@pytest.mark.parametrize("call", CALLS)
def test_it_is_one_element_whole_in_itself(call: str, tmp_path: Path) -> None:
    for analysis in CALLS[call](tmp_path).analyses:
        found = Fragment(analysis._repr_html_())
        assert found.top == 1
        assert not set(found.tags) & {"script", "link", "img", "iframe", "base", "meta", "a"}
        names = {name for name, _ in found.attributes}
        assert names <= {"class"}, "no id that could be there twice, no handler, no address"


def test_nothing_from_a_trace_is_markup(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, "hostile")
    told = dataclasses.replace(
        analysis,
        trace=dataclasses.replace(
            analysis.trace, path=f"calls/{HOSTILE}.jsonl", runtime={"livekit_agents": HOSTILE}
        ),
        findings=tuple(
            dataclasses.replace(f, message=HOSTILE, remedy=HOSTILE) for f in analysis.findings
        ),
        barge_ins=tuple(
            dataclasses.replace(b, explanation=HOSTILE) for b in analysis.barge_ins
        ),
    )  # fmt: skip
    text = told._repr_html_()
    assert Fragment(text).tags.count("style") == 1
    assert "<img" not in text
    assert "<script" not in text
    assert not set(text) & {"\x07", "\u202e", "\0"}
    assert shown(HOSTILE) in page_text(text)


def test_its_style_touches_nothing_else(tmp_path: Path) -> None:
    text = analysis_of(tmp_path)._repr_html_()
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    selectors = [s.strip() for line in style.split("}") for s in line.split("{")[0].split(",")]
    for selector in filter(None, selectors):
        assert ".sinkprobe-analysis" in selector or selector.startswith("@media"), selector


def test_the_command_for_the_page_survives_a_shell(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    trace = dataclasses.replace(analysis.trace, path="my calls/it's one.jsonl")
    text = page_text(dataclasses.replace(analysis, trace=trace)._repr_html_())
    assert "sinkprobe report 'my calls/it'\"'\"'s one.jsonl' -o call.html" in text


def test_of_a_long_call_it_shows_a_part(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    long = dataclasses.replace(
        analysis,
        segments=tuple(
            dataclasses.replace(s, index=n) for n, s in enumerate(analysis.segments * 300, 1)
        ),
        barge_ins=analysis.barge_ins * 300,
        findings=analysis.findings * 300,
    )
    text = long._repr_html_()
    assert len(text) < 40_000
    assert "and 290 more, in analysis.barge_ins" in text
    assert "and 290 more, in analysis.findings" in text
    assert "segments are left out" in text


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("theme", [None, "true", "false"])
def test_it_can_be_read_whatever_the_theme(
    scheme: str, theme: str | None, tmp_path: Path, browser: object
) -> None:
    """The notebook's theme wins over the system's; ink and ground always go together."""
    page = browser.new_page(color_scheme=scheme)  # type: ignore[attr-defined]
    attribute = "" if theme is None else f' data-jp-theme-light="{theme}"'
    page.set_content(f"<body{attribute}>{analysis_of(tmp_path)._repr_html_()}</body>")
    ink, ground = page.evaluate(
        "() => { const s = getComputedStyle(document.querySelector('.sinkprobe-analysis'));"
        " return [s.color, s.backgroundColor] }"
    )
    page.close()
    light = theme == "true" if theme is not None else scheme == "light"
    expected = ("rgb(22, 25, 29)", "rgb(255, 255, 255)")
    assert (ink, ground) == (expected if light else ("rgb(236, 239, 242)", "rgb(20, 23, 27)"))


# --- A console -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120])
def test_rich_prints_the_terminal_report_as_wide_as_the_console(width: int, tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    assert printed(analysis, width) == terminal.render([analysis], width=width)


def test_a_console_with_colours_gets_them(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    coloured = printed(analysis, colour=True)
    assert "\x1b[1;31m  leaked after the verdict" in coloured
    assert "\x1b" not in printed(analysis)


def test_names_can_not_speak_to_the_console(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    trace = dataclasses.replace(analysis.trace, labels={"\x1b[5m[red]": "\x1b]0;title\x07"})
    told = printed(dataclasses.replace(analysis, trace=trace))
    assert "\x1b" not in told
    assert "?[5m[red]=?]0;title?" in told


def test_no_line_is_wider_than_a_narrow_console(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    assert max(map(len, printed(analysis, 40).splitlines())) <= 40
    table = Table("before", "after")
    table.add_row(analysis, analysis)
    assert "leaked after" in printed(table, 130)


# --- What it leaves alone ------------------------------------------------------------------------


def test_the_fields_and_the_json_are_what_they_were(tmp_path: Path) -> None:
    names = [field.name for field in dataclasses.fields(Analysis)]
    document = json.loads(json_report.render([analysis_of(tmp_path)]))
    assert [*document] == [*names, "summary"]
    assert document["schema"] == SCHEMA == 1


def test_what_is_not_shown_loads_no_renderer(tmp_path: Path) -> None:
    code = (
        "import sys, reports\n"
        "found = [m for m in sys.modules if m.split('.')[0] in ('rich', 'jinja2')"
        " or m.startswith('reports.show')]\n"
        "assert not found, found\n"
        "from reports.results import Analysis\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
