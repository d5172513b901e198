"""The figures of a run that builds are compared by: one number each.

There are six. All six can differ between two builds and five runs of each still show it, for all of
them together (`reports.compare.statistics.runs_to_decide`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.compare.runs import swallowed_ms
from reports.results import Analysis, BargeIn, Leak
from reports.units import time_ms

__all__ = ["MEASURES", "Measure", "order_of"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run."""

    name: str
    title: str
    unit: Literal["ms", "runs"]
    """``runs``: 1 for a run in which it holds and 0 for one in which it does not."""
    meaning: str
    """One line."""
    of: Callable[[Analysis], float | None]
    """``None``: the run has no such figure, or it is not known."""
    boundary: str | None = None
    """Whose resolution limits it; ``None``: it is exact."""
    frames_of: Callable[[Analysis], float | None] | None = None
    """The same audio in frames."""
    more_is_better: bool = False


def order_of(analysis: Analysis) -> str:
    """The marks around each barge-in of a run in their order; empty where there is no barge-in."""
    return "; ".join(_order(barge_in) for barge_in in analysis.counted)


def _order(barge_in: BargeIn) -> str:
    instants = {
        "pause": barge_in.pause_ns,
        "verdict": barge_in.verdict_ns,
        "commit": barge_in.commit_ns,
        "clear": barge_in.clear_ns,
        "source clear": barge_in.source_clear_ns,
        "resume": barge_in.resume_ns,
    }
    text = ""
    before = None
    for name, at in sorted(
        ((name, at) for name, at in instants.items() if at is not None), key=lambda one: one[1]
    ):
        if text:
            text += " = " if at == before else ", "
        text += name
        before = at
    return text or "no mark"


def _judged(analysis: Analysis) -> list[BargeIn]:
    """Barge-ins with a verdict. Of a call that nobody scripted, those on a speech that had audio:
    the others had nothing to leak, and would only make the mean smaller."""
    judged = [barge_in for barge_in in analysis.counted if barge_in.verdict_ns is not None]
    scripted = analysis.run is not None
    return [barge_in for barge_in in judged if scripted or barge_in.has_audio]


def _of_barge_ins(analysis: Analysis, values: Sequence[float | None]) -> float | None:
    """One figure of a run from those of its barge-ins.

    Scripted calls of one kind hold equally many, so they are added up; of a call that nobody
    scripted it is the mean, which does not grow with the length of the call.
    """
    known = [value for value in values if value is not None]
    if not values or len(known) != len(values):
        return None
    return sum(known) if analysis.run is not None else round(sum(known) / len(known), 3)


def _leaks(analysis: Analysis, boundary: str) -> list[Leak | None]:
    return [(barge_in.leaked or {}).get(boundary) for barge_in in _judged(analysis)]


def _leaked(boundary: str) -> Callable[[Analysis], float | None]:
    def of(analysis: Analysis) -> float | None:
        leaks = _leaks(analysis, boundary)
        return _of_barge_ins(analysis, [None if leak is None else leak.ms for leak in leaks])

    return of


def _leaked_frames(boundary: str) -> Callable[[Analysis], float | None]:
    def of(analysis: Analysis) -> float | None:
        leaks = _leaks(analysis, boundary)
        return _of_barge_ins(analysis, [None if leak is None else leak.frames for leak in leaks])

    return of


def _stop(analysis: Analysis) -> float | None:
    return _of_barge_ins(analysis, [time_ms(b.stop_ns) for b in _judged(analysis)])


def _position_error(analysis: Analysis) -> float | None:
    off = [
        time_ms(abs(segment.claimed_position_ns - segment.sent_position.ns))
        for segment in analysis.segments
        if segment.claimed_position_ns is not None
        and segment.sent_position is not None
        and segment.sent_position.ns is not None
        and not segment.partial
        and not segment.resampled
    ]
    return round(max(off), 3) if off else None


def _control(analysis: Analysis) -> float | None:
    control = None if analysis.run is None else analysis.run.control
    return None if control is None or control.whole is None else float(control.whole)


MEASURES: Final = (
    Measure(
        "leaked-pushed",
        "leaked at pushed",
        "ms",
        "of the interrupted speech, pushed into the source after the verdict",
        _leaked("pushed"),
        boundary="pushed",
        frames_of=_leaked_frames("pushed"),
    ),
    Measure(
        "leaked-sent",
        "leaked at sent",
        "ms",
        "of the interrupted speech, sent after the verdict",
        _leaked("sent"),
        boundary="sent",
        frames_of=_leaked_frames("sent"),
    ),
    Measure(
        "stop",
        "stop time",
        "ms",
        "from the verdict to the last sample sent",
        _stop,
        boundary="sent",
    ),
    Measure(
        "swallowed",
        "swallowed",
        "ms",
        "captured of speeches nobody interrupted and never sent",
        swallowed_ms,
    ),
    Measure(
        "position",
        "position error",
        "ms",
        "claimed as played against sent, of the segment that is furthest off",
        _position_error,
        boundary="sent",
    ),
    Measure(
        "control",
        "control delivered",
        "runs",
        "the reply that follows arrived whole",
        _control,
        more_is_better=True,
    ),
)
