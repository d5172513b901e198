"""``sinkprobe assertions``: what an assertion can say."""

from __future__ import annotations

import json
import shutil
import textwrap
from typing import Final

import click

__all__ = ["assertions"]

FORMS: Final = (
    ("verdict < clear <= resume", "instants in their order"),
    ("last_sent - verdict <= 20ms", "a difference of instants held against a length"),
    ("leaked.sent <= 480 samples", "audio held against samples, or against its length"),
    ("no push after verdict", "what must not come"),
    ("outcome == committed", "a word"),
    ("not partial", "yes or no"),
    ("#2 verdict < clear", "the second barge-in only; #committed, #overlap: those that are so"),
)
"""Each form once, with what it is."""


@click.command("assertions")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def assertions(as_json: bool) -> None:
    """List what can be said in --expect, and in `expect` of a scenario file.

    An instant that never came makes an assertion about it fail, and so does a barge-in that is not
    there. What the trace can't tell is not judged. A limit is missed only beyond the resolution of
    the boundary it is about.
    """
    from reports.assertions import reference

    groups = reference()
    if as_json:
        forms = [{"form": form, "meaning": meaning} for form, meaning in FORMS]
        click.echo(json.dumps({"forms": forms, "names": groups}, indent=2))
        return
    width = min(max(shutil.get_terminal_size((80, 24)).columns, 60), 100)
    for title, entries in {"forms": dict(FORMS), **groups}.items():
        click.echo(title)
        for name, meaning in entries.items():
            click.echo(
                textwrap.fill(
                    meaning, width, initial_indent=f"  {name:<28} ", subsequent_indent=" " * 31
                )
            )
        click.echo()
