"""What the script of a page draws: the lanes of a timeline, packed, and what is said of each thing.

Dense lanes are columns of numbers, at several levels of zoom; the others are items with a text.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from probe.trace.reader import NONE
from reports.account.boundary import LEAKING, NAMES
from reports.results import Analysis, Length, Segment
from reports.show.view.barge_ins import BargeInView
from reports.show.view.quantity import audio
from reports.show.web import clock
from reports.show.wording import DASH, LOSSES, shown
from reports.timeline import FATES, Depth, Frames, Instant, Stretch, Timeline

__all__ = ["packed"]

Ints = NDArray[np.int64]

WITHIN_NS: Final = tuple(ms * 1_000_000 for ms in (20, 100, 500, 2500, 12_500))
"""Frames nearer to each other than this are one, from one level of zoom to the next."""

FINE_ROWS: Final = 4000
"""A lane of fewer rows is drawn as it is, however far away."""

SHORT_NS: Final = 12_000_000_000
"""A call up to this long is shown whole at first, a longer one at its worst barge-in."""

WEIGHT: Final = {"verdict": 0, "commit": 1, "clear": 1, "bookmark": 1, "pause": 2, "resume": 2}
"""Which marks get their names first where there is no room for all of them."""

LINES: Final = frozenset({"verdict", "commit", "clear", "pause", "resume"})
"""Marks of a barge-in that are drawn through all lanes."""


# --- What the script draws -----------------------------------------------------------------------


@dataclass(slots=True)
class _Packer:
    """Columns of int32, one after the other; the script takes them in the same order."""

    parts: list[bytes]

    def plain(self, values: Ints) -> None:
        self.parts.append(values.astype("<i4").tobytes())

    def time(self, ns: Ints) -> None:
        """Seconds and microseconds, so that no length of a call is too much for 32 bits."""
        us = ns // 1000
        self.plain(us // 1_000_000)
        self.plain(us % 1_000_000)

    def frames(self, frames: Frames) -> None:
        at = frames.at_ns // 1000
        self.time(np.diff(at, prepend=0) * 1000)
        self.time((frames.until_ns // 1000 - at) * 1000)
        start = np.where(frames.start_sample == NONE, -1, frames.start_sample)
        self.plain(np.diff(start, prepend=0))
        for name in ("samples", "lost", "rate_hz", "segment", "source", "fate"):
            self.plain(getattr(frames, name))

    def depth(self, depth: Depth) -> None:
        self.time(np.diff(depth.at_ns // 1000, prepend=0) * 1000)
        self.plain(depth.samples)

    def text(self) -> str:
        return _deflated(b"".join(self.parts))


def _deflated(data: bytes) -> str:
    """As text in which no markup can be."""
    return base64.b64encode(zlib.compress(data, 6)).decode()


def packed(analysis: Analysis, timeline: Timeline, worst: Sequence[BargeInView]) -> dict[str, Any]:
    """What the page holds for its script, as text: ``columns`` of the dense lanes, and ``data``
    with all others; and whether there are ``leaks`` to go to.

    Args:
        analysis: of the call.
        timeline: its lanes.
        worst: its barge-ins, worst first.
    """
    packer = _Packer([])
    dense = {
        "captured": timeline.captured,
        "pushed": timeline.pushed,
        "sent": timeline.sent,
        "silence": timeline.inserted,
    }
    rows = {name: _levels(frames, packer.frames) for name, frames in dense.items()}
    depths = [
        {
            "source": depth.source,
            "rate": depth.rate_hz,
            "queue_ms": depth.queue_ms,
            "levels": _levels(depth, packer.depth),
        }
        for depth in timeline.depth
    ]
    view = None
    if worst and timeline.duration_ns > SHORT_NS:
        first = worst[0]
        room = max((first.stop_ns - first.start_ns) // 2000, 400_000)
        view = [first.start_ns // 1000 - room, first.stop_ns // 1000 + room]
    leaks = sorted(_leaks(analysis), key=lambda item: item["from"])
    data = {
        "duration": timeline.duration_ns // 1000,
        "view": view,
        "lanes": _lanes(analysis, timeline, worst, leaks),
        "dense": rows,
        "depth": depths,
        "fates": FATES,
        "segments": [_segment(segment) for segment in analysis.segments],
        "blocks": {str(d.source): max(d.rate_hz // 100, 1) for d in timeline.depth},
        "untapped": [name for name in NAMES if name not in timeline.boundaries]
        + ([] if timeline.depth else ["depth"]),
    }
    return {
        "columns": packer.text(),
        "data": _deflated(json.dumps(data, allow_nan=False).encode()),
        "leaks": bool(leaks),
    }


Lane = TypeVar("Lane", Frames, Depth)


def _levels(lane: Lane, put: Callable[[Lane], None]) -> list[dict[str, float]]:
    """Puts a lane at every level of zoom that is worth it; how many rows each has."""
    put(lane)
    rows = len(lane)
    levels = [{"rows": rows, "within": 0.0}]
    for within_ns in WITHIN_NS:
        if rows <= FINE_ROWS:
            break
        level = lane.merged(within_ns)
        if len(level) < rows * 0.7:
            rows = len(level)
            put(level)
            levels.append({"rows": rows, "within": within_ns / 1000})
    return levels


def _segment(segment: Segment) -> dict[str, str]:
    """Whose it is, and how much of it was captured."""
    captured = audio(segment.captured)
    return {
        "speech": shown(segment.speech_id or ""),
        "captured": "" if captured.ms == DASH else captured.length,
    }


# --- Sparse lanes --------------------------------------------------------------------------------


def _lanes(
    analysis: Analysis,
    timeline: Timeline,
    barge_ins: Sequence[BargeInView],
    leaks: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Items by the lane they are in; those of the last three lanes may not be there."""
    swallowing = {s.index for s in analysis.segments if s.swallowed_samples}
    caller = [_stretch(s, "speaking", "speaking") for s in timeline.caller]
    caller += [_point(instant) for instant in timeline.words]
    marks = [*_marks(timeline, barge_ins), *_verdicts(analysis)]
    lanes: dict[str, Any] = {
        "marks": sorted(marks, key=lambda item: item["from"]),
        "caller": sorted(caller, key=lambda item: item["from"]),
        "agent": [
            _stretch(s, s.what, s.what if s.what in ("speaking", "thinking") else "quiet")
            for s in timeline.agent
        ],
        "gate": [_stretch(s, s.what, s.what) for s in timeline.gate],
        "lost": [_lost(s, swallowing) for s in timeline.lost],
        "claimed": [_stretch(s, _length(s), "claimed") for s in timeline.claimed],
    }
    optional = {
        "leaks": leaks,
        "model": [_stretch(s, s.what, "response") for s in timeline.model],
        "stalls": [_stretch(s, "", "stalled") for s in timeline.stalls],
    }
    return lanes | {name: items for name, items in optional.items() if items}


