"""Ordinary sinks that do something to the audio, on the reference sink: for scripted calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from livekit import rtc
from numpy.typing import NDArray

from probe.testing import ReferenceAudioOutput

Samples = NDArray[np.int16]


class Processing(ReferenceAudioOutput):
    """Hands on what `process` makes of each frame, in the order it makes it."""

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        samples = np.frombuffer(frame.data, np.int16)
        for data in self.process(samples):
            made = rtc.AudioFrame(
                data.tobytes(), frame.sample_rate, frame.num_channels, len(data) // self._channels
            )
            await super().capture_frame(made)

    def process(self, samples: Samples) -> Iterator[Samples]:
        yield samples


class Volume(Processing):
    def process(self, samples: Samples) -> Iterator[Samples]:
        yield np.round(samples * 0.4).astype(np.int16)


class FadeIn(Processing):
    """Fades every call in over its first second."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._heard = 0

    def process(self, samples: Samples) -> Iterator[Samples]:
        at = self._heard + np.arange(len(samples))
        self._heard += len(samples)
        yield (samples * np.clip(0.1 + at / self._rate_hz, 0, 1)).astype(np.int16)


class Dither(Processing):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._rng = np.random.default_rng(11)

    def process(self, samples: Samples) -> Iterator[Samples]:
        loud = samples + self._rng.integers(-1, 2, len(samples))
        yield np.clip(loud, -32768, 32767).astype(np.int16)


class Comfort(Processing):
    """Puts 40 ms of silence in front of every tenth frame."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._frames = 0

    def process(self, samples: Samples) -> Iterator[Samples]:
        if self._frames % 10 == 0:
            yield np.zeros(self._rate_hz * 40 // 1000, np.int16)
        self._frames += 1
        yield samples


class Stutter(Processing):
    """Hands on every tenth frame twice."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._frames = 0

    def process(self, samples: Samples) -> Iterator[Samples]:
        self._frames += 1
        yield samples
        if self._frames % 10 == 0:
            yield samples


class Mixer(Processing):
    """Lays something of its own over the audio."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._rng = np.random.default_rng(12)

    def process(self, samples: Samples) -> Iterator[Samples]:
        yield (samples // 2 + self._rng.integers(-4000, 4000, len(samples))).astype(np.int16)
