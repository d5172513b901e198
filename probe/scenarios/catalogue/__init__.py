"""The scripted calls that come along, each a file beside this one.

They are files like those of users (`probe.scenarios.files`), so that one is made a part of this by
putting it there. Their delays are shorter than any default, so that a call is over sooner.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from probe.scenarios.files import read
from probe.scenarios.scenario import Scenario

__all__ = ["CATALOGUE", "DEFAULT", "found_in", "load"]

DEFAULT: Final = "barge-in"

_FIRST: Final = (
    DEFAULT,
    "barge-in-no-transcript",
    "barge-in-model",
    "barge-in-activity",
    "barge-in-cut",
    "false-interruption",
    "caller-ignored",
    "programmatic",
    "interrupted-before-subscribed",
    "uninterrupted",
    "long-reply",
    "sink-swapped",
    "reply-over-caller",
    "stale-verdict",
    "realtime-between-messages",
    "realtime-mid-message",
    "realtime-before-first-frame",
    "realtime-handle-interrupt",
    "realtime-late-interrupt",
    "realtime-uninterrupted",
)
"""In the order they are listed; whatever else is there comes after them, by name."""


def found_in(folder: Path) -> Mapping[str, Scenario]:
    """The scenarios of a folder, by name."""
    files = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    order = dict.fromkeys([*filter(files.__contains__, _FIRST), *files])
    return {name: read(files[name], {}) for name in order}


CATALOGUE: Final = found_in(Path(__file__).parent)
"""Name to scenario, in the order they are listed."""


def load(path: Path) -> Scenario:
    """The scenario of a user's file, which may start from one of the catalogue.

    Raises: `ScenarioError`, one line with file and key, where the file can't be read or is wrong.
    """
    return read(path, CATALOGUE)
