"""The marks of the sinks, for the rules, and when the gate of each was shut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from probe.trace.events import SinkMarked
from reports.account.boundary import FOREVER
from reports.account.ledger import Ledger

__all__ = ["Gate", "Sinks"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A sink was paused, and resumed."""

    sink: int | None
    """``None``: the trace does not say which."""
    shut_ns: int
    opened_ns: int
    """`FOREVER`: it was not."""

    def may_be_of(self, *sinks: int | None) -> bool:
        """Whether it can be the gate of one of these; where there are none, of any."""
        return not sinks or self.sink is None or None in sinks or self.sink in sinks


class Sinks:
    """Every mark of a trace, in order of time. Never changed.

    Where a question names sinks, marks that do not say which sink they went to are taken for
    theirs; where it names none, it is about whichever there are.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # --- Marks ------------------------------------------------------------------------------------

    def marks(self, since_ns: int, until_ns: int, *names: str) -> Iterator[tuple[SinkMarked, int]]:
        """Marks from one instant to another (both inclusive) with their segments' rows."""
        every = self._ledger.marks
        low = bisect_left(every, since_ns, key=_at_ns)
        for mark, owner in every[low : bisect_right(every, until_ns, key=_at_ns)]:
            if not names or mark.mark in names:
                yield mark, owner

    def moments(self, since_ns: int, until_ns: int) -> list[tuple[int, str]]:
        """The same as moments of evidence."""
        return [(mark.at_ns, mark.mark) for mark, _ in self.marks(since_ns, until_ns)]

    # --- Gates ------------------------------------------------------------------------------------

    @cached_property
    def gates(self) -> list[Gate]:
        """When the gate of each sink was shut, in order of time."""
        return sorted(
            (gate for gates in self._gates.values() for gate in gates), key=lambda g: g.shut_ns
        )

    @cached_property
    def _gates(self) -> dict[int | None, list[Gate]]:
        facts = self._ledger.facts
        numbers = {mark.sink for mark, _ in facts.marks}
        return {
            sink: [Gate(sink, *gate) for gate in facts.gate(sink)]
            for sink in (numbers - {None} or {None})
        }

    def _of(self, sinks: Collection[int]) -> list[list[Gate]]:
        """The gates of the sinks named, or of whichever there are."""
        known = [self._gates[sink] for sink in sinks if sink in self._gates]
        return known if sinks and None not in self._gates else list(self._gates.values())

    def opened_after(self, at_ns: int, sinks: Collection[int] = ()) -> int:
        """When a gate was opened at or after an instant, having been shut; `FOREVER`: never."""
        found = FOREVER
        for gates in self._of(sinks):
            nth = bisect_left(gates, at_ns, key=_opened_ns)
            found = min([found, *(gate.opened_ns for gate in gates[nth : nth + 1])])
        return found

    def shut_within(self, since_ns: int, until_ns: int, sinks: Collection[int] = ()) -> int:
        """How long a gate was shut between two instants; of several, the one it was longest."""
        return max((self._shut(gates, since_ns, until_ns) for gates in self._of(sinks)), default=0)

    def _shut(self, gates: list[Gate], since_ns: int, until_ns: int) -> int:
        total = 0
        for gate in gates[bisect_right(gates, since_ns, key=_opened_ns) :]:
            if gate.shut_ns >= until_ns:
                break
            total += min(gate.opened_ns, until_ns) - max(gate.shut_ns, since_ns)
        return total


def _at_ns(mark: tuple[SinkMarked, int]) -> int:
    return mark[0].at_ns


def _opened_ns(gate: Gate) -> int:
    return gate.opened_ns
