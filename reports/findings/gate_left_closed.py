"""The sink stays paused after its speech is over."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.rule import Found, Limits, Rule, Threshold, plain

__all__ = ["RULE"]


def _judge(case: Case, limits: Limits) -> Iterator[Found]:
    grace = limits["grace-ms"]
    closed = min((e for e in case.ledger.closed.values()), default=FOREVER)
    for gate in case.sinks.gates:
        shut, opened = gate.shut_ns, gate.opened_ns
        pauses = case.sinks.marks(shut, shut, "pause")
        owner = next((each for each in pauses if gate.may_be_of(each[0].sink)), None)
        row = -1 if owner is None else owner[1]
        name = None if owner is None else owner[0].speech
        speech = case.session.speeches.get(name) if name is not None else None
        if speech is None and row >= 0:
            speech = case.session.speech_of(row)
        over = _over(case, row, speech.done_ns if speech is not None else None)
        if over is None:
            continue
        since = max(shut, over)
        until = min(opened, case.end_ns, closed)
        if until - since <= grace:
            continue
        following = [
            at
            for nth, at in enumerate(case.first_ns)
            if since < at < opened and gate.may_be_of(*case.sinks_of(nth))
        ]
        after = f"; {len(following)} later segments met a closed gate" if following else ""
        yield Found(
            message=(
                f"The gate stayed closed for {(until - since) / 1e6:.0f} ms after the speech was "
                f"over{after}."
            ),
            figure=until - since,
            segment=row + 1 if row >= 0 else None,
            moments=(
                (shut, "pause: the gate is closed"),
                (over, "the speech is over"),
                *((at, "a later segment begins") for at in following[:3]),
                *([(opened, "resume: the gate is open")] if opened < FOREVER else []),
            ),
            facts={"opened": opened < FOREVER, "segments_behind_it": len(following)},
            severity="error" if following else "warning",
        )


def _over(case: Case, row: int, done: int | None) -> int | None:
    """When the paused speech was over, by its own end or by the sink's report."""
    if done is not None:
        return done
    if row >= 0 and case.session.speech_of(row) is None:
        return case.segments[row].finished_ns
    return None


RULE = Rule(
    name="gate-left-closed",
    severity="warning, error where segments met it",
    looks_for=plain(__doc__),
    cause="The speech ended while it was paused, and nobody was left to resume the sink.",
    remedy=(
        "Resume the sink whenever a paused speech ends, whichever way; see what the session does "
        "with its paused speech when that is done or cleared."
    ),
    needs=("captured", "session", "pause", "every event"),
    figure="how long the gate stayed closed",
    unit="ms",
    judge=_judge,
    from_absence=True,
    thresholds=(Threshold("grace-ms", 1000, "ms", "a gate opened this soon after is in order"),),
)
