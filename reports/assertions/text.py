"""The outcome of assertions in words, for a terminal and for the message of a failed test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from reports.assertions.evaluation import Check, Result
from reports.units import time_ms

__all__ = ["SAID", "lines", "summary", "text"]

SAID: Final = {True: "holds", False: "FAILS", None: "not judged"}
SHOWN: Final = 4
"""Barge-ins of which an assertion's failure is shown in full."""


def text(results: Sequence[Result], width: int = 80) -> str:
    """Every result, one paragraph each, with a newline at its end.

    Args:
        results: what came of each assertion.
        width: columns; no line is longer unless a word is.
    """
    return "".join(f"{line}\n" for result in results for line in lines(result, width))


def summary(results: Sequence[Result]) -> str:
    """One line: how many there are, and how many of them fail or could not be judged."""
    counts = {holds: sum(r.holds is holds for r in results) for holds in SAID}
    parts = [f"{counts[holds]} {SAID[holds].lower()}" for holds in SAID if counts[holds]]
    return f"{len(results)} expected: {', '.join(parts) or 'nothing'}"


def lines(result: Result, width: int = 80) -> Iterator[str]:
    """Head, then the barge-ins on which it does not hold, with what happened around them."""
    head = f"  {SAID[result.holds]:<11} {result.assertion}"
    told = [c for c in result.checks if c.holds is result.holds]
    if result.holds is True:
        yield from _beside(head, _reason(result, told), width)
        return
    yield head
    for check in told[:SHOWN]:
        where = "" if check.barge_in is None else _where(check, len(result.checks))
        yield from _wrapped(f"{where}{check.reason}", width, 14)
        yield from _moments(check, width)
    if len(told) > SHOWN:
        yield f"{'':14}and on {len(told) - SHOWN} more"


def _reason(result: Result, told: Sequence[Check]) -> str:
    """Why it holds, where that says more than the assertion."""
    reasons = {check.reason for check in told}
    if len(reasons) > 1:
        return f"on all {len(told)} barge-ins"
    (reason,) = reasons
    positive = result.assertion.removeprefix("not ")
    said = (positive.replace("==", "is"), f"{positive} is true", f"{positive} is false")
    return "" if reason in said else reason


def _beside(head: str, reason: str, width: int) -> list[str]:
    line = f"{head:<44} {reason}".rstrip()
    return [line] if len(line) <= width else [head, *_wrapped(reason, width, 14)]


def _where(check: Check, of: int) -> str:
    segment = "" if check.segment is None else f" (segment {check.segment})"
    return f"barge-in {check.barge_in}{segment}: " if of > 1 else ""


def _wrapped(reason: str, width: int, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(
        reason, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False
    )


def _moments(check: Check, width: int) -> Iterator[str]:
    if not check.moments:
        return
    yield f"{'':14}ms from the {check.zero}:"
    for moment in check.moments:
        named = f"  <- {', '.join(moment.names)}" if moment.names else ""
        head = f"{'':14}{round(time_ms(moment.from_zero_ns), 1) + 0.0:>+10.1f}  "
        room = width - len(head) - len(named)
        event = moment.event
        if len(event) > room:
            event = event[: max(room - 1, 8)] + "…"
        yield f"{head}{event}{named}"
