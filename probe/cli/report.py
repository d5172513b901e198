"""``sinkprobe report``: traces in, one report out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from probe.cli import expectations, settings
from probe.cli.formats import FORMATS, Material, guessed
from probe.errors import ProbeError, TraceError, UsageError

if TYPE_CHECKING:
    from reports import Analysis
    from reports.show.tables import Table
    from reports.timeline import Timeline

__all__ = ["coloured", "columns", "put", "report", "show", "traces_of"]

SUFFIXES: Final = (".jsonl", ".jsonl.zst")
"""Names of traces in a folder."""


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(FORMATS)),
    help="; ".join(f"{name}: {one.about}" for name, one in FORMATS.items())
    + ". Without it, what the name of --output ends in, else terminal.",
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
    help="Show this segment in full (terminal only; the others hold all of them).",
)
@click.option(
    "--table",
    type=click.Choice(["barge-ins", "segments", "messages"]),
    help="csv and parquet: which table; messages are those of a realtime model.  "
    "[default: barge-ins]",
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
    output_format: str | None,
    output: Path | None,
    segment: int | None,
    table: Table | None,
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
    from reports.account.source import ledger_of
    from reports.timeline import lay_out

    assertions = expectations.read(expected, "--expect")
    chosen = settings.load(thresholds)
    forbidden = settings.gates(fail_on)
    output_format = output_format or guessed(output)
    draws = FORMATS[output_format].draws
    if table is not None and output_format not in ("csv", "parquet"):
        raise UsageError(f"--table goes with --format csv or parquet, not with {output_format}")
    if segment is not None and output_format != "terminal":
        raise UsageError(
            f"--segment goes with --format terminal: {output_format} holds every segment"
        )
    files = traces_of(traces)
    if output is not None and output.resolve() in {path.resolve() for path in files}:
        raise UsageError(f"{output}: expected another file to write to, found one of the traces")
    analyses: list[Analysis] = []
    timelines: list[Timeline] = []
    failed = False
    for path in files:
        try:
            ledger = ledger_of(path)
            analyses.append(analyze(ledger, settings=chosen))
            if draws:
                timelines.append(lay_out(ledger))
        except TraceError as error:  # noqa: PERF203 - a bad trace must not hide the others
            failed = True
            click.echo(f"sinkprobe: {error}", err=True)
    if not analyses:
        return 1
    if segment is not None and not any(len(a.segments) >= segment for a in analyses):
        most = max(len(a.segments) for a in analyses)
        raise UsageError(f"--segment {segment}: expected 1 to {most}, as many as there are")
    found = expectations.results(analyses, assertions) if assertions else None
    material = Material(
        analyses, timelines, expected=found, segment=segment, table=table or "barge-ins"
    )
    show(material, output_format, output)
    if failed:
        return 1
    return max(expectations.exit_code(found), settings.fails(analyses, forbidden))


def show(material: Material, output_format: str, output: Path | None = None) -> None:
    """Put one report on standard output, or into a file.

    Args:
        material: what it is made of. On standard output it is as wide as the terminal is, and in
            colour where that can show it.
        output_format: a name of `FORMATS`.
        output: a file, overwritten if it is there; ``None``: standard output.

    Raises:
        ProbeError: the file can't be written, or a library the format needs is not installed.
    """
    if output is None:
        material = replace(material, width=columns(), colour=coloured())
    put(FORMATS[output_format].render(material), output)


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


def put(report: str | bytes, output: Path | None = None) -> None:
    """Writes to the file, or to standard output as far as that can show it.

    Raises:
        ProbeError: the file can't be written.
        UsageError: what is no text would go to a terminal.
    """
    if output is None and isinstance(report, bytes):
        if sys.stdout.isatty():
            raise UsageError("expected a file to write to (-o): this format is no text")
        sys.stdout.buffer.write(report)
    elif output is None:
        # A terminal that knows no dash gets a question mark instead of a traceback.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(str(report).encode(encoding, "replace").decode(encoding))
    else:
        try:
            output.write_bytes(report if isinstance(report, bytes) else report.encode())
        except OSError as error:
            raise ProbeError(f"{output}: can't be written: {error.strerror or error}") from error
