"""``sinkprobe report``: traces in, one report out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import expectations, settings
from probe.errors import ProbeError, TraceError, UsageError

if TYPE_CHECKING:
    from reports import Analysis
    from reports.assertions import Result

__all__ = ["coloured", "columns", "put", "report", "show", "traces_of"]

SUFFIXES: Final = (".jsonl", ".jsonl.zst")
"""Names of traces in a folder."""


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["terminal", "json"]),
    default="terminal",
    show_default=True,
    help="json: one document, schema 1; several traces under the key analyses.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to this file instead of standard output.",
)
@click.option(
    "--segment",
    type=click.IntRange(min=1),
    help="Show this segment in full (terminal only; json holds all of them).",
)
@click.option(
    "--expect",
    "expected",
    multiple=True,
    metavar="ASSERTION",
    help="What must hold in every trace, such as 'verdict < clear'; may be repeated.",
)
@settings.judged_by
def report(
    traces: Sequence[Path],
    output_format: str,
    output: Path | None,
    segment: int | None,
    expected: Sequence[str],
    thresholds: Sequence[str],
    fail_on: Sequence[str],
) -> int:
    """Say what leaked after a barge-in, why, and where every sample went.

    TRACE is a trace (.jsonl or .jsonl.zst) or a folder, of which every trace is taken, in the
    order of their names. A trace that can't be read costs one line on standard error and exit
    code 1; the others are reported all the same. An --expect that does not hold makes the exit
    code 3, and so does a finding that --fail-on forbids; one that could not be judged makes it 1.
    """
    from reports import analyze

    assertions = expectations.read(expected, "--expect")
    chosen = settings.load(thresholds)
    forbidden = settings.gates(fail_on)
    if segment is not None and output_format == "json":
        raise UsageError("--segment goes with --format terminal: json holds every segment")
    files = traces_of(traces)
    if output is not None and output.resolve() in {path.resolve() for path in files}:
        raise UsageError(f"{output}: expected another file to write to, found one of the traces")
    analyses = []
    failed = False
    for path in files:
        try:
            analyses.append(analyze(path, settings=chosen))
        except TraceError as error:  # noqa: PERF203 - a bad trace must not hide the others
            failed = True
            click.echo(f"sinkprobe: {error}", err=True)
    if not analyses:
        return 1
    if segment is not None and not any(len(a.segments) >= segment for a in analyses):
        most = max(len(a.segments) for a in analyses)
        raise UsageError(f"--segment {segment}: expected 1 to {most}, as many as there are")
    found = expectations.results(analyses, assertions) if assertions else None
    show(analyses, output_format, output=output, segment=segment, expected=found)
    if failed:
        return 1
    return max(expectations.exit_code(found), settings.fails(analyses, forbidden))


def show(
    analyses: Sequence[Analysis],
    output_format: str,
    *,
    output: Path | None = None,
    segment: int | None = None,
    expected: Sequence[Sequence[Result]] | None = None,
    expected_title: str = "Expected",
) -> None:
    """Put one report on standard output, or into a file.

    Args:
        analyses: at least one.
        output_format: ``terminal`` or ``json``.
        output: a file, overwritten if it is there; ``None``: standard output, as wide as the
            terminal is and in colour where it can.
        segment: in the terminal report, the segment to show in full.
        expected: of each analysis, what came of the assertions held against it.
        expected_title: what the terminal report says above them.

    Raises:
        ProbeError: the file can't be written.
    """
    from reports.renderers import json, terminal

    if output_format == "json":
        text = json.render(analyses, expected)
    else:
        width = columns() if output is None else 80
        text = terminal.render(
            analyses, segment=segment, width=width, colour=output is None and coloured()
        )
        if expected is not None:
            text += expectations.section(analyses, expected, expected_title, width)
    put(text, output)


def traces_of(traces: Sequence[Path]) -> list[Path]:
    """The files themselves, and of each folder every trace in it, by name.

    Raises:
        TraceError: a folder holds none.
    """
    files: list[Path] = []
    for path in traces:
        if not path.is_dir():
            files.append(path)
            continue
        found = sorted(p for p in path.rglob("*") if p.name.endswith(SUFFIXES) and p.is_file())
        if not found:
            raise TraceError(f"{path}: expected traces ({', '.join(SUFFIXES)}), found none")
        files += found
    return files


def columns() -> int:
    """Columns of the terminal, or ``COLUMNS``; 80 where there is neither."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, 60), 120)


def coloured() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def put(text: str, output: Path | None = None) -> None:
    """Writes to the file, or to standard output as far as that can show it.

    Raises:
        ProbeError: the file can't be written.
    """
    if output is None:
        # A terminal that knows no dash gets a question mark instead of a traceback.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{output}: can't be written: {error.strerror or error}") from error
