"""What commands read and write: traces as they are named, and reports."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from probe.errors import ProbeError, TraceError, UsageError

__all__ = ["coloured", "columns", "put", "traces_of"]

SUFFIXES: Final = (".jsonl", ".jsonl.zst")
"""Names of traces in a folder."""


def traces_of(traces: Sequence[Path]) -> list[Path]:
    """The files themselves, and of each folder every trace in it, by name.

    Raises:
        TraceError: a folder holds none.
    """
    files: list[Path] = []
    for path in traces:
        if not path.is_dir():
            files.append(path)
            continue
        found = sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file())
        if not found:
            raise TraceError(f"{path}: expected traces ({', '.join(SUFFIXES)}), found none")
        files += found
    return files


def columns() -> int:
    """Columns of the terminal, or ``COLUMNS``; 80 where there is neither."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), 120)


def coloured() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def put(report: str | bytes, output: Path | None = None) -> None:
    """Writes to the file, or to standard output as far as that can show it.

    Raises:
        ProbeError: the file can't be written.
        UsageError: what is no text would go to a terminal.
    """
    if output is None and isinstance(report, bytes):
        if sys.stdout.isatty():
            raise UsageError("expected a file to write to (-o): this format is no text")
        sys.stdout.buffer.write(report)
    elif output is None:
        # A terminal that knows no dash gets a question mark instead of a traceback.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(str(report).encode(encoding, "replace").decode(encoding))
    else:
        try:
            output.write_bytes(report if isinstance(report, bytes) else report.encode())
        except OSError as error:
            raise ProbeError(f"{output}: can't be written: {error.strerror or error}") from error
