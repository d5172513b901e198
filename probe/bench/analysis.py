"""How fast a trace is analysed, and how large one is.

The trace is made, not recorded: an hour of replies and barge-ins with all three boundaries, in
the shape real calls have (20 ms captured, 50 ms pushed, runs of 200 ms sent, a clear every few
seconds).
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

import reports
from probe.trace.events import (
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    InterruptCalled,
    QueueCleared,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    StateChanged,
    Tapped,
    Trailer,
)
from probe.trace.writer import encode

RATE_HZ = 24_000
BLOCK = RATE_HZ // 100
MS = 1_000_000
REPLY_MS = 6_000
CUT_MS = 4_000
"""A reply is captured whole and cut after this much of it was sent."""
TURN_MS = 7_000


def call(minutes: float) -> Iterator[Event]:
    """The events of a call of ``minutes``: one cut reply after another, balanced to the sample."""
    yield Header(
        schema=1,
        started_monotonic_ns=0,
        started_unix_s=0.0,
        boundaries=["captured", "pushed", "sent"],
        runtime={"language": "python"},
    )
    yield Tapped(0, "captured")
    yield Tapped(0, "pushed", 1, RATE_HZ, 1, 200, resolution_ns=MS)
    yield Tapped(0, "sent", 1, RATE_HZ, 1, block_samples=BLOCK, resolution_ns=10 * MS)
    captured = pushed = frames = pushes = 0
    for turn in range(round(minutes * 60_000 / TURN_MS)):
        zero, speech = (turn * TURN_MS + 100) * MS, f"speech_{turn}"
        yield SpeechCreated(zero, speech, "generate_reply", True, True)
        yield StateChanged(zero, "agent", "thinking", "speaking")
        first_captured, first_pushed = captured, pushed
        # 50 ms go in ahead of each 50 ms sent, until the queue of 200 ms is what is left over
        pushed_ms = CUT_MS + 200
        for at_ms in range(0, REPLY_MS, 20):
            frames += 1
            yield FrameCaptured(
                zero + at_ms * MS, frames, captured, 480, RATE_HZ, 1, speech,
                "returned", zero + at_ms * MS + 20_000,
            )  # fmt: skip
            captured += 480
            if at_ms % 50 < 20 and at_ms < pushed_ms:
                pushes += 1
                yield FramePushed(
                    zero + at_ms * MS, pushes, 1, pushed, 1200, RATE_HZ, 1, True,
                    [(first_captured + pushed - first_pushed, 1200)], 0,
                    "returned", zero + at_ms * MS + 90_000,
                )  # fmt: skip
                pushed += 1200
        for at_ms in range(0, CUT_MS, 200):
            yield RunSent(
                zero + (at_ms + 5) * MS, zero + (at_ms + 205) * MS, 1,
                first_pushed + at_ms * RATE_HZ // 1000, RATE_HZ // 5,
            )  # fmt: skip
        cut = zero + (CUT_MS + 205) * MS
        yield StateChanged(cut - 2 * MS, "user", "listening", "speaking")
        yield InterruptCalled(cut - MS, speech, "programmatic")
        yield SpeechCommitted(cut - MS, speech)
        yield SinkMarked(cut, "clear", speech, ended_ns=cut + MS)
        yield QueueCleared(cut + MS, 1, cut + 2 * MS)
        yield SpeechDone(cut + 3 * MS, speech, True)
        yield StateChanged(cut + 4 * MS, "user", "speaking", "listening")
        yield StateChanged(cut + 4 * MS, "agent", "speaking", "listening")
        silent_ns = (TURN_MS - CUT_MS - 200) * MS
        yield SilenceInserted(cut + 5 * MS, cut + silent_ns, 1, (silent_ns // (10 * MS)) * BLOCK)


def write_call(path: Path, minutes: float) -> int:
    """Write `call` to a trace; returns the number of its lines."""
    lines = 0
    last_ns = 0
    with path.open("w", encoding="ascii") as file:
        for event in call(minutes):
            file.write(encode(event))
            last_ns = max(last_ns, getattr(event, "at_ns", 0))
            lines += 1
        file.write(encode(Trailer(last_ns, lines)))
    return lines + 1


def measure(minutes: float, folder: Path) -> dict[str, Any]:
    """Analyse a made call of ``minutes``.

    Returns:
        ``minutes``, ``events``, ``seconds`` (wall), ``events_per_second``, ``peak_mb`` (of the
        whole process, interpreter and libraries included; exact as the system counts it),
        ``bytes_per_minute`` and ``compressed_bytes_per_minute``, ``balanced``.
    """
    path = folder / "call.jsonl"
    events = write_call(path, minutes)
    started = time.perf_counter()
    analysis = reports.analyze(path)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes
    peak_mb = peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    size = path.stat().st_size
    with path.open("rb") as plain, (folder / "call.zst").open("wb") as packed:
        zstandard.ZstdCompressor().copy_stream(plain, packed)
    return {
        "minutes": minutes,
        "events": events,
        "seconds": seconds,
        "events_per_second": events / seconds,
        "peak_mb": peak_mb,
        "bytes_per_minute": size / minutes,
        "compressed_bytes_per_minute": (folder / "call.zst").stat().st_size / minutes,
        "balanced": analysis.balanced,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(float(sys.argv[1]), Path(folder))), flush=True)


if __name__ == "__main__":
    main()
