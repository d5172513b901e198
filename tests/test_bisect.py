"""Bisection: the right place, in few builds, each run until it is decided, and never twice."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.builds.bisection import decide, search
from probe.cli.main import main
from probe.errors import UsageError
from probe.scenarios.catalogue import CATALOGUE
from probe.sweep import Build, Call, Cell, run
from probe.sweep.journal import FILE, Journal, identity, opened
from tests.staged_builds import Row, Staged, written

BARGE_IN = CATALOGUE["barge-in"]


# --- Where it changes ----------------------------------------------------------------------------


@given(st.integers(2, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_the_first_changed_is_found_in_a_number_of_builds_that_grows_with_the_log(
    case: tuple[int, int],
) -> None:
    count, first = case
    asked: list[int] = []

    def changed(place: int) -> bool:
        asked.append(place)
        return place >= first

    answer = search(count, changed)
    assert (answer.before, answer.after, answer.untried) == (first - 1, first, ())
    assert len({*asked}) == len(asked) <= math.ceil(math.log2(count))
    assert not {0, count - 1} & {*asked}


@given(
    st.integers(2, 40).flatmap(
        lambda n: st.tuples(
            st.just(n), st.integers(1, n - 1), st.sets(st.integers(1, max(n - 2, 1)))
        )
    )
)
def test_builds_that_give_no_answer_are_gone_around_and_told(
    case: tuple[int, int, set[int]],
) -> None:
    count, first, silent = case
    silent -= {count - 1}
    asked: list[int] = []

    def changed(place: int) -> bool | None:
        asked.append(place)
        return None if place in silent else place >= first

    answer = search(count, changed)
    assert answer.before < first <= answer.after
    assert {*answer.untried} == {*range(answer.before + 1, answer.after)} <= silent
    assert len({*asked}) == len(asked)


def test_a_build_is_run_until_so_many_runs_agree() -> None:
    assert decide([True, True], 3) is None
    assert decide([True, False, True, False], 3) is None
    assert decide([True, False, True, False, True], 3) is True
    assert decide([False, None, False, None, False], 3) is False
    assert decide([None, True, None], 3) is None
    assert decide([None, True, None, True, None], 3) == "unusable"


@given(st.lists(st.sampled_from([True, False, None]), max_size=30), st.integers(1, 5))
def test_a_build_is_decided_in_a_bounded_number_of_runs(
    runs: list[bool | None], agree: int
) -> None:
    decided = [decide(runs[:number], agree) for number in range(len(runs) + 1)]
    known = [answer for answer in decided if answer is not None]
    if len(runs) >= 3 * agree - 2:
        assert known
    if known:
        usable = [run for run in runs[: decided.index(known[0])] if run is not None]
        assert len(usable) <= 2 * agree - 1


# --- Calls that were made ------------------------------------------------------------------------


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, Path]:
    return written(tmp_path)


def calls_of(build: Build, runs: int) -> list[Call]:
    return [Call(Cell(BARGE_IN, build), number) for number in range(1, runs + 1)]


def test_a_call_that_was_made_is_not_made_again(tmp_path: Path, traces: dict[str, Path]) -> None:
    staged = Staged(lambda *_: traces["sound"])
    todo = calls_of(Build("one", "/one"), 3)
    with (
        opened(tmp_path / "out") as journal,
        closing(run(todo, tmp_path / "out", journal=journal, call=staged)) as results,
    ):
        next(results)
        next(results)
    with opened(tmp_path / "out") as journal:
        done = [*run(todo, tmp_path / "out", journal=journal, call=staged)]
    assert staged.made == ["one"] * 3
    assert [one.call for one in done] == todo
    assert [one.seconds == 0 for one in done] == [True, True, False]
    assert len({one.trace for one in done}) == 3


def test_what_failed_and_what_is_gone_is_made_again(
    tmp_path: Path, traces: dict[str, Path]
) -> None:
    staged = Staged(lambda _, number: "it hung" if number == 1 else traces["sound"])
    todo = calls_of(Build("one", "/one"), 1)
    with opened(tmp_path / "out") as journal:
        (failed,) = run(todo, tmp_path / "out", journal=journal, call=staged)
        (made,) = run(todo, tmp_path / "out", journal=journal, call=staged)
        assert (failed.error, made.error) == ("it hung", "")
        assert made.trace is not None
        made.trace.unlink()
        (again,) = run(todo, tmp_path / "out", journal=journal, call=staged)
    assert (staged.made, again.error) == (["one"] * 3, "")


def test_another_state_of_a_build_or_another_script_is_another_call(
    tmp_path: Path, traces: dict[str, Path]
) -> None:
    build = Build("../agents", "/agents", source="../agents 123", installed={"livekit": "1.0"})
    others = [
        replace(build, source="../agents 123 with changes (4)"),
        replace(build, installed={"livekit": "1.1"}),
        replace(build, as_of="2025-01-01"),
    ]
    assert len({identity(one) for one in [build, *others]}) == 4
    assert identity(replace(build, installed={"livekit": "1.0", "aiohttp": "3"})) == (
        identity(build)
    )
    with opened(tmp_path / "out") as journal:
        call = Call(Cell(BARGE_IN, build), 1)
        staged = Staged(lambda *_: traces["sound"])
        list(run([call], tmp_path / "out", journal=journal, call=staged))
        assert journal.trace(call) is not None
        assert journal.trace(replace(call, run=2)) is None
        assert journal.trace(Call(Cell(replace(BARGE_IN, steps=()), build), 1)) is None
        assert journal.trace(Call(Cell(BARGE_IN, others[0]), 1)) is None


def test_a_journal_cut_amid_a_line_loses_that_line_only(
    tmp_path: Path, traces: dict[str, Path]
) -> None:
    staged = Staged(lambda *_: traces["sound"])
    todo = calls_of(Build("one", "/one"), 3)
    with opened(tmp_path / "out") as journal:
        list(run(todo[:2], tmp_path / "out", journal=journal, call=staged))
    file = tmp_path / "out" / FILE
    file.write_bytes(b'\xff\xfe\n{"call": []}\n' + file.read_bytes()[:-20])
    with opened(tmp_path / "out") as journal:
        assert [journal.trace(call) is not None for call in todo] == [True, False, False]
        list(run(todo, tmp_path / "out", journal=journal, call=staged))
    journal = Journal(tmp_path / "out")
    assert all(journal.trace(call) is not None for call in todo)
    assert len(staged.made) == 4


def test_a_folder_is_one_command_s_at_a_time(tmp_path: Path) -> None:
    with (
        opened(tmp_path),
        pytest.raises(UsageError, match="found another command at work there"),
        opened(tmp_path),
    ):
        pass
    with opened(tmp_path):
        pass


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch, traces: dict[str, Path]) -> Row:
    return Row(monkeypatch, traces)


def bisect(folder: Path, *arguments: str, rule: str = "leak-after-verdict>100ms") -> int:
    return main(["bisect", "--rule", rule, "--out", str(folder), *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


JSON = ["--format", "json"]
WHOLE = ["--good", "1.0", "--bad", "1.9", *JSON]


@pytest.mark.parametrize("first", [1, 4, 5, 9])
def test_it_finds_the_first_release_in_which_a_finding_appears(
    first: int, row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, _: int(name[2:]) >= first
    assert bisect(tmp_path / "out", *WHOLE) == 0
    found = document(capsys)
    assert (found["last_before"], found["first_after"]) == (f"1.{first - 1}", f"1.{first}")
    assert len(found["steps"]) <= 2 + math.ceil(math.log2(9))
    assert {step["shown"] + step["absent"] for step in found["steps"]} == {3}


def test_with_fixed_it_finds_the_first_release_in_which_it_is_gone(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, _: name < "1.6"
    arguments = ["--bad", "1.0", "--good", "1.9", "--fixed"]
    assert bisect(tmp_path / "out", *arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "is gone in 1.6 (2025-01-07); the build before it is 1.5." in said


def test_a_build_whose_runs_differ_is_run_until_it_is_decided(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, number: name >= "1.5" and (name != "1.7" or number not in (1, 3))
    assert bisect(tmp_path / "out", *WHOLE) == 0
    found = document(capsys)
    assert found["first_after"] == "1.5"
    split = next((s for s in found["steps"] if s["build"] == "1.7"), None)
    if split is not None:
        assert (split["found"], split["shown"], split["absent"]) == (True, 3, 2)
    assert bisect(tmp_path / "out", "--good", "1.6", "--bad", "1.7", *JSON) == 1
    assert "1.6: expected" in capsys.readouterr().err
    assert bisect(tmp_path / "other", "--good", "1.4", "--bad", "1.7", *JSON) == 0
    assert document(capsys)["steps"][1] == {
        "build": "1.7", "uploaded": "2025-01-08", "found": True, "shown": 3, "absent": 2,
        "unusable": 0, "reason": "",
    }  # fmt: skip


def test_what_can_t_be_tried_is_gone_around_and_makes_the_answer_a_range(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row.leaks = lambda name, _: name >= "1.5"
    row.missing, row.hanging = {"1.4"}, {"1.5"}
    assert bisect(tmp_path / "out", *WHOLE) == 1
    found = document(capsys)
    assert (found["last_before"], found["first_after"]) == ("1.3", "1.6")
    assert found["untried"] == ["1.4", "1.5"]
    tried = {step["build"]: step for step in found["steps"]}
    assert (tried["1.4"]["found"], tried["1.4"]["reason"]) == (None, "it has no wheel")
    assert (tried["1.5"]["unusable"], tried["1.5"]["reason"]) == (
        3, "the call did not end in time",
    )  # fmt: skip


def test_the_newer_end_may_be_a_checkout(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agents").mkdir()
    row.leaks = lambda name, _: name == "agents"
    place = str(tmp_path / "agents")
    assert bisect(tmp_path / "out", "--good", "1.5", "--bad", place, *JSON) == 0
    found = document(capsys)
    assert found["builds"][:-1] == ["1.5", "1.6", "1.7", "1.8", "1.9"]
    assert found["last_before"] == "1.9"
    assert found["first_after"] == f"livekit-agents {place}"


def test_what_was_stopped_goes_on_and_makes_no_call_twice(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stops(name: str, number: int) -> bool:
        if len(row.staged.made) == 8:
            raise KeyboardInterrupt
        return name >= "1.5"

    row.leaks = stops
    assert bisect(tmp_path / "out", "--good", "1.0", "--bad", "1.9") == 130
    assert "Broken off; the same command goes on from here." in capsys.readouterr().out
    row.leaks = lambda name, _: name >= "1.5"
    assert bisect(tmp_path / "out", *WHOLE) == 0
    found = document(capsys)
    assert found["first_after"] == "1.5"
    # One call was under way when it was stopped.
    assert len(row.staged.made) == 3 * len(found["steps"]) + 1
    assert bisect(tmp_path / "out", *WHOLE) == 0
    assert document(capsys) == found
    assert len(row.staged.made) == 3 * len(found["steps"]) + 1


def test_an_end_that_is_not_as_it_was_said_is_an_error(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bisect(tmp_path / "out", *WHOLE) == 1
    assert "1.9: expected leak-after-verdict>100ms to be found, found it in 0 of 3 runs" in (
        " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--good", "1.9", "--bad", "1.0"], "expected 1.9 to be the older build"),
        (["--good", "installed", "--bad", "1.9"], "expected the older build to be one release"),
        (["--good", "1.0", "--bad", "livekit-agents>=1.5"], "the newer build to be one release"),
        (["--good", "1.0", "--bad", "npm:@livekit/agents@1.9.0"], "two builds of one language"),
        (["--good", "1.5", "--bad", "1.5"], "expected two builds, found only 1.5"),
        (["--good", "1.0", "--bad", "../nowhere"], "expected installed, livekit-agents==VERSION"),
        (["--good", "1.0", "--bad", "1.9", "--scenario", "nothing"], "expected a scenario"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_makes_no_call(
    arguments: list[str],
    said: str,
    row: Row,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bisect(tmp_path / "out", *arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert row.staged.made == []


def test_a_rule_that_does_not_exist_is_wrong_usage(
    row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bisect(tmp_path / "out", *WHOLE, rule="no-such-rule") == 2
    said = capsys.readouterr().err
    assert said.startswith("sinkprobe: --rule: expected")
    assert "no-such-rule" in said
