"""The loop's lateness is measured, and the heartbeat keeps no loop alive."""

from __future__ import annotations

import asyncio
import time

from probe.taps.heartbeat import Heartbeat
from probe.trace.events import LoopStalled


def test_a_blocked_loop_is_a_stall_from_when_a_beat_was_due_to_when_it_ran() -> None:
    seen: list[LoopStalled] = []
    blocked: list[int] = []

    async def call() -> None:
        heartbeat = Heartbeat(seen.append)
        heartbeat.start(asyncio.get_running_loop())
        await asyncio.sleep(0.03)
        blocked.append(time.monotonic_ns())
        time.sleep(0.2)  # noqa: ASYNC251  # the stall
        blocked.append(time.monotonic_ns())
        await asyncio.sleep(0.03)
        heartbeat.stop()

    asyncio.run(call())
    # other stalls may be real, on a machine that is busy
    longest = max(seen, key=lambda stall: stall.until_ns - stall.at_ns)
    assert longest.at_ns <= blocked[0] + 10_000_000
    assert longest.until_ns >= blocked[1]


def test_a_loop_ends_while_the_heart_still_beats() -> None:
    heartbeat = Heartbeat(lambda stall: None)

    async def call() -> int:
        heartbeat.start(asyncio.get_running_loop())
        await asyncio.sleep(0.02)
        return len(asyncio.all_tasks())

    assert asyncio.run(call()) == 1
    heartbeat.stop()


def test_stopped_it_beats_no_more_and_leaves_no_timer() -> None:
    beats: list[int] = []

    async def call() -> tuple[int, int]:
        heartbeat = Heartbeat(lambda stall: None, on_beat=lambda: beats.append(1))
        heartbeat.start(asyncio.get_running_loop())
        await asyncio.sleep(0.05)
        heartbeat.stop()
        before = len(beats)
        await asyncio.sleep(0.05)
        return before, len(beats)

    before, after = asyncio.run(call())
    assert before == after > 0


def test_it_can_be_stopped_from_another_thread_and_after_its_loop_is_gone() -> None:
    async def call() -> Heartbeat:
        loop = asyncio.get_running_loop()
        other = Heartbeat(lambda stall: None)
        other.start(loop)
        await loop.run_in_executor(None, other.stop)
        heartbeat = Heartbeat(lambda stall: None)
        heartbeat.start(loop)
        return heartbeat

    asyncio.run(call()).stop()
