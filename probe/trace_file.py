"""The file of a trace while it is written: made anew, grown by whole lines, whatever happens."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Final

__all__ = ["TraceFile"]

PENDING_BYTES: Final = 8 << 20
"""Encoded lines that may wait for a disk that does not take them."""


class TraceFile:
    """An open file and the bytes it has not taken yet, which stay in order whatever happens: a
    write that fails half way is resumed at the very byte, so that no line is ever torn."""

    __slots__ = ("_fd", "_pending", "_written", "path")

    def __init__(self, path: Path) -> None:
        """Create the file, or the first of ``name-1``, ``name-2``, … beside it that does not exist.

        Raises:
            OSError: it can't be created.
        """
        self.path, self._fd = _create(path)
        """The file that was really created."""
        self._pending = bytearray()
        self._written = 0

    @property
    def size(self) -> int:
        """Bytes, those not written yet too."""
        return self._written + len(self._pending)

    def add(self, line: bytes) -> bool:
        """Takes a line to be written; ``False``: there is no room for it."""
        if len(self._pending) + len(line) > PENDING_BYTES:
            return False
        self._pending += line
        return True

    def write(self) -> None:
        """Hands everything to the operating system, where it outlives this process.

        Raises:
            OSError: it did not take all of it.
        """
        while self._pending:
            with memoryview(self._pending) as view:
                written = os.write(self._fd, view)
            del self._pending[:written]
            self._written += written

    def close(self) -> int:
        """Closes the file; how many lines it never took."""
        with contextlib.suppress(OSError):
            os.close(self._fd)
        return self._pending.count(b"\n")


def _create(path: Path) -> tuple[Path, int]:
    if path.is_dir():
        raise IsADirectoryError(f"expected a file to write the trace to, found a folder: {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    for number in itertools.count():
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}") if number else path
        try:
            return candidate, os.open(candidate, flags, 0o666)
        except FileExistsError:
            continue
    raise AssertionError("count() ends")
