"""Environments with older releases of LiveKit Agents, for tests and for the matrix in README.

A published release does not run on today's dependencies, so each environment is resolved as of the
day after its release. Environments are kept under ``.cache/releases`` and made once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "releases"

RESOLVED_ON = {
    "1.2.18": "2025-11-06",
    "1.4.6": "2026-03-17",
    "1.6.5": "2026-07-10",
}
"""Release of livekit-agents to the date its dependencies are resolved as of."""

OLDEST = "1.2.18"
BUILD_TIMEOUT_S = 300


def python_with(release: str) -> Path:
    """The interpreter of an environment with that release, made if it is not there yet.

    Raises:
        subprocess.CalledProcessError: the environment could not be made.
    """
    folder = CACHE / release
    python = folder / "bin" / "python"
    done = folder / "complete"
    if done.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    uv = [sys.executable, "-m", "uv"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(
        [*uv, "venv", "-q", "--python", version, str(folder)], check=True, timeout=BUILD_TIMEOUT_S
    )
    subprocess.run(
        [
            *uv, "pip", "install", "-q", "--python", str(python),
            "--exclude-newer", RESOLVED_ON[release], f"livekit-agents=={release}", "numpy",
        ],
        check=True,
        timeout=BUILD_TIMEOUT_S,
    )  # fmt: skip
    done.touch()
    return python


def environment() -> dict[str, str]:
    """Environment variables with which an older release finds this checkout's probe."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}
