"""One environment per build, with its dependencies as of its own date.

A release does not run on what its dependencies became later, so nothing newer than the day after
its upload is installed with it. Environments are kept (`probe.builds.cache`); checkouts in folders
are installed so that a change in them is seen at once, and nothing is written into them.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Final

from probe.builds.cache import Stamp, default_cache, kept, key_of
from probe.builds.checkouts import (
    Checkout,
    committed,
    described_in,
    fetch,
    files_of,
    head_of,
    look,
    resolve,
    state_of,
)
from probe.builds.releases import Published, newest, recall, remember
from probe.builds.specs import (
    NODE_PACKAGE,
    PYTHON_PACKAGE,
    BuildSpec,
    Folder,
    Git,
    Installed,
    Release,
)
from probe.builds.tools import LOOK_UP_LIMIT_S, MAKE_LIMIT_S, Progress, npm, run, uv
from probe.errors import BuildError
from probe.sweep import Build

__all__ = ["make", "published"]

_SLACK: Final = timedelta(days=1)
"""What a release was published with may have been uploaded after it."""

_IN_CALL: Final = "numpy"
"""What the probe needs inside a call, beside the standard library and livekit."""

_FIND_SOURCES: Final = (
    "import importlib.util as u;"
    "found = u.find_spec('livekit.agents');"
    "print(found.submodule_search_locations[0] if found else '')"
)
_LIST_INSTALLED: Final = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.name.lower().replace('_', '-'): d.version"
    " for d in m.distributions() if d.name}))"
)

_MODULES: Final = "node_modules"


def make(spec: BuildSpec, cache: Path | None = None, progress: Progress | None = None) -> Build:
    """The build a spec names, in an environment of its own, made if it is not there yet.

    Args:
        spec: of which several releases fit, the newest is meant.
        cache: the folder environments are kept in; ``None``: the user's cache directory.
        progress: told in a few words what begins.

    Raises:
        BuildError: it can't be found or installed. The message says why, in one line.
        KeyboardInterrupt: passed on; what was half made is gone.
    """
    folder = (cache or default_cache()).absolute()
    said = progress or (lambda _: None)
    if isinstance(spec, Installed):
        return _ready_python(spec.text, Path(sys.executable))
    if isinstance(spec, Release):
        return _released(spec, folder, said)
    if isinstance(spec, Folder):
        return _in_folder(spec, folder, said)
    return _committed(spec, folder, said)


def published(
    release: Published,
    cache: Path | None = None,
    progress: Progress | None = None,
    *,
    extras: str = "",
) -> Build:
    """The build of a release that was looked up.

    Args:
        release: which.
        cache: see `make`.
        progress: see `make`.
        extras: of the package, ``[openai]``; only in Python.

    Raises:
        BuildError: it can't be installed.
    """
    folder = (cache or default_cache()).absolute()
    said = progress or (lambda _: None)
    as_of = _as_of(release.uploaded)
    label = f"{release.package}{extras} {release.version}"
    if release.runtime == "python":
        requirement = f"{release.package}{extras}=={release.version}"
        return _python_environment(label, label, [requirement], as_of, folder, said)
    return _node_environment(label, f"{release.package}@{release.version}", as_of, folder, said)


# --- What is there already -----------------------------------------------------------------------


def _ready_python(label: str, python: Path) -> Build:
    installed = _python_packages(python)
    if PYTHON_PACKAGE not in installed:
        raise BuildError(f"expected {PYTHON_PACKAGE} in {python}, found none")
    # Isolated from PYTHONPATH, as the list was.
    place = run([python, "-I", "-c", _FIND_SOURCES], limit_s=LOOK_UP_LIMIT_S)
    place = place.rstrip("\r\n").rpartition("\n")[2]
    if not place:
        raise BuildError(f"expected livekit.agents to be there for {python}, found none")
    return Build(label, python=str(python), installed=installed, source=files_of(Path(place)))


def _ready_node(label: str, home: Path, as_of: str | None = None) -> Build:
    installed = _node_packages(home)
    if NODE_PACKAGE not in installed:
        raise BuildError(f"expected {NODE_PACKAGE} in {home / _MODULES}, found none")
    return Build(label, runtime="node", home=home, installed=installed, as_of=as_of)


def _python_packages(python: Path) -> dict[str, str]:
    """What an environment has, by name.

    Raises:
        BuildError: it does not say.
    """
    told = run([python, "-I", "-c", _LIST_INSTALLED], limit_s=LOOK_UP_LIMIT_S)
    try:
        # What the environment itself prints as it starts comes before it.
        return _sorted(json.loads(told.rstrip().rpartition("\n")[2]))
    except (ValueError, TypeError) as error:
        raise BuildError(
            f"expected {python} to list its packages, found {told.strip()[:100]!r}"
        ) from error


def _node_packages(home: Path) -> dict[str, str]:
    """What lies directly in ``node_modules``, by name. Follows links: to a checkout, for one."""
    modules = home / _MODULES
    found: dict[str, str] = {}
    for pattern in ("*/package.json", "@*/*/package.json"):
        for path in modules.glob(pattern):
            if (named := described_in(path)) is not None:
                found[named[0]] = named[1]
    return _sorted(found)


def _sorted(packages: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(packages.items()))


# --- Releases ------------------------------------------------------------------------------------


def _released(spec: Release, cache: Path, progress: Progress) -> Build:
    found = None if spec.exact is None else recall(spec.runtime, spec.exact, cache)
    if found is None:
        progress(f"looking for {spec.wanted}")
        found = newest(spec)
        remember(found, cache)
    return published(found, cache, progress, extras=_extras(spec))


def _extras(spec: Release) -> str:
    _, bracket, rest = spec.wanted.partition("[")
    return f"[{rest.partition(']')[0]}]" if spec.runtime == "python" and bracket else ""


def _as_of(when: datetime | None) -> str | None:
    if when is None:
        return None
    return (when.astimezone(timezone.utc) + _SLACK).strftime("%Y-%m-%dT%H:%M:%SZ")


def _python_environment(
    label: str,
    name: str,
    what: list[str],
    as_of: str | None,
    cache: Path,
    progress: Progress,
    *told: str,
) -> Build:
    """An environment of that name with ``what``, as `uv pip install` takes it."""

    def fill(folder: Path) -> Stamp:
        _install_python(folder, what, as_of, label, progress)
        return Stamp(name, as_of, _python_packages(_python_of(folder)))

    key = key_of(name, what, as_of, sys.version, platform.machine(), sys.base_prefix, *told)
    folder, stamp = kept(
        cache / "python", key, make=fill, sound=_python_sound, progress=_about(label, progress)
    )
    python = str(_python_of(folder))
    return Build(label, python=python, installed=stamp.installed, as_of=stamp.as_of)


def _about(label: str, progress: Progress) -> Progress:
    return lambda text: progress(f"{label}: {text}")


def _python_of(folder: Path) -> Path:
    windows = folder / "Scripts" / "python.exe"
    return windows if windows.exists() else folder / "bin" / "python"


def _install_python(
    folder: Path, what: list[str], as_of: str | None, label: str, progress: Progress
) -> None:
    until = f", dependencies as of {as_of[:10]}" if as_of else ""
    progress(f"{label}: installing{until}")
    # In the cache no project's own settings for uv are found.
    beside = folder.parent
    run(
        [uv(), "venv", "-q", "--no-project", "--relocatable", "--python", sys.executable, folder],
        limit_s=MAKE_LIMIT_S,
        cwd=beside,
    )
    cutoff = ["--exclude-newer", as_of] if as_of else []
    # Siblings of a repository come from the registry: some need a compiler.
    run(
        [uv(), "pip", "install", "-q", "--no-sources", "--python", _python_of(folder),
         *cutoff, *what, _IN_CALL],
        limit_s=MAKE_LIMIT_S,
        cwd=beside,
    )  # fmt: skip


def _python_sound(folder: Path, stamp: Stamp) -> bool:
    try:
        return _python_packages(_python_of(folder)) == stamp.installed
    except BuildError:
        return False


def _node_environment(
    label: str, package: str, as_of: str | None, cache: Path, progress: Progress
) -> Build:
    def fill(folder: Path) -> Stamp:
        until = f", dependencies as of {as_of[:10]}" if as_of else ""
        progress(f"{label}: installing{until}")
        folder.mkdir(parents=True)
        own = {"name": "build", "private": True}
        (folder / "package.json").write_text(json.dumps(own), encoding="utf-8")
        cutoff = ["--before", as_of] if as_of else []
        # What packages run as they are installed mostly downloads models and tools.
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
        run([npm(), "install", *quiet, *cutoff, package], limit_s=MAKE_LIMIT_S, cwd=folder)
        return Stamp(label, as_of, _node_packages(folder))

    def sound(folder: Path, stamp: Stamp) -> bool:
        return _node_packages(folder) == stamp.installed

    key = key_of(label, package, as_of, sys.platform, platform.machine())
    folder, stamp = kept(
        cache / "node", key, make=fill, sound=sound, progress=_about(label, progress)
    )
    return _ready_node(label, folder, stamp.as_of)


# --- Checkouts -----------------------------------------------------------------------------------


def _in_folder(spec: Folder, cache: Path, progress: Progress) -> Build:
    if (spec.path / "pyvenv.cfg").is_file():
        return _ready_python(spec.text, _python_of(spec.path))
    if (spec.path / _MODULES / NODE_PACKAGE / "package.json").is_file():
        package = spec.path / _MODULES / NODE_PACKAGE
        return replace(_ready_node(spec.text, spec.path), source=files_of(package.resolve()))
    checkout = look(spec.path)
    if checkout.runtime == "node":
        return replace(_node_checkout(spec.text, checkout, cache), source=state_of(checkout))
    described = (checkout.package / "pyproject.toml").read_bytes()
    build = _python_environment(
        spec.text,
        spec.path.name,
        ["--editable", str(checkout.package)],
        _as_of(committed(checkout.package)),
        cache,
        progress,
        sha256(described).hexdigest(),
    )
    return replace(build, source=state_of(checkout))


def _committed(spec: Git, cache: Path, progress: Progress) -> Build:
    progress(f"{spec.text}: looking for the commit")
    commit = resolve(spec.url, spec.ref)

    def fill(folder: Path) -> Stamp:
        progress(f"{spec.text}: fetching {commit[:12]}")
        fetch(spec.url, commit, folder)
        checkout = look(folder)
        if checkout.runtime == "node":
            _build_node(checkout, spec.text, progress)
        return Stamp(spec.text, _as_of(committed(checkout.package)), {})

    name = spec.url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    sources, stamp = kept(
        cache / "sources",
        key_of(f"{name} {commit[:12]}", spec.url, commit),
        make=fill,
        sound=lambda folder, _: (folder / ".git").is_dir(),
        progress=_about(spec.text, progress),
    )
    checkout = look(sources)
    if checkout.runtime == "node":
        build = replace(_node_checkout(spec.text, checkout, cache), as_of=stamp.as_of)
    else:
        build = _python_environment(
            spec.text, name, [str(checkout.package)], stamp.as_of, cache, progress
        )
    return replace(build, source=f"commit {head_of(sources)}")


def _build_node(checkout: Checkout, label: str, progress: Progress) -> None:
    """Installs and builds a copy of a Node repository with the package manager it asks for."""
    progress(f"{label}: installing and building")
    until = committed(checkout.package)
    try:
        described = json.loads((checkout.root / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(f"{label}: expected a package.json at its top ({error})") from error
    manager = str(described.get("packageManager", "npm")).partition("+")[0]
    name = manager.partition("@")[0]
    if name == "npm":
        cutoff = ["--before", as_of] if (as_of := _as_of(until)) else []
        steps = [
            [npm(), "install", "--no-audit", "--no-fund", *cutoff],
            [npm(), "run", "build"],
        ]
    else:
        # Its lock file says what is installed.
        frozen = "--immutable" if name == "yarn" else "--frozen-lockfile"
        with_it = [npm(), "exec", "--yes", f"--package={manager}", "--", name]
        steps = [[*with_it, "install", frozen], [*with_it, "run", "build"]]
    for step in steps:
        run(step, limit_s=MAKE_LIMIT_S, cwd=checkout.root, more={"CI": "1"})


def _node_checkout(label: str, checkout: Checkout, cache: Path) -> Build:
    """A home whose ``@livekit/agents`` is the checkout itself, with what is installed in it."""
    package = checkout.package
    if not (package / "dist").is_dir():
        raise BuildError(
            f"expected a built checkout, found no {package / 'dist'}; install and build it first"
        )
    home = cache / "node" / key_of(package.name, str(package))
    link = home / _MODULES / NODE_PACKAGE
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() or Path(os.readlink(link)) != package:
            scratch = link.with_name(f"{link.name}.tmp-{os.getpid()}")
            scratch.unlink(missing_ok=True)
            scratch.symlink_to(package, target_is_directory=True)
            scratch.replace(link)
    except OSError as error:
        raise BuildError(f"{cache}: expected to keep builds there, found: {error}") from error
    build = _ready_node(label, home)
    inside = {
        name: version
        for folder in (package, *package.parents)
        for name, version in _node_packages(folder).items()
        if name.startswith("@livekit/")
    }
    return replace(build, installed=_sorted({**inside, **build.installed}))
