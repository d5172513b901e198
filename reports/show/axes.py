"""How the axes of a scripted call read beside its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["AXES"]

AXES: Final[Mapping[str, str]] = {
    "pacing": "{}",
    "frame_ms": "{:g} ms",
    "rate_hz": "{} Hz",
    "reply_ms": "reply {} ms",
    "at": "at {}",
    "reply": "{}",
    "channels": "{} ch",
    "close_ms": "close {} ms",
}
"""A format for the value, by the name of the axis."""
