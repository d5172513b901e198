"""What recording a captured frame adds to the call, beside other ways to log one.

Each variant forwards the same 20 ms mono frame to a leaf that returns at once. Rounds of all
variants are interleaved in a shuffled order; a variant's figure is the median over its rounds
minus the median of the bare leaf. A round is a second of call, 50 frames, after which the waiting
records are dropped: in a call the recorder takes them twenty times a second, and a longer round
would time the memory of records that never pile up. The recorder's thread does not run meanwhile
(a real call makes 50 records a second, this loop makes hundreds of thousands); what it does per
frame is measured apart.
"""

from __future__ import annotations

import asyncio
import gc
import io as text_io
import json
import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from livekit import rtc
from livekit.agents.voice import io

from probe.assemble.assembler import Assembler
from probe.bench import header
from probe.recorder import Recorder
from probe.taps.sink import ProbeAudioOutput

RATE_HZ = 24_000
FRAME_SAMPLES = RATE_HZ // 50
DRAINED_FRAMES = 2000
"""Enough that starting and ending the recorder's thread does not show in its time per frame."""

Capture = Callable[[rtc.AudioFrame], Awaitable[None]]


class Leaf(io.AudioOutput):
    """A sink that accepts a frame and returns at once."""

    def __init__(self) -> None:
        super().__init__(
            label="leaf",
            capabilities=io.AudioOutputCapabilities(pause=True),
            sample_rate=RATE_HZ,
        )

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        pass

    def flush(self) -> None:
        pass

    def clear_buffer(self) -> None:
        pass


class PassThrough(io.AudioOutput):
    """The least a wrapper does: count as the base class does, and forward, as LiveKit's own do."""

    def __init__(self, leaf: io.AudioOutput) -> None:
        super().__init__(label="pass-through", capabilities=io.AudioOutputCapabilities(pause=True))
        # set behind the constructor, which would put a proxy in between and charge it to us
        self._next_in_chain = leaf

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        await self.next_in_chain.capture_frame(frame)  # type: ignore[union-attr]  # a check costs

    def flush(self) -> None:
        super().flush()

    def clear_buffer(self) -> None:
        pass


def _json_line(leaf: Leaf) -> Capture:
    sink = text_io.StringIO()

    async def capture(frame: rtc.AudioFrame) -> None:
        sink.write(
            json.dumps(
                {
                    "event": "captured",
                    "at_ns": time.monotonic_ns(),
                    "samples": frame.samples_per_channel,
                    "rate_hz": frame.sample_rate,
                    "channels": frame.num_channels,
                }
            )
        )
        sink.seek(0)
        await leaf.capture_frame(frame)

    return capture


def _logging_record(leaf: Leaf) -> Capture:
    stream = text_io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    logger = logging.getLogger("probe.bench.frames")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)

    async def capture(frame: rtc.AudioFrame) -> None:
        logger.info(
            "captured %d samples at %d Hz, %d channels",
            frame.samples_per_channel,
            frame.sample_rate,
            frame.num_channels,
        )
        stream.seek(0)
        await leaf.capture_frame(frame)

    return capture


def _span_event(leaf: Leaf) -> Capture | None:
    try:
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError:
        return None
    span = TracerProvider().get_tracer("probe.bench").start_span("call")

    async def capture(frame: rtc.AudioFrame) -> None:
        span.add_event(
            "captured",
            {
                "samples": frame.samples_per_channel,
                "rate_hz": frame.sample_rate,
                "channels": frame.num_channels,
            },
        )
        await leaf.capture_frame(frame)

    return capture


async def _time_ns(capture: Capture, frame: rtc.AudioFrame, frames: int) -> float:
    # as timeit does it: a collection that one variant sets off would be paid by whichever is timed
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter_ns()
        for _ in range(frames):
            await capture(frame)
        return (time.perf_counter_ns() - started) / frames
    finally:
        gc.enable()


async def measure(rounds: int, frames: int, folder: Path) -> dict[str, Any]:
    """Medians in nanoseconds per frame over the bare leaf, and their ratios.

    Args:
        rounds: how often each variant is timed.
        frames: frames per timing.
        folder: where the recorder's file goes.

    Returns:
        ``bare_ns``, ``added_ns`` by variant, ``probe_over`` by variant (the probe's added time
        divided by the variant's), ``recorder_thread_ns`` per frame. A variant that can't run here
        is left out.
    """
    leaf = Leaf()
    recorder = Recorder(folder / "bench.jsonl", header(), Assembler())
    data = bytes(2 * FRAME_SAMPLES)
    frame = rtc.AudioFrame(data, RATE_HZ, 1, FRAME_SAMPLES)

    # as `probe.attach` sets it up: frames go straight to the queue, whose room is looked up apart
    probe = ProbeAudioOutput(
        leaf, recorder.put, put_frame=recorder.queue.append, fault=recorder.fault
    )
    variants: dict[str, Capture] = {
        "bare": leaf.capture_frame,
        "probe": probe.capture_frame,
        "pass_through": PassThrough(leaf).capture_frame,
        "json_line": _json_line(leaf),
        "logging_record": _logging_record(leaf),
    }
    if (span_event := _span_event(leaf)) is not None:
        variants["span_event"] = span_event

    # what is loaded by now need not be looked through before every timing
    gc.freeze()
    for capture in variants.values():
        await _time_ns(capture, frame, frames)
    timings: dict[str, list[float]] = {name: [] for name in variants}
    order = list(variants)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            recorder.queue.clear()
            timings[name].append(await _time_ns(variants[name], frame, frames))

    median = {name: statistics.median(values) for name, values in timings.items()}
    bare = median.pop("bare")
    added = {name: value - bare for name, value in median.items()}
    recorder.queue.clear()
    await _time_ns(probe.capture_frame, frame, DRAINED_FRAMES)
    thread_ns = _drain_ns(recorder, DRAINED_FRAMES)
    recorder.close()
    return {
        "rounds": rounds,
        "frames_per_round": frames,
        "bare_ns": bare,
        "added_ns": added,
        "probe_over": {
            name: added["probe"] / value for name, value in added.items() if name != "probe"
        },
        "recorder_thread_ns": thread_ns,
    }


def _drain_ns(recorder: Recorder, frames: int) -> float:
    """CPU time per frame of the recorder's work: matching, encoding, writing."""
    started = time.process_time_ns()
    recorder.start()
    while recorder.queue:
        time.sleep(0.001)
    recorder.close()
    return (time.process_time_ns() - started) / frames


def main() -> None:
    rounds, frames = (int(word) for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(rounds, frames, Path(folder)))), flush=True)


if __name__ == "__main__":
    main()
