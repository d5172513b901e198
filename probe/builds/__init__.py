"""Builds by the names people give them, each made in an environment of its own.

specs = [parse("livekit-agents==1.5.*"), parse("npm:@livekit/agents@1.9.0")]
for build in make_all(specs): ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probe.builds.cache import default_cache
from probe.builds.environments import make, published
from probe.builds.releases import Published, fitting
from probe.builds.specs import NODE_PACKAGE, PYTHON_PACKAGE, BuildSpec, Release, Runtime, parse
from probe.builds.tools import Progress
from probe.errors import BuildError
from probe.sweep import Build

__all__ = [
    "NODE_PACKAGE",
    "PYTHON_PACKAGE",
    "BuildFailed",
    "BuildSpec",
    "Runtime",
    "default_cache",
    "make",
    "make_all",
    "parse",
    "published",
    "released",
]


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """A build that can't be had: a row that says why."""

    label: str
    """As the user named it, or the release it stood for."""
    reason: str
    """One line."""


def make_all(
    specs: Sequence[BuildSpec], cache: Path | None = None, progress: Progress | None = None
) -> tuple[Build | BuildFailed, ...]:
    """The builds of several specs in their order; a range is every release in it, oldest first.

    No two have the same label: what is named twice is there twice, the second time with a number.
    What can't be made is told in its place; see `make` for the arguments and what interrupts it.
    """
    folder = cache or default_cache()
    said = progress or (lambda _: None)
    found: list[Build | BuildFailed] = []
    for spec in specs:
        if isinstance(spec, Release) and spec.every:
            found += _every(spec, folder, said)
        else:
            found.append(_one(spec, folder, said))
    return tuple(_numbered(found))


def _every(spec: Release, cache: Path, progress: Progress) -> list[Build | BuildFailed]:
    progress(f"looking for {spec.wanted}")
    try:
        releases = fitting(spec)
    except BuildError as error:
        return [BuildFailed(spec.text, str(error))]
    return [released(one, cache, progress) for one in releases]


def released(
    release: Published, cache: Path | None = None, progress: Progress | None = None
) -> Build | BuildFailed:
    """The build of a release that was looked up, or why it can't be had; see `make`."""
    try:
        return published(release, cache, progress)
    except BuildError as error:
        return BuildFailed(f"{release.package} {release.version}", str(error))


def _one(spec: BuildSpec, cache: Path, progress: Progress) -> Build | BuildFailed:
    try:
        return make(spec, cache, progress)
    except BuildError as error:
        return BuildFailed(spec.text, str(error))


def _numbered(found: Sequence[Build | BuildFailed]) -> list[Build | BuildFailed]:
    seen: dict[str, int] = {}
    numbered = []
    for one in found:
        seen[one.label] = count = seen.get(one.label, 0) + 1
        numbered.append(one if count == 1 else replace(one, label=f"{one.label} ({count})"))
    return numbered
