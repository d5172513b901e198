"""Which releases there are and when they came out, as the user's own uv and npm are told.

Both tools are asked, and no registry: so mirrors, credentials and proxies are whatever people have
set up for them.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from packaging.version import InvalidVersion, Version

from probe.builds.specs import NODE_PACKAGE, PYTHON_PACKAGE, Release, Runtime
from probe.builds.tools import LOOK_UP_LIMIT_S, npm, run, uv
from probe.errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Published", "fitting", "newest", "ordered", "recall", "remember", "since"]

_NO_PRERELEASES: Final = ("--prerelease", "explicit")
_NONE_FITS: Final = ("are unsatisfiable", "which are incompatible", "No match found")
"""In what uv and npm say where no release fits."""
_NOT_ASKED: Final = "was not found in the cache"
"""In what uv says, beside that, where it may not ask the registry and never did."""


@dataclass(frozen=True, slots=True)
class Published:
    """A release, as its registry lists it."""

    runtime: Runtime
    version: str
    uploaded: datetime | None
    """UTC. ``None``: the registry does not say."""

    @property
    def package(self) -> str:
        return PYTHON_PACKAGE if self.runtime == "python" else NODE_PACKAGE

    @property
    def order(self) -> Version:
        return ordered(self.version)


def ordered(version: str) -> Version:
    """Something that versions of either registry are ordered by.

    Raises:
        BuildError: it is no version.
    """
    core, dash, beta = version.partition("-")
    # npm's betas have names of their own (1.0.0-next.3); they come before the release, by number.
    number = re.sub(r"\D", "", beta)[-9:] or "0"
    try:
        return Version(f"{core}.dev{number}" if dash else version)
    except InvalidVersion as error:
        raise BuildError(f"expected a version such as 1.6.5, found {version!r}") from error


def newest(release: Release) -> Published:
    """The newest release that fits, betas left out unless they are named.

    Raises:
        BuildError: none fits, or the registry gave no answer.
    """
    if release.runtime == "python":
        return _resolve(release.wanted)
    return _node_fitting(release)[-1]


def fitting(release: Release) -> list[Published]:
    """Every release that fits, oldest first.

    Raises:
        BuildError: none fits, or the registry gave no answer.
    """
    if release.runtime == "node":
        return _node_fitting(release)
    return [*_downwards(release.wanted)][::-1]


def remember(release: Published, cache: Path) -> None:
    """Keeps when a release came out, so that its environment is found without a registry."""
    place = _place(release.runtime, release.version, cache)
    if release.uploaded is not None:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(release.uploaded.isoformat(), encoding="utf-8")


def recall(runtime: Runtime, version: str, cache: Path) -> Published | None:
    """A release that was looked up before; ``None``: it was not."""
    try:
        uploaded = _date(_place(runtime, version, cache).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return None if uploaded is None else Published(runtime, version, uploaded)


def _place(runtime: Runtime, version: str, cache: Path) -> Path:
    return cache / "dates" / f"{runtime}-{re.sub(r'[^0-9A-Za-z.+-]', '_', version)}"


def since(
    runtime: Runtime, oldest: str, newest: str | None = None, *, each_minor: bool = False
) -> list[Published]:
    """Releases from one version up to another, both included, oldest first.

    Args:
        runtime: of which registry.
        oldest: the first one, which need not exist.
        newest: the last one; ``None``: up to the newest there is.
        each_minor: only the newest of each minor version.

    Raises:
        BuildError: there is none, or the registry gave no answer.
    """
    low, high = ordered(oldest), None if newest is None else ordered(newest)
    upper = "" if newest is None else f",<={newest}"
    if runtime == "python":
        wanted = f"{PYTHON_PACKAGE}>={oldest}{upper}"
        found = [*_downwards(wanted, _minor if each_minor else _whole)][::-1]
    else:
        found = [
            one
            for one in _node_releases(_npm_view(NODE_PACKAGE, "versions"))
            if low <= one.order
            and (high is None or one.order <= high)
            and not one.order.is_prerelease
        ]
        if each_minor:
            found = [*{_minor(one): one for one in found}.values()]
    if not found:
        raise BuildError(f"no release from {oldest} to {newest or 'the newest'} is listed")
    return found


def _whole(release: Published) -> str:
    return release.version


def _minor(release: Published) -> str:
    return f"{release.order.major}.{release.order.minor}"


class _NoneFitsError(BuildError):
    """The registry answered, and has no such release."""


def _ask(wanted: str, command: Sequence[str]) -> str:
    """A tool's answer about what is wanted, which it can read from its stdin."""
    try:
        # The settings of a project that happens to be here are not meant.
        return run(command, limit_s=LOOK_UP_LIMIT_S, stdin=wanted, cwd=Path(sys.prefix))
    except BuildError as error:
        told = str(error)
        if _NOT_ASKED not in told and any(sign in told for sign in _NONE_FITS):
            raise _NoneFitsError(f"no release fits {wanted}") from error
        raise


# --- Python --------------------------------------------------------------------------------------


def _downwards(
    wanted: str, below_which: Callable[[Published], str] = _whole
) -> Iterator[Published]:
    """The newest that fits, then the newest below that, and so on."""
    below = _resolve(wanted)
    yield below
    separator = "," if any(sign in wanted for sign in "=<>~!") else ""
    while True:
        narrowed = f"{wanted}{separator}<{below_which(below)}"
        try:
            # uv has the list by now, and need not ask for it again.
            below = _resolve(narrowed, "--offline")
        except BuildError:
            try:
                below = _resolve(narrowed)
            except _NoneFitsError:
                return
        yield below


def _resolve(requirement: str, *more: str) -> Published:
    answer = _ask(
        requirement,
        [
            uv(), "pip", "compile", "-q", "--no-deps", "--no-header", *_NO_PRERELEASES, *more,
            "--python", sys.executable, "--format", "pylock.toml", "-",
        ],
    )  # fmt: skip
    try:
        (package,) = tomllib.loads(answer)["packages"]
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        uploads = [file["upload-time"] for file in files if "upload-time" in file]
        return Published("python", str(package["version"]), max(uploads, default=None))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise BuildError(f"expected uv to lock {requirement}, found {answer[:100]!r}") from error


# --- Node ----------------------------------------------------------------------------------------


def _node_fitting(release: Release) -> list[Published]:
    """Oldest first; never empty."""
    found = _node_releases(_npm_view(release.wanted, "version"))
    if not found:
        raise BuildError(f"no release fits {release.wanted}")
    return found


def _node_releases(versions: Any) -> list[Published]:
    """What npm lists, one or several, oldest first."""
    dates = _npm_view(NODE_PACKAGE, "time")
    named = [versions] if isinstance(versions, str) else list(versions or ())
    known = dates if isinstance(dates, dict) else {}
    found = [Published("node", name, _date(known.get(name))) for name in named]
    return sorted(found, key=lambda one: one.order)


def _npm_view(what: str, field: str) -> Any:
    answer = _ask(what, [npm(), "view", "--json", what, field])
    try:
        return json.loads(answer) if answer.strip() else None
    except ValueError as error:
        raise BuildError(f"expected JSON from npm view, found {answer[:100]!r}") from error


def _date(text: object) -> datetime | None:
    try:
        when = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return when if when.tzinfo is not None else when.replace(tzinfo=timezone.utc)
