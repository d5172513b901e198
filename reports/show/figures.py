"""The figures of a call and of a barge-in, as pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.results import Analysis, BargeIn, Leak
from reports.show import wording
from reports.units import one_rate, samples_ms, time_ms
from reports.verdicts.explanations import amount_text

__all__ = ["headline", "of"]


def headline(analysis: Analysis, worst: Sequence[BargeIn]) -> list[dict[str, Any]]:
    """The figures a reader came for: what leaked, what was swallowed if anything was, and what
    else is an error; that stands first where nothing leaked."""
    figures = [_leak(analysis, worst)]
    others = wording.other_errors(analysis)
    if others:
        errors = {
            "big": f"{len(others)} error{'' if len(others) == 1 else 's'}",
            "what": ", ".join(dict.fromkeys(finding.rule for finding in others)),
            "bad": True,
            "detail": "see the findings",
            "small": "",
        }
        figures.insert(1 if figures[0]["bad"] else 0, errors)
    swallowed = analysis.totals.swallowed_samples
    if swallowed:
        rates = {g.rate_hz for s in analysis.segments for g in s.geometry["captured"]}
        length = samples_ms(swallowed, one_rate(rates))
        figures.append(
            {
                "big": f"{swallowed} samples" if length is None else wording.ms_text(length),
                "what": "swallowed: lost, and nobody had interrupted",
                "bad": True,
                "detail": f"{swallowed} samples",
                "small": "",
            }
        )
    return figures


def _leak(analysis: Analysis, worst: Sequence[BargeIn]) -> dict[str, Any]:
    judged = [b for b in worst if b.leaked is not None]
    if not judged:
        what = "no barge-in in this trace" if not worst else "no verdict, so no leak is counted"
        return {"big": "", "what": what, "bad": False, "detail": "", "small": ""}
    sent = (judged[0].leaked or {}).get("sent")
    pushed = (judged[0].leaked or {}).get("pushed")
    resolution = time_ms(analysis.trace.resolution_ns.get("sent"))
    small = ""
    if sent is not None and sent.samples and resolution and (sent.ms or 0) <= resolution:
        small = f"no longer than the resolution of {resolution:g} ms, so it may as well be none"
    what = "leaked after the verdict"
    if len(judged) > 1:
        what += f" at worst, of {len(judged)} barge-ins with a verdict"
    return {
        "big": wording.DASH if sent is None else wording.ms_text(sent.ms),
        "what": what,
        "bad": sent is None or sent.samples > 0,
        "detail": f"{amount_text(sent)} sent, {amount_text(pushed)} pushed",
        "small": small,
    }


def of(barge_in: BargeIn) -> list[tuple[str, str, str]]:
    """Name, amount and meaning of what is told of a barge-in beside its leak."""
    figures: list[tuple[str, str, str]] = []
    if barge_in.leaked is not None:
        silent = time_ms(barge_in.stop_ns) == 0
        figures.append(
            (
                "stop time",
                wording.ms_text(time_ms(barge_in.stop_ns)),
                "already silent" if silent else "verdict to last sample sent",
            )
        )
        remaining = amount_text(barge_in.remaining)
        figures.append(("remaining", remaining, "of the reply, at the verdict"))
    also: tuple[tuple[str, Mapping[str, Leak | None] | None, str], ...] = (
        ("sent since pause", barge_in.after_pause, "audio since the gate closed"),
        ("sent since onset", barge_in.after_onset, "with the time of detection; not a leak"),
        ("sent over the caller", barge_in.over_caller, "while the caller was speaking"),
    )
    for name, leaks, meaning in also:
        if leaks is not None:
            figures.append((name, amount_text(leaks.get("sent")), meaning))
    if time_ms(barge_in.stalled_ns):
        figures.append(
            (
                "loop stalled",
                wording.ms_text(time_ms(barge_in.stalled_ns)),
                "times of calls and events are late by up to that",
            )
        )
    return figures
