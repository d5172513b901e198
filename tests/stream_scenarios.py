"""Streams with somebody looking on, held against the same streams without."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

from livekit.agents.utils import aio
from livekit.agents.utils.aio.itertools import _ACloseable

from probe.taps.realtime.streams import watched
from tests.realtime_harness import Broken, failure, generated


class Looker:
    """Notes what passes."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def opened(self) -> None:
        self.seen.append("opened")

    def reading(self) -> None:
        return None

    def passed(self, item: Any) -> None:
        self.seen.append(item)

    def stopped(self, error: BaseException) -> None:
        self.seen.append(type(error).__name__)


class Iterable:
    """Can be iterated over, and is no iterator itself."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.label = "mine"

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self.items:
            yield item

    def __len__(self) -> int:
        return len(self.items)


def filled(*items: Any, closed: bool = True) -> Any:
    channel: Any = aio.Chan()
    for item in items:
        channel.send_nowait(item)
    if closed:
        channel.close()
    return channel


async def streams_are_the_same() -> dict[str, Any]:
    """What can be asked of a stream in place of another."""
    found: dict[str, Any] = {}
    for name, make in (
        ("channel", lambda: filled(1, 2, 3)),
        ("generator", lambda: generated(filled(1, 2, 3))),
        ("iterable", lambda: Iterable([1, 2, 3])),
    ):
        plain = make()
        looker = Looker()
        stream = watched(plain, looker)
        names = {key for key in dir(plain) if not key.startswith("__")} | {"__len__", "__anext__"}
        found[name] = {
            "missing": [key for key in names if hasattr(stream, key) != hasattr(plain, key)],
            "static": [
                key
                for key in ("aclose", "recv", "qsize", "closed", "athrow")
                if (inspect.getattr_static(stream, key, None) is None)
                != (inspect.getattr_static(plain, key, None) is None)
            ],
            "closeable": isinstance(stream, _ACloseable) == isinstance(plain, _ACloseable),
            "class": isinstance(stream, type(plain)),
            "items": [item async for item in stream],
            "seen": looker.seen,
        }
    channel = filled(closed=False)
    stream = watched(channel, looker := Looker())
    stream.note = "kept"
    found["set"] = channel.note == "kept" and stream.note == "kept"
    errors = [failure(stream.recv_nowait)]
    channel.send_nowait(4)
    received = [stream.recv_nowait()]
    waiting = asyncio.ensure_future(stream.recv())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    channel.send_nowait(5)
    received.append(await stream.recv())
    found["asked"] = [stream.qsize(), stream.closed]
    stream.close()
    try:
        await stream.recv()
    except Exception as error:
        errors.append(type(error).__name__)
    return {**found, "received": received, "errors": errors, "seen": looker.seen}


async def breaks() -> AsyncIterator[int]:
    yield 1
    raise Broken("half way")


async def streams_fail_the_same() -> dict[str, Any]:
    """Exceptions, cancellation and closing go through, and nothing waits that did not before."""
    found: dict[str, Any] = {"items": []}
    twice = watched(watched(filled(1, 2), Looker()), Looker())
    found["twice"] = [item async for item in twice]
    stream = watched(breaks(), Looker())
    try:
        async for item in stream:
            found["items"].append(item)
    except Broken as error:
        found["raised"] = str(error)
    closed: list[str] = []

    async def closes() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(10)
        except BaseException as error:
            closed.append(type(error).__name__)
            raise

    stream = watched(closes(), Looker())
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    found["cancelled"] = waiting.cancelled()
    stream = watched(closes(), Looker())
    await anext(stream)
    await stream.aclose()
    found["closed"] = closed

    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    items = [item async for item in watched(filled(*range(1000)), Looker())]
    found["turns"] = turns
    found["whole"] = items == list(range(1000))
    return found
