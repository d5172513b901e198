"""What a frame says of itself, and what is in it. Read on the recorder's thread only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probe.follow import VALUE_BYTES

__all__ = ["Audio", "Fault", "read_frame"]

Fault = Callable[[str, str, int], None]
"""Takes the kind, the detail and the count of a failure of the probe."""


@dataclass(slots=True)
class Audio:
    """Geometry and content of one frame."""

    samples: int
    rate_hz: int
    channels: int
    data: bytes
    data_bytes: int | None
    """Length of the frame's own data where it is not what its geometry says."""


def read_frame(frame: Any, fault: Fault) -> Audio:
    """Geometry and content of a frame, whatever it is."""
    try:
        samples = max(int(frame.samples_per_channel), 0)
        channels = max(int(frame.num_channels), 1)
        rate_hz = int(frame.sample_rate)
    except Exception as error:
        fault("tap_raised", f"frame without geometry: {type(error).__name__}", 1)
        return Audio(0, 0, 1, b"", None)
    expected = samples * channels * VALUE_BYTES
    try:
        data = bytes(frame.data)
    except Exception as error:
        fault("tap_raised", f"frame without data: {type(error).__name__}", 1)
        data = b""
    if len(data) == expected:
        return Audio(samples, rate_hz, channels, data, None)
    # The native side reads what the geometry says, from the front.
    fitted = data[:expected] + bytes(max(expected - len(data), 0))
    return Audio(samples, rate_hz, channels, fitted, len(data))
