"""Calls that were made, kept in their folder, so that a command that was stopped makes none twice.

A journal is a file of JSON lines beside the traces: one for each call that came to its end. What
failed is not in it and is tried again. A trace that is gone is made again too.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from probe.errors import ProbeError, UsageError
from probe.scenarios.document import to_document
from probe.sweep.cells import Build, Call

__all__ = ["Journal", "identity", "opened"]

FILE: Final = "calls.journal"

_NAMED: Final = ("livekit", "@livekit/")


def identity(build: Build) -> str:
    """What tells a build from another of the same name: versions, and the state of its sources."""
    versions = {
        name: version for name, version in build.installed.items() if name.startswith(_NAMED)
    }
    told = [build.label, build.runtime, versions, build.as_of, build.source]
    return _digest(told)


class Journal:
    """The calls of one folder; see `opened`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / FILE
        self._traces: dict[str, str] = {}
        with contextlib.suppress(OSError):
            for line in self._file.read_bytes().split(b"\n"):
                # The last line of a command that was killed may be cut.
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line)
                    self._traces[told["call"]] = str(told["trace"])

    def trace(self, call: Call) -> Path | None:
        """What a call left when it was made before; ``None``: it is to be made."""
        name = self._traces.get(_key(call))
        path = None if name is None else self._folder / name
        return path if path is not None and path.is_file() else None

    def keep(self, call: Call, trace: Path) -> None:
        """Puts a call that was made into it, with what it left.

        Raises:
            ProbeError: it can't be written to.
        """
        place = trace.resolve()
        with contextlib.suppress(ValueError):
            place = place.relative_to(self._folder.resolve())
        line = json.dumps({"call": _key(call), "trace": str(place)})
        try:
            with self._file.open("a+", encoding="utf-8") as file:
                # Whatever a killed command left of its last line stays by itself.
                file.write(line + "\n" if self._is_whole() else "\n" + line + "\n")
        except OSError as error:
            raise ProbeError(f"{self._file}: expected to write to it, found: {error}") from error
        self._traces[_key(call)] = str(place)

    def _is_whole(self) -> bool:
        there = self._file.read_bytes()
        return not there or there.endswith(b"\n")


def _key(call: Call) -> str:
    cell = call.cell
    # A scenario of one's own may say something else under the same name by now.
    scripted = _digest(to_document(cell.scenario))
    return f"{identity(cell.build)} {cell.folder.as_posix()} {scripted} {call.run}"


def _digest(told: object) -> str:
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def opened(folder: Path) -> Iterator[Journal]:
    """The journal of a folder, which is made if need be and is nobody else's meanwhile.

    Raises:
        UsageError: another command is at work in the folder.
        ProbeError: the folder can't be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{FILE}.lock")
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UsageError(
            f"{folder}: expected to be alone in it, found another command at work there"
        ) from error
    except OSError as error:
        raise ProbeError(f"{folder}: expected a folder to write to, found: {error}") from error
    try:
        yield Journal(folder)
    finally:
        lock.release()
