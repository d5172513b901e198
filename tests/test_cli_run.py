"""`sinkprobe run` and `sinkprobe scenarios`: arguments, one clear line, the report on stdout."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probe.cli.main import main
from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, releases
from probe.scenarios.scenario import Feature
from reports import analyze

COMMAND = [sys.executable, "-m", "probe.cli.main"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-like-it"], "expected a scenario or a TOML file, found 'nothing-like-it'"),
        (["--at", "soon"], "expected milliseconds or one of before-first-frame, first-"),
        (["--at", "5000"], "a barge-in can't land at 5000 ms"),
        (["--pacing", "slow"], "is not one of"),
        (["--rate", "4000"], "expected 8000 to 48000 Hz, found 4000"),
        (["--frame-ms", "0"], "expected 1 to 1000, found 0"),
        (["barge-in-model", "--at", "before-first-frame"], "can't land before the first frame"),
        (["barge-in-cut", "--at", "twice"], "its session does not pause"),
        (["--reply", "sung"], "is not one of"),
        (["--channels", "3"], "expected 1 or 2, found 3"),
        (["--close-ms", "-1"], "expected 0 to 10000, found -1"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_without_livekit_agents_it_says_how_to_install_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "installed", lambda: None)
    assert main(["run"]) == 1
    said = capsys.readouterr().err
    assert 'pip install "sinkprobe[agents]"' in said
    assert len(said.splitlines()) == 1


def test_a_wrong_file_of_ones_own_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text('base = "nothing"', encoding="utf-8")
    assert main(["run", str(tmp_path / "own.toml")]) == 1
    said = capsys.readouterr().err
    assert "own.toml: base: expected one of" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("feature", "hint"),
    [
        ("interruption-model", "; run barge-in-activity instead"),
        ("vad-before-model", "; run barge-in-model instead, or with --at before-first-frame"),
        ("pause", "; run barge-in-cut instead"),
    ],
)
def test_what_a_release_lacks_is_named_with_what_to_run_instead(
    monkeypatch: pytest.MonkeyPatch, feature: Feature, hint: str
) -> None:
    monkeypatch.setattr(releases, "installed", lambda: "1.0.0")
    for name in releases._LACKS:
        lacks = (lambda: "it lacks that") if name == feature else (lambda: None)
        monkeypatch.setitem(releases._LACKS, name, lacks)
    with pytest.raises(ScenarioError) as caught:
        releases.require(CATALOGUE["barge-in"])
    assert str(caught.value) == (f"barge-in can't run on livekit-agents 1.0.0: it lacks that{hint}")


def test_scenarios_lists_what_can_be_run_also_without_livekit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "installed", lambda: None)
    assert main(["scenarios"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in CATALOGUE)
    assert "livekit-agents is not installed" in text


@pytest.mark.livekit
def test_scenarios_says_of_each_what_it_shows_and_needs() -> None:
    done = subprocess.run(
        [*COMMAND, "scenarios", "--json"], capture_output=True, text=True, timeout=120, check=True
    )
    entries = {entry["name"]: entry for entry in json.loads(done.stdout)["scenarios"]}
    assert list(entries) == list(CATALOGUE)
    for name, scenario in CATALOGUE.items():
        assert entries[name]["healthy"] == scenario.healthy
        assert entries[name]["needs"] == sorted(scenario.required)


@pytest.mark.livekit
def test_the_report_is_one_json_document_and_all_else_goes_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(
        'base = "programmatic"\n[call]\nreply_ms = 800\nat = 300\n', encoding="utf-8"
    )
    done = subprocess.run(
        [*COMMAND, "run", str(tmp_path / "short.toml"), "--out", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["run"]["scenario"] == "short"
    assert document["run"]["reply_ms"] == 800
    assert document["balanced"] is True
    assert "short.jsonl" in done.stderr


def stopped_by(number: signal.Signals, folder: Path) -> tuple[int, str, str]:
    """Exit code, standard error and the trace's last event of a run that gets a signal mid-call."""
    command = [*COMMAND, "run", "uninterrupted", "--reply-ms", "60000", "--out", str(folder)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background of a shell ignore it, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        assert "uninterrupted.jsonl" in process.stderr.readline()
        process.send_signal(number)
        said = process.stderr.read()
    trace = folder / "uninterrupted.jsonl"
    deadline = time.monotonic() + 60
    while True:
        last = str(json.loads(trace.read_text(encoding="utf-8").splitlines()[-1])["event"])
        if last == "trailer" or time.monotonic() > deadline:
            return process.returncode, said, last
        time.sleep(0.1)


@pytest.mark.livekit
@pytest.mark.skipif(os.name != "posix", reason="signals as a terminal sends them")
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_keeps_the_trace(tmp_path: Path, number: str, code: int) -> None:
    returned, said, last = stopped_by(signal.Signals[number], tmp_path)
    assert returned == code
    assert "kept" in said
    assert last == "trailer"


@pytest.mark.livekit
@pytest.mark.skipif(os.name != "posix", reason="signals as a terminal sends them")
def test_a_call_ends_with_whoever_wanted_it(tmp_path: Path) -> None:
    returned, _, last = stopped_by(signal.SIGKILL, tmp_path)
    assert returned == -signal.SIGKILL
    assert last == "trailer"
    sent = analyze(tmp_path / "uninterrupted.jsonl").totals.sent_samples
    assert sent is not None
    assert sent < 60 * 24_000, "the reply was not played to its end"


@pytest.mark.livekit
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_run_whose_disk_is_full_says_so(tmp_path: Path) -> None:
    run = shlex.join([*COMMAND, "run", "uninterrupted", "--out", str(tmp_path)])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; {run}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "the disk refusing it" in done.stderr
