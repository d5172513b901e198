"""An analysis as a notebook shows it: a piece of HTML, whole in itself, without a script.

The timeline is not in it, for that needs the trace; it says how to get the page that has it.
"""

from __future__ import annotations

import shlex
from typing import Final

from reports.results import Analysis, Segment
from reports.show import figures, wording
from reports.show.web import fragment
from reports.summary import leak_at, worst_first
from reports.units import time_ms

__all__ = ["render"]

SHOWN_BARGE_INS: Final = 10
SHOWN_FINDINGS: Final = 10
SHOWN_SEGMENTS: Final = 8


def render(analysis: Analysis) -> str:
    """A fragment for a page that is not ours: one element, styled by itself, light and dark.

    Nothing from a trace is markup in it.
    """
    worst = [barge_in for _, barge_in in worst_first([analysis])]
    touched = {barge_in.segment for barge_in in worst}
    segments = [*analysis.segments]
    if len(segments) > SHOWN_SEGMENTS:
        segments = [s for s in segments if s.index in touched or s.balanced is False]
        segments = (segments or [*analysis.segments])[:SHOWN_SEGMENTS]
    columns: list[Segment | None] = [*segments]
    if len(analysis.segments) != 1:
        columns.append(None)
    return fragment(
        "analysis.html.j2",
        name=wording.trace_name(analysis),
        about=[
            text
            for text in (
                ", ".join(wording.versions(analysis.trace)),
                wording.run_words(analysis),
                f"counted at {', '.join(wording.tapped(analysis.trace)) or 'nothing'}",
                *(f"not counted: {text}" for text in wording.not_tapped(analysis.trace)),
            )
            if text
        ],
        doubts=list(wording.doubts(analysis)),
        headline=figures.headline(analysis, worst),
        single=worst[0] if len(worst) == 1 else None,
        figures=figures.of(worst[0]) if len(worst) == 1 else [],
        barge_ins=[
            (barge_in, time_ms(leak_at(barge_in, "sent")), time_ms(leak_at(barge_in, "pushed")))
            for barge_in in (worst[:SHOWN_BARGE_INS] if len(worst) > 1 else ())
        ],
        more_barge_ins=max(len(worst) - SHOWN_BARGE_INS, 0),
        counted=wording.findings_counted(analysis.findings),
        findings=analysis.findings[:SHOWN_FINDINGS],
        more_findings=max(len(analysis.findings) - SHOWN_FINDINGS, 0),
        none_found=wording.none_found(analysis),
        not_judged=len(analysis.not_judged),
        balanced={True: "balances", False: "does not balance", None: "not known"}[
            analysis.balanced
        ],
        wrong=analysis.balanced is False,
        heads=["total" if column is None else f"segment {column.index}" for column in columns],
        balance=[
            (
                name,
                depth,
                [wording.balance_figure(analysis, column, field) for column in columns],
            )
            for name, depth, field in wording.balance_rows(analysis, columns)
        ],
        left_out=len(analysis.segments) - len(segments),
        command=f"sinkprobe report {shlex.quote(analysis.trace.path)} -o call.html",
    )
