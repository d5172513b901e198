"""Runs a scripted call under the probe, in this process or in a child.

The native library sometimes takes a process down as the interpreter leaves, and a call can hang in
it: so the command line runs every call in a child of its own, bounds it, and judges it by the trace
it left.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import probe
from probe.errors import ProbeError, ScenarioError
from probe.scenarios.document import from_document, to_document
from probe.scenarios.releases import require_livekit
from probe.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from probe.scenarios.sinks import Driver, SinkFactory
    from probe.scenarios.stage import ModelFactory

START_LIMIT_S: Final = 60.0
"""What a call may take beside its audio: starting Python, waiting for steps, closing down."""
LEAVE_LIMIT_S: Final = 10.0
"""How long a child may take to leave once it was told to."""

_LOOK_S: Final = 0.25
"""How often a call that runs is looked after: whether it is late, or to be stopped."""

_KEY: Final = "sinkprobe"
"""Marks the child's own lines among whatever else a library prints."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call left behind."""

    trace: Path
    log: Path
    """LiveKit's own log of the call."""


async def run_call(
    scenario: Scenario,
    path: Path,
    *,
    sink: SinkFactory | str | None = None,
    driver: Driver | str | None = None,
    model: ModelFactory | str | None = None,
    progress: Progress | None = None,
    started: Callable[[Path], None] | None = None,
) -> Path:
    """Runs a call in the running loop, recorded into ``path``; returns the file really written.

    Args:
        scenario: what happens.
        path: the trace; one that exists is left alone and another name is taken.
        sink: makes the session's sinks from rate in Hz and number of channels, or is the
            ``module:attribute`` of what does; ``None``: the framework's room output. See
            `probe.scenarios.sinks.SinkFactory`.
        driver: stands between the session and its sink; see `probe.scenarios.sinks.Driver`.
        model: makes the realtime model of a scenario that has one, from what
            `probe.scenarios.realtime.ScriptedModel` takes, which is what it is by default.
        progress: told each step as it begins.
        started: told the trace's path as soon as there is one.

    Raises: `ScenarioError` where the release can't run it, a step waited in vain, or the session
        broke down; the trace up to there stays.
    """
    from probe.scenarios.call import Call
    from probe.scenarios.sinks import named

    made: dict[str, Any] = {"sink": sink, "driver": driver, "model": model}
    header = scenario.header
    for name, maker in made.items():
        if isinstance(maker, str):
            made[name] = named(maker, name)
        if maker is not None:
            header[name] = maker if isinstance(maker, str) else _name_of(maker)
    call = Call(scenario, **made, progress=progress)
    recording = probe.attach(call.session, path, run=header)
    try:
        if started is not None:
            started(recording.path)
        await call.run(recording)
    finally:
        recording.close()
    if refused := recording.faults.get("write_failed"):
        raise ScenarioError(
            f"{recording.path}: expected to write the whole trace, found the disk refusing it "
            f"{refused} times; what is there is cut"
        )
    return recording.path


def _name_of(maker: Any) -> str:
    return f"{getattr(maker, '__module__', '?')}:{getattr(maker, '__qualname__', repr(maker))}"


def limit_s(scenario: Scenario) -> float:
    """After how many seconds a call of this scenario is taken for hung."""
    axes = scenario.axes
    waits_ms = sum(step.ms or 0 for step in scenario.script)
    replies_ms = (scenario.replies + 1) * (scenario.reply_takes_ms + axes.close_ms)
    timeout_s = scenario.options.false_interruption_timeout_s or 0.0
    return START_LIMIT_S + timeout_s + (replies_ms + waits_ms) / 1000


