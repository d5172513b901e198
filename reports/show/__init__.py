"""Forms of reports: each a pure function from results to text or bytes.

    from reports.show import FORMS
    FORMS["html"].render([analysis], timelines=[timeline])

A form is one module here, or a folder, with a function ``render``. That takes the analyses first,
and by name what it needs beside them: each form has its own options, and no form knows of those of
another. A line in `FORMS` says what it takes; to make another form, write the module and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, Final

__all__ = ["COMPARED", "FORMS", "Form", "MissingLibraryError", "guessed"]


class MissingLibraryError(RuntimeError):
    """A library that a form needs is not installed. One line, with the command."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a report."""

    module: str
    """Its name in this package. Imported when it is used: some load large libraries."""
    ending: str
    """Of a file's name."""
    about: str
    takes: tuple[str, ...] = ()
    """What its ``render`` takes beside the results, by name: ``timelines`` (the lanes of each
    analysis), ``expected`` (what came of assertions), and options of its own."""
    single: bool = False
    """Whether one report holds one call only."""
    library: str = ""
    """What has to be installed beside, by an extra of the module's name; empty: nothing."""

    def render(self, results: Any, **given: object) -> str | bytes:
        """The report.

        Args:
            results: analyses, or a comparison.
            given: what there is beside them; the form gets what it takes of it.

        Raises:
            MissingLibraryError: a library the form needs is not installed.
        """
        if self.library and find_spec(self.library) is None:
            raise MissingLibraryError(
                f"this form needs {self.library}: pip install 'sinkprobe[{self.module}]'"
            )
        module = import_module(f"{__name__}.{self.module}")
        taken = {name: value for name, value in given.items() if name in self.takes}
        report: str | bytes = module.render(results, **taken)
        return report


FORMS: Final[Mapping[str, Form]] = {
    "terminal": Form(
        "terminal",
        ".txt",
        "text, 80 columns or as wide as the terminal is",
        ("segment", "expected", "expected_title", "width", "colour"),
    ),
    "json": Form(
        "json", ".json", "one document; several traces under the key analyses", ("expected",)
    ),
    "markdown": Form("markdown", ".md", "for a pull request or an issue", ("expected",)),
    "html": Form(
        "html", ".html", "one page with a timeline, whole in itself", ("timelines", "expected")
    ),
    "perfetto": Form(
        "perfetto",
        ".pftrace",
        "for ui.perfetto.dev; one trace",
        ("timelines",),
        single=True,
        library="perfetto",
    ),
    "csv": Form("csv", ".csv", "a table, see --table", ("table",)),
    "parquet": Form("parquet", ".parquet", "the same, typed", ("table",), library="pyarrow"),
}
"""Forms of a report on traces, in the order they are listed."""

COMPARED: Final[Mapping[str, Form]] = {
    "terminal": Form("compare_terminal", ".txt", "readable at 80 columns", ("width", "colour")),
    "markdown": Form("compare_markdown", ".md", "for a pull request"),
    "html": Form("compare_html", ".html", "one page, every run a dot"),
    "json": Form("compare_json", ".json", "one document"),
}
"""Forms of a comparison."""


def guessed(output: PurePath | None) -> str:
    """The form that a file's name asks for; the terminal's where it says nothing."""
    for name, form in FORMS.items():
        if output is not None and output.suffix.lower() == form.ending:
            return name
    return "terminal"
