"""The facade: a trace in, an `Analysis` out.

    analysis = reports.analyze("call.jsonl")
    analysis.barge_ins[0].leaked["sent"].ms

Pure: it reads the file and nothing else, no clock, no livekit, and keeps no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probe.trace.events import (
    Bookmarked,
    ControlStarted,
    Faulted,
    LoopStalled,
    OptionsChanged,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
)
from probe.trace.reader import NONE, Trace
from reports.account.boundary import BOUNDARIES, CAPTURED, PUSHED, SENT
from reports.account.crossings import Audio
from reports.account.ledger import Ledger
from reports.account.losses import Lost
from reports.account.source import Source, ledger_of
from reports.account.waits import gaps_of
from reports.findings import RULES, Settings, checked, in_force, judge
from reports.findings.case import Case
from reports.realtime.account import RealtimeAccount, story_with_the_model, with_messages
from reports.results import (
    SCHEMA,
    Amount,
    Analysis,
    Control,
    Fault,
    Gap,
    Geometry,
    Length,
    Loss,
    Mark,
    Moment,
    Problem,
    Run,
    Segment,
    Stall,
    Totals,
    TraceFacts,
)
from reports.units import NS_PER_MS, one_rate
from reports.verdicts.barge_ins import find_barge_ins
from reports.verdicts.explanations import explain

__all__ = ["analyze"]

Ints = NDArray[np.int64]


def analyze(trace: Source, *, settings: Settings | None = None) -> Analysis:
    """Segments, barge-ins, findings and the balance of a trace.

    Args:
        trace: the file, what `read_trace` made of it, or its ledger, of which a timeline can be
            laid out as well.
        settings: thresholds of rules that differ from their defaults, by rule and name:
            ``{"leak-after-verdict": {"fade-ms": 50}}``.

    Raises:
        SettingError: no rule has such a threshold, or it can't have that value.
        TraceError: nothing can be read; the message is one line. A trace that is damaged, cut or
            of an unknown future is analysed as far as it goes and marked as incomplete.
    """
    chosen = {
        rule: {name: checked(RULES, rule, name, value) for name, value in values.items()}
        for rule, values in (settings or {}).items()
    }
    ledger = ledger_of(trace)
    read = ledger.trace
    options = _options(read)
    done, committed = _ends(read)
    audio = Audio(ledger)
    parts = _BySegment.of(ledger)
    account = RealtimeAccount(read.events)
    segments = with_messages(
        account,
        [_segment(ledger, row, parts, done, committed) for row in range(ledger.count)],
        ledger.sums.first_ns.tolist(),
    )
    realtime = account.result(segments, ledger.tapped)
    barge_ins = tuple(
        replace(
            barge_in,
            story=story_with_the_model(barge_in, realtime),
            explanation=explain(barge_in, options),
        )
        for barge_in in find_barge_ins(audio)
    )
    unaccounted = ledger.total["unaccounted"]
    whole = not ledger.incomplete
    findings, not_judged = judge(Case(audio, segments, barge_ins, realtime), chosen)
    return Analysis(
        schema=SCHEMA,
        trace=_trace_facts(read, ledger, options),
        run=_run(read, ledger, segments),
        balanced=_balanced(ledger, segments),
        unaccounted_samples=unaccounted if whole else None,
        unaccounted_because=tuple(issue.text for issue in ledger.issues),
        faults=_faults(read),
        totals=_totals(ledger, segments),
        segments=segments,
        barge_ins=barge_ins,
        realtime=realtime,
        findings=findings,
        not_judged=not_judged,
        thresholds=in_force(RULES.values(), chosen),
    )


def _balanced(ledger: Ledger, segments: tuple[Segment, ...]) -> bool | None:
    if ledger.incomplete:
        return None
    if ledger.total["unaccounted"]:
        return False
    missing = any(b.balanced and b.name not in ledger.tapped for b in BOUNDARIES)
    if missing or ledger.total["unseen"] or any(s.unjoined for s in segments):
        return None
    return True


def _ends(trace: Trace) -> tuple[set[str], set[str]]:
    """Speeches that are done, and speeches that were interrupted."""
    done: set[str] = set()
    committed: set[str] = set()
    for event in trace.events:
        if isinstance(event, SpeechDone):
            done.add(event.speech)
            if event.interrupted:
                committed.add(event.speech)
        elif isinstance(event, SpeechCommitted):
            committed.add(event.speech)
    return done, committed


# --- Segments ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _BySegment:
    """What the ledger holds in one list, by segment."""

    marks: dict[int, list[SinkMarked]]
    gaps: dict[int, list[Gap]]
    losses: dict[int, list[Lost]]
    captured: dict[int, tuple[Geometry, ...]]
    pushed: dict[int, tuple[Geometry, ...]]

    @classmethod
    def of(cls, ledger: Ledger) -> _BySegment:
        marks: dict[int, list[SinkMarked]] = {}
        losses: dict[int, list[Lost]] = {}
        for mark, owner in ledger.marks:
            marks.setdefault(owner, []).append(mark)
        for lost in ledger.losses:
            losses.setdefault(lost.segment, []).append(lost)
        c, p, push = ledger.trace.captured, ledger.trace.pushed, ledger.parts.push
        return cls(
            marks,
            gaps_of(ledger),
            losses,
            _geometries(ledger.frame_segment, c.rate_hz, c.channels),
            _geometries(ledger.parts.segment, p.rate_hz[push], p.channels[push]),
        )


def _geometries(segment: Ints, rate_hz: Ints, channels: Ints) -> dict[int, tuple[Geometry, ...]]:
    """Geometries by segment. They hardly ever change, so only where they do is looked at."""
    found: dict[int, set[Geometry]] = {}
    if len(segment):
        rows = np.stack((segment, rate_hz, channels), axis=1)
        changed = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
        for owner, rate, count in rows[changed].tolist():
            found.setdefault(owner, set()).add(Geometry(rate, count))
    return {
        owner: tuple(sorted(pairs, key=lambda g: (g.rate_hz, g.channels)))
        for owner, pairs in found.items()
    }


def _segment(
    ledger: Ledger, row: int, parts: _BySegment, done: set[str], committed: set[str]
) -> Segment:
    sums, trace = ledger.sums, ledger.trace
    speech = trace.text(int(sums.speech[row]))
    pushed_tapped, sent_tapped = (b.name in ledger.tapped for b in (PUSHED, SENT))
    pushed = int(sums.pushed[row])
    # Where nobody read the wire while its pushes came, what was sent is not zero but unknown.
    sent_known = pushed_tapped and sent_tapped and not (pushed and pushed == int(sums.unseen[row]))
    joined = pushed_tapped and ledger.unjoined(row) is None
    geometry = {"captured": parts.captured.get(row, ())}
    if pushed_tapped:
        geometry["pushed"] = parts.pushed.get(row, ())
    captured_rates = [g.rate_hz for g in geometry["captured"]]
    pushed_rates = [g.rate_hz for g in geometry.get("pushed", ())]
    reported = int(sums.reported_interrupted[row])
    interrupted: bool | None
    if reported >= 0:
        interrupted = bool(reported)
    else:
        interrupted = None if speech is None else speech in committed
    unknown, unaccounted = int(sums.unknown[row]), int(sums.unaccounted[row])
    sent = int(sums.sent[row])
    last_sent = int(sums.last_sent[row])
    claimed = float(sums.claimed_s[row])
    finished = int(sums.finished_ns[row])
    captured_rate, pushed_rate = one_rate(captured_rates), one_rate(pushed_rates)

    stopped = speech in committed if speech is not None else bool(interrupted)
    over = finished != NONE or (speech is not None and speech in done)
    swallowed: int | None = None
    if joined and sent_known:
        swallowed = 0 if stopped else int(sums.lost[row])
        # What is still queued is not lost, and a tail that was cleared is no loss to anybody.
        if not stopped and over:
            swallowed += int(sums.held[row])
        if not stopped:
            tail = max(int(sums.tail_unsent[row] - sums.queued[row]), 0)
            swallowed = max(swallowed - tail, 0)
    balanced: bool | None = None
    if not ledger.incomplete:
        known = joined and sent_known and not unknown
        balanced = False if unaccounted else (True if known else None)
    return Segment(
        index=row + 1,
        speech_id=speech,
        message_id=None,
        partial=bool(sums.partial[row]),
        balanced=balanced,
        captured=Amount(
            int(sums.captured_frames[row]),
            int(sums.captured[row]),
            captured_rate,
        ),
        pushed=Amount(int(sums.pushed_frames[row]), pushed, pushed_rate) if pushed_tapped else None,
        sent=Amount(int(sums.sent_frames[row]), sent, pushed_rate) if sent_known else None,
        cleared_samples=int(sums.cleared[row]) if sent_known else None,
        dropped_samples=int(sums.dropped[row]) if joined else None,
        held_samples=int(sums.held[row]) if joined else None,
        queued_samples=int(sums.queued[row]) if sent_known else None,
        inherited_samples=int(sums.inherited[row]),
        inserted_samples=int(sums.inserted[row]) if sent_known else None,
        tail_samples=int(sums.tail[row]) if sent_known else None,
        ambiguous_samples=int(sums.ambiguous[row]),
        unaccounted_samples=None if ledger.incomplete else unaccounted,
        unknown_samples=unknown,
        swallowed_samples=swallowed,
        sent_in_later_segments_samples=int(sums.sent_later[row]) if sent_known else None,
        started_ns=int(sums.first_ns[row]),
        finished_ns=None if finished == NONE else finished,
        interrupted=interrupted,
        claimed_position_ns=None if np.isnan(claimed) else round(claimed * 1e9),
        sent_position=Length(sent, pushed_rate) if sent_known else None,
        last_sent_position=None
        if last_sent == NONE or captured_rate is None
        else Length(last_sent - int(sums.start[row]), captured_rate),
        geometry=geometry,
        geometry_differs=bool(geometry.get("pushed"))
        and set(geometry["captured"]) != set(geometry["pushed"]),
        resampled=bool(sums.resampled[row]),
        order=tuple(Mark(mark.mark, mark.at_ns) for mark in parts.marks.get(row, ())),
        gaps=tuple(parts.gaps.get(row, ())),
        losses=tuple(
            Loss(
                what="dropped" if lost.what == "dropped" else "cleared",
                cause=lost.cause,
                samples=lost.stop - lost.start,
                rate_hz=lost.rate_hz,
                start_sample=lost.start,
                stop_sample=lost.stop,
                at_ns=lost.at_ns,
            )
            for lost in parts.losses.get(row, ())
        ),
        added_samples=int(sums.added[row]) if pushed_tapped else None,
        unjoined=ledger.unjoined(row) if pushed_tapped else None,
    )


# --- Around them ---------------------------------------------------------------------------------


def _totals(ledger: Ledger, segments: tuple[Segment, ...]) -> Totals:
    total = ledger.total
    captured, pushed, sent = (b.name in ledger.tapped for b in (CAPTURED, PUSHED, SENT))
    joined = captured and pushed and not any(s.unjoined for s in segments)
    moved = pushed and sent
    swallowed = [s.swallowed_samples for s in segments]
    known = [samples for samples in swallowed if samples is not None]
    unknown = total["unseen"] + (total["unaccounted"] if ledger.incomplete else 0)
    return Totals(
        captured_frames=total["captured_frames"] if captured else None,
        captured_samples=total["captured"] if captured else None,
        pushed_frames=total["pushed_frames"] if pushed else None,
        pushed_samples=total["pushed"] if pushed else None,
        sent_samples=total["sent"] if sent else None,
        dropped_samples=total["dropped"] if joined else None,
        held_samples=total["held"] if joined else None,
        cleared_samples=total["cleared"] if moved else None,
        queued_samples=total["queued"] if moved else None,
        inherited_samples=total["inherited"],
        inserted_samples=total["inserted"] if sent else None,
        ambiguous_samples=total["ambiguous"],
        swallowed_samples=sum(known) if len(known) == len(swallowed) and moved else None,
        unknown_samples=unknown,
        added_samples=total["added"] if pushed else None,
    )


def _options(trace: Trace) -> Mapping[str, Any]:
    """Options as they were last; `OptionsChanged` is always whole."""
    options: Mapping[str, Any] = trace.header.options
    for event in trace.events:
        if isinstance(event, OptionsChanged):
            options = event.options
    return options


def _trace_facts(trace: Trace, ledger: Ledger, options: Mapping[str, Any]) -> TraceFacts:
    header = trace.header
    missing = dict(header.missing)
    tapped = [b.name for b in BOUNDARIES if b.name in ledger.tapped]
    for boundary in BOUNDARIES:
        if boundary.name not in tapped:
            missing.setdefault(boundary.name, "never tapped")
    return TraceFacts(
        path=trace.path,
        complete=not ledger.incomplete,
        incomplete_because=ledger.incomplete,
        duration_ns=trace.last_ns,
        runtime=header.runtime,
        boundaries=tuple(tapped),
        missing=missing,
        resolution_ns={name: ledger.resolution_ns.get(name) for name in tapped},
        labels=header.labels,
        options=options,
        problems=tuple(Problem(p.line, p.kind, p.text, p.count) for p in trace.problems),
        stalls=tuple(
            Stall(e.at_ns, e.until_ns - e.at_ns) for e in trace.events if isinstance(e, LoopStalled)
        ),
        bookmarks=tuple(Moment(e.name, e.at_ns) for e in trace.events if isinstance(e, Bookmarked)),
    )


def _faults(trace: Trace) -> tuple[Fault, ...]:
    """Faults of the probe by kind, with the detail of the first."""
    faults: dict[str, Fault] = {}
    for event in trace.events:
        if isinstance(event, Faulted):
            known = faults.get(event.kind)
            if known is None:
                faults[event.kind] = Fault(event.kind, event.count, event.at_ns, event.detail)
            else:
                faults[event.kind] = replace(known, count=known.count + event.count)
    return tuple(faults.values())


def _run(trace: Trace, ledger: Ledger, segments: tuple[Segment, ...]) -> Run | None:
    run = trace.header.run
    control = next((e for e in trace.events if isinstance(e, ControlStarted)), None)
    if run is None and control is None:
        return None
    told = run or {}

    def number(name: str) -> float | None:
        value = told.get(name)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    rate = number("rate_hz")
    at = told.get("at")
    return Run(
        scenario=_text(told.get("scenario")),
        pacing=_text(told.get("pacing")),
        frame_ns=_from_ms(number("frame_ms")),
        rate_hz=None if rate is None else int(rate),
        reply_ns=_from_ms(number("reply_ms")),
        at=at if isinstance(at, (str, int, float)) else None,
        control=None if control is None else _control(control.speech, ledger, segments),
    )


def _from_ms(ms: float | None) -> int | None:
    return None if ms is None else round(ms * NS_PER_MS)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _control(speech: str, ledger: Ledger, segments: tuple[Segment, ...]) -> Control:
    """Whether the control reply arrived whole: nothing of it missing but the tail."""
    mine = [s for s in segments if s.speech_id == speech]
    known = CAPTURED.name in ledger.tapped
    captured = sum(s.captured.samples for s in mine if s.captured is not None)
    sent_known = known and SENT.name in ledger.tapped and all(s.sent is not None for s in mine)
    sent = sum(s.sent.samples for s in mine if s.sent is not None)
    whole: bool | None = None
    if sent_known and not ledger.incomplete and not any(s.unjoined for s in mine):
        rows = [s.index - 1 for s in mine]
        missing = captured - int(ledger.sums.arrived[rows].sum())
        whole = captured > 0 and missing == int(ledger.sums.tail_unsent[rows].sum())
    return Control(
        segment=mine[0].index if mine else None,
        captured_samples=captured if known else None,
        sent_samples=sent if sent_known else None,
        whole=whole,
    )
