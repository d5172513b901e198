"""What a folder with LiveKit Agents' sources is, and how old it is."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from probe.builds.specs import NODE_PACKAGE, PYTHON_PACKAGE, Runtime
from probe.builds.tools import LOOK_UP_LIMIT_S, git, run, without_credentials
from probe.errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "Checkout",
    "committed",
    "described_in",
    "fetch",
    "head_of",
    "look",
    "resolve",
    "state_of",
]

_PLACES: Final = (".", "livekit-agents", "agents")
"""Where the package lies in a checkout: it alone, or in the repository of either language."""

_ASIDE: Final = frozenset({"node_modules", "__pycache__", ".git", ".venv"})
"""Folders whose files are no sources."""

_FETCH_LIMIT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with sources."""

    runtime: Runtime
    root: Path
    """The folder that was named."""
    package: Path
    """The one in it that holds the package's own description."""


def look(folder: Path) -> Checkout:
    """What is checked out in a folder.

    Raises:
        BuildError: neither language's LiveKit Agents.
    """
    for place in _PLACES:
        package = (folder / place).resolve()
        if _python_name(package / "pyproject.toml") == PYTHON_PACKAGE:
            return Checkout("python", folder, package)
        if (named := described_in(package / "package.json")) and named[0] == NODE_PACKAGE:
            return Checkout("node", folder, package)
    raise BuildError(
        f"expected a checkout of {PYTHON_PACKAGE} (livekit-agents/pyproject.toml) or "
        f"{NODE_PACKAGE} (agents/package.json), or an environment, found neither in {folder}"
    )


def _python_name(path: Path) -> str | None:
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return canonicalize_name(str(name))


def described_in(path: Path) -> tuple[str, str] | None:
    """Name and version in a ``package.json``; ``None``: it is none."""
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        return str(described["name"]), str(described.get("version", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def committed(folder: Path) -> datetime | None:
    """When the folder's last commit was made; ``None``: it is under no version control."""
    try:
        when = run(
            [git(), "-C", folder, "log", "-1", "--format=%cI", "--", "."], limit_s=LOOK_UP_LIMIT_S
        )
        return datetime.fromisoformat(when.strip().replace("Z", "+00:00"))
    except (BuildError, ValueError):
        return None


def head_of(folder: Path) -> str | None:
    """The commit that is checked out, shortened; ``None``: the folder is in no commit."""
    if committed(folder) is None:
        return None
    return run(
        [git(), "-C", folder, "rev-parse", "--short=12", "HEAD"], limit_s=LOOK_UP_LIMIT_S
    ).strip()


def state_of(checkout: Checkout) -> str:
    """Its commit; where files differ from that, with a digest of their times."""
    package = checkout.package
    commit = head_of(package)
    if commit is None:
        return files_of(checkout.root)
    changed = run(
        [git(), "-C", package, "status", "--porcelain", "--", "."], limit_s=LOOK_UP_LIMIT_S
    )
    with_changes = f" with changes ({_digest(package)})" if changed.strip() else ""
    return f"commit {commit}{with_changes}"


def files_of(folder: Path) -> str:
    """A folder under no version control, by a digest of its files' times."""
    return f"files {_digest(folder)}"


def _digest(package: Path) -> str:
    """Another one after any source file was changed."""
    told = [
        (str(path.relative_to(package)), path.stat().st_size, path.stat().st_mtime_ns)
        for suffix in ("*.py", "*.js", "*.mjs", "*.cjs", "*.toml", "*.json")
        for path in sorted(package.rglob(suffix))
        if not _ASIDE.intersection(path.relative_to(package).parts) and path.is_file()
    ]
    return sha256(repr(told).encode()).hexdigest()[:6]


def resolve(url: str, ref: str | None) -> str:
    """The commit a ref of a repository means now, 40 digits; a short commit as it was given.

    Raises:
        BuildError: the repository can't be read, or has no such branch or tag.
    """
    if ref is not None and len(ref) == 40 and _hexadecimal(ref):
        return ref.lower()
    name = "HEAD" if ref is None else ref
    listed = run([git(), "ls-remote", url, name, f"{name}^{{}}"], limit_s=LOOK_UP_LIMIT_S)
    lines = [line.partition("\t") for line in listed.splitlines()]
    found = {full: commit for commit, _, full in lines}
    for full in (
        f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/heads/{name}", name,
    ):  # fmt: skip
        if full in found:
            return found[full]
    if len(name) >= 7 and _hexadecimal(name):
        return name.lower()
    raise BuildError(
        f"{without_credentials(url)}: expected a branch, tag or commit, found no {name}"
    )


def _hexadecimal(text: str) -> bool:
    return all(digit in "0123456789abcdefABCDEF" for digit in text)


def fetch(url: str, commit: str, into: Path) -> str:
    """Checks a commit out into a new folder and returns it with all its digits.

    Raises:
        BuildError: it can't be fetched.
    """
    into.mkdir(parents=True)

    def call(*arguments: str) -> str:
        command = [git(), "-C", str(into), "-c", "advice.detachedHead=false", *arguments]
        return run(command, limit_s=_FETCH_LIMIT_S)

    call("init", "-q")
    call("remote", "add", "origin", url)
    wanted = commit
    if len(commit) == 40:
        try:
            call("fetch", "-q", "--depth", "1", "origin", commit)
        except BuildError:
            # Some servers hand out branches and tags only.
            call("fetch", "-q", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*")
    else:
        call("fetch", "-q", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*")
    call("checkout", "-q", wanted)
    return call("rev-parse", "HEAD").strip()
