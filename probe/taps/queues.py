"""How much an `rtc.AudioSource` holds: it is told as it is made, and no release keeps a note.

So the constructor is looked on at while a session is recorded, once for all recordings of the
process. Of a source that was made before nothing is known, and nothing is guessed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from livekit import rtc

from probe.taps.patches import InstancePatch

__all__ = ["QUEUE_SIZES"]


class _QueueSizes:
    """The sizes of the queues of all sources made while somebody looks on."""

    def __init__(self) -> None:
        self._sizes: weakref.WeakKeyDictionary[rtc.AudioSource, int] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._looking = 0
        self._patch: InstancePatch | None = None

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """One more looks on; the last one leaves the class as it was.

        Raises:
            Exception: the class can't be looked on at; nobody is counted then.
        """
        with self._lock:
            if not self._looking:
                self._patch = InstancePatch(rtc.AudioSource, "__init__", self._noting())
            self._looking += 1
        try:
            yield
        finally:
            with self._lock:
                self._looking -= 1
                if not self._looking and self._patch is not None:
                    self._patch.undo()
                    self._patch = None

    def of(self, source: rtc.AudioSource) -> int | None:
        """Capacity of the queue in ms, as it was asked for; None: nobody saw it being made."""
        return self._sizes.get(source)

    def _noting(self) -> Any:
        original = rtc.AudioSource.__init__
        parameters = inspect.signature(original)

        @functools.wraps(original)
        def construct(source: rtc.AudioSource, *args: Any, **kwargs: Any) -> None:
            original(source, *args, **kwargs)
            try:
                asked = parameters.bind(source, *args, **kwargs)
                asked.apply_defaults()
                self._sizes[source] = int(asked.arguments["queue_size_ms"])
            except Exception:
                # a constructor of a release not known here: the size is not known either
                return

        return construct


QUEUE_SIZES = _QueueSizes()
