"""What people write to name a build, and what it means.

installed                          what the running Python has
livekit-agents==1.6.5              that release
livekit-agents>=1.8                the newest release that fits
livekit-agents==1.5.*              every release that fits
npm:@livekit/agents@1.9.0          the same for Node: a version, a range, or 1.8.x
../agents                          a checkout, Python or Node; or an environment
../agents@main                     a commit, branch or tag of a local repository
git+https://host/agents.git@main   the same of any other; without @ the default branch
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from probe.builds.tools import without_credentials
from probe.errors import UsageError

__all__ = [
    "NODE_PACKAGE",
    "PYTHON_PACKAGE",
    "BuildSpec",
    "Folder",
    "Git",
    "Installed",
    "Release",
    "Runtime",
    "parse",
    "release",
]

Runtime = Literal["python", "node"]

PYTHON_PACKAGE: Final = "livekit-agents"
NODE_PACKAGE: Final = "@livekit/agents"

_EXPECTED: Final = (
    "expected installed, livekit-agents==VERSION, npm:@livekit/agents@VERSION, a folder, "
    "or a git URL with @REF"
)
_NPM: Final = re.compile(r"^(@?[^@\s]+)(?:@(.*))?$")
_EVERY_NPM: Final = re.compile(r"^v?\d+(\.\d+)?\.[x*]$", re.IGNORECASE)
_EXACT_NPM: Final = re.compile(r"^v?(\d+\.\d+\.\d+([-+][\w.+-]+)?)$")
_URL: Final = re.compile(r"^(git\+)?(?P<url>(?:https?|ssh|git|file)://.+|[\w.-]+@[\w.-]+:.+)$")


@dataclass(frozen=True, slots=True)
class Installed:
    """Whatever livekit-agents the running Python has."""

    text: str = "installed"


@dataclass(frozen=True, slots=True)
class Release:
    """A release from a package registry, or what narrows it down."""

    text: str
    """As it was written."""
    runtime: Runtime
    wanted: str
    """The package with the versions that fit, as its own tool writes it: ``livekit-agents>=1.8``,
    ``@livekit/agents@^1.8.0``."""
    exact: str | None
    """The version where only one can fit."""
    every: bool
    """Whether each release that fits is meant, not only the newest."""

    @property
    def package(self) -> str:
        return PYTHON_PACKAGE if self.runtime == "python" else NODE_PACKAGE


@dataclass(frozen=True, slots=True)
class Folder:
    """A checkout, or an environment that is there already."""

    text: str
    path: Path
    """Absolute."""


@dataclass(frozen=True, slots=True)
class Git:
    """A commit of a repository."""

    text: str
    """As it was written, without what signs in to the repository."""
    url: str
    """Or the absolute path of a local repository."""
    ref: str | None
    """Branch, tag or commit; ``None``: the default branch."""


BuildSpec = Installed | Release | Folder | Git


def parse(text: str) -> BuildSpec:
    """The build that a text names.

    Raises:
        UsageError: it names none; says what was expected. A folder has to be there.
    """
    text = text.strip()
    if text == "installed":
        return Installed(text)
    if text.startswith("npm:"):
        return _node_release(text)
    if (match := _URL.match(text)) is not None:
        return _git(text, match["url"])
    requirement = _requirement(text)
    if requirement is not None and canonicalize_name(requirement.name) == PYTHON_PACKAGE:
        return _python_release(text, requirement)
    if (found := _local(text)) is not None:
        return found
    if requirement is not None and requirement.specifier:
        raise UsageError(f"{text}: expected {PYTHON_PACKAGE}, found {requirement.name}")
    raise UsageError(f"{text or 'an empty text'}: {_EXPECTED}")


def release(runtime: Runtime, version: str) -> Release:
    """That one release."""
    if runtime == "python":
        wanted = f"{PYTHON_PACKAGE}=={version}"
        return Release(wanted, runtime, wanted, version, every=False)
    wanted = f"{NODE_PACKAGE}@{version}"
    return Release(f"npm:{wanted}", runtime, wanted, version, every=False)


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        if re.match(rf"{PYTHON_PACKAGE}\s*[=<>!~\[]", text, re.IGNORECASE):
            told = str(error).splitlines()[0]
            raise UsageError(
                f"{text}: expected a requirement such as {PYTHON_PACKAGE}==1.6.5 ({told})"
            ) from error
        return None


def _python_release(text: str, requirement: Requirement) -> BuildSpec:
    if requirement.url is not None:
        match = _URL.match(requirement.url)
        if match is None:
            raise UsageError(f"{text}: expected a git URL after @, found {requirement.url}")
        return _git(text, match["url"])
    if requirement.marker is not None:
        raise UsageError(f"{text}: expected no condition, found ; {requirement.marker}")
    versions = list(requirement.specifier)
    exact = None
    if len(versions) == 1 and versions[0].operator in ("==", "==="):
        exact = versions[0].version
    every = any(one.operator == "==" and one.version.endswith(".*") for one in versions)
    return Release(text, "python", str(requirement), None if every else exact, every)


def _node_release(text: str) -> Release:
    match = _NPM.match(text.removeprefix("npm:").strip())
    if match is None or match[1] != NODE_PACKAGE:
        found = match[1] if match is not None else text.removeprefix("npm:")
        raise UsageError(f"{text}: expected npm:{NODE_PACKAGE}@VERSION, found {found or 'nothing'}")
    versions = (match[2] or "").strip() or "*"
    exact = _EXACT_NPM.match(versions)
    every = _EVERY_NPM.match(versions) is not None
    wanted = f"{NODE_PACKAGE}@{exact[1] if exact else versions}"
    return Release(text, "node", wanted, exact[1] if exact else None, every)


def _git(text: str, url: str) -> Git:
    if "#" in url:
        raise UsageError(f"{text}: expected a git URL with @REF and no fragment, found {url}")
    # A user before the host has an @ too: the ref's is the first one in the path.
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/") if separator else url.partition(":")
    where, at, ref = path.partition("@")
    if at and not ref:
        raise UsageError(f"{text}: expected a branch, tag or commit after @, found nothing")
    front = f"{scheme}{separator}{host}" if separator else host
    return Git(without_credentials(text), f"{front}{slash}{where}", ref or None)


def _local(text: str) -> BuildSpec | None:
    """The folder or the commit in a local repository; ``None``: no such thing is there."""
    if not text:
        return None
    where, at, ref = text.partition("@")
    try:
        path = Path(text).expanduser()
        if path.is_dir():
            return Folder(text, path.resolve())
        repository = Path(where).expanduser()
        if at and ref and where and (repository / ".git").exists():
            return Git(text, str(repository.resolve()), ref)
        is_file = path.exists()
    except (OSError, ValueError, RuntimeError) as error:
        # Longer than a name may be, in a folder that can't be entered, or nobody's home.
        raise UsageError(f"{text}: {_EXPECTED} ({error})") from error
    if is_file:
        raise UsageError(f"{text}: expected a folder, found a file")
    return None
