"""The caller spoke for a second or more while the agent's audio was being sent, and no pause and
no verdict came; with the reason where it can be known."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import FOREVER
from reports.findings.case import Case
from reports.findings.evidence import leak_ranges
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import BargeIn
from reports.units import NS_PER_MS, ns_text
from reports.verdicts.explanations import measured, unseen_text

__all__ = ["RULE"]

_AFTER_NS = 1_000 * NS_PER_MS
"""How long after the caller has stopped a transcript or a judgement is still about that."""


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    for barge_in in case.barge_ins:
        over = (barge_in.over_caller or {}).get("sent")
        if barge_in.outcome != "ignored" or barge_in.onset_ns is None:
            continue
        if over is None:
            yield Unjudged(
                f"the caller's turn at {ns_text(barge_in.onset_ns)}: {unseen_text(barge_in)}"
            )
            continue
        length = over.ns or 0
        if length < limits["speech-ms"]:
            continue
        onset = barge_in.onset_ns
        hush = next((t.stop_ns for t in case.session.turns if t.start_ns == onset), FOREVER)
        reasons = _reasons(case, barge_in, onset, hush)
        why = "; ".join(reasons) if reasons else "the trace does not show why"
        yield Found(
            message=(
                f"The caller spoke over {measured(over)} of the reply and neither "
                f"pause nor verdict came: {why}."
            ),
            figure=length,
            segment=barge_in.segment,
            samples=over.samples,
            ranges=leak_ranges(over),
            moments=(
                (onset, "the caller starts to speak"),
                *(
                    (e.at_ns, f"transcript, {e.words} words")
                    for e in case.session.transcripts
                    if e.final and onset <= e.at_ns <= hush + _AFTER_NS
                ),
                *(
                    (e.at_ns, "the model says: no interruption")
                    for e in case.session.overlaps
                    if not e.is_interruption and onset <= e.at_ns <= hush + _AFTER_NS
                ),
                *([] if hush >= FOREVER else [(hush, "the caller stops")]),
            ),
            facts={"reasons": reasons},
        )


def _reasons(case: Case, barge_in: BargeIn, onset: int, hush: int) -> list[str]:
    options = case.session.options_at(onset)
    speech = case.session.speeches.get(barge_in.speech_id or "")
    reasons = []
    if speech is not None and speech.allow_interruptions is False:
        reasons.append("interruptions are not allowed for this speech")
    elif options.get("allow_interruptions") is False:
        reasons.append("interruptions are not allowed in this session")
    warmup = _number(options.get("aec_warmup_s"))
    spoke = next((start for start, _ in case.session.agent_speaking), None)
    if warmup is not None and spoke is not None and hush - spoke <= warmup * 1e9:
        reasons.append(f"echo warm-up: the first {warmup:g} s of the agent's speech are exempt")
    heard = [e for e in case.session.transcripts if onset <= e.at_ns <= hush + _AFTER_NS]
    words = max((e.words for e in heard), default=0)
    least = _number(options.get("min_words"))
    if least is not None and least > words:
        reasons.append(f"{words} words were recognized and min_words is {least:g}")
    shortest = _number(options.get("min_duration_s"))
    if shortest is not None and hush - onset < shortest * 1e9:
        reasons.append(
            f"the caller spoke for {(hush - onset) / 1e9:.2f} s and min_duration is {shortest:g} s"
        )
    if any(
        not e.is_interruption and onset <= e.at_ns <= hush + _AFTER_NS
        for e in case.session.overlaps
    ):
        reasons.append("the interruption model called it a backchannel")
    detection = options.get("turn_detection")
    if detection == "manual":
        reasons.append("turn detection is manual, so activity does not interrupt")
    elif detection == "stt":
        reasons.append("no VAD: turns are taken from the STT")
    if options.get("can_pause") is False:
        reasons.append("the sink can't pause")
    return reasons


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


RULE = Rule(
    name="caller-ignored",
    severity="warning",
    looks_for=plain(__doc__),
    cause=(
        "Interruptions are off for the speech or during echo warm-up, or the caller's speech fell "
        "below min_duration or min_words, or was judged a backchannel."
    ),
    remedy=(
        "Check the option the reason names; with no reason given, see where the session decides "
        "on audio activity, and whether its VAD saw the caller at all."
    ),
    needs=("sent", "session", "every event"),
    figure="audio sent over the caller",
    unit="ms",
    judge=_judge,
    from_absence=True,
    counts_audio=True,
    thresholds=(Threshold("speech-ms", 1000, "ms", "less audio over the caller is no finding"),),
)
