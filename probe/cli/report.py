"""``sinkprobe report``: traces in, one report out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from probe.cli import expectations, reading, settings
from probe.cli.files import coloured, columns, put, traces_of
from probe.errors import ProbeError, UsageError
from reports.show import FORMS, MissingLibraryError, guessed

if TYPE_CHECKING:
    from probe.trace.limits import Limits
    from reports import Analysis
    from reports.account.ledger import Ledger
    from reports.show.tables import Table
    from reports.timeline import Timeline

__all__ = ["report", "show"]


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(FORMS)),
    help="; ".join(f"{name}: {form.about}" for name, form in FORMS.items())
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
@reading.bounded
@settings.judged_by
def report(
    traces: Sequence[Path],
    output_format: str | None,
    output: Path | None,
    segment: int | None,
    table: Table | None,
    expected: Sequence[str],
    limits: Limits | None,
    thresholds: Sequence[str],
    fail_on: Sequence[str],
) -> int:
    """Say what leaked after a barge-in, why, and where every sample went.

    TRACE is a trace (.jsonl or .jsonl.zst) or a folder, of which every trace is taken, in the
    order of their names. A trace that can't be read or analysed costs one line on standard error
    and exit code 1; the others are reported all the same. An --expect that does not hold makes the
    exit code 3, and so does a finding that --fail-on forbids; one that could not be judged makes it
    1.
    """
    from reports import analyze
    from reports.timeline import lay_out

    assertions = expectations.read(expected, "--expect")
    chosen = settings.load(thresholds)
    forbidden = settings.gates(fail_on)
    output_format = output_format or guessed(output)
    form = FORMS[output_format]
    for option, value in (("segment", segment), ("table", table)):
        if value is not None and option not in form.takes:
            takers = " or ".join(name for name, one in FORMS.items() if option in one.takes)
            raise UsageError(f"--{option} goes with --format {takers}, not with {output_format}")
    files = traces_of(traces)
    if output is not None and output.resolve() in {path.resolve() for path in files}:
        raise UsageError(f"{output}: expected another file to write to, found one of the traces")
    drawn = "timelines" in form.takes

    def made_of(ledger: Ledger) -> tuple[Analysis, Timeline | None]:
        return analyze(ledger, settings=chosen), lay_out(ledger) if drawn else None

    made, failed = reading.each(files, limits, made_of)
    analyses = [analysis for analysis, _ in made]
    if not analyses:
        return 1
    if segment is not None and not any(len(a.segments) >= segment for a in analyses):
        most = max(len(a.segments) for a in analyses)
        raise UsageError(f"--segment {segment}: expected 1 to {most}, as many as there are")
    if form.single and len(analyses) > 1:
        raise UsageError(
            f"--format {output_format}: expected one trace, found {len(analyses)}; a file of this "
            "format holds one call"
        )
    found = expectations.results(analyses, assertions) if assertions else None
    show(
        analyses,
        output_format,
        output,
        timelines=[timeline for _, timeline in made if timeline is not None],
        expected=found,
        segment=segment,
        table=table,
    )
    if failed:
        return 1
    return max(expectations.exit_code(found), settings.fails(analyses, forbidden))


def show(
    analyses: Sequence[Analysis], form: str, output: Path | None = None, **given: object
) -> None:
    """Put one report on standard output, or into a file.

    Args:
        analyses: what it is about.
        form: a name of `FORMS`.
        output: a file, overwritten if it is there; ``None``: standard output, where a report is as
            wide as the terminal is, and in colour where that can show it.
        given: what there is beside the analyses; the form takes what it needs. ``None``: not given.

    Raises:
        ProbeError: the file can't be written, or a library the form needs is not installed.
    """
    told = {name: value for name, value in given.items() if value is not None}
    if output is None:
        told |= {"width": columns(), "colour": coloured()}
    try:
        report = FORMS[form].render(analyses, **told)
    except MissingLibraryError as error:
        raise ProbeError(str(error)) from error
    put(report, output)
