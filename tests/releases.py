"""Environments with older releases of LiveKit Agents, for tests and for the matrix in README.

They are `probe.builds`' own, kept under ``.cache/releases`` and made once.
"""

from __future__ import annotations

from pathlib import Path

from probe.builds import make
from probe.builds.specs import release

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "releases"

RELEASES = ("1.2.18", "1.4.6", "1.6.5")
"""Of livekit-agents: those that are not installed, and that the matrix shows."""

OLDEST = RELEASES[0]


def python_with(version: str) -> Path:
    """The interpreter of an environment with that release, made if it is not there yet.

    Raises:
        BuildError: the environment could not be made.
    """
    return Path(make(release("python", version), CACHE).python)
