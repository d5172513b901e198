"""Where sent audio lies in the blocks of its run, and so when each sample of it left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from probe.trace.reader import Trace
from reports.account.stretches import Ints, column

__all__ = ["Blocks"]

LONGEST_RUN_NS: Final = 2**40
"""About 18 minutes, where a run lasts 200 ms."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Of sent parts, one row each: where they lie in the blocks of their run."""

    begin_ns: Ints
    length_ns: Ints
    count: Ints
    """Blocks in the run."""
    size: Ints
    """Samples per block."""
    first: Ints
    """Position of the first sample of the run's first block, even where that is not of the run."""

    @classmethod
    def of(cls, trace: Trace, block: dict[int, int], run: Ints) -> Blocks:
        """For rows of the trace's sent columns; ``block``: samples per block by source."""
        t = trace.sent
        names, where = np.unique(t.source[run], return_inverse=True)
        size = column([block.get(int(name), 1) for name in names])[where]
        offset = t.block_offset_samples[run]
        return cls(
            begin_ns=t.at_ns[run],
            # No run is that long; the bound keeps absurd ones from overflowing.
            length_ns=np.clip(t.until_ns[run] - t.at_ns[run], 0, LONGEST_RUN_NS),
            count=np.maximum(-(-(offset + t.samples[run]) // size), 1),
            size=size,
            first=t.start_sample[run] - offset,
        )

    def tick(self, position: Ints) -> Ints:
        """When the block left that holds a position."""
        return self._instant((position - self.first) // self.size)

    def end(self, position: Ints) -> Ints:
        """When the block after the one with a position left, or would have."""
        return self._instant((position - self.first) // self.size + 1)

    def cut(self, at: Ints | int) -> Ints:
        """First position of each run whose block left at or after an instant."""
        ahead = np.clip(at, self.begin_ns, self.begin_ns + self.length_ns) - self.begin_ns
        nth = -(-ahead * self.count // np.maximum(self.length_ns, 1))
        # A run without length in time left at once.
        nth = np.where((self.length_ns <= 0) & (at > self.begin_ns), self.count, nth)
        position: Ints = self.first + np.minimum(nth, self.count) * self.size
        return position

    def _instant(self, nth: Ints) -> Ints:
        instant: Ints = self.begin_ns + self.length_ns * nth // self.count
        return instant