def _item(
    start_ns: int, stop_ns: int, label: str, parts: Sequence[str], **look: Any
) -> dict[str, Any]:
    """Something to draw, and what is said of it: a label in it, a text beside it."""
    return {
        "from": start_ns // 1000,
        "to": stop_ns // 1000,
        "label": shown(label),
        "text": shown(", ".join(part for part in parts if part)),
        **look,
    }


def _when(ns: int) -> str:
    """An instant in milliseconds, beside it in minutes and seconds where they are many."""
    ms = f"{ns / 1e6:.1f} ms"
    return ms if abs(ns) < 60_000_000_000 else f"{clock(ns)} ({ms})"


def _length(stretch: Stretch) -> str:
    return f"{(stretch.stop_ns - stretch.start_ns) / 1e6:.1f} ms"


def _of_segment(segment: int | None) -> str:
    return "" if segment is None else f"segment {segment}"


def _stretch(stretch: Stretch, label: str, kind: str) -> dict[str, Any]:
    parts = [
        f"{stretch.what}, {_length(stretch)}, {_when(stretch.start_ns)} to "
        f"{_when(stretch.stop_ns)}",
        _of_segment(stretch.segment),
        stretch.speech or "",
        stretch.detail,
    ]
    return _item(stretch.start_ns, stretch.stop_ns, label, parts, kind=kind)


