"""Where a ledger comes from: a file, a trace that was read, or a ledger that is there already."""

from __future__ import annotations

import os
from typing import TypeAlias

from probe.trace.reader import Trace, read_trace
from reports.account.ledger import Ledger, balance

__all__ = ["Source", "ledger_of"]

Source: TypeAlias = str | os.PathLike[str] | Trace | Ledger


def ledger_of(source: Source) -> Ledger:
    """The ledger of a file or a trace; a ledger as it is, so that nothing is balanced twice.

    Raises:
        TraceError: nothing can be read; the message is one line.
    """
    if isinstance(source, Ledger):
        return source
    return balance(source if isinstance(source, Trace) else read_trace(source))
