"""The report as one HTML page: a timeline per call to look at, and everything that is behind it.

The page is whole in itself: style, script and data are in it, nothing is fetched, and a policy in
its head forbids everything else, scripts that a trace might smuggle in as well. What comes from a
trace gets into it in two ways only: through Jinja2 with autoescape, and as JSON and numbers in data
elements whose text can't end them. Characters that would hide or reorder text are spelled out.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from probe.trace.reader import NONE
from reports.assertions import Result
from reports.findings import RULES
from reports.results import Analysis, BargeIn, Evidence, Finding, Leak, Length, Moment, Segment
from reports.show import figures, wording
from reports.show.web import clock, fill
from reports.show.wording import shown
from reports.summary import leak_at, summarize, worst_first
from reports.timeline import FATES, Depth, Frames, Instant, Stretch, Timeline
from reports.units import ns_text, time_ms
from reports.verdicts.explanations import measured

__all__ = ["render"]

Ints = NDArray[np.int64]

WITHIN_NS: Final = tuple(ms * 1_000_000 for ms in (20, 100, 500, 2500, 12_500))
"""Frames nearer to each other than this are one, from one level of zoom to the next."""

FINE_ROWS: Final = 4000
"""A lane of fewer rows is drawn as it is, however far away."""

SHORT_NS: Final = 12_000_000_000
"""A call up to this long is shown whole at first, a longer one at its worst barge-in."""

OPEN_BARGE_INS: Final = 3
"""So many are told in full; of more, each is behind a click."""

SHOWN_ROWS: Final = 10
"""Of the barge-ins of a call, before the rest is put behind a click."""

OPEN_SEGMENTS: Final = 12
SHOWN_LOSSES: Final = 8

MOST: Final = 300
"""Of anything: behind a click there are no more rows than this, however long a call is."""

SHOWN_FINDINGS: Final = 5
"""Of one rule, before the rest is put behind a click."""

WEIGHT: Final = {"verdict": 0, "commit": 1, "clear": 1, "bookmark": 1, "pause": 2, "resume": 2}
"""Which marks get their names first where there is no room for all of them."""

LINES: Final = frozenset({"verdict", "commit", "clear", "pause", "resume"})
"""Marks of a barge-in that are drawn through all lanes."""


def render(
    analyses: Sequence[Analysis],
    timelines: Sequence[Timeline],
    expected: Sequence[Sequence[Result]] | None = None,
) -> str:
    """One page about these calls.

    Args:
        analyses: at least one.
        timelines: the lanes of each, in the same order.
        expected: of each analysis, what came of the assertions held against it.
    """
    results = expected if expected is not None else [()] * len(analyses)
    told = list(zip(wording.trace_names(analyses), analyses, timelines, results, strict=True))
    told = [told[nth] for nth in _worst_first(analyses)]
    analyses = [analysis for _, analysis, _, _ in told]
    names = [name for name, _, _, _ in told]
    calls = [
        _call(number, name, analysis, timeline, held)
        for number, (name, analysis, timeline, held) in enumerate(told)
    ]
    return fill(
        "page.html.j2",
        "timeline.js",
        title=names[0] if len(calls) == 1 else f"{len(calls)} traces",
        calls=calls,
        overview=_overview(analyses, names) if len(calls) > 1 else None,
        note=wording.BALANCE_NOTE,
    )


def _worst_first(analyses: Sequence[Analysis]) -> list[int]:
    """The calls' places in the order of their worst barge-ins; those without any as they come."""
    places = {id(analysis): nth for nth, analysis in enumerate(analyses)}
    told = [places[id(analysis)] for analysis, _ in worst_first(analyses)]
    return list(dict.fromkeys((*told, *range(len(analyses)))))


# --- A call --------------------------------------------------------------------------------------


