"""Compresses a finished trace. Not for the call: it needs the ``zstandard`` package."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import zstandard

from probe.errors import TraceError

__all__ = ["compress_trace"]


def compress_trace(path: str | os.PathLike[str]) -> Path:
    """Writes ``call.jsonl.zst`` beside ``call.jsonl``, whole or not at all; the original stays.

    The content is not looked at, so a trace that was cut compresses as well. One that is still
    being written should be left alone: what comes later is not in the copy.

    Returns:
        Path of the compressed trace.

    Raises:
        TraceError: the trace cannot be read, the compressed one exists already or cannot be
            written.
    """
    source = Path(path)
    target = source.with_name(source.name + ".zst")
    if target.exists():
        raise TraceError(f"{target}: expected no file of this name, found one")
    part: Path | None = None
    try:
        with source.open("rb") as plain:
            fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            part = Path(name)
            with os.fdopen(fd, "wb") as packed:
                zstandard.ZstdCompressor(level=9, write_checksum=True).copy_stream(plain, packed)
                packed.flush()
                os.fsync(packed.fileno())
            # A temporary file is readable to its owner only; the trace was readable to more.
            part.chmod(source.stat().st_mode & 0o777)
            part.replace(target)
    except OSError as error:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink()
        raise TraceError(
            f"{source}: expected a trace that can be compressed, found: {error.strerror or error}"
        ) from None
    return target
