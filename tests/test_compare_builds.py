"""Comparing real builds: one with a line changed is told apart from the same without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.ahead import Begun, starting

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = Path("livekit", "agents", "voice", "room_io", "_output.py")
CLOSES_THE_GATE = "self._playback_enabled.clear()"

SHORT = """
base = "barge-in-activity"
[call]
reply_ms = 1500
at = 300
"""


def planted(folder: Path) -> Path:
    """An environment with the installed livekit-agents, in which a pause closes no gate."""
    installed = Path(sysconfig.get_path("purelib"))
    sources = folder / "sources"
    shutil.copytree(
        installed / "livekit" / "agents",
        sources / "livekit" / "agents",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    output = sources / OUTPUT
    text = output.read_text(encoding="utf-8")
    assert text.count(CLOSES_THE_GATE) == 1
    output.write_text(text.replace(CLOSES_THE_GATE, "pass"), encoding="utf-8")
    home = folder / "planted"
    venv.EnvBuilder(symlinks=os.name != "nt").create(home)
    (modules,) = home.glob("[Ll]ib/**/site-packages")
    (modules / "planted.pth").write_text(f"{sources}\n{installed}\n", encoding="utf-8")
    return home


def compared(*arguments: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "probe.cli.main", "compare", *arguments,
         "--cache", str(folder / "cache"), "--out", str(folder / "out"), "--format", "json"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    document["exit_code"] = done.returncode
    return document


def _compared(folder: Path) -> tuple[Path, dict[str, Any]]:
    (folder / "short.toml").write_text(SHORT)
    with starting():
        home = planted(folder)
        return home, compared(
            "installed", str(home), "--scenario", "short.toml",
            "--fail-on", "leak-after-verdict+50ms",
            folder=folder,
        )  # fmt: skip


AHEAD = {"one line": _compared}


@pytest.mark.livekit
@pytest.mark.timeout(900)
def test_a_build_with_one_line_changed_is_told_apart(begun: Begun) -> None:
    home, told = begun("one line")
    assert told["exit_code"] == 3
    assert [b["build"] for b in told["builds"]] == ["installed", str(home)]
    (table,) = told["tables"]
    assert [(len(c["runs"]), c["asked"]) for c in table["columns"]] == [(5, 5), (5, 5)]
    differences = table["against"][0]["differences"]
    for name in ("leaked-pushed", "leaked-sent"):
        assert differences[name]["verdict"] == "differs"
        assert differences[name]["better"] is False
    assert differences["control"]["verdict"] in ("all-equal", "alike")
