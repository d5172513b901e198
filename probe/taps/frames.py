"""Frames on their way to the recorder: by reference, unless the buffer is used again.

Copying a frame costs more than all else the tap does, so it is done where it has to be only: the
first frame of each segment is copied and its buffer remembered; a second one in the same buffer
shows that the sink's feeder fills one buffer over and over, and from then on every frame is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from probe.taps.calls import CAPTURE_FRAME, Call, Put

__all__ = ["FrameRecords"]


class FrameRecords:
    """Takes the records of one sink's frames.

    Args:
        target: takes them in the end; the cheapest there is.
        direct: given what is to take records from now on, so that the way through here is left
            again where nothing needs it.
    """

    def __init__(self, target: Put, direct: Callable[[Put], None]) -> None:
        self.target = target
        self.copying = False
        """Whether a buffer was seen to be used again."""
        self._direct = direct
        self._buffer: Any = None

    def begin(self) -> None:
        """A segment begins: look at its first two frames."""
        self._buffer = None

    def put(self, record: Call) -> None:
        """Takes a record and puts what its frame holds now into it, if that may change."""
        frame = record[CAPTURE_FRAME]
        buffer = getattr(frame, "_data", frame)
        if not self.copying:
            if self._buffer is not None:
                self.copying = buffer is self._buffer and not isinstance(buffer, bytes)
                self._buffer = None
                if not self.copying:
                    self._direct(self.target)
                    self.target(record)
                    return
            else:
                self._buffer = buffer
        record[CAPTURE_FRAME] = SimpleNamespace(
            data=bytes(frame.data),
            sample_rate=frame.sample_rate,
            num_channels=frame.num_channels,
            samples_per_channel=frame.samples_per_channel,
        )
        self.target(record)
