"""The command ``sinkprobe``: finds the subcommand, and turns errors into lines and exit codes.

Each subcommand is a file of its own, imported when it is asked for: a report needs no livekit, so
nothing here may import it on the way. A subcommand returns its exit code, or ``None`` for 0.

Exit codes: 0 clean, 1 the command failed, 2 wrong usage, 3 findings at or above ``--fail-on``, 130
interrupted from the keyboard, 128 and the signal's number where another one ended it.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from types import FrameType

import click

from probe.errors import ProbeError

__all__ = ["cli", "main"]

COMMANDS = {
    "assertions": "what can be said in --expect and in a scenario file",
    "bench": "what the probe costs on this machine",
    "bisect": "in which release a finding appears, or went away",
    "compare": "builds, or folders of traces, side by side",
    "history": "the same calls on one release after another",
    "report": "read traces, and say what leaked and where every sample went",
    "rules": "what a report can find: causes, remedies and thresholds",
    "run": "a scripted call on the installed build, recorded and reported",
    "scenarios": "what can be run",
    "sweep": "many scripted calls, and one table of what they left",
}
"""Name of each subcommand, which is also its module and its function, and what it is for."""

INTERRUPTED = 130


class _Terminated(KeyboardInterrupt):
    """A signal that ends the command the way Ctrl-C does: children told, traces closed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(number)


class _Commands(click.Group):
    """Subcommands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"probe.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The help of the group must not import every command, for some need livekit.
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _version() -> str:
    try:
        return version("sinkprobe")
    except PackageNotFoundError:
        return "not installed"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="sinkprobe", message="%(prog)s %(version)s")
def cli() -> None:
    """Frame accounting at the audio sink of LiveKit voice agents: what leaked, and why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code; bad input never shows a traceback.

    Args:
        arguments: without the program's name; ``None`` takes those of the process.
    """
    if arguments is None:
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _terminate)
    if sys.stdout is None:
        return _fail("expected a standard output to write to, found it closed", 1)
    try:
        result = cli.main(
            args=None if arguments is None else list(arguments),
            prog_name="sinkprobe",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except _Terminated as ended:
        return _fail("terminated", ended.exit_code)
    except click.Abort as error:
        # click's own name for what interrupts it, whichever signal that was
        if isinstance(error.__context__, _Terminated):
            return _fail("terminated", error.__context__.exit_code)
        return _fail("interrupted", INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ProbeError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read the output has enough; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"expected to write the output, found: {error.strerror or error}", 1)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    return result if isinstance(result, int) else 0


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    click.echo(f"sinkprobe: {line}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
