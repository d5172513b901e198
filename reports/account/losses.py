"""Lost audio: stretch by stretch, what took it and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from reports.account.stretches import Ints
from reports.results import LossCause

__all__ = ["CAUSES", "UNNAMED", "Lost", "losses_of"]

CAUSES: Final[tuple[LossCause, ...]] = get_args(LossCause)
"""What columns of causes count through."""

UNNAMED: Final = -1
"""In such a column: nothing in the trace is the cause."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost audio. Positions: captured axis for ``dropped``, pushed axis for ``cleared``."""

    what: Literal["dropped", "cleared"]
    cause: LossCause
    segment: int
    start: int
    stop: int
    at_ns: int
    """When that which lost it happened."""
    rate_hz: int


def losses_of(
    what: Literal["dropped", "cleared"],
    cause: Ints,
    at_ns: Ints,
    segment: Ints,
    start: Ints,
    stop: Ints,
    rate_hz: Ints,
) -> list[Lost]:
    """The rows that have a cause; neighbours that went at one instant for one cause are one."""
    named = cause != UNNAMED
    rows = np.stack((cause, segment, start, stop, at_ns, rate_hz), axis=1)[named]
    same = np.ones((max(len(rows) - 1, 0),), np.bool_)
    for nth in (0, 1, 4, 5):
        same &= rows[1:, nth] == rows[:-1, nth]
    new = np.append(True, ~same | (rows[1:, 2] != rows[:-1, 3]))[: len(rows)]
    rows[new, 3] = rows[np.append(new[1:], True)[: len(rows)], 3]
    return [Lost(what, CAUSES[nth], *rest) for nth, *rest in rows[new].tolist()]
