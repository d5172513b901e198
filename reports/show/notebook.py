"""An analysis as a notebook shows it: a piece of HTML, whole in itself, without a script.

The timeline is not in it, for that needs the trace; it says how to get the page that has it.
"""

from __future__ import annotations

import shlex
from typing import Final

from reports.results import Analysis, Segment
from reports.show.view import account, calls, worst_first
from reports.show.view.call import headline
from reports.show.web import fragment

__all__ = ["render"]

SHOWN: Final = 10
"""Of barge-ins and of findings."""

SHOWN_SEGMENTS: Final = 8


def render(analysis: Analysis) -> str:
    """A fragment for a page that is not ours: one element, styled by itself, light and dark.

    Nothing from a trace is markup in it.
    """
    (call,) = calls([analysis])
    segments = [*analysis.segments]
    if len(segments) > SHOWN_SEGMENTS:
        segments = (account.concerned(analysis) or segments)[:SHOWN_SEGMENTS]
    columns: list[Segment | None] = [*segments]
    if len(analysis.segments) != 1:
        columns.append(None)
    about = [
        ", ".join(call.versions),
        call.run,
        f"counted at {', '.join(call.tapped) or 'nothing'}",
        *(f"not counted: {text}" for text in call.not_tapped),
    ]
    return fragment(
        "analysis.html.j2",
        call=call,
        about=[text for text in about if text],
        headline=headline(call),
        worst=[barge_in for _, barge_in in worst_first([call])],
        shown=SHOWN,
        balanced=account.balance_said(analysis).lower().removeprefix("balance "),
        balance=account.balance(analysis, columns),
        left_out=len(analysis.segments) - len(segments),
        command=f"sinkprobe report {shlex.quote(analysis.trace.path)} -o call.html",
    )
