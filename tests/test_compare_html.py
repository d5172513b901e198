"""A comparison as a page: every run a dot, their median a line, and nothing that is not its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.compare import Comparison, RunResult, compare
from reports.show import compare_html
from tests.html_calls import HOSTILE, HOSTILE_SHOWN, clean, leaking, read
from tests.report_traces import write
from tests.test_html import Markup


def made(folder: Path) -> Comparison:
    """Two runs that leak and one that does not, against three that leak."""
    leaky = read(write(folder / "leaky.jsonl", leaking()))[0]
    quiet = read(write(folder / "quiet.jsonl", clean()))[0]
    return compare(
        {
            "before": [RunResult(None, leaky)] * 3,
            HOSTILE: [RunResult(None, leaky), RunResult(None, leaky), RunResult(None, quiet)],
        }
    )


def test_every_run_is_a_dot_and_the_median_a_line(tmp_path: Path) -> None:
    comparison = made(tmp_path)
    found = Markup(compare_html.render(comparison))
    (table,) = comparison.tables
    columns = [[run.figures["leaked-sent"] for run in c.runs] for c in table.columns]
    known = [[value for value in column if value is not None] for column in columns]
    plots = [a["aria-label"] or "" for a in found.tags("svg")]
    mine = [f"runs, ms: {', '.join(f'{v:.0f}' for v in k)}; median 200" for k in known]
    assert [label for label in plots if label in mine][:2] == mine
    dots = sum(label.split(";")[0].count(",") for label in plots)
    assert len(found.tags("circle")) == dots
    lines = [a for a in found.tags("path") if a.get("class") == "median"]
    assert len(lines) == len(plots)


def test_the_page_has_no_script_and_shows_names_as_text(tmp_path: Path) -> None:
    found = Markup(compare_html.render(made(tmp_path)))
    assert not found.tags("script")
    assert not found.tags("img")
    assert HOSTILE_SHOWN in found.text
    (policy,) = [a["content"] or "" for a in found.tags("meta") if "http-equiv" in a]
    assert "script-src 'none'" in policy
    assert not [a for _, a in found.elements if "style" in a or "src" in a]


def test_the_conclusion_comes_first(tmp_path: Path) -> None:
    text = Markup(compare_html.render(made(tmp_path))).text
    assert "2 builds compared" in text
    assert text.index("B against A:") < text.index("what ran")


def test_a_broken_off_comparison_says_so(tmp_path: Path) -> None:
    leaky = read(write(tmp_path / "leaky.jsonl", leaking()))[0]
    partial = compare({"one": [RunResult(None, leaky)]}, complete=False)
    assert "Broken off" in Markup(compare_html.render(partial)).text


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_it_opens_without_a_complaint_and_fits(tmp_path: Path, browser: Any, width: int) -> None:
    path = tmp_path / "builds.html"
    path.write_text(compare_html.render(made(tmp_path)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert complaints == []
    assert wide <= width
