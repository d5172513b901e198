"""The JSON report: the analysis as it is, one document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reports.assertions import Result
from reports.results import SCHEMA, Analysis
from reports.summary import summarize

__all__ = ["document", "render"]


def document(
    analyses: Sequence[Analysis], expected: Sequence[Sequence[Result]] | None = None
) -> dict[str, Any]:
    """What the JSON report says, as plain dicts, lists and numbers.

    One analysis: its fields, with a ``summary``. Otherwise ``{"schema", "analyses", "summary"}``,
    the analyses in the order given. Missing figures are ``None``. Where assertions were held
    against the traces, each analysis has its results under ``expectations``.
    """
    summary = asdict(summarize(analyses))
    documents = [asdict(analysis) for analysis in analyses]
    for one, results in zip(documents, expected or (), strict=expected is not None):
        one["expectations"] = [asdict(result) for result in results]
    if len(analyses) == 1:
        return {**documents[0], "summary": summary}
    return {"schema": SCHEMA, "analyses": documents, "summary": summary}


def render(analyses: Sequence[Analysis], expected: Sequence[Sequence[Result]] | None = None) -> str:
    """One JSON document, indented, with a newline at its end. ASCII, so it survives any pipe."""
    return json.dumps(document(analyses, expected), indent=2, allow_nan=False) + "\n"
