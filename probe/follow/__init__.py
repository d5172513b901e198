"""Content matching: which captured sample was pushed, and which pushed sample was sent.

Two places need it. A sink hands on what it captured with stretches left out, cut up anew
(`FlowMatcher`: captured to pushed). A source hands on what was pushed in blocks of 10 ms, with
what a clear discarded left out and blocks of silence put in where it had nothing (`WireMatcher`:
pushed to sent). Both compare content; knowledge of the calls only narrows what content is
compared with, and decides where content cannot.

Values and positions
    Everything here counts *values*: int16 numbers as they lie interleaved in a frame. A sink that
    hands stereo frames to a mono source without converting them (LiveKit's room output does not
    look at a frame's geometry) is then followed like any other. Who calls turns values into
    samples. Positions count from 0 over everything ever appended and are never reused.

What is decided how
    Continuing where the last match ended is believed until content contradicts it. Where content
    fits several places (digital silence, a constant tone, a repeat), the decision is held until a
    value comes that tells them apart, and the held values are then placed backwards from it. Where
    none comes in time, flow order and time decide, and the values are counted as ambiguous. A clear
    of the sink ends what is held, and announces a jump: what is handed on after it was captured
    after it, if content allows that, or else goes on where it was.

Effort
    Following costs one comparison per chunk. Only a contradiction starts a search; how many bytes
    searches may read is bounded by a budget that refills slowly, so that a sink that resamples
    (nothing ever matches) stays cheap.
"""

from probe.follow.flow import FlowMatcher, Match
from probe.follow.store import VALUE_BYTES, SampleStore
from probe.follow.wire import Kind, Stretch, WireMatcher

__all__ = ["VALUE_BYTES", "FlowMatcher", "Kind", "Match", "SampleStore", "Stretch", "WireMatcher"]
