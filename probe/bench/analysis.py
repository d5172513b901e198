"""How fast a trace is analysed, and how large one is.

The trace is made, not recorded: an hour of replies and barge-ins with all three boundaries, in
the shape real calls have (20 ms captured, 50 ms pushed, runs of 200 ms sent, a clear every few
seconds). What is timed is held to that: a call that does not balance is refused.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import zstandard

import reports
from probe.errors import ProbeError
from probe.trace.events import (
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    InterruptCalled,
    PlaybackReported,
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
FRAME_MS = 20
PUSH_MS = 50
QUEUE_MS = 200
RUN_MS = 200
REPLY_MS = 6_000
CUT_MS = 4_000
"""A reply is captured whole and cleared when this much of it was sent, and the block after it."""
TURN_MS = 7_000
LEAD_MS = 130
"""From the start of a turn to the first block of its reply."""


def call(minutes: float) -> Iterator[Event]:
    """The events of a call of ``minutes``: one cut reply after another, balanced to the sample."""
    yield Header(
        schema=1,
        started_monotonic_ns=0,
        started_unix_s=0.0,
        boundaries=["captured", "pushed", "sent"],
        runtime={"language": "python"},
    )
    yield Tapped(0, "captured", resolution_ns=1000)
    yield Tapped(0, "pushed", 1, RATE_HZ, 1, QUEUE_MS, resolution_ns=1000)
    yield Tapped(0, "sent", 1, RATE_HZ, 1, None, BLOCK, True, 10 * MS)
    yield from _silence(10, LEAD_MS)
    for turn in range(round(minutes * 60_000 / TURN_MS)):
        yield from _turn(turn)


def _turn(turn: int) -> list[Event]:
    """A reply that is made twice as fast as it plays, in the order of time."""
    zero, speech = turn * TURN_MS, f"speech_{turn}"
    first = zero + LEAD_MS
    begin = (first - 30) * MS
    events: list[Event] = [
        SpeechCreated(begin - 2 * MS, speech, "generate_reply", True, True),
        StateChanged(begin - MS, "agent", "thinking", "speaking"),
    ]
    frames = REPLY_MS // FRAME_MS
    for nth in range(frames):
        at_ns = begin + nth * FRAME_MS // 2 * MS
        frame = turn * frames + nth
        events.append(
            FrameCaptured(
                at_ns,
                frame + 1,
                frame * _samples(FRAME_MS),
                _samples(FRAME_MS),
                RATE_HZ,
                1,
                speech,
                "returned",
                at_ns + 20_000,
            )
        )
    events.append(SinkMarked(begin + REPLY_MS // 2 * MS, "flush", speech))
    pushes = (CUT_MS + QUEUE_MS) // PUSH_MS
    for nth in range(pushes):
        # When its last frame is there and the queue has room for it.
        ready = begin + -(-(nth + 1) * PUSH_MS // FRAME_MS) * FRAME_MS // 2 * MS
        room = (first + nth * PUSH_MS - (QUEUE_MS - PUSH_MS)) * MS
        at_ns, push = max(ready, room) + 50_000, turn * pushes + nth
        captured = turn * _samples(REPLY_MS) + nth * _samples(PUSH_MS)
        events.append(
            FramePushed(
                at_ns,
                push + 1,
                1,
                push * _samples(PUSH_MS),
                _samples(PUSH_MS),
                RATE_HZ,
                1,
                captured=[(captured, _samples(PUSH_MS))],
                end="returned",
                ended_ns=at_ns + 90_000,
            )
        )
    for at_ms in range(0, CUT_MS + 10, RUN_MS):
        length, start = min(RUN_MS, CUT_MS + 10 - at_ms), turn * pushes * _samples(PUSH_MS)
        events.append(
            RunSent(
                (first + at_ms) * MS,
                (first + at_ms + length) * MS,
                1,
                start + _samples(at_ms),
                _samples(length),
            )
        )
    cut = (first + CUT_MS + 5) * MS
    events += [
        StateChanged(cut - 2 * MS, "user", "listening", "speaking"),
        InterruptCalled(cut - MS, speech, "programmatic"),
        SpeechCommitted(cut - MS, speech),
        SinkMarked(cut, "clear", speech, ended_ns=cut + 10_000),
        QueueCleared(cut + 100_000, 1, cut + 110_000),
        PlaybackReported(
            cut + 200_000, "finished", speech, position_s=CUT_MS / 1000, interrupted=True
        ),
        SpeechDone(cut + 3 * MS, speech, True),
        StateChanged(cut + 4 * MS, "user", "speaking", "listening"),
        StateChanged(cut + 4 * MS, "agent", "speaking", "listening"),
        *_silence(first + CUT_MS + 10, first + TURN_MS),
    ]
    return sorted(events, key=attrgetter("at_ns"))


def _silence(begin_ms: int, end_ms: int) -> Iterator[SilenceInserted]:
    """What the source puts out between replies, in the pieces of a second that a probe writes."""
    for at_ms in range(begin_ms, end_ms, 1000):
        until_ms = min(at_ms + 1000, end_ms)
        yield SilenceInserted(at_ms * MS, until_ms * MS, 1, _samples(until_ms - at_ms))


def _samples(length_ms: int) -> int:
    return length_ms * RATE_HZ // 1000


def write_call(path: Path, minutes: float) -> int:
    """Write `call` to a trace; returns the number of its lines."""
    counts: Counter[str] = Counter()
    last_ns = 0
    with path.open("w", encoding="ascii") as file:
        for event in call(minutes):
            file.write(encode(event))
            last_ns = max(last_ns, getattr(event, "at_ns", 0))
            counts[event.NAME] += 1
        file.write(encode(Trailer(last_ns, counts.total(), counts=dict(counts))))
    return counts.total() + 1


def measure(minutes: float, folder: Path) -> dict[str, Any]:
    """Analyse a made call of ``minutes``.

    Returns:
        ``minutes``, ``events``, ``seconds`` (wall), ``events_per_second``, ``peak_mb`` (of the
        whole process, interpreter and libraries included; exact as the system counts it),
        ``bytes_per_minute`` and ``compressed_bytes_per_minute``, ``balanced``.

    Raises:
        ProbeError: the call is not what it is said to be, complete and balanced: then the time is
            that of something else.
    """
    path = folder / "call.jsonl"
    events = write_call(path, minutes)
    started = time.perf_counter()
    analysis = reports.analyze(path)
    seconds = time.perf_counter() - started
    if not analysis.balanced:
        because = (
            analysis.trace.incomplete_because or analysis.unaccounted_because or ("no balance",)
        )
        raise ProbeError(f"expected a made call that balances, found: {because[0]}")
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
