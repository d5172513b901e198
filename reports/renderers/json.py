"""The JSON report: the analysis as it is, one document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reports.results import SCHEMA, Analysis
from reports.summary import summarize

__all__ = ["document", "render"]


def document(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """What the JSON report says, as plain dicts, lists and numbers.

    One analysis: its fields, with a ``summary``. Otherwise ``{"schema", "analyses", "summary"}``,
    the analyses in the order given. Missing figures are ``None``.
    """
    summary = asdict(summarize(analyses))
    if len(analyses) == 1:
        return {**asdict(analyses[0]), "summary": summary}
    return {
        "schema": SCHEMA,
        "analyses": [asdict(analysis) for analysis in analyses],
        "summary": summary,
    }


def render(analyses: Sequence[Analysis]) -> str:
    """One JSON document, indented, with a newline at its end. ASCII, so it survives any pipe."""
    return json.dumps(document(analyses), indent=2, allow_nan=False) + "\n"
