"""Where in a row of builds something changed, in a number of questions that grows with its log.

The row goes from builds on which it is as before to builds on which it is as after, and changes
once. A build that gives no answer is gone around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Answer", "decide", "search"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Places in the row."""

    before: int
    """The last that is known to be as before."""
    after: int
    """The first that is known to be as after."""
    untried: tuple[int, ...]
    """Those between the two, which gave no answer; empty: ``after`` is where it changed."""


def search(count: int, changed: Callable[[int], bool | None]) -> Answer:
    """Where a row changes whose first place is as before and whose last is as after.

    Args:
        count: length of the row, at least 2.
        changed: whether a place is as after; ``None``: it gives no answer. No place is asked for
            twice, the ends are not asked for.
    """
    before, after = 0, count - 1
    silent: set[int] = set()
    while open_ := [place for place in range(before + 1, after) if place not in silent]:
        middle = min(open_, key=lambda place: abs(2 * place - before - after))
        answer = changed(middle)
        if answer is None:
            silent.add(middle)
        elif answer:
            after = middle
        else:
            before = middle
    return Answer(before, after, tuple(range(before + 1, after)))


def decide(runs: Sequence[bool | None], agree: int) -> bool | Literal["unusable"] | None:
    """What runs of one build say, in the order they were made.

    The first answer that ``agree`` runs give is the build's: so as many runs are made as are
    needed, and never more than ``2 * agree - 1`` that say anything.

    Returns:
        Whether the finding is there; ``"unusable"`` once ``agree`` runs said nothing; ``None``:
        not decided, one more run is needed.
    """
    for answer in (True, False):
        if sum(run is answer for run in runs) >= agree:
            return answer
    return "unusable" if sum(run is None for run in runs) >= agree else None
