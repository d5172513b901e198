"""What reading the local track back costs: the wire tap's share of a core.

The same audio is pushed in real time into a real source, in stretches with and without the wire
tap, interleaved; the figure is the process's CPU time per second of wall clock, native threads
included, with the tap minus without. Both stretches record everything else.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from livekit import rtc

from probe.assemble.assembler import Assembler
from probe.bench import header
from probe.recorder import Recorder
from probe.taps.source import SourceTap
from probe.taps.wire import WireTap

RATE_HZ = 24_000
PUSH_SAMPLES = RATE_HZ // 20


async def _stretch(path: Path, seconds: float, *, wire: bool) -> float:
    """CPU seconds per second while ``seconds`` of audio are pushed, the wire tapped or not."""
    source = rtc.AudioSource(RATE_HZ, 1, queue_size_ms=200)
    track = rtc.LocalAudioTrack.create_audio_track("bench", source)
    recorder = Recorder(path, header(), Assembler())
    recorder.start()
    tap = SourceTap(source, 1, recorder.put)
    tap.install()
    wire_tap = WireTap(source, 1, recorder.put, recorder.fault) if wire else None
    if wire_tap is not None:
        wire_tap.start()
    await asyncio.sleep(0.5)

    noise = np.random.default_rng(0).integers(-9000, 9000, RATE_HZ, dtype=np.int16)
    wall, cpu = time.monotonic(), time.process_time()
    for push in range(round(seconds * RATE_HZ / PUSH_SAMPLES)):
        start = push * PUSH_SAMPLES % RATE_HZ
        data = noise[start : start + PUSH_SAMPLES].tobytes()
        await source.capture_frame(rtc.AudioFrame(data, RATE_HZ, 1, PUSH_SAMPLES))
    share = (time.process_time() - cpu) / (time.monotonic() - wall)

    if wire_tap is not None:
        wire_tap.stop()
    tap.remove()
    recorder.close()
    await source.aclose()
    del track
    return share


async def measure(pairs: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Median share of a core with and without the wire tap, and the difference.

    Returns:
        ``with_wire``, ``without_wire`` and ``added``: CPU seconds per second (1.0 is one core), and
        ``pairs`` and ``seconds`` they were taken over.
    """
    shares: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(pairs):
        for wire in (True, False) if pair % 2 else (False, True):
            path = folder / f"{pair}-{wire}.jsonl"
            shares[wire].append(await _stretch(path, seconds, wire=wire))
    added = [on - off for on, off in zip(shares[True], shares[False], strict=True)]
    return {
        "pairs": pairs,
        "seconds": seconds,
        "with_wire": statistics.median(shares[True]),
        "without_wire": statistics.median(shares[False]),
        "added": statistics.median(added),
    }


def main() -> None:
    pairs, seconds = int(sys.argv[1]), float(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(pairs, seconds, Path(folder)))), flush=True)


if __name__ == "__main__":
    main()