def _lost(stretch: Stretch, swallowing: set[int]) -> dict[str, Any]:
    """Lost audio; what nobody had asked to be lost is swallowed."""
    lost = audio(Length(stretch.samples or 0, stretch.rate_hz or None))
    swallowed = stretch.segment in swallowing
    what = "swallowed" if swallowed else stretch.what
    parts = [
        f"{lost} {what}: {LOSSES.get((stretch.what, stretch.detail), stretch.detail)}",
        f"at {_when(stretch.start_ns)}",
        _of_segment(stretch.segment),
        "drawn as long as it would have lasted",
    ]
    kind = "swallowed" if swallowed else "discarded"
    label = f"{lost.length} {what}"
    return _item(stretch.start_ns, stretch.stop_ns, label, parts, short=lost.length, kind=kind)


def _point(instant: Instant, label: str = "", more: str = "", **look: Any) -> dict[str, Any]:
    parts = [
        f"{instant.what} at {_when(instant.at_ns)}",
        instant.detail,
        instant.speech or "",
        more,
    ]
    at_ns = instant.at_ns
    return _item(at_ns, at_ns, label or instant.what, parts, shape="point", **look)


def _marks(timeline: Timeline, barge_ins: Sequence[BargeInView]) -> Iterator[dict[str, Any]]:
    for mark in timeline.marks:
        label, more = mark.what, ""
        if mark.what == "bookmark":
            label = mark.detail if len(mark.detail) <= 24 else mark.detail[:23] + "…"
        if mark.count > 1 and mark.until_ns is not None:
            label += f" {mark.count}x"
            more = f"{mark.count} times up to {_when(mark.until_ns)}"
        usual = 5 if mark.what.endswith("untapped") else 4
        around = any(b.start_ns <= mark.at_ns <= b.stop_ns for b in barge_ins)
        yield _point(
            mark,
            label,
            more,
            kind=mark.what,
            weight=WEIGHT.get(mark.what, usual),
            line=mark.what in LINES and around,
        )


def _verdicts(analysis: Analysis) -> Iterator[dict[str, Any]]:
    for found in analysis.barge_ins:
        if found.verdict_ns is not None:
            label = f"verdict: {found.verdict_kind}"
            parts = [
                f"{label} at {_when(found.verdict_ns)}",
                _of_segment(found.segment),
                found.speech_id or "",
            ]
            look = {"kind": "verdict", "weight": WEIGHT["verdict"], "line": True}
            yield _item(found.verdict_ns, found.verdict_ns, label, parts, **look)


def _leaks(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Spans of what crossed after the verdict, as the analysis has them."""
    for found in analysis.barge_ins:
        for boundary in LEAKING:
            leak = (found.leaked or {}).get(boundary)
            if leak is None:
                continue
            for span in leak.spans:
                part = audio(Length(span.stop_sample - span.start_sample, leak.rate_hz))
                parts = [
                    f"{part} {boundary} after the verdict",
                    f"{_when(span.start_ns)} to {_when(span.stop_ns)}",
                    f"pushed positions {span.start_sample} to {span.stop_sample}",
                    found.speech_id or "no speech",
                ]
                yield _item(
                    span.start_ns,
                    span.stop_ns,
                    f"{part.length} leaked",
                    parts,
                    lane=boundary,
                    short=part.length,
                )
