"""README says what the commands say, and CI runs what README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from probe.cli import expectations
from probe.cli.main import COMMANDS, main
from probe.scenarios.catalogue import load

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


@pytest.mark.livekit
def test_the_session_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    program = next(block for block in blocks if "asyncio.run(main())" in block)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.startswith("True "), done.stderr


def test_the_scenario_of_the_readme_is_one(tmp_path: Path) -> None:
    (text,) = [
        block
        for block in re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        if "base =" in block
    ]
    path = tmp_path / "patient.toml"
    path.write_text(text, encoding="utf-8")
    scenario = load(path)
    assert scenario.name == "patient"
    expectations.read(expectations.of(scenario), "README")
