"""Lanes of what lasted or happened: speaking, the gate, lost audio, claims and marks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from probe.trace.events import (
    Bookmarked,
    CallerLeft,
    CancelSent,
    ControlStarted,
    Event,
    FalseInterruption,
    Faulted,
    HandedOver,
    InterruptCalled,
    LoopStalled,
    MessageCreated,
    OverlapJudged,
    PlaybackReported,
    QueueCleared,
    ResponseCreated,
    ResponseEnded,
    SessionClosed,
    SinkMarked,
    SpeechCommitted,
    SpeechDone,
    StateChanged,
    TranscriptReceived,
    TruncateSent,
    Untapped,
)
from probe.trace.reader import Trace
from reports.account.boundary import FOREVER
from reports.account.ledger import Ledger
from reports.timeline.lanes import Instant, Stretch

__all__ = ["claimed", "gate", "lost", "marks", "responses", "stalls", "states", "words"]

JOINED_NS: Final = 2_000_000
"""Stretches of claimed playback with a step no longer than this between them are one: they are
stamped by a wall clock."""


def states(trace: Trace, who: Literal["agent", "user"]) -> tuple[Stretch, ...]:
    """States from one change to the next; the first one since the trace began."""
    changes = [e for e in trace.events if isinstance(e, StateChanged) and e.who == who]
    since = [0, *(change.at_ns for change in changes)]
    until = [*since[1:], trace.last_ns]
    names = [changes[0].old if changes else "", *(change.new for change in changes)]
    return tuple(
        Stretch(begin, end, name)
        for begin, end, name in zip(since, until, names, strict=True)
        if name and end > begin
    )


def stalls(trace: Trace) -> tuple[Stretch, ...]:
    """When the session's loop did not run."""
    return tuple(
        Stretch(event.at_ns, event.until_ns, "loop stalled")
        for event in trace.events
        if isinstance(event, LoopStalled)
    )


def words(trace: Trace) -> tuple[Instant, ...]:
    """Transcripts, and verdicts of the interruption model."""
    told: list[Instant] = []
    for event in trace.events:
        if isinstance(event, TranscriptReceived):
            what = "final transcript" if event.final else "interim transcript"
            detail = f"{event.words} words, {event.chars} characters"
            told.append(Instant(event.at_ns, what, detail=detail))
        elif isinstance(event, OverlapJudged):
            what = "overlap: interruption" if event.is_interruption else "overlap: none"
            sure = "" if event.probability is None else f"probability {event.probability:.2f}"
            told.append(Instant(event.at_ns, what, event.speech, sure))
    return tuple(told)


def responses(trace: Trace) -> tuple[Stretch, ...]:
    """Responses of a realtime model while they were being generated."""
    begun: dict[int, ResponseCreated] = {}
    found: list[Stretch] = []

    def put(event: ResponseCreated, stop_ns: int, what: str) -> None:
        stop_ns = max(stop_ns, event.at_ns)
        detail = f"number {event.response}"
        found.append(Stretch(event.at_ns, stop_ns, what, speech=event.speech, detail=detail))

    for event in trace.events:
        if isinstance(event, ResponseCreated):
            begun[event.response] = event
        elif isinstance(event, ResponseEnded) and event.response in begun:
            put(begun.pop(event.response), event.at_ns, "response")
    for endless in begun.values():
        put(endless, trace.last_ns, "response, no end seen")
    return tuple(sorted(found, key=lambda stretch: stretch.start_ns))


def gate(ledger: Ledger) -> tuple[Stretch, ...]:
    """The sink's gate, from its first frame or mark on."""
    begun = [mark.at_ns for mark, _ in ledger.marks[:1]] + ledger.sums.first_ns[:1].tolist()
    end = ledger.trace.last_ns
    if not begun:
        return ()
    turns = [(min(begun), "open")]
    for shut, opened in ledger.gate:
        turns += [(shut, "closed"), (min(opened, end), "open")]
    return tuple(
        Stretch(since, until, what)
        for (since, what), (until, _) in zip(turns, [*turns[1:], (end, "")], strict=True)
        if until > since
    )


def lost(ledger: Ledger) -> tuple[Stretch, ...]:
    """Lost audio by what lost it: neighbours that went at one instant for one cause are one."""
    grouped: dict[tuple[int, str, str, int, int], int] = {}
    for one in ledger.losses:
        key = (one.at_ns, one.what, one.cause, one.segment, one.rate_hz)
        grouped[key] = grouped.get(key, 0) + one.stop - one.start
    speeches = [ledger.trace.text(int(speech)) for speech in ledger.sums.speech]
    stretches = (
        Stretch(
            at_ns,
            at_ns + samples * 1_000_000_000 // max(rate_hz, 1),
            what,
            segment=segment + 1 if segment >= 0 else None,
            speech=speeches[segment] if segment >= 0 else None,
            samples=samples,
            rate_hz=rate_hz,
            detail=cause,
        )
        for (at_ns, what, cause, segment, rate_hz), samples in grouped.items()
    )
    return tuple(sorted(stretches, key=lambda stretch: stretch.start_ns))


# --- Claims --------------------------------------------------------------------------------------


