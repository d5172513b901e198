"""Results that take long and hardly any processor are begun when the tests begin.

A module of tests says in ``AHEAD`` what it wants by name, each a function of a folder of its own;
its tests ask the fixture ``begun`` for it by that name, and come last. So calls, which mostly
sleep, are made side by side while tests run that keep the processor busy.

They are made by a process of their own (this module as a program), on which no test changes the
environment or the folder, and in which no test imports what others import at that moment. On stdin
it gets a JSON list of ``[module, name, folder]``; on stdout it gives pickled ``(module, name,
result, error)``, each as soon as it is there.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final

ROOT: Final = Path(__file__).resolve().parent.parent

Begun = Callable[[str], Any]
"""The result of that name; raises what making it raised."""

Futures = Mapping[tuple[str, str], "Future[Any]"]

_starters: Final = threading.BoundedSemaphore(2)


@contextmanager
def beginning(
    modules: Iterable[ModuleType], folder_for: Callable[[str], Path]
) -> Iterator[Mapping[str, Begun]]:
    """Begins what modules want, in their order; in the end, what is still under way is ended."""
    wanted = [
        (module.__name__, name, str(folder_for(name)))
        for module in modules
        for name in module.AHEAD
    ]
    if not wanted:
        yield {}
        return
    futures: Futures = {(module, name): Future() for module, name, _ in wanted}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ahead"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(wanted).encode())
    process.stdin.close()
    reader = threading.Thread(target=_take, args=(process.stdout, futures))
    reader.start()
    try:
        yield {module: _of(futures, module) for module, _ in futures}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        reader.join()
        process.stdout.close()


def _of(futures: Futures, module: str) -> Begun:
    return lambda name: futures[module, name].result()


def _take(results: BinaryIO, futures: Futures) -> None:
    try:
        while True:
            module, name, result, error = pickle.load(results)
            if error is None:
                futures[module, name].set_result(result)
            else:
                futures[module, name].set_exception(error)
    except (EOFError, pickle.UnpicklingError):
        for (_, name), future in futures.items():
            if not future.done():
                future.set_exception(RuntimeError(f"{name}: whoever made it is gone"))


@contextmanager
def starting() -> Iterator[None]:
    """Held by what starts processes of its own: more at a time would be in each other's way."""
    with _starters:
        yield


def _make_all(wanted: list[tuple[str, str, str]], results: BinaryIO) -> None:
    lock = threading.Lock()

    def make(module: str, name: str, folder: str) -> None:
        result, error = None, None
        try:
            result = modules[module].AHEAD[name](Path(folder))
        except BaseException as raised:
            error = raised
        with lock:
            try:
                told = pickle.dumps((module, name, result, error))
                pickle.loads(told)
            except Exception:
                told = pickle.dumps((module, name, None, RuntimeError(repr(error or result))))
            results.write(told)
            results.flush()

    # All that is imported is so before anything is begun: imported by several threads at once,
    # LiveKit's circles would be seen half made.
    with contextlib.suppress(ImportError):
        importlib.import_module("livekit.agents")
    modules = {module: importlib.import_module(module) for module, _, _ in wanted}
    with ThreadPoolExecutor(len(wanted)) as pool:
        for each in wanted:
            pool.submit(make, *each)


if __name__ == "__main__":
    # What anybody prints is no result.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _make_all(json.load(sys.stdin), answers)
    answers.close()
    # Children that make calls end with their stdin.
    os._exit(0)
