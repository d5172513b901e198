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

    def __len__(self) -> int:
        """How many there were so far."""
        return self._last

    def __contains__(self, thing: Any) -> bool:
        return self._number(thing) is not None

    def of(self, thing: Any) -> int:
        """The number of ``thing``; the next free one where it is new."""
        number = self._number(thing)
        if number is None:
            try:
                kept = weakref.ref(thing)
            except TypeError:
                kept = thing
            number = self._last = self._last + 1
            self._known[id(thing)] = (kept, number)
        return number

    def _number(self, thing: Any) -> int | None:
        kept, number = self._known.get(id(thing), (None, None))
        if isinstance(kept, weakref.ref):
            kept = kept()
        return number if kept is thing else None
