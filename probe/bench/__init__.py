"""What the probe costs on this machine: one module per question, each runnable on its own.

Every part runs in a child process (``python -m probe.bench.frames`` and so on) and prints one JSON
object, so that one part's threads, caches and memory do not colour another's figures, and a native
library that aborts while the interpreter leaves costs a part, not the bench.
"""

from __future__ import annotations

import time

from probe.trace.events import SCHEMA, Header


def header() -> Header:
    """Of a trace that is only written to be measured."""
    return Header(SCHEMA, time.monotonic_ns(), time.time(), ["captured", "pushed", "sent"])
