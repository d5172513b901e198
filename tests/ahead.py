"""Results that take long and hardly any processor are begun when the tests begin.

A module of tests says in ``AHEAD`` what it wants by name, each a function of a folder of its own;
its tests ask the fixture ``begun`` for it by that name, and come last. So calls, which mostly
sleep, are made side by side while tests run that keep the processor busy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

Begun = Callable[[str], Any]
"""The result of that name; raises what making it raised."""

MANY: Final = 64

_over = threading.Event()
_starters: Final = threading.BoundedSemaphore(2)


@contextmanager
def beginning(
    modules: Iterable[Any], folder_for: Callable[[str], Path]
) -> Iterator[Mapping[Any, Begun]]:
    """Begins what modules want, in their order, and in the end waits for what is under way."""
    pool = ThreadPoolExecutor(MANY, thread_name_prefix="ahead")
    try:
        yield {module: _begin(pool, module.AHEAD, folder_for) for module in modules}
    finally:
        _over.set()
        pool.shutdown(cancel_futures=True)


def go_on() -> None:
    """Asked before each step of something long.

    Raises: `CancelledError` where the tests are over and nobody will look at it.
    """
    if _over.is_set():
        raise CancelledError


@contextmanager
def starting() -> Iterator[None]:
    """Held by what starts processes of its own: more at a time would be in each other's way."""
    with _starters:
        go_on()
        yield


def _begin(
    pool: ThreadPoolExecutor,
    wanted: Mapping[str, Callable[[Path], Any]],
    folder_for: Callable[[str], Path],
) -> Begun:
    futures: dict[str, Future[Any]] = {
        name: pool.submit(make, folder_for(name)) for name, make in wanted.items()
    }
    return lambda name: futures[name].result()
