"""A barge-in as it is shown: what leaked, what is told beside it, and what happened in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reports.results import Analysis, BargeIn, Leak, Moment
from reports.show.view.quantity import Quantity, audio, estimate, time
from reports.show.wording import CAUSES, DASH, NO_BARGE_INS, count_text
from reports.units import time_ms

__all__ = ["BargeInView", "Fact", "Step", "told"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure with its name and what it means."""

    name: str
    amount: Quantity
    meaning: str
    alone: str = ""
    """What its name needs where the meaning does not stand beside it."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened, and when, counted from the barge-in's zero."""

    at_ns: int
    after: str
    """``+40.0``, milliseconds."""
    event: str
    verdict: bool


@dataclass(frozen=True, slots=True)
class BargeInView:
    """One barge-in in words."""

    found: BargeIn
    title: str
    speech: str
    segment: str
    kind: str
    """Who decided."""
    outcome: str
    sent: Quantity
    """Leaked there, by time where nothing else tells; a dash where that is not known either, or no
    verdict came."""
    pushed: Quantity
    stop: Quantity
    remark: str
    """That what leaked is no more than the resolution; empty: it is more, or nothing."""
    facts: tuple[Fact, ...]
    """What is told beside the leak."""
    causes: tuple[Fact, ...]
    """Why it was sent after the verdict."""
    zero: str
    """What the times of its story count from; empty: nothing of it is known."""
    zero_ns: int
    start_ns: int
    """When it began, and when the last of it had been sent."""
    stop_ns: int

    @property
    def known(self) -> bool:
        """Whether what was sent after the verdict is known to the sample."""
        return (self.found.leaked or {}).get("sent") is not None

    @property
    def judged(self) -> bool:
        """Whether a verdict came."""
        return self.found.leaked is not None

    @property
    def leaked(self) -> tuple[Fact, ...]:
        """What crossed after the verdict; none: no verdict came."""
        amounts = (("sent", self.sent), ("pushed", self.pushed)) if self.judged else ()
        return tuple(Fact(f"leaked, {at}", amount, "after the verdict") for at, amount in amounts)

    def holds(self, at_ns: int) -> bool:
        """Whether an instant falls into it."""
        return self.start_ns <= at_ns <= self.stop_ns

    def steps(self, bookmarks: Iterable[Moment] = ()) -> list[Step]:
        """What happened, in order of time, with these bookmarks of the user among it."""
        named = [replace(m, event=f"bookmark: {m.event}") for m in bookmarks]
        return [
            Step(m.at_ns, after_text(m.at_ns - self.zero_ns), m.event, m.verdict)
            for m in sorted((*self.found.story, *named), key=lambda m: m.at_ns)
        ]


def after_text(ns: int) -> str:
    """``+40.0``, for a time counted from another, in milliseconds; no minus before a zero."""
    return f"{round(time_ms(ns), 1) + 0.0:+.1f}"


def told(barge_in: BargeIn, analysis: Analysis) -> BargeInView:
    """A barge-in of an analysis in words."""
    sent = (barge_in.leaked or {}).get("sent")
    zeros = (
        ("verdict", barge_in.verdict_ns),
        ("pause", barge_in.pause_ns),
        ("onset", barge_in.onset_ns),
        ("", 0),
    )
    zero, zero_ns = next((name, at_ns) for name, at_ns in zeros if at_ns is not None)
    instants = [moment.at_ns for moment in barge_in.story]
    instants += [at_ns for _, at_ns in zeros[:3] if at_ns is not None]
    instants += [] if barge_in.last_sent_ns is None else [barge_in.last_sent_ns]
    instants += [span.stop_ns for span in sent.spans] if sent is not None else []
    return BargeInView(
        found=barge_in,
        title=_title(barge_in),
        speech=barge_in.speech_id or DASH,
        segment=count_text(barge_in.segment),
        kind=barge_in.verdict_kind or DASH,
        outcome=barge_in.outcome or "undecided",
        sent=_leak(barge_in, "sent"),
        pushed=_leak(barge_in, "pushed"),
        stop=time(barge_in.stop_ns),
        remark=_remark(sent, analysis),
        facts=tuple(_facts(barge_in)),
        causes=tuple(Fact(c.cause, audio(c), CAUSES[c.cause]) for c in barge_in.causes or ()),
        zero=zero,
        zero_ns=zero_ns,
        start_ns=min(instants, default=0),
        stop_ns=max(instants, default=0),
    )


def _leak(barge_in: BargeIn, boundary: str) -> Quantity:
    leak = (barge_in.leaked or {}).get(boundary)
    return audio(leak) if leak is not None else estimate((barge_in.estimated or {}).get(boundary))


def _title(barge_in: BargeIn) -> str:
    """What was barged into, who decided, what became of it."""
    where = f"segment {barge_in.segment}"
    if barge_in.segment is None:
        where = "a speech under way" if barge_in.partial else "a speech without audio"
    if not barge_in.counts:
        return f"No barge-in on {where}: {NO_BARGE_INS[barge_in.outcome or '']}"
    kind = f"{barge_in.verdict_kind} verdict" if barge_in.verdict_kind else "no verdict"
    return f"Barge-in on {where}: {kind}, outcome {barge_in.outcome or 'not decided'}"


def _remark(sent: Leak | None, analysis: Analysis) -> str:
    resolution_ns = analysis.trace.resolution_ns.get("sent")
    if sent is None or not sent.samples or not resolution_ns or (sent.ns or 0) > resolution_ns:
        return ""
    resolution = f"{time_ms(resolution_ns):g} ms"
    return f"no longer than the resolution of {resolution}, so it may as well be none"


def _facts(barge_in: BargeIn) -> Iterable[Fact]:
    if barge_in.leaked is not None:
        sent = barge_in.leaked.get("sent")
        silent = barge_in.stop_ns == 0 and sent is not None and sent.samples == 0
        meaning = "already silent" if silent else "verdict to last sample sent"
        yield Fact("stop time", time(barge_in.stop_ns), meaning)
        remaining = audio(barge_in.remaining)
        yield Fact("remaining", remaining, "of the reply, at the verdict", " at the verdict")
    for name, leaks, meaning, alone in (
        ("since pause", barge_in.after_pause, "audio since the gate closed", ""),
        (
            "since onset",
            barge_in.after_onset,
            "with the time of detection; not a leak",
            " (no leak)",
        ),
        ("over the caller", barge_in.over_caller, "while the caller was speaking", ""),
    ):
        if leaks is not None:
            yield Fact(f"sent {name}", audio(leaks.get("sent")), meaning, alone)
    if barge_in.stalled_ns:
        stalled = time(barge_in.stalled_ns)
        meaning = "times of calls and events are late by up to that"
        yield Fact("session loop stalled", stalled, meaning)
