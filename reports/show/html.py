"""The report as one HTML page: a timeline per call to look at, and everything that is behind it.

The page is whole in itself: style, script and data are in it, nothing is fetched, and a policy in
its head forbids everything else, scripts that a trace might smuggle in as well. What comes from a
trace gets into it in two ways only: through Jinja2 with autoescape, and as JSON and numbers in data
elements whose text can't end them. Characters that would hide or reorder text are spelled out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from reports.assertions import Result
from reports.results import Analysis, Segment
from reports.show import html_lanes
from reports.show.view import Call, account, calls, worst_first
from reports.show.view.barge_ins import BargeInView
from reports.show.view.call import headline
from reports.show.view.findings import Entry
from reports.show.web import fill
from reports.summary import summarize
from reports.timeline import Timeline

__all__ = ["render"]

OPEN_BARGE_INS: Final = 3
"""So many are told in full; of more, each is behind a click."""

SHOWN_ROWS: Final = 10
"""Of the barge-ins of a call, before the rest is put behind a click."""

OPEN_SEGMENTS: Final = 12
SHOWN_LOSSES: Final = 8
SHOWN_CLAIMS: Final = 24
SHOWN_RANGES: Final = 3

MOST: Final = 300
"""Of anything: behind a click there are no more rows than this, however long a call is."""

SHOWN_FINDINGS: Final = 5
"""Of one rule, before the rest is put behind a click."""


def render(
    analyses: Sequence[Analysis],
    timelines: Sequence[Timeline],
    expected: Sequence[Sequence[Result]] | None = None,
) -> str:
    """One page about these calls.

    Args:
        analyses: at least one.
        timelines: the lanes of each, in the same order.
        expected: of each analysis, what came of the assertions held against it.
    """
    results = expected if expected is not None else [()] * len(analyses)
    told = calls(analyses)
    rows = worst_first(told)
    places = {id(call): nth for nth, call in enumerate(told)}
    # Calls without a barge-in come last, as they are given.
    order = dict.fromkeys([*(places[id(call)] for call, _ in rows), *places.values()])
    sections = {
        nth: _section(number, told[nth], timelines[nth], results[nth])
        for number, nth in enumerate(order)
    }
    return fill(
        "page.html.j2",
        "timeline.js",
        title=told[0].name if len(told) == 1 else f"{len(told)} traces",
        sections=[*sections.values()],
        counted=summarize(analyses).barge_ins,
        rows=[(sections[places[id(call)]], barge_in) for call, barge_in in rows],
        most=MOST,
        shown=SHOWN_FINDINGS,
    )


def _section(number: int, call: Call, timeline: Timeline, held: Sequence[Result]) -> dict[str, Any]:
    analysis = call.analysis
    worst = [barge_in for _, barge_in in worst_first([call])]
    losses = account.losses(analysis.segments)
    claims = account.claims(analysis, analysis.segments)
    return {
        "number": number,
        "call": call,
        "headline": headline(call),
        "worst": worst if len(worst) > 1 else [],
        "first_rows": SHOWN_ROWS,
        "is_open": len(worst) <= OPEN_BARGE_INS,
        "evidence": _evidence,
        "bookmarks": lambda b: [m for m in analysis.trace.bookmarks if b.holds(m.at_ns)],
        "balance": _balance(analysis, worst),
        "losses": losses[:SHOWN_LOSSES],
        "more_losses": max(len(losses) - SHOWN_LOSSES, 0),
        "claims": [claim for claim in claims if claim.is_made],
        "first_claims": SHOWN_CLAIMS,
        "under_way": [claim.under_way for claim in claims if claim.under_way],
        "held": held,
        **html_lanes.packed(analysis, timeline, worst),
    }


def _evidence(entry: Entry) -> Iterator[str]:
    """What a finding rests on, but for its moments, which are a table."""
    if entry.shares:
        yield entry.shares
    for boundary, ranges in groupby(entry.finding.evidence.ranges, key=lambda r: r.boundary):
        places = [f"{r.start_sample} to {r.stop_sample}" for r in ranges]
        if len(places) > SHOWN_RANGES:
            places[SHOWN_RANGES:] = [f"and {len(places) - SHOWN_RANGES} more"]
        yield f"samples at {boundary}: {', '.join(places)}"
    yield from entry.stalls


def _balance(analysis: Analysis, worst: Sequence[BargeInView]) -> dict[str, Any]:
    """A table with a row per segment and a column per figure; of many segments first those that
    matter."""
    columns: list[Segment | None] = [*analysis.segments, None]
    told = account.balance(analysis, columns)
    wrong = [s.index for s in analysis.segments if s.balanced is False or s.swallowed_samples]
    touched = [b.found.segment for b in worst if b.found.segment is not None]
    chosen = {*[*wrong, *touched][:OPEN_SEGMENTS]}
    every = len(analysis.segments) <= OPEN_SEGMENTS
    rows = [*zip(columns, zip(*(row.cells for row in told.rows), strict=True), strict=True)]
    first = [s is None or every or s.index in chosen for s in columns]
    return {
        "verdict": account.balance_said(analysis),
        "figures": told.rows,
        "notes": told.notes,
        "first": [row for row, is_first in zip(rows, first, strict=True) if is_first],
        "rest": [row for row, is_first in zip(rows, first, strict=True) if not is_first],
    }
