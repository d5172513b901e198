"""The command line itself: subcommands, exit codes, one line for what went wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from probe.cli import main as module
from probe.cli.main import COMMANDS, main
from probe.errors import ProbeError, ScenarioError, TraceError, UsageError

ROOT = Path(__file__).resolve().parents[1]


def test_the_help_names_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert name in out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("sinkprobe ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["report"],
        ["report", "--nonsense", "x"],
        ["report", "--format", "pdf", "x"],
    ],
)
def test_wrong_usage_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "sinkprobe" in err


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_an_output_that_takes_nothing_is_one_line_and_no_traceback() -> None:
    for closed in (">&-", ">/dev/full"):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m probe.cli.main rules {closed}"],
            cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr


def with_command(monkeypatch: pytest.MonkeyPatch, error: BaseException | int | None) -> int:
    @click.command()
    def broken() -> int | None:
        if isinstance(error, BaseException):
            raise error
        return error

    monkeypatch.setattr(module.cli, "get_command", lambda ctx, name: broken)
    return main(["broken"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProbeError("it failed\nin two lines"), 1),
        (TraceError("call.jsonl:1: expected a header"), 1),
        (ScenarioError("no such scenario"), 1),
        (UsageError("not like that"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
) -> None:
    assert with_command(monkeypatch, error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if line] == [err.strip()]
    assert err.startswith("sinkprobe: ") or code == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (3, 3)])
def test_a_command_returns_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, returned: int | None, code: int
) -> None:
    assert with_command(monkeypatch, returned) == code


def test_a_mistake_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        with_command(monkeypatch, ZeroDivisionError())


def test_a_reader_that_has_enough_gets_no_traceback() -> None:
    shell = f"{sys.executable} -m probe.cli.main --help | true"
    done = subprocess.run(
        shell, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