def _call(
    number: int, name: str, analysis: Analysis, timeline: Timeline, held: Sequence[Result]
) -> dict[str, Any]:
    columns, dense, depth = _packed(timeline)
    worst = [b for _, b in worst_first([analysis])]
    return {
        "number": number,
        "analysis": analysis,
        "name": name,
        "run": wording.run_words(analysis),
        "versions": ", ".join(wording.versions(analysis.trace)),
        "tapped": wording.tapped(analysis.trace),
        "not_tapped": wording.not_tapped(analysis.trace),
        "doubts": list(wording.doubts(analysis)),
        "headline": figures.headline(analysis, worst),
        "barge_ins": [_barge_in(analysis, b) for b in analysis.barge_ins[:MOST]],
        "worst": [_row(b) for b in worst[:MOST]] if len(worst) > 1 else [],
        "more_barge_ins": max(len(worst) - MOST, 0),
        "shown_rows": SHOWN_ROWS,
        "open_barge_ins": len(worst) <= OPEN_BARGE_INS,
        "findings": list(_findings(analysis.findings)),
        "none_found": wording.none_found(analysis),
        "not_judged": wording.not_judged(analysis),
        "thresholds": [t for t in analysis.thresholds if t.value != t.default],
        "balance": _balance(analysis),
        "losses": _losses(analysis),
        "claims": [s for s in analysis.segments if s.claimed_position_ns is not None],
        "under_way": [text for s in analysis.segments if (text := wording.under_way(analysis, s))],
        "held": held,
        "leaks": any(leak is not None and leak.spans for leak in _leaks_of(analysis)),
        "data": _deflated(
            json.dumps(_data(analysis, timeline, worst, dense, depth), allow_nan=False).encode()
        ),
        "columns": columns,
    }


def _row(barge_in: BargeIn) -> dict[str, Any]:
    return {
        "barge_in": barge_in,
        "sent": time_ms(leak_at(barge_in, "sent")),
        "pushed": time_ms(leak_at(barge_in, "pushed")),
        **_window(barge_in),
    }


def _window(barge_in: BargeIn) -> dict[str, int]:
    """From when to when a barge-in lasted, in microseconds."""
    known = (barge_in.onset_ns, barge_in.pause_ns, barge_in.verdict_ns, barge_in.last_sent_ns)
    instants = [moment.at_ns for moment in barge_in.story]
    instants += [at_ns for at_ns in known if at_ns is not None]
    sent = (barge_in.leaked or {}).get("sent")
    if sent is not None:
        instants += [span.stop_ns for span in sent.spans]
    return {"from": _us(min(instants, default=0)), "to": _us(max(instants, default=0))}


def _us(ns: int) -> int:
    return round(ns / 1000)


def _barge_in(analysis: Analysis, barge_in: BargeIn) -> dict[str, Any]:
    zeros = (
        (time_ms(barge_in.verdict_ns), "verdict"),
        (time_ms(barge_in.pause_ns), "pause"),
        (time_ms(barge_in.onset_ns), "onset"),
    )
    zero = next(((at, name) for at, name in zeros if at is not None), (0.0, "trace began"))
    return {
        "title": wording.barge_in_title(barge_in),
        "barge_in": barge_in,
        "leaked": (barge_in.leaked or {}).get("sent"),
        "pushed": (barge_in.leaked or {}).get("pushed"),
        "figures": figures.of(barge_in),
        "causes": [(c.cause, measured(c), wording.CAUSES[c.cause]) for c in barge_in.causes or ()],
        "zero": zero,
        "story": _story(analysis, barge_in),
        **_window(barge_in),
    }


def _story(analysis: Analysis, barge_in: BargeIn) -> list[Moment]:
    """What happened around it, with the user's bookmarks that fall in between."""
    window = _window(barge_in)
    bookmarks = [
        Moment(f"bookmark: {m.event}", m.at_ns)
        for m in analysis.trace.bookmarks
        if window["from"] <= _us(m.at_ns) <= window["to"]
    ]
    return sorted((*barge_in.story, *bookmarks), key=lambda m: m.at_ns)


# --- Findings ------------------------------------------------------------------------------------


