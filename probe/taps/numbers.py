"""Numbers for objects that a trace must tell apart and may not name."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["Numbers"]


class Numbers:
    """Counts objects by identity, from 1, in order of appearance. It keeps none of them alive, but
    those that can't be referred to weakly: their place in memory would be another's later."""

    __slots__ = ("_known", "_last")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int]] = {}
        self._last = 0

    def of(self, thing: Any) -> int:
        """The number of ``thing``; the next free one where it is new."""
        entry = self._known.get(id(thing))
        if entry is not None:
            kept, number = entry
            if (kept() if isinstance(kept, weakref.ref) else kept) is thing:
                return number
        try:
            kept = weakref.ref(thing)
        except TypeError:
            kept = thing
        self._last += 1
        self._known[id(thing)] = (kept, self._last)
        return self._last
