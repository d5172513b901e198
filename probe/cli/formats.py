"""The formats of a report: what each is called, what it needs, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from probe.errors import ProbeError, UsageError

if TYPE_CHECKING:
    from reports import Analysis
    from reports.assertions import Result
    from reports.show.tables import Table
    from reports.timeline import Timeline

__all__ = ["FORMATS", "Format", "Material", "guessed"]


@dataclass(frozen=True, slots=True)
class Material:
    """What a report is made of."""

    analyses: Sequence[Analysis]
    """At least one."""
    timelines: Sequence[Timeline] = ()
    """Lanes of each analysis, for the formats that draw."""
    expected: Sequence[Sequence[Result]] | None = None
    """Of each analysis, what came of the assertions held against it."""
    expected_title: str = "Expected"
    segment: int | None = None
    """Terminal: the segment to show in full."""
    table: Table = "barge-ins"
    """CSV and Parquet: which table."""
    width: int = 80
    colour: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """One format. Its renderer is imported when it is used: some load large libraries."""

    suffix: str
    """Of a file of it."""
    about: str
    render: Callable[[Material], str | bytes]
    draws: bool = False
    """Whether it needs the lanes of a timeline."""


def _terminal(material: Material) -> str:
    from probe.cli import expectations
    from reports.show import terminal

    text = terminal.render(
        material.analyses, segment=material.segment, width=material.width, colour=material.colour
    )
    if material.expected is None:
        return text
    return text + expectations.section(
        material.analyses, material.expected, material.expected_title, material.width
    )


def _json(material: Material) -> str:
    from reports.show import json

    return json.render(material.analyses, material.expected)


def _markdown(material: Material) -> str:
    from reports.show import markdown

    return markdown.render(material.analyses, material.expected)


def _html(material: Material) -> str:
    from reports.show import html

    return html.render(material.analyses, material.timelines, material.expected)


def _perfetto(material: Material) -> bytes:
    from reports.show import perfetto, tables

    if len(material.analyses) != 1:
        raise UsageError(
            f"--format perfetto: expected one trace, found {len(material.analyses)}; a file of "
            "this format holds one call"
        )
    try:
        return perfetto.render(material.analyses[0], material.timelines[0])
    except tables.MissingLibraryError as error:
        raise ProbeError(str(error)) from error


def _csv(material: Material) -> str:
    from reports.show import tables

    return tables.csv_text(material.analyses, material.table)


def _parquet(material: Material) -> bytes:
    from reports.show import tables

    try:
        return tables.parquet_bytes(material.analyses, material.table)
    except tables.MissingLibraryError as error:
        raise ProbeError(str(error)) from error


FORMATS: Final[dict[str, Format]] = {
    "terminal": Format(".txt", "text, 80 columns or as wide as the terminal is", _terminal),
    "json": Format(".json", "one document; several traces under the key analyses", _json),
    "markdown": Format(".md", "for a pull request or an issue", _markdown),
    "html": Format(".html", "one page with a timeline, whole in itself", _html, draws=True),
    "perfetto": Format(".pftrace", "for ui.perfetto.dev; one trace", _perfetto, draws=True),
    "csv": Format(".csv", "a table, see --table", _csv),
    "parquet": Format(".parquet", "the same, typed", _parquet),
}
"""Name to format, in the order they are listed."""


def guessed(output: Path | None) -> str:
    """The format a file's name asks for; the terminal's where it says nothing."""
    for name, one in FORMATS.items():
        if output is not None and output.suffix.lower() == one.suffix:
            return name
    return "terminal"