def _findings(findings: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """By rule, worst first; a cause and its remedy once for all that share them."""
    for (severity, rule), group in groupby(findings, key=lambda f: (f.severity, f.rule)):
        for (cause, remedy), alike in groupby(group, key=lambda f: (f.cause, f.remedy)):
            told = [
                {"finding": f, "evidence": list(_evidence(f.evidence)), **_place(f)} for f in alike
            ]
            yield {
                "severity": severity,
                "rule": rule,
                "usual": "usual cause" if cause == RULES[rule].cause else "cause",
                "cause": cause,
                "remedy": remedy,
                "first": told[:SHOWN_FINDINGS],
                "rest": told[SHOWN_FINDINGS:MOST],
                "more": max(len(told) - MOST, 0),
            }


def _place(finding: Finding) -> dict[str, int | None]:
    """The stretch of time a finding is about; ``None``: it is about none."""
    evidence = finding.evidence
    instants = [m.at_ns for m in evidence.moments] + [s.at_ns for s in evidence.stalls]
    instants += [at for r in evidence.ranges for at in (r.start_ns, r.stop_ns) if at is not None]
    if not instants:
        return {"from": None, "to": None}
    return {"from": _us(min(instants)), "to": _us(max(instants))}


def _evidence(evidence: Evidence) -> Iterator[str]:
    if len(evidence.parts) > 1:
        parts = (f"{p.cause} {measured(p)}" for p in evidence.parts)
        yield f"parts: {'; '.join(parts)}"
    for boundary, ranges in groupby(evidence.ranges, key=lambda r: r.boundary):
        told = list(ranges)
        places = [f"{r.start_sample} to {r.stop_sample}" for r in told[:3]]
        more = f", and {len(told) - 3} more" if len(told) > 3 else ""
        yield f"samples at {boundary}: {', '.join(places)}{more}"
    for stall in evidence.stalls:
        yield (
            f"the session's loop stood still for {ns_text(stall.ns, 0)} from "
            f"{ns_text(stall.at_ns)}: times around it are late by up to that"
        )


# --- The balance ---------------------------------------------------------------------------------


def _balance(analysis: Analysis) -> dict[str, Any]:
    """A table with a row per segment and a column per figure."""
    columns: list[Segment | None] = [*analysis.segments, None]
    heads = wording.balance_rows(analysis, columns)
    wrong = [s.index for s in analysis.segments if s.balanced is False or s.swallowed_samples]
    touched = [b.segment for _, b in worst_first([analysis]) if b.segment is not None]
    chosen = set([*wrong, *touched][:OPEN_SEGMENTS])
    rows = [
        {
            "segment": segment,
            "cells": [_cell(analysis, segment, field) for _, _, field in heads],
            "first": segment is None
            or len(analysis.segments) <= OPEN_SEGMENTS
            or segment.index in chosen,
        }
        for segment in columns
    ]
    rest = [row for row in rows if not row["first"]]
    verdict = {True: "balances", False: "DOES NOT BALANCE", None: "balance not known"}
    return {
        "verdict": verdict[analysis.balanced],
        "bad": analysis.balanced is False,
        "heads": [name for name, _, _ in heads],
        "first": [row for row in rows if row["first"]],
        "rest": rest[:MOST],
        "more": max(len(rest) - MOST, 0),
    }


def _cell(analysis: Analysis, segment: Segment | None, field: str) -> dict[str, Any]:
    samples = wording.balance_figure(analysis, segment, field)
    length = None if samples is None else wording.balance_length(analysis, segment, samples).ms
    return {
        "samples": wording.count_text(samples),
        "ms": wording.ms_text(length),
        "wrong": field == "unaccounted_samples" and bool(samples),
    }


def _losses(analysis: Analysis) -> dict[str, Any]:
    losses = [(s, loss) for s in analysis.segments for loss in s.losses]
    losses.sort(key=lambda pair: -pair[1].samples)
    return {
        "rows": [
            {
                "segment": segment.index,
                "loss": loss,
                "why": wording.LOSSES[loss.what, loss.cause],
                "at": _us(loss.at_ns),
            }
            for segment, loss in losses[:SHOWN_LOSSES]
        ],
        "more": max(len(losses) - SHOWN_LOSSES, 0),
    }


# --- Several traces ------------------------------------------------------------------------------


def _overview(analyses: Sequence[Analysis], names: Sequence[str]) -> dict[str, Any]:
    numbers = {id(analysis): number for number, analysis in enumerate(analyses)}
    return {
        "summary": summarize(analyses),
        "rows": [
            {
                "number": numbers[id(analysis)],
                "name": names[numbers[id(analysis)]],
                "doubtful": analysis.balanced is not True,
                **_row(barge_in),
            }
            for analysis, barge_in in worst_first(analyses)
        ],
        "silent": [
            {"number": number, "name": names[number]}
            for number, analysis in enumerate(analyses)
            if not analysis.barge_ins
        ],
    }


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


def _packed(timeline: Timeline) -> tuple[str, dict[str, Any], list[Any]]:
    """The dense lanes as text, and how many rows each level of each lane has."""
    packer = _Packer([])
    lanes = {
        "captured": timeline.captured,
        "pushed": timeline.pushed,
        "sent": timeline.sent,
        "silence": timeline.inserted,
    }
    dense: dict[str, Any] = {}
    for name, frames in lanes.items():
        dense[name] = []
        for within_ns, level in _levels(frames):
            packer.frames(level)
            dense[name].append({"rows": len(level), "within": within_ns / 1000})
    depths: list[Any] = []
    for depth in timeline.depth:
        levels = []
        for within_ns, coarse in _depth_levels(depth):
            packer.depth(coarse)
            levels.append({"rows": len(coarse.at_ns), "within": within_ns / 1000})
        depths.append(
            {
                "source": depth.source,
                "rate": depth.rate_hz,
                "queue_ms": depth.queue_ms,
                "levels": levels,
            }
        )
    return packer.text(), dense, depths


def _levels(frames: Frames) -> Iterator[tuple[int, Frames]]:
    yield 0, frames
    last = len(frames)
    for within_ns in WITHIN_NS:
        if last <= FINE_ROWS:
            return
        level = frames.merged(within_ns)
        if len(level) < last * 0.7:
            last = len(level)
            yield within_ns, level


def _depth_levels(depth: Depth) -> Iterator[tuple[int, Depth]]:
    yield 0, depth
    last = len(depth.at_ns)
    for within_ns in WITHIN_NS:
        if last <= FINE_ROWS:
            return
        level = depth.merged(within_ns)
        if len(level.at_ns) < last * 0.7:
            last = len(level.at_ns)
            yield within_ns, level


def _data(
    analysis: Analysis,
    timeline: Timeline,
    worst: Sequence[BargeIn],
    dense: Mapping[str, Any],
    depth: Sequence[Any],
) -> dict[str, Any]:
    swallowing = {s.index for s in analysis.segments if s.swallowed_samples}
    tapped = {"captured": "captured", "pushed": "pushed", "sent": "sent"}
    caller = [_item(s, "speaking", "speaking") for s in timeline.caller]
    caller += [_point(i) for i in timeline.words]
    lanes: dict[str, Any] = {
        "marks": sorted(_marks(analysis, timeline), key=lambda item: item["from"]),
        "caller": sorted(caller, key=lambda item: item["from"]),
        "agent": [_item(s, s.what, _state_look(s.what)) for s in timeline.agent],
        "gate": [_item(s, s.what, s.what) for s in timeline.gate],
        "lost": [_lost(s, swallowing) for s in timeline.lost],
        "claimed": [_item(s, _length(s.start_ns, s.stop_ns), "claimed") for s in timeline.claimed],
    }
    leaks = sorted(_leaks(analysis), key=lambda item: item["from"])
    optional = {
        "leaks": leaks,
        "model": [_item(s, s.what, "response") for s in timeline.model],
        "stalls": [_item(s, "", "stalled") for s in timeline.stalls],
    }
    lanes.update((name, items) for name, items in optional.items() if items)
    view = None
    if worst and timeline.duration_ns > SHORT_NS:
        window = _window(worst[0])
        room = max((window["to"] - window["from"]) // 2, 400_000)
        view = [window["from"] - room, window["to"] + room]
    return {
        "duration": timeline.duration_ns // 1000,
        "view": view,
        "lanes": lanes,
        "dense": dense,
        "depth": depth,
        "fates": FATES,
        "segments": [_segment(segment) for segment in analysis.segments],
        "blocks": {str(d["source"]): max(d["rate"] // 100, 1) for d in depth},
        "untapped": [lane for lane, name in tapped.items() if name not in timeline.boundaries]
        + (["depth"] if not timeline.depth else []),
    }


def _segment(segment: Segment) -> dict[str, str]:
    """Whose it is, and how much of it was captured."""
    captured = None if segment.captured is None else segment.captured.ms
    return {
        "speech": shown(segment.speech_id or ""),
        "captured": "" if captured is None else wording.ms_text(captured),
    }


def _when(ns: int) -> str:
    """An instant in milliseconds, beside it in minutes and seconds where they are many."""
    ms = f"{ns / 1e6:.1f} ms"
    return ms if abs(ns) < 60_000_000_000 else f"{clock(ns // 1000)} ({ms})"


def _length(start_ns: int, stop_ns: int) -> str:
    return f"{(stop_ns - start_ns) / 1e6:.1f} ms"


def _item(stretch: Stretch, label: str, kind: str) -> dict[str, Any]:
    length = _length(stretch.start_ns, stretch.stop_ns)
    parts = [
        f"{stretch.what}, {length}, {_when(stretch.start_ns)} to {_when(stretch.stop_ns)}",
        f"segment {stretch.segment}" if stretch.segment is not None else "",
        stretch.speech or "",
        stretch.detail,
    ]
    return {
        "from": stretch.start_ns // 1000,
        "to": stretch.stop_ns // 1000,
        "label": shown(label),
        "kind": kind,
        "text": shown(", ".join(part for part in parts if part)),
    }


def _state_look(state: str) -> str:
    return state if state in ("speaking", "thinking") else "quiet"


def _lost(stretch: Stretch, swallowing: set[int]) -> dict[str, Any]:
    """Lost audio; what nobody had asked to be lost is swallowed."""
    lost = Length(stretch.samples or 0, stretch.rate_hz)
    swallowed = stretch.segment in swallowing
    why = wording.LOSSES.get((stretch.what, stretch.detail), stretch.detail)
    parts = [
        f"{measured(lost)} {'swallowed' if swallowed else stretch.what}: {why}",
        f"at {_when(stretch.start_ns)}",
        f"segment {stretch.segment}" if stretch.segment is not None else "",
        "drawn as long as it would have lasted",
    ]
    return {
        "from": stretch.start_ns // 1000,
        "to": stretch.stop_ns // 1000,
        "label": f"{wording.ms_text(lost.ms)} {'swallowed' if swallowed else stretch.what}",
        "short": wording.ms_text(lost.ms),
        "kind": "swallowed" if swallowed else "discarded",
        "text": shown(", ".join(part for part in parts if part)),
    }


def _point(instant: Instant) -> dict[str, Any]:
    parts = [
        f"{instant.what} at {_when(instant.at_ns)}",
        instant.detail,
        instant.speech or "",
    ]
    return {
        "from": instant.at_ns // 1000,
        "to": instant.at_ns // 1000,
        "shape": "point",
        "label": shown(instant.what),
        "text": shown(", ".join(part for part in parts if part)),
    }


def _marks(analysis: Analysis, timeline: Timeline) -> Iterator[dict[str, Any]]:
    windows = [_window(barge_in) for barge_in in analysis.barge_ins]
    for mark in timeline.marks:
        label = mark.what
        if mark.what == "bookmark":
            label = mark.detail if len(mark.detail) <= 24 else mark.detail[:23] + "…"
        item = _point(mark)
        if mark.count > 1 and mark.until_ns is not None:
            label += f" {mark.count}x"
            item["text"] += f", {mark.count} times up to {_when(mark.until_ns)}"
        usual = 5 if mark.what.endswith("untapped") else 4
        yield {
            **item,
            "label": shown(label),
            "kind": mark.what,
            "weight": WEIGHT.get(mark.what, usual),
            "line": mark.what in LINES
            and any(w["from"] <= item["from"] <= w["to"] for w in windows),
        }
    for barge_in in analysis.barge_ins:
        if barge_in.verdict_ns is None:
            continue
        where = "" if barge_in.segment is None else f", segment {barge_in.segment}"
        speech = f", {barge_in.speech_id}" if barge_in.speech_id else ""
        at = _when(barge_in.verdict_ns)
        told = f"verdict: {barge_in.verdict_kind} at {at}{where}{speech}"
        yield {
            "from": _us(barge_in.verdict_ns),
            "to": _us(barge_in.verdict_ns),
            "label": f"verdict: {barge_in.verdict_kind}",
            "kind": "verdict",
            "weight": WEIGHT["verdict"],
            "line": True,
            "text": shown(told),
        }


def _leaks_of(analysis: Analysis) -> Iterator[Leak | None]:
    for barge_in in analysis.barge_ins:
        for boundary in ("pushed", "sent"):
            yield (barge_in.leaked or {}).get(boundary)


def _leaks(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Spans of what crossed after the verdict, as the analysis has them."""
    for barge_in in analysis.barge_ins:
        for boundary in ("pushed", "sent"):
            leak = (barge_in.leaked or {}).get(boundary)
            for span in leak.spans if leak is not None else ():
                assert leak is not None
                part = Length(span.stop_sample - span.start_sample, leak.rate_hz)
                yield {
                    "from": _us(span.start_ns),
                    "to": _us(span.stop_ns),
                    "lane": boundary,
                    "label": f"{wording.ms_text(part.ms)} leaked",
                    "short": wording.ms_text(part.ms),
                    "text": shown(
                        f"{measured(part)} {boundary} after the verdict, "
                        f"{_when(span.start_ns)} to "
                        f"{_when(span.stop_ns)}, "
                        f"pushed positions {span.start_sample} to {span.stop_sample}, "
                        f"{barge_in.speech_id or 'no speech'}"
                    ),
                }
