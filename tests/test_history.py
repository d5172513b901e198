"""A history: a line for each release, what is otherwise than before, and no call made twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe.cli.main import main
from tests.staged_builds import Row, written


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Row:
    # Where the traces are is printed; a short place keeps that line short.
    monkeypatch.chdir(tmp_path)
    return Row(monkeypatch, written(tmp_path))


def history(folder: Path, *arguments: str) -> int:
    return main(["history", "--out", str(folder), *arguments])


def releases(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    listed: list[Any] = document["releases"]
    return listed


JSON = ["--format", "json"]


def test_each_release_is_a_line_with_what_appeared_and_what_went_away(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, _: name == "1.7"
    assert history(Path("out"), "--since", "1.6") == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert lines[0].startswith("livekit-agents: 4 releases, 5 runs of barge-in burst")
    by_name = {line.split()[0]: line.split() for line in lines if line.startswith("1.")}
    assert by_name["1.6"][1:] == ["2025-01-07", "0", "0", "0", "committed"]
    assert by_name["1.7"][1:] == ["2025-01-08", "200", "190", "0", "committed"]
    assert [*by_name] == ["1.6", "1.7", "1.8", "1.9"]
    flat = " ".join(text.split())
    assert "appeared: finish-before-sent 5/5, leak-after-verdict 5/5, position-off 5/5" in flat
    assert "gone: finish-before-sent, leak-after-verdict, position-off" in flat
    assert "leaked at sent +200 ms (worse), stop time +190 ms (worse) (against 1.6)" in flat
    assert "(better), stop time −190 ms (better) (against 1.7)" in flat  # noqa: RUF001
    assert flat.index("appeared") < flat.index("1.8 2025") < flat.index("gone") < flat.index("1.9 ")


def test_too_few_runs_tell_no_figures_apart_and_it_is_said_how_many_would(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, _: name >= "1.9"
    assert history(Path("out"), "--since", "1.8", "--runs", "3") == 0
    flat = " ".join(capsys.readouterr().out.split())
    assert "leak-after-verdict 3/3" in flat
    assert "changed:" not in flat
    assert "of each call would decide" in flat


def test_a_release_that_can_t_be_installed_is_a_line_that_says_why(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    row.missing = {"1.8"}
    row.leaks = lambda name, _: name >= "1.9"
    assert history(Path("out"), "--since", "1.7", *JSON) == 0
    first, second, third = releases(capsys)
    assert (second["version"], second["calls"]) == ("1.8", [])
    assert second["build"]["unavailable"] == "it has no wheel"
    assert first["calls"][0]["against"] is None
    against = third["calls"][0]["against"]
    assert against["first"] == "livekit-agents 1.7"
    assert "leak-after-verdict" in against["appeared"]


def test_a_call_that_only_fails_is_given_up(row: Row, capsys: pytest.CaptureFixture[str]) -> None:
    row.hanging = {"1.8"}
    assert history(Path("out"), "--since", "1.7", *JSON) == 0
    column = releases(capsys)[1]["calls"][0]["column"]
    assert column["failed"] == {"the call did not end in time": 2}
    assert (column["asked"], column["runs"]) == (2, [])
    assert row.staged.made.count("1.8") == 2


def test_where_nothing_could_be_measured_the_exit_code_is_1(row: Row) -> None:
    row.missing, row.hanging = {"1.8"}, {"1.9"}
    assert history(Path("out"), "--since", "1.8") == 1


def test_what_was_stopped_goes_on_and_makes_no_call_twice(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    def stops(name: str, number: int) -> bool:
        if len(row.staged.made) == 8:
            raise KeyboardInterrupt
        return False

    row.leaks = stops
    assert history(Path("out"), "--since", "1.7") == 130
    text = capsys.readouterr().out
    assert "1.7  2025-01-08" in text
    assert "1.8  2025-01-09" not in text
    assert "Broken off; the same command goes on from here." in text
    row.leaks = lambda *_: False
    assert history(Path("out"), "--since", "1.7", *JSON) == 0
    once = releases(capsys)
    # One call was under way when it was stopped.
    assert len(row.staged.made) == 3 * 5 + 1
    assert history(Path("out"), "--since", "1.7", *JSON) == 0
    assert releases(capsys) == once
    assert history(Path("out"), "--since", "1.7", "--runs", "6", *JSON) == 0
    assert [len(one["calls"][0]["column"]["runs"]) for one in releases(capsys)] == [6, 6, 6]
    assert len(row.staged.made) == 3 * 6 + 1


def test_several_calls_of_a_release_stand_below_it(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--scenario", "barge-in", "--pacing", "burst,stalled", "--runs", "1"]
    assert history(Path("out"), "--since", "1.8", *chosen) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    start = lines.index("1.8  2025-01-09")
    assert lines[start + 1].split()[:2] == ["barge-in", "burst"]
    assert lines[start + 2].split()[:2] == ["barge-in", "stalled"]
    assert lines[start + 3] == "1.9  2025-01-10"
    assert max(len(line) for line in lines) <= 80


def test_the_markdown_table_has_as_many_cells_in_every_row(
    row: Row, capsys: pytest.CaptureFixture[str]
) -> None:
    row.missing = {"1.8"}
    row.leaks = lambda name, _: name >= "1.9"
    arguments = ["--since", "1.7", "--format", "markdown", "--runs", "2"]
    assert history(Path("out"), *arguments) == 0
    text = capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    cells = " ".join(rows[4].split())
    assert "| 1.9 | 2025-01-10 | barge-in burst | 2 | 200 | 190 | 0 | committed 2/2 | " in cells
    assert "it has no wheel" in rows[3]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], {"runtime": "python", "each_minor": True}),
        (["--all"], {"runtime": "python", "each_minor": False}),
        (["--node"], {"runtime": "node", "each_minor": True}),
    ],
)
def test_releases_of_either_language_are_each_minor_s_newest_or_all(
    arguments: list[str], asked: dict[str, Any], row: Row
) -> None:
    chosen = ["--since", "1.9", "--runs", "1", *arguments]
    assert history(Path("out"), *chosen) == 0
    assert row.asked == asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing option '--since'"),
        (["--since", "soon"], "expected a version such as 1.6.5, found 'soon'"),
        (["--since", "1.5", "--until", "1.4"], "expected --until from 1.5 on, found 1.4"),
        (["--since", "1.5", "--scenario", "nothing"], "expected a scenario or a TOML file"),
        (["--since", "1.5", "--pacing", "slow"], "expected some of burst, realtime, stalled"),
        (["--since", "1.5", "--set", "x=1"], "expected RULE.NAME=NUMBER"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_makes_no_call(
    arguments: list[str],
    said: str,
    row: Row,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert history(Path("out"), *arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert row.staged.made == []
