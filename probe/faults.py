"""How often the probe failed at something, and how much of that is worth a line."""

from __future__ import annotations

import threading
from typing import Final

from probe.trace.events import Faulted

__all__ = ["Faults"]

FIRST_PAUSE_NS: Final = 1_000_000_000
LONGEST_PAUSE_NS: Final = 60_000_000_000


class Faults:
    """Faults by kind: their totals, and what of them is still to be written."""

    __slots__ = ("_lock", "_open", "_pause_ns", "_totals")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._totals: dict[str, int] = {}
        self._open: dict[str, Faulted] = {}
        self._pause_ns: dict[str, tuple[int, int]] = {}

    def totals(self) -> dict[str, int]:
        with self._lock:
            return dict(self._totals)

    def note(self, kind: str, detail: str, count: int, at_ns: int) -> None:
        with self._lock:
            self._totals[kind] = self._totals.get(kind, 0) + count
            known = self._open.get(kind)
            if known is None:
                self._open[kind] = Faulted(at_ns, kind, count, detail)
            else:
                self._open[kind] = Faulted(known.at_ns, kind, known.count + count, known.detail)

    def due(self, now_ns: int | None) -> list[Faulted]:
        """Takes what is to be written now; ``None``: all of it.

        The pause until the next line of the same kind doubles from one second to a minute: a tap
        that fails at every frame must not fill the trace with it.
        """
        taken: list[Faulted] = []
        with self._lock:
            for kind in list(self._open):
                until_ns, pause_ns = self._pause_ns.get(kind, (0, FIRST_PAUSE_NS))
                if now_ns is not None:
                    if now_ns < until_ns:
                        continue
                    longer_ns = min(pause_ns * 2, LONGEST_PAUSE_NS)
                    self._pause_ns[kind] = (now_ns + pause_ns, longer_ns)
                taken.append(self._open.pop(kind))
        return taken
