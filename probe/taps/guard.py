"""What a tap does for itself may fail; the call must never feel it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Fault", "Guard"]

Fault = Callable[[str, str], None]
"""Takes a fault's kind and its detail; never raises."""


class Guard:
    """Turns the failures of a tap into faults."""

    __slots__ = ("_fault", "_of")

    def __init__(self, fault: Fault, of: str = "") -> None:
        """``of``: what the names of its places begin with."""
        self._fault = fault
        self._of = of

    def attempt(self, where: str, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What ``step`` gives, or None where it fails."""
        try:
            return step(*args, **kwargs)
        except Exception as error:
            self.failed(where, error)
            return None

    def failed(self, where: str, error: BaseException) -> None:
        """Note a failure, by its type only: a message may quote what was said."""
        self._fault("tap_raised", f"{self._of}{where}: {type(error).__name__}")
