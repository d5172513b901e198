"""``python -m tests.conformance.write``: has Python's assembler say anew what every case gives.

After a change that is meant to change it. The difference is for eyes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conformance.run import HERE, Case, in_python, told


def write(path: Path, cases: Iterable[Case]) -> None:
    """Writes cases with their events, a record and an event a line."""
    plain = json.JSONEncoder(separators=(",", ":")).encode
    texts = []
    for case in cases:
        lists: dict[str, list[Any]] = {
            "records": case["records"],
            "events": told(in_python(case)),
        }
        rest = {key: value for key, value in case.items() if key not in lists}
        lines = [f"{plain(key)}:{plain(value)}" for key, value in rest.items()]
        for key, value in lists.items():
            lines.append(f"{plain(key)}:[\n " + ",\n ".join(map(plain, value)) + "\n]")
        texts.append("{\n" + ",\n".join(lines) + "\n}")
    path.write_text("[" + ",\n".join(texts) + "]\n", encoding="utf-8")


if __name__ == "__main__":
    for path in sorted(HERE.glob("*.json")):
        write(path, json.loads(path.read_text(encoding="utf-8")))
