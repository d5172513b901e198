"""What a bisection says: a line for each build as it is tried, the answer, and one document."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import Final

from probe.builds.bisection import Answer
from probe.cli.bisect_trial import Step, Trial
from reports.show.page import printable

__all__ = ["SCHEMA", "as_json", "conclusion", "head", "line"]

SCHEMA: Final = 1
"""Number of the JSON document of a bisection."""

_WORDS: Final = {True: "found", False: "not found", None: "no answer"}


def head(trial: Trial, width: int) -> str:
    """What is looked for and where, newline at its end."""
    first, last = trial.row[0].name, trial.row[-1].name
    halvings = max(len(trial.row) - 2, 0).bit_length()
    text = (
        f"{trial.gate.text} in {trial.scenario.name}, {trial.scenario.axes.pacing}: "
        f"{len(trial.row)} builds from {first} to {last}, of which the ends and about {halvings} "
        f"more are tried, each until {trial.agree} runs agree."
    )
    return _wrapped(text, width)


def line(step: Step, width: int) -> str:
    """A build that was tried, newline at its end."""
    of = step.shown + step.absent
    text = f"{step.build:<16} {step.uploaded or '':<12}{_WORDS[step.found]:<11}"
    if of:
        text += f"in {step.shown} of {of} run{'s' if of != 1 else ''}"
    if step.unusable:
        text += f"; {step.unusable} said nothing"
    if step.reason:
        text += f"; {printable(step.reason)}"
    return _wrapped(text.replace("  ;", ";"), width, "    ")


def conclusion(trial: Trial, answer: Answer | None, folder: str, width: int) -> str:
    """Where it changed, newline at its end."""
    if answer is None:
        text = "Broken off; the same command goes on from here."
    else:
        before, after = trial.row[answer.before], trial.row[answer.after]
        when = f" ({after.uploaded})" if after.uploaded else ""
        found = {step.build: step for step in trial.steps}[after.name].found
        text = f"{trial.gate.text} {'appears' if found else 'is gone'} "
        if answer.untried:
            untried = ", ".join(trial.row[place].name for place in answer.untried)
            text += (
                f"after {before.name} and by {after.name}{when}; between them these could not be "
                f"tried: {untried}."
            )
        else:
            text += f"in {after.name}{when}; the build before it is {before.name}."
    return "\n" + _wrapped(text, width) + _wrapped(f"Traces: {printable(folder)}", width)


def as_json(trial: Trial, answer: Answer | None, folder: str) -> str:
    """One document, newline at its end."""
    names = [one.name for one in trial.row]
    document = {
        "schema": SCHEMA,
        "rule": trial.gate.text,
        "scenario": trial.scenario.name,
        "axes": asdict(trial.scenario.axes),
        "agree": trial.agree,
        "builds": names,
        "steps": [asdict(step) for step in trial.steps],
        "complete": answer is not None,
        "last_before": None if answer is None else names[answer.before],
        "first_after": None if answer is None else names[answer.after],
        "untried": None if answer is None else [names[place] for place in answer.untried],
        "folder": folder,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _wrapped(text: str, width: int, more: str = "") -> str:
    lines = textwrap.wrap(
        text, width, subsequent_indent=more, break_on_hyphens=False, drop_whitespace=True
    )
    return "\n".join(lines) + "\n"
