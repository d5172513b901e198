"""A child process: one scripted call to a real source, recorded by the source and wire taps.

``python source_call.py SCENARIO OUT`` leaves a JSON file: the events, and what the blocks held
when they are decoded by themselves. Pushed sample ``k`` has value ``k % 65535 + 1``, never zero,
so that a block says by itself which samples it is made of.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from livekit import rtc

from probe.assemble.assembler import Assembler
from probe.taps.calls import BLOCKS, BLOCKS_FRAME, KIND
from probe.taps.source import SourceTap
from probe.taps.wire import WireTap
from probe.trace.events import Faulted, Tapped


class Call:
    """A source with both taps on, and a recorder that keeps events in a list."""

    def __init__(self, rate_hz: int, channels: int = 1, queue_ms: int = 200) -> None:
        self.rate_hz, self.channels = rate_hz, channels
        self.block = rate_hz // 100
        self.source = rtc.AudioSource(rate_hz, channels, queue_size_ms=queue_ms)
        self.queue: deque[Any] = deque()
        self.events: list[Any] = []
        self.blocks: list[bytes] = []
        self.assembler = Assembler()
        self.next = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record)
        self._thread.start()
        self.tap = SourceTap(self.source, 1, self.put)
        self.tap.install()
        self.put(Tapped(time.monotonic_ns(), "pushed", 1, rate_hz, channels, queue_ms))
        self.wire = WireTap(self.source, 1, self.put, self.fault)

    def put(self, record: Any) -> None:
        if isinstance(record, list) and record[KIND] == BLOCKS:
            self.blocks.append(bytes(record[BLOCKS_FRAME].data))
        self.queue.append(record)

    def fault(self, kind: str, detail: str = "", count: int = 1) -> None:
        self.queue.append(Faulted(time.monotonic_ns(), kind, count, detail))

    def _drain(self) -> None:
        while self.queue:
            self.events += self.assembler.accept(self.queue.popleft())

    def _record(self) -> None:
        while not self._stop.wait(0.05):
            self._drain()
            self.events += self.assembler.tick(time.monotonic_ns())

    def open(self) -> None:
        self.wire.start()
        assert self.wire.opened.wait(5)

    def close(self) -> None:
        self.wire.stop()
        self.tap.remove()
        self._stop.set()
        self._thread.join()
        self._drain()
        self.events += self.assembler.finish(time.monotonic_ns())

    def content(self, samples: int, silent: bool = False) -> bytes:
        count = samples * self.channels
        values = np.arange(self.next, self.next + count) % 65535 + 1
        self.next += count
        return bytes(2 * count) if silent else values.astype(np.uint16).tobytes()

    async def push(self, samples: int, *, silent: bool = False, rate_hz: int = 0) -> str:
        data = self.content(samples, silent)
        frame = rtc.AudioFrame(data, rate_hz or self.rate_hz, self.channels, samples)
        try:
            await self.source.capture_frame(frame)
        except Exception as error:
            self.next -= samples * self.channels
            return type(error).__name__
        return ""

    async def pushes(self, count: int, samples: int) -> None:
        for _ in range(count):
            await self.push(samples)


async def steady(rate_hz: int = 24000, channels: int = 1) -> Call:
    call = Call(rate_hz, channels)
    call.open()
    await call.pushes(20, rate_hz // 20)
    await asyncio.sleep(0.5)
    return call


async def clear_in_the_middle() -> Call:
    call = Call(24000)
    call.open()
    await call.pushes(12, 1200)
    call.source.clear_queue()
    await call.pushes(3, 1200)
    call.source.clear_queue()
    await call.push(1200)
    await asyncio.sleep(0.4)
    return call


async def pause_and_resume() -> Call:
    call = Call(24000)
    call.open()
    await call.pushes(8, 1200)
    call.source.clear_queue()
    await asyncio.sleep(0.4)
    await call.pushes(8, 1200)
    await asyncio.sleep(0.5)
    return call


async def underrun() -> Call:
    call = Call(24000)
    call.open()
    for _ in range(6):
        await call.push(1200)
        await asyncio.sleep(0.13)
    await asyncio.sleep(0.2)
    return call


async def tails() -> Call:
    """Rests of less than a block: opened by what follows, or lost in a clear."""
    call = Call(24000)
    call.open()
    for samples in (840, 480, 100, 71, 1200):
        await call.push(samples)
        await asyncio.sleep(0.15)
    await call.push(60)
    await asyncio.sleep(0.1)
    call.source.clear_queue()
    await call.push(600)
    await asyncio.sleep(0.3)
    return call


async def digital_silence() -> Call:
    """Zeros inside the speech, an underrun inside the zeros, a clear inside the zeros."""
    call = Call(24000)
    call.open()
    await call.push(1200)
    await call.push(1200, silent=True)
    await call.push(1300)
    await asyncio.sleep(0.3)
    await call.push(1300, silent=True)
    await asyncio.sleep(0.3)
    await call.push(1200, silent=True)
    await call.push(1200)
    await call.push(2400, silent=True)
    await call.push(1200)
    await asyncio.sleep(0.08)
    call.source.clear_queue()
    await call.push(2400)
    await asyncio.sleep(0.4)
    return call


async def long_frames() -> Call:
    """Longer than the queue: fed in pieces, of which a clear takes those inside."""
    call = Call(24000)
    call.open()
    waiting = asyncio.ensure_future(call.push(12000))
    await asyncio.sleep(0.12)
    call.source.clear_queue()
    await waiting
    await asyncio.sleep(0.3)
    await call.push(12000)
    await call.push(1200)
    await asyncio.sleep(0.6)
    return call


async def blocked_loop() -> Call:
    call = Call(24000)
    call.open()
    await call.pushes(7, 1200)
    time.sleep(0.3)  # noqa: ASYNC251  # the session's loop is what is blocked
    await call.pushes(7, 1200)
    time.sleep(0.3)  # noqa: ASYNC251
    call.source.clear_queue()
    await call.pushes(3, 1200)
    await asyncio.sleep(0.4)
    return call


async def inherited() -> Call:
    """The probe comes while audio it never saw is in the queue."""
    call = Call(24000)
    call.tap.remove()
    for _ in range(2):
        values = np.random.default_rng(1).integers(-9000, -1, 2411, dtype=np.int16)
        await call.source.capture_frame(rtc.AudioFrame(values.tobytes(), 24000, 1, 2411))
    call.tap.install()
    call.open()
    await call.pushes(8, 1200)
    await asyncio.sleep(0.6)
    return call


async def refused() -> Call:
    call = Call(24000)
    call.open()
    await call.push(1200)
    assert await call.push(800, rate_hz=16000)
    await call.push(4800)
    waiting = asyncio.ensure_future(call.push(4800))
    await asyncio.sleep(0)
    assert await call.push(480)
    await waiting
    await call.push(1200)
    await call.source.aclose()
    await call.push(1200)
    call.next -= 1200
    await asyncio.sleep(0.6)
    return call


async def cancelled() -> Call:
    """A call that was cancelled was handed over all the same."""
    call = Call(24000)
    call.open()
    await call.push(4800)
    waiting = asyncio.ensure_future(call.push(4800))
    await asyncio.sleep(0.02)
    waiting.cancel()
    await asyncio.sleep(0.4)
    await call.push(1200)
    await asyncio.sleep(0.3)
    return call


SCENARIOS = {
    "steady": steady,
    "rate-22050": lambda: steady(22050),
    "rate-8000": lambda: steady(8000),
    "stereo-48000": lambda: steady(48000, 2),
    "clear": clear_in_the_middle,
    "pause": pause_and_resume,
    "underrun": underrun,
    "tails": tails,
    "digital-silence": digital_silence,
    "long-frames": long_frames,
    "blocked-loop": blocked_loop,
    "inherited": inherited,
    "refused": refused,
    "cancelled": cancelled,
}


async def main(scenario: str) -> dict[str, Any]:
    call = await SCENARIOS[scenario]()
    call.close()
    return {
        "channels": call.channels,
        "block": call.block,
        "pushed": call.next // call.channels,
        "events": [{"event": event.NAME, **dataclasses.asdict(event)} for event in call.events],
        "values": np.frombuffer(b"".join(call.blocks), np.uint16).tolist(),
        "threads": [thread.name for thread in threading.enumerate()],
        "attributes": [
            name for name in ("capture_frame", "clear_queue", "aclose") if name in vars(call.source)
        ],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(asyncio.run(main(sys.argv[1]))))
