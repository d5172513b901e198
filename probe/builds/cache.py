"""Folders that are made once and whole, or not at all, and kept for the next run.

A folder comes to be beside its place and is moved there when it is complete. What is broken later
is made anew. Two processes that want the same one wait for each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from probe.builds.tools import MAKE_LIMIT_S, Progress
from probe.errors import BuildError

__all__ = ["Stamp", "default_cache", "kept", "key_of", "stamped"]

STAMP: Final = "sinkprobe-build.json"
"""Written last: a folder without it is no environment."""

_RECIPE: Final = 1
"""To be raised when environments are made differently: none that is there fits any more."""
_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was put into a folder."""

    build: str
    as_of: str | None
    """UTC. Nothing newer was installed; ``None``: whatever was newest."""
    installed: dict[str, str]
    """Package to version."""


def default_cache() -> Path:
    """Where environments are kept unless the user says otherwise."""
    return user_cache_path("sinkprobe") / "builds"


def key_of(name: str, *told: object) -> str:
    """A folder's name: readable, and another for everything else that it depends on."""
    readable = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:60]
    digest = sha256(repr((_RECIPE, name, *told)).encode()).hexdigest()[:12]
    return f"{readable}-{digest}"


def stamped(folder: Path) -> Stamp | None:
    """What a folder was made of; ``None``: it never was finished."""
    try:
        return Stamp(**json.loads((folder / STAMP).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def kept(
    cache: Path,
    key: str,
    *,
    make: Callable[[Path], Stamp],
    sound: Callable[[Path, Stamp], bool],
    progress: Progress,
    wait_s: float = MAKE_LIMIT_S,
) -> tuple[Path, Stamp]:
    """The folder of that key, made if it is not there or not sound.

    Args:
        cache: the folder it lies in.
        key: its name.
        make: fills a folder that does not exist yet, whose name is not its last.
        sound: whether a folder still holds what its stamp says.
        progress: told what is waited for.
        wait_s: how long another process that makes the same one is waited for.

    Raises:
        BuildError: it can't be made.
    """
    folder = cache / key
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{key}.lock", progress, wait_s):
            stamp = stamped(folder)
            if stamp is not None and sound(folder, stamp):
                return folder, stamp
            _sweep(cache, key)
            scratch = cache / f"{key}.tmp-{os.getpid()}"
            try:
                stamp = make(scratch)
                text = json.dumps(asdict(stamp), indent=1)
                (scratch / STAMP).write_text(text, encoding="utf-8")
                shutil.rmtree(folder, ignore_errors=True)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            return folder, stamp
    except OSError as error:
        raise BuildError(f"{cache}: expected to keep builds there, found: {error}") from error


@contextmanager
def _locked(path: Path, progress: Progress, wait_s: float) -> Iterator[None]:
    lock = FileLock(path)
    over = time.monotonic() + wait_s
    told = False
    while True:
        try:
            lock.acquire(timeout=_LOOK_S if told else 0)
            break
        except Timeout:
            if time.monotonic() >= over:
                raise BuildError(
                    f"another process has been making it for {wait_s:g} s; its lock is {path}"
                ) from None
            if not told:
                progress("waiting for another process that makes it")
                told = True
    try:
        yield
    finally:
        lock.release()


def _sweep(cache: Path, key: str) -> None:
    """Removes what killed processes left half made. Whoever makes this key holds its lock."""
    for left in cache.glob(f"{key}.tmp-*"):
        with contextlib.suppress(OSError):
            shutil.rmtree(left)
