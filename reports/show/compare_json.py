"""The comparison as one JSON document; its keys are the fields of `reports.compare.comparison`."""

from __future__ import annotations

import json
from dataclasses import asdict

from reports.compare import Comparison
from reports.compare.measures import MEASURES

__all__ = ["render"]


def render(comparison: Comparison) -> str:
    """One document, newline at its end. Missing figures are null."""
    document = asdict(comparison)
    document["measures"] = [
        {"name": m.name, "title": m.title, "unit": m.unit, "meaning": m.meaning} for m in MEASURES
    ]
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
