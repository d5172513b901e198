"""Putting the probe on a session.

livekit is imported when a session is attached to, not before, so that `import probe` costs a
process nothing it does not use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probe.errors import ProbeError, UsageError
from probe.recording import Recording
from probe.trace.events import SCHEMA, Header

if TYPE_CHECKING:
    from livekit.agents import AgentSession

__all__ = ["Recording", "attach"]


def attach(
    session: AgentSession[Any],
    path: str | os.PathLike[str],
    *,
    wire: bool = True,
    labels: Mapping[str, str] | None = None,
    max_mb: float | None = None,
    run: Mapping[str, Any] | None = None,
) -> Recording:
    """Record a session, from now until `Recording.close` or shortly after the session closes.

    Works before ``session.start()``, so that a greeting is recorded whole, and after it, also
    while the agent speaks: that speech goes on, and its segment is partial.

    Args:
        session: the `AgentSession`. One recording at a time.
        path: file to write. One that exists is left alone: ``call.jsonl`` becomes
            ``call-1.jsonl``; `Recording.path` says which.
        wire: whether to read back what leaves the source. Without it *sent* is not tapped.
        labels: the user's own, written into the header.
        max_mb: bound of the file, in millions of bytes; None for none.
        run: of a scripted call, what was scripted; written into the header.

    Raises:
        ProbeError: not a session, recorded already, or the file can't be made.
    """
    try:
        from probe import compat
        from probe.taps.output import OutputTap
    except ImportError as error:
        raise ProbeError(
            f"expected livekit-agents to be installed, found: {type(error).__name__}: {error}"
        ) from error

    if not compat.is_session(session):
        raise UsageError(f"expected an AgentSession, found {type(session).__name__}")
    current = OutputTap.on(session)
    if current is not None:
        raise UsageError(
            f"expected a session without a probe, found one recorded already ({current.name}); "
            "close that recording first"
        )
    file = Path(path)
    if file.is_dir():
        raise UsageError(f"expected a file to write, found a directory: {file}")

    from probe.assemble.assembler import Assembler
    from probe.recorder import Recorder

    header = _header(session, wire=wire, labels=labels, run=run)
    try:
        recorder = Recorder(file, header, Assembler(), max_mb=max_mb)
    except (OSError, ValueError) as error:
        raise ProbeError(f"expected to write {file}, found: {error}") from error
    return Recording(session, recorder, wire=wire)


def _header(
    session: Any,
    *,
    wire: bool,
    labels: Mapping[str, str] | None,
    run: Mapping[str, Any] | None,
) -> Header:
    from probe import compat

    monotonic_ns, unix_s = _paired_clocks()
    missing = compat.missing(session)
    started = compat.started(session)
    if not wire:
        missing["sent"] = "the wire tap was switched off"
    return Header(
        schema=SCHEMA,
        started_monotonic_ns=monotonic_ns,
        started_unix_s=unix_s,
        boundaries=["captured", "pushed", "sent"] if wire else ["captured", "pushed"],
        missing=missing,
        runtime=compat.runtime(),
        options=compat.interruption_options(session) if started else {},
        labels={str(key): str(value) for key, value in (labels or {}).items()},
        run=None if run is None else dict(run),
        speeches=[handle.id for handle in compat.running_speeches(session)] if started else None,
    )


def _paired_clocks() -> tuple[int, float]:
    """Both clocks read together, as closely as a few tries allow: monotonic ns, unix seconds."""
    best: tuple[int, int, float] | None = None
    for _ in range(5):
        before = time.monotonic_ns()
        unix_s = time.time()
        width = time.monotonic_ns() - before
        if best is None or width < best[0]:
            best = (width, before + width // 2, unix_s)
    assert best is not None
    return best[1], best[2]
