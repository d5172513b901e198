"""The tools that make environments: uv, npm and git, each call in a child that can't hang.

A child gets a time limit, no terminal to ask questions on, and a process group of its own, so that
whatever it started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from probe.errors import BuildError

__all__ = [
    "LOOK_UP_LIMIT_S",
    "MAKE_LIMIT_S",
    "Progress",
    "git",
    "node",
    "npm",
    "run",
    "uv",
    "without_credentials",
]

LOOK_UP_LIMIT_S: Final = 120.0
"""How long a question to a registry or to an interpreter may take."""
MAKE_LIMIT_S: Final = 900.0
"""How long an installation may take."""

Progress = Callable[[str], None]
"""Told in a few words what begins."""

_REASON_CHARACTERS: Final = 400
_LEAVE_LIMIT_S: Final = 5.0
_NOISE: Final = re.compile(
    r"^(npm (error|warn)( 404)?|error|fatal|cause|hint|warning)\b:?\s*|^[^\w\"'(<@/.]+",
    re.IGNORECASE,
)
_SIGNS_IN: Final = re.compile(
    r"(?<=://)[^/@\s:]*:[^/@\s]*@|(?<=http://)[^/@\s]+@|(?<=https://)[^/@\s]+@"
)
_GOES_ON: Final = " " * 6
"""What a line begins with that goes on with the one before."""
_USELESS: Final = re.compile(
    r"^(code E?\w+|No solution found when resolving dependencies:?|A complete log of this run .*"
    r"|warning: .*|npm (warn|notice).*)?$",
    re.IGNORECASE,
)


def without_credentials(text: str) -> str:
    """A text whose URLs name no password or token: it may end up on a page for everybody."""
    return _SIGNS_IN.sub("", text)


def uv() -> str:
    """The uv that came along with this installation.

    Raises: `BuildError` where its program is missing.
    """
    from uv import find_uv_bin

    try:
        return os.fspath(find_uv_bin())
    except FileNotFoundError as error:
        raise BuildError(f"expected uv beside its Python package, found none: {error}") from error


def npm() -> str:
    """Raises: `BuildError` where there is no npm."""
    return _on_path("npm", "Node builds are installed with it")


def node() -> str:
    """Raises: `BuildError` where there is no node."""
    return _on_path("node", "Node builds run on it")


def git() -> str:
    """Raises: `BuildError` where there is no git."""
    return _on_path("git", "builds from a repository are fetched with it")


def _on_path(name: str, why: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"expected {name} on the PATH, found none: {why}")
    return found


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    limit_s: float,
    cwd: Path | None = None,
    stdin: str = "",
    more: Mapping[str, str] | None = None,
) -> str:
    """Runs a tool to its end and returns what it wrote to stdout.

    Args:
        command: the program and its arguments.
        limit_s: after how many seconds it is taken for hung and ended.
        cwd: where it runs.
        stdin: what it may read.
        more: environment variables beside those of this process.

    Raises:
        BuildError: it could not be started, failed, or did not end in time. The message is what
            it complained of, as one line.
        KeyboardInterrupt: passed on after the tool and all it started are gone.
    """
    name = Path(command[0]).name
    try:
        child = subprocess.Popen(
            [os.fspath(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=cwd,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1", **(more or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError(f"{name} can't be started: {error.strerror or error}") from error
    with child:
        try:
            out, complaints = child.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            _end(child)
            raise BuildError(f"{name} did not end within {limit_s:g} s") from error
        except BaseException:
            _end(child)
            raise
    if child.returncode != 0:
        reason = _reason(complaints) or _reason(out) or f"it left with {child.returncode}"
        raise BuildError(f"{name}: {reason}")
    return out


def _end(child: subprocess.Popen[str]) -> None:
    """Takes a child down with everything that it started and that stayed in its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        over = time.monotonic() + _LEAVE_LIMIT_S
        while child.poll() is None and time.monotonic() < over:
            time.sleep(0.05)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _reason(complaints: str) -> str:
    """What a tool complained of, without its decoration, as one line."""
    told: list[str] = []
    for line in complaints.splitlines():
        if _USELESS.match(line.strip()):
            continue
        plain = line
        while (match := _NOISE.match(plain)) and match.end():
            plain = plain[match.end() :]
        plain = " ".join(plain.split())
        if not plain or _USELESS.match(plain) or plain in told:
            continue
        if told and line.startswith(_GOES_ON):
            told[-1] += f" {plain}"
        else:
            told.append(plain)
    text = without_credentials("; ".join(told))
    if len(text) > _REASON_CHARACTERS:
        text = text[:_REASON_CHARACTERS].rstrip() + "…"
    return text
