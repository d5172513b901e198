"""Raw records of the calls a tap saw, as they travel from the call to the recorder's thread.

On the hot path a record is one list literal and one append: the cheapest thing that can be filled
in later. The tap appends it *before* it forwards the call and writes the end into the same list
afterwards, so the recorder's thread sees how a call ended without a second record. Frames are kept
by reference; their geometry and content are read on the recorder's thread, never in the call.

All times are absolute on the monotonic clock, in nanoseconds unless said otherwise; the recorder
makes them relative when it writes. Everything that is not hot (states, speeches, faults, …) travels
as an event of `probe.trace.events` instead, its ``at_ns`` absolute as well.
"""

from __future__ import annotations

from collections.abc import Callable
from time import get_clock_info, monotonic_ns
from typing import Any, Final

from probe.taps.failures import Failure, failure
from probe.trace.events import CallEnd, Event

Call = list[Any]
"""``[KIND, AT, ENDED, FAILURE, …]``; the layouts are below."""

Put = Callable[[Call | Event], None]
"""Takes what a tap saw; never blocks and never raises."""

STAMP_NS: Final = max(1_000, int(get_clock_info("monotonic").resolution * 1e9))
"""Resolution of a stamp taken in a call: what reading the clock and the call around it take."""

KIND: Final = 0
AT: Final = 1
ENDED: Final = 2
"""When the call ended; None while it runs. Written last: it says that all of the end is there."""
FAILURE: Final = 3
"""The `Failure` of a call that did not return, else None."""

CAPTURE: Final = "capture"
"""``[CAPTURE, at_s, ended_s, failure, frame, speech]``. The hottest of all: its two times are
seconds in a float, which costs a quarter less to read, exact to 2 ns for 100 days of uptime."""
CAPTURE_FRAME: Final = 4
CAPTURE_SPEECH: Final = 5

MARK: Final = "mark"
"""``[MARK, at_ns, ended_ns, failure, name, speech, sink]``; as in ``SinkMarked``"""
MARK_NAME: Final = 4
MARK_SPEECH: Final = 5
MARK_SINK: Final = 6

PUSH: Final = "push"
"""``[PUSH, at_ns, ended_ns, failure, frame, source, open]``; open: whether the source was when the
call came"""
PUSH_FRAME: Final = 4
PUSH_SOURCE: Final = 5
PUSH_OPEN: Final = 6

CLEAR: Final = "clear"
"""``[CLEAR, at_ns, ended_ns, failure, source]``: the source's queue was cleared"""
CLEAR_SOURCE: Final = 4

BLOCKS: Final = "blocks"
"""``[BLOCKS, at_ns, None, None, frame, source]``: blocks read back from the local track; at_ns on
arrival"""
BLOCKS_FRAME: Final = 4
BLOCKS_SOURCE: Final = 5


def forward(record: Call, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Makes the call that is recorded, and notes how it ended."""
    try:
        return call(*args, **kwargs)
    except BaseException as error:
        record[FAILURE] = failure(error)
        raise
    finally:
        record[ENDED] = monotonic_ns()


def end_of(record: Call) -> CallEnd | None:
    """How the call ended; None: it runs."""
    if record[ENDED] is None:
        return None
    failure: Failure | None = record[FAILURE]
    return "returned" if failure is None else failure.end


def told_of(record: Call) -> tuple[str | None, str | None]:
    """Type and text of what the call raised, as `Failure` has them; both None where it did not."""
    failure: Failure | None = record[FAILURE]
    return (None, None) if failure is None else (failure.error, failure.detail)
