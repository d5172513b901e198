"""Samples of the interrupted speech that were sent after the verdict, more than the resolution of
the boundary; each with the cause of the moment it was sent, so that the parts add up."""

from __future__ import annotations

from collections.abc import Iterator

from reports.account.boundary import SENT
from reports.findings.case import Case
from reports.findings.evidence import leak_ranges, longest_ns
from reports.findings.rule import Found, Limits, Rule, Threshold, Unjudged, plain
from reports.results import BargeIn, Part
from reports.units import ns_text
from reports.verdicts.explanations import measured, unseen_text

__all__ = ["RULE"]

_WHY = {
    "not-stopped": (
        "The session decides before it acts: when this was sent, neither a pause nor a clear had "
        "reached the sink it went through.",
        "See what the session awaits between the verdict and the clear of its output, such as a "
        "stream that is slow to close; loop-blocked, where it is beside this, says what held it.",
    ),
    "queue-played-on": (
        "A pause only closes the sink's gate: up to 200 ms in the source's queue play on until the "
        "next frame arrives at it.",
        "Clear the source's queue when the gate closes; see pause of the room output.",
    ),
    "clear-pending": (
        "The sink was cleared and the source was not yet: a task of the sink's own does that "
        "later, or nothing does.",
        "Clear the source within clear_buffer of the sink, before anything is awaited; see "
        "clear_buffer of the room output and the task that waits for playout.",
    ),
    "after-clear: survived-clear": (
        "A push was under way when the source was cleared: its samples reached the queue after "
        "the clear, which did not take them.",
        "Wait for the push that is under way, or cancel it, before the source is cleared, or clear "
        "once more after it; see what forwards frames in the room output.",
    ),
    "after-clear: pushed-late": (
        "The sink went on pushing frames of the speech when its source had been cleared already.",
        "Stop what forwards frames, and drop what waits in it, before the source is cleared; see "
        "clear_buffer of the room output.",
    ),
    "after-clear: rest-of-long-frame": (
        "The source takes a frame longer than its queue in pieces: a clear takes the piece that is "
        "queued, and the rest of the frame comes after it.",
        "Push frames shorter than the source's queue; split what the TTS delivers before it is "
        "captured.",
    ),
    "resumed": (
        "The gate was opened again after the verdict and the speech went on, by a "
        "false-interruption timeout or a resume for the next reply.",
        "See what resumed the sink: the false-interruption timer has to end with the verdict, and "
        "an interrupted speech be cleared before its sink is resumed. See resumed-after-verdict "
        "or resume-before-clear beside this.",
    ),
    "not-known": (
        "The trace has several sources and does not say which sink was paused, cleared or resumed, "
        "so what held this audio back, or did not, can't be told.",
        "Record the call again: newer traces say which sink each mark went to.",
    ),
}
"""Cause and remedy by the largest part of a leak."""

_PAUSED_IN_VAIN = (
    "A pause was asked for and held nothing back: it went to another sink than the one that was "
    "playing, or that one pushed on behind it.",
    "See which sink the session pauses while another one is still playing, and whether a pause "
    "stops what forwards frames to the source.",
)
"""The same where nothing stopped it although there was a pause."""


def _parts(barge_in: BargeIn) -> tuple[Part, ...]:
    """Causes of the leak, with what was sent after a clear told apart by how it escaped."""
    parts = [
        Part(cause.cause, cause.samples, cause.rate_hz)
        for cause in barge_in.causes or ()
        if cause.cause != "after-clear"
    ]
    parts += [Part(f"after-clear: {s.how}", s.samples, s.rate_hz) for s in barge_in.survivors or ()]
    return tuple(parts)


def _judge(case: Case, limits: Limits) -> Iterator[Found | Unjudged]:
    resolution = case.resolution_ns()
    for barge_in in case.barge_ins:
        leak, verdict = (barge_in.leaked or {}).get("sent"), barge_in.verdict_ns
        if verdict is None:
            continue
        if leak is None:
            yield Unjudged(f"the barge-in at {ns_text(verdict)}: {unseen_text(barge_in)}")
        if leak is None or not leak.samples:
            continue
        until = leak.spans[-1].stop_ns
        speech = barge_in.speech_id or ""
        faded = verdict + int(limits["fade-ms"])
        beyond = longest_ns(case.audio.crossed(SENT, speech, faded, until))
        whole = longest_ns(case.audio.crossed(SENT, speech, verdict, until))
        if beyond <= resolution or whole <= resolution:
            continue
        parts = _parts(barge_in)
        main = max(parts, key=lambda part: part.samples)
        cause, remedy = _WHY[main.cause]
        if main.cause == "not-stopped" and barge_in.pause_ns is not None:
            before = case.audio.crossed(SENT, speech, verdict, barge_in.pause_ns).samples
            cause, remedy = (cause, remedy) if main.samples <= before else _PAUSED_IN_VAIN
        share = "all" if main.samples == leak.samples else measured(main)
        what = "speech" if barge_in.outcome == "resumed" else "interrupted speech"
        yield Found(
            message=(
                f"{measured(leak)} of the {what} were sent after the "
                f"verdict, {share} of it {main.cause}."
            ),
            figure=whole,
            segment=barge_in.segment,
            samples=leak.samples,
            parts=parts,
            ranges=leak_ranges(leak),
            moments=tuple((m.at_ns, m.event) for m in barge_in.story),
            facts={"verdict": barge_in.verdict_kind, "stop_ns": barge_in.stop_ns},
            severity="error" if whole > limits["serious-ms"] else "warning",
            cause=cause,
            remedy=remedy,
        )


RULE = Rule(
    name="leak-after-verdict",
    severity="warning, error above serious-ms",
    looks_for=plain(__doc__),
    cause=(
        "A pause only closes the sink's gate: up to 200 ms in the source's queue play on until "
        "the next frame arrives at it, and a clear of the sink reaches the source later."
    ),
    remedy=(
        "Clear the source's queue when the gate closes; see pause and clear_buffer of the room "
        "output. By cause: not-stopped is the session deciding late, clear-pending the sink's own "
        "task, after-clear a push the clear did not take."
    ),
    needs=("captured", "pushed", "sent", "session", "balance"),
    figure="audio sent after the verdict",
    unit="ms",
    judge=_judge,
    counts_audio=True,
    thresholds=(
        Threshold(
            "fade-ms", 0, "ms", "a deliberate fade-out: audio sent this long after is no leak"
        ),
        Threshold("serious-ms", 200, "ms", "an error above this, which a full queue explains"),
    ),
)
