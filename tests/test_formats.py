"""Markdown that GitHub reads as meant, tables for other programs, and how a format is chosen."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from probe.cli.main import main
from reports import Analysis, Finding
from reports.show import (
    COMPARED,
    FORMS,
    Form,
    compare_markdown,
    guessed,
    html,
    markdown,
    tables,
    terminal,
)
from reports.show import json as json_form
from reports.show.markdown_text import block, plain, table
from tests.formats import CALLS, comparison
from tests.html_calls import leaking
from tests.report_traces import write

HOSTILE = (
    "a|b\\|c `code` ``` *b* _i_ ~~s~~ [x](http://evil.example) ![i](//e) <script>x()</script> "
    "<!-- --> @octocat org/repo#12 #7 GH &#64;octocat &lt;b&gt; www.evil.example $x$\n\n# head"
)


def csv_text(analyses: Sequence[Analysis], kind: tables.Table) -> str:
    return str(FORMS["csv"].render(analyses, table=kind))


def parquet_bytes(analyses: Sequence[Analysis], kind: tables.Table) -> bytes:
    made = FORMS["parquet"].render(analyses, table=kind)
    assert isinstance(made, bytes)
    return made


def analysis_of(folder: Path, call: str = "leaking") -> Analysis:
    return CALLS[call](folder).analyses[0]


def named_by(text: str, analysis: Analysis) -> Analysis:
    """The same with this text wherever a trace may say something."""
    trace = replace(
        analysis.trace,
        path=f"calls/{text.replace('/', '_')}",
        labels={text: text},
        bookmarks=(*analysis.trace.bookmarks, dataclasses.replace(_moment(analysis), event=text)),
        runtime={"livekit_agents": text, "livekit": text},
        missing={"captured": text},
        boundaries=("pushed", "sent"),
        complete=False,
        incomplete_because=(text,),
    )
    findings = tuple(replace(f, message=text, cause=text, remedy=text) for f in analysis.findings)
    barge_ins = tuple(replace(b, explanation=text, speech_id=text) for b in analysis.barge_ins)
    realtime = analysis.realtime
    if realtime is not None:
        items = tuple(replace(item, id=text, role=text) for item in realtime.conversation)
        stops = tuple(replace(stop, speech_id=text) for stop in realtime.stops)
        realtime = replace(realtime, model=text, conversation=items, stops=stops)
    return replace(analysis, trace=trace, findings=findings, barge_ins=barge_ins, realtime=realtime)


def _moment(analysis: Analysis) -> Any:
    return analysis.barge_ins[0].story[0]


# --- Markdown ------------------------------------------------------------------------------------

MEANT = re.compile(r"</?(details|summary|sub)>|<br>")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def active(line: str) -> str:
    """A line without what is escaped, code in backticks and the markup we write ourselves."""
    return re.sub(r"`[a-z-]+`", "", MEANT.sub("", ESCAPE.sub("", line)))


@pytest.mark.parametrize("call", ["leaking", "realtime", "cut"])
def test_nothing_a_trace_says_becomes_markup(call: str, tmp_path: Path) -> None:
    told = markdown.render([named_by(HOSTILE, analysis_of(tmp_path, call))])
    assert "octocat" in told
    for line in map(active, told.splitlines()):
        assert not re.search(r"[<`\[\]~$]", line), line
        assert not re.search(r"&(?!#(8203|58|46);)", line), line
        assert not re.search(r"@(?!&#8203;)|(?<!&)#\d", line), line
        assert "://" not in line
        assert "www." not in line
    heads = [line for line in told.splitlines() if line.startswith("#")]
    assert all(re.match(r"### (Barge-in|Findings|The conv|How the)", head) for head in heads)


OURS = {
    "blockquote", "code", "details", "h3", "h4", "li", "p", "strong", "sub", "summary", "table",
    "tbody", "td", "th", "thead", "tr", "ul", "br", "pre",
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_reader_of_markdown_makes_of_it_what_was_meant(call: str, tmp_path: Path) -> None:
    """With raw HTML let through, as GitHub does before it sanitizes."""
    analyses = [named_by(HOSTILE, a) if a.barge_ins else a for a in CALLS[call](tmp_path).analyses]
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = Page(reader.render(markdown.render(analyses)))
    assert set(page.tags) <= OURS
    assert page.widths
    assert all(len(set(rows)) == 1 and len(rows) > 1 for rows in page.widths)
    if any(a.barge_ins for a in analyses):
        text = "".join(page.told).replace("\u200b", "")
        said = "*b* _i_ ~~s~~ [x](http://evil.example) ![i](//e) <script>x()</script> <!-- -->"
        assert said in " ".join(text.split())


class Page(HTMLParser):
    """Tags and text of what was rendered, and how many cells the rows of each table have."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.told: list[str] = []
        self.widths: list[list[int]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "table":
            self.widths.append([])
        elif tag == "tr":
            self.widths[-1].append(0)
        elif tag in ("td", "th"):
            self.widths[-1][-1] += 1

    def handle_data(self, data: str) -> None:
        self.told.append(data)


def test_what_is_plain_reads_as_it_was_written() -> None:
    """Undone as a reader of Markdown does it, a text is the same, but for spaces without width."""
    import html as entities

    text = " ".join(HOSTILE.split())
    read = entities.unescape(ESCAPE.sub(lambda m: f"&#{ord(m[1])};", plain(text)))
    assert read.replace("\u200b", "") == text


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_text_mentions_anybody_or_breaks_a_line(text: str) -> None:
    told = plain(text)
    assert len(told.splitlines()) <= 1
    assert not re.search(r"@(?!&#8203;)", ESCAPE.sub("", told))
    assert not re.search(r"[<>\[\]`*_]", ESCAPE.sub("", told))


def cells(line: str) -> list[str]:
    """Of a row of a table, as GitHub splits it."""
    assert line.startswith("| ")
    assert line.endswith(" |")
    return re.split(r"(?<!\\)(?:\\\\)*\|", line[1:-1])


@pytest.mark.parametrize("call", CALLS)
def test_every_table_has_equal_cells_and_lines_up(call: str, tmp_path: Path) -> None:
    analyses = [
        named_by("a|b \\| c", a) if a.barge_ins else a for a in CALLS[call](tmp_path).analyses
    ]
    for told in (markdown.render(analyses), compare_markdown.render(comparison(tmp_path))):
        lines = told.splitlines()
        blocks = [[]]
        for line in lines:
            if line.startswith("|"):
                blocks[-1].append(line)
            elif blocks[-1]:
                blocks.append([])
        for rows in filter(None, blocks):
            assert len({len(line) for line in rows}) == 1, rows
            assert len({len(cells(line)) for line in rows}) == 1, rows
            assert re.fullmatch(r"(\| -+:? )+\|", rows[1])
            before = lines[lines.index(rows[0]) - 1]
            assert before == "", "a table stands by itself, or it is none"


def test_a_bar_in_a_cell_stays_in_it() -> None:
    lines = table(["name", "x"], [["a|b", "1"], [plain("\\|"), "22"]])
    assert [len(cells(line)) for line in lines] == [2, 2, 2, 2]
    assert len({len(line) for line in lines}) == 1


def test_a_fence_is_longer_than_any_within_it() -> None:
    assert block("a\n") == ["```text", "a", "```"]
    begin, _, end = block("a\n```\n<img>\n````")
    assert (begin, end) == ("`````text", "`````")


def test_what_is_behind_a_click_is_markdown(tmp_path: Path) -> None:
    """GitHub needs an empty line on both sides of it."""
    lines = markdown.render([analysis_of(tmp_path)]).splitlines()
    for nth, line in enumerate(lines):
        if line.startswith("<details>"):
            assert lines[nth + 1] == ""
        if line == "</details>":
            assert lines[nth - 1] == ""


def test_the_key_line_names_figure_balance_and_findings(tmp_path: Path) -> None:
    first = markdown.render([analysis_of(tmp_path)]).splitlines()[0]
    assert first == (
        "**200.0 ms (4800 samples) ±10 ms sent after the verdict**: activity verdict, committed; "
        "every sample accounted for; 1 warning (`leak-after-verdict`). "
        "(livekit-agents 1.8.9, livekit 1.1.21)"
    )


def test_what_does_not_balance_is_no_result_in_the_key_line(tmp_path: Path) -> None:
    first = markdown.render([analysis_of(tmp_path, "unbalanced")]).splitlines()[0]
    assert first.startswith("**No result, for the books do not balance**")
    assert "4800 samples unaccounted for" in first


def test_a_long_list_is_bounded(tmp_path: Path) -> None:
    """GitHub takes 65,536 characters."""
    analysis = analysis_of(tmp_path)
    many: tuple[Finding, ...] = analysis.findings * 500
    long = replace(
        analysis,
        findings=many,
        segments=analysis.segments * 500,
        barge_ins=analysis.barge_ins * 500,
    )
    assert len(markdown.render([long])) < 65_536
    assert len(markdown.render([long] * 3)) < 65_536


def test_traces_of_one_name_are_told_apart_in_every_text(tmp_path: Path) -> None:
    call = CALLS["several"](tmp_path)
    for told in (
        markdown.render(call.analyses),
        terminal.render(call.analyses),
        html.render(call.analyses, call.timelines),
    ):
        for name in ("leaky/call", "cut/call", "swallowed/call"):
            assert name in told


# --- CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tables.KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_csv_is_that_of_the_rfc(call: str, kind: tables.Table, tmp_path: Path) -> None:
    analyses = CALLS[call](tmp_path).analyses
    text = csv_text(analyses, kind)
    assert text.endswith("\r\n")
    assert not re.search(r"(?<!\r)\n|\r(?!\n)", text)
    head, *rest = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert len(set(head)) == len(head)
    assert {len(row) for row in rest} <= {len(head)}
    assert len(rest) == len(tables.rows(analyses, kind))


def test_a_field_with_quotes_commas_and_lines_survives(tmp_path: Path) -> None:
    text = 'a "b", c\r\nd\ne'
    analysis = named_by(text, analysis_of(tmp_path))
    (row,) = csv.DictReader(io.StringIO(csv_text([analysis], "barge-ins"), newline=""))
    assert row["speech_id"] == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1"])
def test_no_text_is_a_formula(text: str, tmp_path: Path) -> None:
    analysis = named_by(text, analysis_of(tmp_path))
    for row in csv.DictReader(io.StringIO(csv_text([analysis], "barge-ins"), newline="")):
        for name in ("speech_id", "livekit_agents"):
            assert row[name] == f"'{text}"


def test_what_can_not_be_seen_is_spelled_out(tmp_path: Path) -> None:
    analysis = named_by("a\0b\x1b[5m\u202ec", analysis_of(tmp_path))
    text = csv_text([analysis], "barge-ins")
    assert not set(text) & {"\0", "\x1b", "\u202e"}
    assert "a\\u0000b\\u001b[5m\\u202ec" in text


def test_a_path_that_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    """A file's name is bytes; those that are no UTF-8 come as lone surrogates."""
    call = CALLS["leaking"](tmp_path)
    facts = replace(call.analyses[0].trace, path="calls/caf\udce9.jsonl")
    analysis = replace(call.analyses[0], trace=facts)
    for one in FORMS.values():
        if one.library:
            pytest.importorskip(one.library, reason=f"{one.library} is not installed")
        made = one.render([analysis], timelines=call.timelines)
        assert made if isinstance(made, bytes) else made.encode()
    assert analysis._repr_html_().encode()


def test_a_negative_number_is_a_number(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path)
    early = replace(analysis, barge_ins=(replace(analysis.barge_ins[0], onset_ns=-5_500_000),))
    (row,) = csv.DictReader(io.StringIO(csv_text([early], "barge-ins"), newline=""))
    assert float(row["onset_ms"]) == -5.5


def test_a_column_is_the_path_to_the_figure(tmp_path: Path) -> None:
    analysis = analysis_of(tmp_path, "realtime")
    for kind, things in (
        ("barge-ins", analysis.barge_ins),
        ("segments", analysis.segments),
        ("messages", analysis.realtime.messages if analysis.realtime else ()),
    ):
        rows = tables.rows([analysis], kind)  # type: ignore[arg-type]
        assert len(rows) == len(things) > 0
        for row, thing in zip(rows, map(json_form.plain, things), strict=True):
            for name, value in row.items():
                if name in ("trace", "livekit_agents", "scenario", "trace_balanced"):
                    continue
                at: Any = thing
                for key in name.split("."):
                    at = None if at is None else at[key]
                if name == "segments":
                    at = " ".join(map(str, at))
                assert value == at, name


# --- Parquet -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tables.KINDS)
def test_parquet_has_the_same_rows_typed(kind: tables.Table, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    analyses = [
        *CALLS["several"](tmp_path).analyses, analysis_of(tmp_path, "realtime"),
        analysis_of(tmp_path, "untapped"),
    ]  # fmt: skip
    read = parquet.read_table(io.BytesIO(parquet_bytes(analyses, kind)))
    assert read.to_pylist() == tables.rows(analyses, kind)
    types = {field.name: str(field.type) for field in read.schema}
    for name, type_of in types.items():
        if name.endswith(("_ms", ".ms")):
            assert type_of == "double", name
        elif name.endswith(("samples", "frames", "_hz")) or name in ("index", "segment"):
            assert type_of == "int64", name
    assert types["trace"] == "string"
    assert types["trace_balanced"] == "bool"


@pytest.mark.parametrize("kind", tables.KINDS)
def test_types_do_not_depend_on_what_is_known(kind: tables.Table, tmp_path: Path) -> None:
    """Files of several calls can be read as one."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    schemas = [
        parquet.read_schema(io.BytesIO(parquet_bytes([analysis_of(tmp_path, c)], kind)))
        for c in ("empty", "clean", "realtime", "untapped")
    ]
    assert all(schema.equals(schemas[0]) for schema in schemas)


# --- Choosing a format ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("leak.html", "html"),
        ("LEAK.HTML", "html"),
        ("leak.md", "markdown"),
        ("leak.json", "json"),
        ("leak.csv", "csv"),
        ("leak.parquet", "parquet"),
        ("leak.pftrace", "perfetto"),
        ("leak.txt", "terminal"),
        ("leak", "terminal"),
        ("leak.html.bak", "terminal"),
    ],
)
def test_a_name_says_which_format(name: str, chosen: str) -> None:
    assert guessed(Path(name)) == chosen


def test_without_a_file_it_is_the_terminals() -> None:
    assert guessed(None) == "terminal"
    assert {guessed(Path(f"x{one.ending}")) for one in FORMS.values()} == set(FORMS)


@pytest.mark.parametrize("form", [*FORMS.values(), *COMPARED.values()], ids=lambda one: one.module)
def test_a_form_takes_what_it_says_and_nothing_of_another(form: Form) -> None:
    if form.library:
        pytest.importorskip(form.library, reason=f"{form.library} is not installed")
    render = import_module(f"reports.show.{form.module}").render
    _, *beside = inspect.signature(render).parameters
    assert sorted(beside) == sorted(form.takes)


@pytest.mark.parametrize("name", FORMS)
def test_every_format_is_written_to_a_file_by_its_name(name: str, tmp_path: Path) -> None:
    if library := FORMS[name].library:
        pytest.importorskip(library, reason=f"{library} is not installed")
    trace = write(tmp_path / "call.jsonl", leaking())
    out = tmp_path / f"out{FORMS[name].ending}"
    assert main(["report", str(trace), "-o", str(out)]) == 0
    begins = {"html": b"<!", "json": b"{", "parquet": b"PAR1", "markdown": b"**", "csv": b"trace,"}
    assert out.read_bytes().startswith(begins.get(name, b""))
    assert out.stat().st_size > 100


def test_a_format_that_is_named_wins_over_the_name(tmp_path: Path) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    out = tmp_path / "out.txt"
    assert main(["report", str(trace), "--format", "json", "-o", str(out)]) == 0
    assert out.read_text().startswith("{")


def test_csv_on_standard_output_keeps_its_line_ends(tmp_path: Path) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    done = subprocess.run(
        [sys.executable, "-m", "probe.cli.main", "report", str(trace), "--format", "csv"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.endswith(b"\r\n")
    assert b"\r\r" not in done.stdout


@pytest.mark.parametrize("kind", tables.KINDS)
def test_each_table_can_be_asked_for(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    assert main(["report", str(trace), "--format", "csv", "--table", kind]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    own = {"barge-ins": "verdict_ms", "segments": "held_samples", "messages": "on_server"}[kind]
    assert own in head.split(",")


def test_a_table_goes_with_tables_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    assert main(["report", str(trace), "--table", "segments"]) == 2
    assert "--table goes with --format csv or parquet" in capsys.readouterr().err


def test_a_perfetto_file_holds_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", leaking())
    assert main(["report", str(tmp_path), "--format", "perfetto"]) == 2
    assert "expected one trace, found 2" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "library"), [("perfetto", "perfetto"), ("parquet", "pyarrow")])
def test_what_is_no_text_does_not_go_to_a_terminal(name: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    trace = write(tmp_path / "call.jsonl", leaking())
    terminal_side, program_side = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "probe.cli.main", "report", str(trace), "--format", name],
            stdout=program_side,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.set_blocking(terminal_side, False)
        with pytest.raises(BlockingIOError):
            os.read(terminal_side, 1)
    finally:
        os.close(terminal_side)
        os.close(program_side)
    assert done.returncode == 2
    assert b"expected a file to write to (-o): this format is no text" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "library", "command"),
    [
        ("perfetto", "perfetto", "pip install 'sinkprobe[perfetto]'"),
        ("parquet", "pyarrow", "pip install 'sinkprobe[parquet]'"),
    ],
)
def test_a_missing_library_is_one_line_with_the_command(
    name: str,
    library: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    for loaded in [m for m in sys.modules if m == library or m.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)
    out = tmp_path / "out.bin"
    assert main(["report", str(trace), "--format", name, "-o", str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert command in line
    assert not out.exists()
