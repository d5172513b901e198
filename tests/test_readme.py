"""README says what the commands say, and CI runs what README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probe.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*pytest$", README, re.MULTILINE)
    assert len(commands) == 1
    assert commands[0] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_readme_lists_the_rules_as_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--markdown"]) == 0
    assert capsys.readouterr().out.strip() in README


def test_the_readme_names_no_command_that_is_not_there_and_leaves_none_out() -> None:
    named = set(re.findall(r"(?:^|`|/)sinkprobe ([a-z]+)", README, re.MULTILINE))
    assert named == set(COMMANDS)
