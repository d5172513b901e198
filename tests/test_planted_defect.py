"""A release with one line changed: `bisect` finds it. That `compare` tells such a build apart is
proven in `test_compare_builds`, without a registry."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from probe.builds import make, parse
from probe.cli.main import main
from tests.releases import CACHE

pytestmark = [pytest.mark.livekit, pytest.mark.registry, pytest.mark.timeout(900)]

RELEASE = "1.8.9"
BEFORE = "1.8.8"
OUTPUT = "livekit/agents/voice/room_io/_output.py"
CLEAR = "        self._interrupted_event.set()\n"
"""How the room output's clear_buffer reaches the source's queue."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which clearing the sink no longer clears the source."""
    build = make(parse(f"livekit-agents=={RELEASE}"), CACHE)
    copy = tmp_path_factory.mktemp("planted") / "environment"
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


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code = main([*arguments, "--cache", str(CACHE), "--format", "json"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return json.loads(printed.out)


def test_bisect_finds_the_build_with_the_defect(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(
        capsys, "bisect", "--good", BEFORE, "--bad", str(planted), "--rule", "leak-after-verdict",
        "--agree", "2", "--out", str(tmp_path),
    )  # fmt: skip
    assert (found["last_before"], found["first_after"]) == (RELEASE, str(planted))
    assert len(found["steps"]) == 3