def run_in_child(
    scenario: Scenario,
    directory: Path,
    *,
    python: str = sys.executable,
    command: Sequence[str] | None = None,
    sink: str | None = None,
    driver: str | None = None,
    model: str | None = None,
    progress: Progress | None = None,
    started: Callable[[Path], None] | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Runs a call in a child process and returns what it left in ``directory``.

    Args:
        scenario: what happens.
        directory: where trace and log go; made if need be.
        python: the interpreter, whose livekit-agents is the build that is tried.
        command: what to start instead of ``python -m probe.scenarios --json-spec -``; a call in
            another language. It reads the same document from the first line of its stdin, says
            the same on stdout, and ends on SIGINT or with its stdin.
        sink: ``module:attribute`` of what makes the session's sinks, see `run_call`. The child
            imports it, from the working directory as well.
        driver: ``module:attribute`` of what stands between the session and its sink.
        model: ``module:attribute`` of what makes the realtime model.
        progress: told each step as it begins.
        started: told the trace's path as soon as there is one.
        stop: set by another thread, ends the call early as Ctrl-C does.

    Raises:
        ScenarioError: the release can't run it, it came to no end in time, it broke down, or it
            was stopped.
        KeyboardInterrupt: passed on after the child has closed the trace.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScenarioError(f"{directory}: expected a directory to write to ({error})") from error
    specification = {
        "scenario": to_document(scenario),
        "trace": str(directory.resolve() / f"{scenario.name}.jsonl"),
        "sink": sink,
        "driver": driver,
        "model": model,
    }
    if command is None:
        command = [python, "-m", "probe.scenarios", "--json-spec", "-"]
        expected = "a Python interpreter"
    else:
        expected = "a program to run the call"
    own = any(maker is not None for maker in (sink, driver, model))
    with _surroundings(python, own_code=own) as (environment, folder):
        try:
            child = _Child(command, environment, folder, specification, progress, started)
        except OSError as error:
            raise ScenarioError(f"{command[0]}: expected {expected} ({error})") from error
        child.wait(limit_s(scenario), stop)
    return child.outcome(scenario)


@contextlib.contextmanager
def _surroundings(python: str, *, own_code: bool) -> Iterator[tuple[dict[str, str], Path | None]]:
    """Variables and working directory with which the child finds this probe.

    Another interpreter finds nothing else of ours: what is installed beside the probe would go
    before its own livekit, and so would what the caller has on the path or in the working
    directory, which only code of the caller's own is looked for in.
    """
    package = Path(probe.__file__).resolve().parent
    inherited = [*filter(None, [os.environ.get("PYTHONPATH")])]
    if python == sys.executable:
        paths = [str(package.parent), *inherited]
        yield {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, None
        return
    with tempfile.TemporaryDirectory(prefix="sinkprobe-") as folder:
        (Path(folder) / package.name).symlink_to(package, target_is_directory=True)
        paths = [folder, *(inherited if own_code else [])]
        told = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        yield told, None if own_code else Path(folder)


class _Child:
    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        folder: Path | None,
        specification: dict[str, Any],
        progress: Progress | None,
        started: Callable[[Path], None] | None,
    ) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            cwd=folder,
            # A Ctrl-C on the terminal reaches the child once, from here, and not twice.
            start_new_session=True,
        )
        self._progress = progress
        self._started = started
        self._said: dict[str, str] = {}
        self._complaints: deque[str] = deque(maxlen=20)
        self._late = False
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        assert self._process.stdin is not None
        # Stays open: its end is how the child learns that whoever wanted the call is gone.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(specification) + "\n")
            self._process.stdin.flush()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                said = json.loads(line)[_KEY]
            except (ValueError, KeyError, TypeError):
                continue
            self._said.update(said)
            if "trace" in said and self._started is not None:
                self._started(Path(said["trace"]))
            if "step" in said and self._progress is not None:
                self._progress(said["step"])

    def _read_complaints(self) -> None:
        assert self._process.stderr is not None
        self._complaints.extend(line.strip() for line in self._process.stderr if line.strip())

    def wait(self, limit_s: float, stop: threading.Event | None) -> None:
        over = time.monotonic() + limit_s
        try:
            while self._process.poll() is None:
                self._late = time.monotonic() >= over
                if self._late or (stop is not None and stop.is_set()):
                    self._leave()
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_LOOK_S)
        except BaseException:
            self._leave()
            raise
        finally:
            self._clear_away()
            if self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
            for reader in self._readers:
                reader.join(1.0)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None and not any(reader.is_alive() for reader in self._readers):
                    pipe.close()

    def _clear_away(self) -> None:
        """Ends what the build started and left behind."""
        if self._process.poll() is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _leave(self) -> None:
        """Asks the child to close its trace and go; takes it down where it does not."""
        for demand in (self._interrupt, self._process.kill):
            demand()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_LIMIT_S)
                return

    def _interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def outcome(self, scenario: Scenario) -> Outcome:
        trace = self._said.get("trace")
        if "error" in self._said:
            raise ScenarioError(self._said["error"], trace)
        if self._late:
            raise ScenarioError(f"{scenario.name}: the call did not end in time", trace)
        if trace is None or "done" not in self._said:
            reason = self._complaints[-1] if self._complaints else "it said nothing"
            raise ScenarioError(
                f"{scenario.name}: the call's process left with {self._process.returncode} "
                f"before its end ({reason})",
                trace,
            )
        return Outcome(Path(trace), Path(self._said["log"]))


def serve(specification: dict[str, Any]) -> None:
    """The child's side: runs the call it was given and says on stdout how it went."""
    import asyncio

    try:
        require_livekit()
        scenario = from_document(specification["scenario"])
        with _logged_beside_the_trace() as log_into:

            def started(path: Path) -> None:
                _say(trace=str(path), log=str(log_into(path)))

            asyncio.run(
                run_call(
                    scenario,
                    Path(specification["trace"]),
                    sink=specification.get("sink"),
                    driver=specification.get("driver"),
                    model=specification.get("model"),
                    progress=lambda step: _say(step=step),
                    started=started,
                )
            )
        _say(done="yes")
    except KeyboardInterrupt:
        _say(error="the call was stopped")
    except ProbeError as error:
        _say(error=str(error))


def _say(**said: str) -> None:
    # Nobody may be left to hear it; the call closes its trace all the same.
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({_KEY: said}), flush=True)


@contextlib.contextmanager
def _logged_beside_the_trace() -> Iterator[Callable[[Path], Path]]:
    """Keeps all logging off the terminal; it goes to a file once the trace has its name."""
    memory = logging.handlers.MemoryHandler(10_000, flushLevel=logging.CRITICAL + 1)
    root = logging.getLogger()
    root.addHandler(memory)
    root.setLevel(logging.DEBUG)
    for name in ("asyncio", "numba"):
        logging.getLogger(name).setLevel(logging.INFO)
    file: logging.FileHandler | None = None

    def log_into(trace: Path) -> Path:
        nonlocal file
        log = trace.with_suffix(".log")
        file = logging.FileHandler(log, mode="w", encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        memory.setTarget(file)
        memory.flush()
        root.removeHandler(memory)
        root.addHandler(file)
        return log

    try:
        yield log_into
    finally:
        root.removeHandler(memory)
        if file is not None:
            root.removeHandler(file)
            file.close()
