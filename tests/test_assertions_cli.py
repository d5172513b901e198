"""Assertions on the command line: what is said, in which format, and the exit code it makes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probe.cli import expectations
from probe.cli.main import main
from probe.scenarios.catalogue import CATALOGUE
from reports.assertions import parse
from tests.test_assertions import BOTH_WAYS, Calls


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(Calls(tmp_path)().trace.path)


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    folder = tmp_path / "cut"
    folder.mkdir()
    return Path(Calls(folder)(clear_ms=None, trailer=False).trace.path)


def said(path: Path, *arguments: str) -> list[str]:
    return ["report", str(path), *(a for text in arguments for a in ("--expect", text))]


def test_what_holds_exits_with_0_and_is_listed_after_the_report(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(said(trace, "verdict < clear", "leaked.pushed == 0")) == 0
    out = capsys.readouterr().out
    assert "\nExpected\n  holds       verdict < clear " in out
    assert out.index("Where every sample went") < out.index("Expected")


def test_what_fails_exits_with_3_and_shows_the_moment(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(said(trace, "verdict < clear", "clear < verdict")) == 3
    out = capsys.readouterr().out
    assert "  FAILS       clear < verdict\n" in out
    assert "clear of the sink  <- clear" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_what_cannot_be_judged_exits_with_1(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(said(cut, "verdict < clear")) == 1
    assert "not judged  verdict < clear" in capsys.readouterr().out
    assert main(said(cut, "verdict < clear", "barge_ins == 0")) == 3


def test_a_wrong_assertion_is_one_line_and_exit_code_2_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(said(tmp_path / "missing.jsonl", "verdict << clear")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "sinkprobe: --expect: assertion 'verdict << clear', column 10: "
        "expected a name or a number with its unit, found '<'\n"
    )


def test_json_has_the_results_under_each_analysis(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*said(trace, "clear < verdict"), "--format", "json"]) == 3
    (result,) = json.loads(capsys.readouterr().out)["expectations"]
    assert (result["assertion"], result["holds"]) == ("clear < verdict", False)
    assert result["checks"][0]["barge_in"] == 1
    assert result["checks"][0]["zero"] == "verdict"
    assert "expectations" not in _document(trace, capsys)


def _document(trace: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["report", str(trace), "--format", "json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_it_has_to_hold_in_every_trace_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = Calls(tmp_path)
    calls()
    BOTH_WAYS["no flush"](calls)
    assert main([*said(tmp_path, "no flush"), "--format", "json"]) == 3
    analyses = json.loads(capsys.readouterr().out)["analyses"]
    assert [a["expectations"][0]["holds"] for a in analyses] == [True, False]


def test_a_wrong_assertion_in_a_file_is_named_before_the_call_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.toml"
    path.write_text('base = "uninterrupted"\nexpect = ["no pause", "verdct < clear"]\n')
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "own.toml: expect: assertion 'verdct < clear', column 1:" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_forms_that_are_listed_can_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assertions", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for form in document["forms"]:
        parse(form["form"])
    assert main(["assertions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert any(line.startswith("  last_sent ") for line in lines)


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_a_healthy_build_shows_can_be_said(name: str) -> None:
    for text in CATALOGUE[name].expect:
        assert parse(text).text == text


def test_a_listed_scenario_promises_nothing_for_a_barge_in_elsewhere() -> None:
    scenario = CATALOGUE["barge-in"]
    sooner = scenario.with_axes(replace(scenario.axes, at=300))
    assert expectations.of(sooner) == scenario.expect
    elsewhere = scenario.with_axes(replace(scenario.axes, at="twice"))
    assert expectations.of(elsewhere) == ()
    own = replace(elsewhere, expect=("barge_ins == 2",))
    assert expectations.of(own) == ("barge_ins == 2",)


@pytest.mark.livekit
def test_what_a_file_expects_decides_the_exit_code_of_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'base = "programmatic"\nexpect = ["kind == programmatic", "no clear"]\n'
        "[call]\nreply_ms = 995\nat = 300\n"
    )
    assert main(["run", str(path), "--out", str(tmp_path)]) == 3
    out = capsys.readouterr().out
    assert "holds       kind == programmatic" in out
    assert "FAILS       no clear" in out


@pytest.mark.livekit
def test_a_listed_scenario_says_whether_the_build_is_healthy_and_exits_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "programmatic", "--reply-ms", "995", "--at", "300", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "As the scenario promises: " in capsys.readouterr().out
