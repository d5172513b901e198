"""A release with one line changed: `bisect` finds it. That `compare` tells such a build apart is
proven in `test_compare_builds`, without a registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probe.builds import make, parse
from tests.ahead import Begun, starting
from tests.releases import CACHE, ROOT

pytestmark = [pytest.mark.livekit, pytest.mark.registry, pytest.mark.timeout(900)]

RELEASE = "1.8.9"
BEFORE = "1.8.8"
OUTPUT = "livekit/agents/voice/room_io/_output.py"
CLEAR = "        self._interrupted_event.set()\n"
"""How the room output's clear_buffer reaches the source's queue."""


def planted(folder: Path) -> Path:
    """An environment in which clearing the sink no longer clears the source."""
    build = make(parse(f"livekit-agents=={RELEASE}"), CACHE)
    copy = folder / "environment"
    # Links are enough for what stays as it is, and what changes is another file.
    shutil.copytree(
        Path(build.python).parents[1], copy, symlinks=True, copy_function=_linked_or_copied
    )
    (file,) = copy.glob(f"lib/python*/site-packages/{OUTPUT}")
    text = file.read_text(encoding="utf-8")
    head, clear, rest = text.partition("    def clear_buffer(self)")
    assert rest.count(CLEAR) == 1
    file.unlink()
    file.write_text(head + clear + rest.replace(CLEAR, ""), encoding="utf-8")
    return copy


def _linked_or_copied(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _bisected(folder: Path) -> tuple[Path, Any]:
    with starting():
        bad = planted(folder)
        done = subprocess.run(
            [sys.executable, "-m", "probe.cli.main", "bisect", "--good", BEFORE, "--bad", str(bad),
             "--rule", "leak-after-verdict", "--agree", "2", "--out", str(folder / "out"),
             "--cache", str(CACHE), "--format", "json"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=800,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return bad, json.loads(done.stdout)


AHEAD = {"bisect": _bisected}


def test_bisect_finds_the_build_with_the_defect(begun: Begun) -> None:
    bad, found = begun("bisect")
    assert (found["last_before"], found["first_after"]) == (RELEASE, str(bad))
    assert len(found["steps"]) == 3
