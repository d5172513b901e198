"""The tap on a source changes nothing about its calls and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe.taps.calls import AT, CLEAR, ENDED, FAILURE, KIND, PUSH, PUSH_FRAME, PUSH_OPEN, end_of

pytest.importorskip("livekit.rtc")
from probe.taps.source import SourceTap  # needs livekit, which may be missing
from probe.trace.events import SourceClosed


class FakeSource:
    """Answers like a source, without the native library."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.error: BaseException | None = None
        self.gate: asyncio.Event | None = None
        self._ffi_handle = SimpleNamespace(disposed=False)

    async def capture_frame(self, frame: Any) -> str:
        self.calls.append(frame)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return "pushed"

    def clear_queue(self) -> str:
        if self.error is not None:
            raise self.error
        return "cleared"

    async def aclose(self) -> None:
        self.calls.append("closed")


def tapped(put: Any = None) -> tuple[FakeSource, SourceTap, list[Any]]:
    source = FakeSource()
    records: list[Any] = []
    tap = SourceTap(source, 3, put or records.append)  # type: ignore[arg-type]
    tap.install()
    return source, tap, records


def test_a_push_is_recorded_before_it_is_forwarded_and_its_end_afterwards() -> None:
    async def call() -> None:
        source, _, records = tapped()
        source.gate = asyncio.Event()
        push = asyncio.ensure_future(source.capture_frame("frame"))
        await asyncio.sleep(0)
        assert records[0][:1] == [PUSH]
        assert end_of(records[0]) is None
        source.gate.set()
        assert await push == "pushed"
        assert end_of(records[0]) == "returned"
        assert records[0][ENDED] >= records[0][AT]

    asyncio.run(call())


def test_a_call_that_raises_or_is_cancelled_does_so_and_says_so() -> None:
    async def call() -> None:
        source, _, records = tapped()
        source.error = ValueError("rate")
        with pytest.raises(ValueError, match="rate"):
            await source.capture_frame(frame="frame")
        assert records[0][PUSH_FRAME] == "frame"
        assert records[0][FAILURE] == ("raised", "ValueError", None)
        with pytest.raises(ValueError, match="rate"):
            source.clear_queue()
        assert records[1][KIND] == CLEAR
        assert end_of(records[1]) == "raised"
        source.gate = asyncio.Event()
        push = asyncio.ensure_future(source.capture_frame("frame"))
        await asyncio.sleep(0)
        push.cancel()
        with pytest.raises(asyncio.CancelledError):
            await push
        assert end_of(records[2]) == "cancelled"

    asyncio.run(call())


def test_an_awaited_push_does_not_yield_where_the_bare_one_would_not() -> None:
    async def call() -> None:
        source, _, _ = tapped()
        coroutine = source.capture_frame("frame")
        with pytest.raises(StopIteration):
            coroutine.send(None)

    asyncio.run(call())


def test_after_a_close_pushes_are_recorded_as_refused() -> None:
    source, _, records = tapped()
    asyncio.run(source.aclose())
    asyncio.run(source.capture_frame("frame"))
    asyncio.run(source.aclose())
    closed, push = records
    assert isinstance(closed, SourceClosed)
    assert closed.source == 3
    assert push[PUSH_OPEN] is False
    assert source.calls == ["closed", "frame", "closed"]


def test_removed_it_leaves_the_instance_as_it_was() -> None:
    source = FakeSource()
    before = dict(vars(source))
    tap = SourceTap(source, 1, print)  # type: ignore[arg-type]
    for _ in range(3):
        tap.install()
        tap.install()
        tap.remove()
        tap.remove()
    assert vars(source) == before


def test_a_method_patched_by_somebody_else_in_between_stays_theirs_and_works() -> None:
    source, tap, records = tapped()
    ours = source.capture_frame
    seen = []

    async def theirs(frame: Any) -> Any:
        seen.append(frame)
        return await ours(frame)

    source.capture_frame = theirs  # type: ignore[method-assign]
    tap.remove()
    assert asyncio.run(source.capture_frame("frame")) == "pushed"
    assert source.capture_frame is theirs
    assert seen == ["frame"]
    assert records == []
    assert "clear_queue" not in vars(source)


@pytest.mark.livekit
def test_on_a_real_source_the_same_errors_come_through(tmp_path: Path) -> None:
    script = """
import asyncio, json, sys
from livekit import rtc
from probe.taps.calls import FAILURE
from probe.taps.source import SourceTap

async def outcomes(tap):
    source = rtc.AudioSource(24000, 1, queue_size_ms=200)
    records = []
    if tap:
        SourceTap(source, 1, records.append).install()
    ends = []
    for rate, channels in ((24000, 1), (16000, 1), (24000, 2)):
        try:
            await source.capture_frame(rtc.AudioFrame(bytes(960 * channels), rate, channels, 480))
            ends.append("returned")
        except Exception as error:
            ends.append(repr(error))
    source.clear_queue()
    await source.aclose()
    await source.capture_frame(rtc.AudioFrame(bytes(960), 24000, 1, 480))
    failures = [record[FAILURE] for record in records if isinstance(record, list)]
    return ends, [record and record.detail for record in failures], len(records)

async def main():
    bare, _, _ = await outcomes(False)
    json.dump([bare, *await outcomes(True)], open(sys.argv[1], "w"))

asyncio.run(main())
"""
    out = tmp_path / "out.json"
    subprocess.run([sys.executable, "-c", script, str(out)], timeout=60, check=False)
    bare, taps, details, count = json.loads(out.read_text())
    assert bare == taps
    assert bare[0] == "returned"
    assert all("don't match" in end for end in bare[1:])
    assert count == 6
    # what the source itself says of the frame, and nothing where it said nothing
    assert [detail and "don't match" in detail for detail in details] == [
        None,
        True,
        True,
        None,
        None,
    ]