def claimed(ledger: Ledger) -> tuple[Stretch, ...]:
    """Where the framework says it played: stretches it reports, else from start to finish."""
    reports = [e for e in ledger.trace.events if isinstance(e, PlaybackReported)]
    told = _progressed(ledger.trace, reports)
    of_progress = {stretch.speech for stretch in told}
    told += [s for s in _finished(ledger, reports) if s.speech not in of_progress]
    end = ledger.trace.last_ns
    inside = (replace(s, start_ns=max(s.start_ns, 0), stop_ns=min(s.stop_ns, end)) for s in told)
    return tuple(sorted((s for s in inside if s.stop_ns > s.start_ns), key=lambda s: s.start_ns))


def _progressed(trace: Trace, reports: list[PlaybackReported]) -> list[Stretch]:
    """Stretches stamped by the wall clock, which the header pairs with the monotonic one."""
    stretches: list[Stretch] = []
    for report in reports:
        if report.report != "progressed" or report.duration_s is None:
            continue
        start = report.at_ns
        if report.event_unix_s is not None:
            start = _nanoseconds(report.event_unix_s - trace.header.started_unix_s)
        stop = start + _nanoseconds(report.duration_s)
        last = stretches[-1] if stretches else None
        if last is not None and last.speech == report.speech and start - last.stop_ns <= JOINED_NS:
            stretches[-1] = replace(last, stop_ns=max(stop, last.stop_ns))
        else:
            stretches.append(Stretch(start, stop, "claimed as played", speech=report.speech))
    return stretches


def _finished(ledger: Ledger, reports: list[PlaybackReported]) -> Iterator[Stretch]:
    """As long as the position that a finish reports, from the reported start, else from the
    segment's first frame."""
    started = [report.at_ns for report in reports if report.report == "started"]
    for report, owner in ledger.finishes:
        if owner >= 0 and report.position_s is not None:
            first = int(ledger.sums.first_ns[owner])
            start = min((at for at in started if first <= at <= report.at_ns), default=first)
            stop = start + _nanoseconds(report.position_s)
            yield Stretch(start, stop, "claimed as played", owner + 1, report.speech)


def _nanoseconds(seconds: float) -> int:
    """A length in nanoseconds; what no call can last is as long as `FOREVER`."""
    if math.isnan(seconds):
        return 0
    return round(min(max(seconds, -FOREVER / 1e9), FOREVER / 1e9) * 1e9)


# --- Marks ---------------------------------------------------------------------------------------


def marks(trace: Trace) -> tuple[Instant, ...]:
    """Everything else that happened, in order of time."""
    found: list[Instant] = []
    latest = -1
    for event in trace.events:
        mark = _mark(event)
        if mark is None:
            continue
        if isinstance(event, SinkMarked):
            last = found[latest] if latest >= 0 else None
            if last is not None and (last.what, last.speech) == (mark.what, mark.speech):
                found[latest] = replace(last, count=last.count + 1, until_ns=mark.at_ns)
                continue
            latest = len(found)
        found.append(mark)
    return tuple(found)


def _mark(event: Event) -> Instant | None:
    """``None``: it is in another lane, or of no interest in time."""
    match event:
        case SinkMarked():
            return Instant(event.at_ns, event.mark, event.speech, _raised(event.error))
        case QueueCleared():
            how = _raised(event.error) or f"source {event.source}"
            return Instant(event.at_ns, "source cleared", detail=how)
        case InterruptCalled():
            return Instant(event.at_ns, "interrupt", event.speech, f"by {event.by or 'unknown'}")
        case SpeechCommitted():
            return Instant(event.at_ns, "commit", event.speech)
        case SpeechDone():
            how = "interrupted" if event.interrupted else ""
            return Instant(event.at_ns, "speech done", event.speech, how)
        case PlaybackReported(report="started" | "finished" as report, position_s=position_s):
            where = "" if position_s is None else f"position {position_s * 1000:.1f} ms"
            return Instant(event.at_ns, f"playback {report}", event.speech, where)
        case FalseInterruption():
            how = "resumed" if event.resumed else "not resumed"
            return Instant(event.at_ns, "false interruption", detail=how)
        case Bookmarked():
            return Instant(event.at_ns, "bookmark", detail=event.name)
        case ControlStarted():
            return Instant(event.at_ns, "control begins", event.speech)
        case Faulted():
            how = f"{event.kind} {event.detail}"
            return Instant(event.at_ns, "fault of the probe", detail=how)
        case Untapped():
            return Instant(event.at_ns, f"{event.boundary} untapped", detail=event.reason)
        case SessionClosed():
            return Instant(event.at_ns, "session closed", detail=event.reason)
        case CallerLeft():
            return Instant(event.at_ns, "caller left", detail=event.reason)
        case HandedOver():
            how = f"agent {event.old or 'none'} to {event.new or 'none'}"
            return Instant(event.at_ns, "handed over", detail=how)
        case CancelSent():
            hits = ", ".join(map(str, event.hits)) or "none"
            return Instant(event.at_ns, "cancel sent", event.speech, f"responses hit: {hits}")
        case TruncateSent():
            how = f"message {event.message} to {event.audio_end_ms} ms"
            return Instant(event.at_ns, "truncate sent", detail=how)
        case MessageCreated():
            return Instant(event.at_ns, "message created", detail=event.message)
    return None


def _raised(error: str | None) -> str:
    return "" if error is None else f"raised {error}"
