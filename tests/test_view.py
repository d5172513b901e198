"""What every form for people shows: estimates marked, reasons said, what a sink does named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from probe.trace.events import InterruptCalled, SessionClosed, SpeechCommitted, SpeechDone
from reports import Analysis, analyze, worst_first
from reports.results import Outcome
from reports.show import html, markdown, notebook, terminal
from reports.timeline import lay_out
from tests.formats import page_text
from tests.html_calls import leaking
from tests.report_traces import Simulation, write
from tests.test_ledger_geometry import interrupted_call

FORMS: Mapping[str, Callable[[Analysis, Path], str]] = {
    "terminal": lambda analysis, _: terminal.render([analysis]),
    "markdown": lambda analysis, _: markdown.render([analysis]).replace("\\~", "~"),
    "html": lambda analysis, trace: page_text(html.render([analysis], [lay_out(trace)])),
    "notebook": lambda analysis, _: page_text(notebook.render(analysis)),
}

of_every_form = pytest.mark.parametrize("form", FORMS)


def shown(form: str, trace: Path) -> str:
    return " ".join(FORMS[form](analyze(trace), trace).split())


@of_every_form
def test_what_only_the_time_tells_is_marked_as_an_estimate(form: str, tmp_path: Path) -> None:
    """A sink that resamples: pushed and sent are of a segment by their time, a leak has an error;
    what entered the sink is exact, and so are the sums over all segments."""
    text = shown(form, write(tmp_path / "call.jsonl", interrupted_call(follows=False).end()))
    assert "~ 30.0 ms (± 0.0 ms)" in text
    for samples in ("~16800", "~6720", "~10080", "24000", "36000"):
        assert samples in text
    for samples in ("~24000", "~36000", "~0 "):
        assert samples not in text
    assert "segments 1, 2: the sink resamples; what left the sink is given" in text


def test_lengths_are_told_on_either_side_of_a_sink_that_resamples(tmp_path: Path) -> None:
    text = shown("terminal", write(tmp_path / "c.jsonl", interrupted_call(follows=False).end()))
    assert "captured 24000 1000.0 9600 400.0 33600 1400.0" in text
    assert "pushed ~16800 ~350.0 ~19200 ~400.0 36000 750.0" in text


@of_every_form
def test_what_a_sink_adds_and_skips_is_named(form: str, tmp_path: Path) -> None:
    call = Simulation()
    call.capture(1200)
    call.capture(480)
    call.skip(480)
    call.capture(960)
    call.add(240)
    call.flush()
    call.tick(20)
    text = shown(form, write(tmp_path / "call.jsonl", call.end()))
    assert "added" in text
    assert "captured + added = pushed + dropped + held" in text or form == "notebook"
    if form in ("terminal", "html"):
        assert "passed over by the sink of its own accord" in text
    healthy = shown(form, write(tmp_path / "call.jsonl", leaking()))
    assert "added" not in healthy


def test_a_leak_that_is_not_known_is_no_good_news(tmp_path: Path) -> None:
    trace = write(tmp_path / "call.jsonl", interrupted_call(follows=False).end())
    lines = terminal.render([analyze(trace)], colour=True).splitlines()
    (line,) = [line for line in lines if "leaked after the verdict" in line]
    assert "\x1b[1;32m" not in line, "green"
    assert "\x1b[1;31m" not in line, "red"


def closed(folder: Path) -> Path:
    """A session that is closed while the agent speaks: 50 ms go out until the sink is cleared."""
    call = Simulation()
    for _ in range(30):
        call.capture(480)
    call.tick(20)
    call.happens(SessionClosed, "user_initiated")
    call.happens(InterruptCalled, "s1", by="programmatic")
    call.happens(SpeechCommitted, "s1")
    call.tick(5)
    call.clear()
    call.happens(SpeechDone, "s1", interrupted=True)
    return write(folder / "call.jsonl", call.end())


@of_every_form
def test_what_is_no_barge_in_leaks_nothing(form: str, tmp_path: Path) -> None:
    text = shown(form, closed(tmp_path))
    assert "Nobody interrupted it: that is no barge-in" in text
    assert "leaked, sent" not in text
    if form != "notebook":
        assert "No barge-in on segment 1: the session was closed" in text
    if form == "markdown":
        assert text.startswith("**No barge-in** in call.jsonl")
    elif form != "terminal":
        assert "no barge-in in this trace" in text


def test_what_is_no_barge_in_stands_behind_all_that_are(tmp_path: Path) -> None:
    for folder in ("closed", "leaky"):
        (tmp_path / folder).mkdir()
    paths = [closed(tmp_path / "closed"), write(tmp_path / "leaky" / "c.jsonl", leaking())]
    analyses = [analyze(path) for path in paths]
    assert [b.outcome for _, b in worst_first(analyses)] == ["committed", "closed"]
    text = " ".join(terminal.render(analyses).split())
    assert "Summary of 1 barge-ins in 2 traces" in text
    assert "No barge-in in 1 of 2 traces." in markdown.render(analyses)


@pytest.mark.parametrize("outcome", ["committed", "closed", "hung-up", "handed-over"])
def test_a_table_holds_every_outcome(outcome: Outcome, tmp_path: Path) -> None:
    analysis = analyze(write(tmp_path / "call.jsonl", leaking()))
    (barge_in,) = analysis.barge_ins
    two = dataclasses.replace(
        analysis, barge_ins=(dataclasses.replace(barge_in, outcome=outcome), barge_in)
    )
    lines = terminal.render([two]).splitlines()
    head = next(line for line in lines if "outcome" in line and "trace" in line)
    rows = [line for line in lines if line.endswith(" call.jsonl")]
    for row in rows:
        assert row[head.index("seg") + 2] == "1"
        assert len(row) <= 80
    assert any(f" {outcome} " in row for row in rows)
