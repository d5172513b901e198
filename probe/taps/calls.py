"""Raw records of the calls a tap saw, as they travel from the call to the recorder's thread.

On the hot path a record is one list literal and one append: the cheapest thing that can be filled
in later. The tap appends it *before* it forwards the call and writes the end into the same list
afterwards, so the recorder's thread sees how a call ended without a second record. Frames are kept
by reference; their geometry and content are read on the recorder's thread, never in the call.

All times are absolute on the monotonic clock, in nanoseconds unless said otherwise; the recorder
makes them relative when it writes.
Everything that is not hot (states, speeches, faults, …) travels as an event of
`probe.trace.events` instead, its ``at_ns`` absolute as well.
"""

from __future__ import annotations

from typing import Any, Final

Call = list[Any]
"""``[KIND, at_ns, …]``; the layouts are below."""

KIND: Final = 0
AT: Final = 1

CAPTURE: Final = "capture"
"""``[CAPTURE, at_s, frame, speech, end, ended_s, error]``. The hottest of all: its two times
are seconds in a float, which costs a quarter less to read, exact to 2 ns for 100 days of uptime."""
CAPTURE_FRAME: Final = 2
CAPTURE_SPEECH: Final = 3
CAPTURE_END: Final = 4
CAPTURE_ENDED: Final = 5
CAPTURE_ERROR: Final = 6

MARK: Final = "mark"
"""``[MARK, at_ns, name, speech, end, ended_ns, error]``; name as in ``SinkMarked.mark``"""
MARK_NAME: Final = 2
MARK_SPEECH: Final = 3
MARK_END: Final = 4
MARK_ENDED: Final = 5
MARK_ERROR: Final = 6

PUSH: Final = "push"
"""``[PUSH, at_ns, frame, source, accepted, end, ended_ns, error]``; accepted until refused"""
PUSH_FRAME: Final = 2
PUSH_SOURCE: Final = 3
PUSH_ACCEPTED: Final = 4
PUSH_END: Final = 5
PUSH_ENDED: Final = 6
PUSH_ERROR: Final = 7

CLEAR: Final = "clear"
"""``[CLEAR, at_ns, source, ended_ns, error]``: the source's queue was cleared"""
CLEAR_SOURCE: Final = 2
CLEAR_ENDED: Final = 3
CLEAR_ERROR: Final = 4

BLOCKS: Final = "blocks"
"""``[BLOCKS, at_ns, frame, source]``: blocks read back from the local track; at_ns on arrival"""
BLOCKS_FRAME: Final = 2
BLOCKS_SOURCE: Final = 3
