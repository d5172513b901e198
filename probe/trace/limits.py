"""How much a reader takes in before it refuses a file, so that a small one can't fill a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from probe.errors import TraceError

__all__ = ["LIMITS", "Limits", "beyond"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Most of what a trace may have. A call of ten hours has 400 MB in two million lines."""

    unpacked_bytes: int = 1 << 30
    ratio: int = 1000
    """Unpacked to packed bytes; calls have 15 to 40."""
    ratio_from_bytes: int = 1 << 24
    """Unpacked bytes from which the ratio counts: a short file may be nothing but repetitions."""
    lines: int = 6_000_000
    """Blank ones included."""
    rare_lines: int = 1_000_000
    """Lines of which each becomes an object, and lines that can't be read."""
    nested_bytes: int = 1 << 24
    """Of lines that hold lists or objects: in memory each item takes many times its length."""
    sources: int = 1000


LIMITS: Final = Limits()
"""What is taken where nothing else is asked for."""


def beyond(path: str, most: int, what: str, where: str = "") -> TraceError:
    """The refusal: one line that says what was expected, what was found, and where."""
    return TraceError(
        f"{path}{where}: expected at most {most:,} {what}, found more: no trace of a call is like "
        "that, but --no-limits reads it"
    )
