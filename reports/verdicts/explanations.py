"""A barge-in in words: what decided it, what went out after the decision, and why.

With a realtime model also how the generation of an interrupted speech was stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reports.results import BargeIn, GenerationStop, Leak, Measured, Realtime, Segment
from reports.units import ns_text

__all__ = [
    "UNSEEN",
    "amount_text",
    "explain",
    "explain_stop",
    "measured",
    "unjoined_text",
    "unseen_text",
]

_DECIDED = {
    "overlap": "the interruption model's verdict",
    "activity": "activity of the caller's voice",
    "transcript": "a final transcript",
    "programmatic": "a call from code",
}

UNSEEN: Final = {
    "under-way": "part of it was in the source already",
    "bounded": "the file of the trace had reached its bound by then",
    "unread": "nobody read the wire",
    "source-unread": "some of it went into a source whose wire nobody read",
    "resampled": "the sink resamples",
    "changed": "the sink changes the audio beyond recognition",
    "buffer-reused": "the sink uses one buffer for every frame",
}

_UNJOINED = {**UNSEEN, "channels": "the sink lays the audio out in another number of channels"}

_WHY = {
    "not-stopped": "{} before anything had stopped the sink",
    "queue-played-on": "{} from the source's queue, which plays on behind a closed gate",
    "clear-pending": "{} between the clear of the sink and the clear of the source",
    "after-clear": "{} although the source had been cleared",
    "resumed": "{} after the gate had been opened again",
    "not-known": "{} of which it can't be told whether their sink had been stopped",
}

_ENDED = {
    "closed": "The session was closed, which ended the speech",
    "hung-up": "The caller had left, and the speech ended",
    "handed-over": "Another agent took over, and the speech ended",
}


def amount_text(amount: Measured | None) -> str:
    """``40.0 ms (960 samples)``; a dash where it is not known."""
    if amount is None:
        return "–"
    return measured(amount)


def measured(audio: Measured) -> str:
    """Milliseconds and samples; samples alone where rates mix."""
    if audio.ms is None:
        return f"{audio.samples} samples"
    return f"{audio.ms:.1f} ms ({audio.samples} samples)"


def explain(barge_in: BargeIn, options: Mapping[str, Any]) -> str:
    """One paragraph, plain text, without figures that the trace does not hold."""
    if barge_in.outcome == "ignored":
        over = (barge_in.over_caller or {}).get("sent")
        went = (
            f"how much of the reply was sent meanwhile is not known: {unseen_text(barge_in)}"
            if over is None
            else f"{amount_text(over)} of the reply were sent while the caller was speaking"
        )
        why = _why_ignored(options)
        return f"The caller spoke over the agent and nothing stopped it: {went}.{why}"
    if not barge_in.counts:
        at_ns = next(m.at_ns for m in barge_in.story if m.event.startswith("commit:"))
        return (
            f"{_ENDED[barge_in.outcome or '']} at {ns_text(at_ns)}. Nobody interrupted it: that is "
            "no barge-in, and nothing is counted as a leak."
        )
    if barge_in.verdict_ns is None:
        return _without_verdict(barge_in)
    sentences = [_decision(barge_in)]
    sent = (barge_in.leaked or {}).get("sent")
    if barge_in.outcome == "resumed":
        sentences += _resumed(barge_in, sent, options)
    elif barge_in.outcome == "finished":
        sentences.append("Nothing of the speech was left to stop.")
    elif sent is None:
        sentences.append(f"What was sent after it is not known: {unseen_text(barge_in)}.")
        about = (barge_in.estimated or {}).get("sent")
        if about is not None:
            sentences.append(f"By time it was ~ {ns_text(about.ns)} (± {ns_text(about.error_ns)}).")
    elif sent.samples == 0:
        sentences.append("Nothing of the speech was sent after it.")
    else:
        parts = [_WHY[cause.cause].format(measured(cause)) for cause in barge_in.causes or ()]
        sentences.append(f"After it were sent: {'; '.join(parts)}.")
        if any(m.event.endswith("survives it") for m in barge_in.story):
            sentences.append(
                "A push was under way when the source was cleared: its samples reached the queue "
                "after the clear and went out."
            )
    return " ".join(sentences)


def unjoined_text(segment: Segment) -> str | None:
    """Why what left the sink can't be held against what entered it; ``None``: it can be."""
    return None if segment.unjoined is None else _UNJOINED[segment.unjoined]


def unseen_text(barge_in: BargeIn) -> str:
    """Why it is not known what was sent, where that is so."""
    return UNSEEN[barge_in.unseen or "unread"]


def _decision(barge_in: BargeIn) -> str:
    decided = _DECIDED[barge_in.verdict_kind or "programmatic"]
    text = f"The verdict was {decided} at {ns_text(barge_in.verdict_ns or 0)}"
    if barge_in.verdict_kind == "activity" and barge_in.pause_ns is not None:
        text += ", which paused the speech; the speech was committed later, so the pause decided"
    elif barge_in.onset_ns is not None and barge_in.verdict_ns is not None:
        text += f", {ns_text(barge_in.verdict_ns - barge_in.onset_ns)} after the caller's onset"
    if barge_in.partial:
        text += "; the speech was under way when the probe came"
    elif not barge_in.has_audio:
        text += ", and nothing of the speech was ever captured"
    elif any(m.event.startswith("first frame") for m in barge_in.story):
        text += ", when nothing of the speech had been captured yet"
    return text + "."


def _resumed(barge_in: BargeIn, sent: Leak | None, options: Mapping[str, Any]) -> list[str]:
    verdict = barge_in.verdict_ns or 0
    of = "" if barge_in.remaining is None else f" of {amount_text(barge_in.remaining)}"
    went = (
        f"{amount_text(sent)}{of} that remained of the reply went out after the verdict"
        if sent is not None
        else "how much of the reply went out after the verdict is not known: "
        + unseen_text(barge_in)
    )
    if barge_in.resume_ns is None:
        return [
            f"Nothing stopped the speech for good: {went}.",
            "That is what this build decided, and no accident of timing.",
        ]
    transcripts = [
        m for m in barge_in.story if m.event.startswith("final transcript") and m.at_ns >= verdict
    ]
    timeout = options.get("false_interruption_timeout_s")
    limit = f" (false_interruption_timeout {timeout} s)" if timeout is not None else ""
    followed = any(m.at_ns <= barge_in.resume_ns for m in transcripts)
    model = barge_in.verdict_kind == "overlap"
    decided = "The model had decided" if model else "That had been decided"
    came = (
        "Although a final transcript came after it, "
        if followed
        else f"{decided}, and no final transcript followed before the timeout{limit}: "
    )
    return [
        f"{came}the gate was opened again at {ns_text(barge_in.resume_ns)}, "
        f"{ns_text(barge_in.resume_ns - verdict)} after the verdict, and the speech went on.",
        f"So {went}.",
        "This is no accident of timing: the build let its own verdict lapse, and would do so "
        "every time it takes this path.",
    ]


def _without_verdict(barge_in: BargeIn) -> str:
    pause = barge_in.pause_ns
    text = "No verdict came."
    if pause is not None:
        text += f" The speech was paused at {ns_text(pause)}"
        if barge_in.resume_ns is not None:
            text += (
                f" and went on at {ns_text(barge_in.resume_ns)}, "
                f"{ns_text(barge_in.resume_ns - pause)} later"
            )
        elif barge_in.outcome == "finished":
            text += " and was never resumed; it ended by itself"
        else:
            text += " and nothing more was decided before the trace ended"
        text += "."
    return text + " So nothing is counted as a leak."


def _why_ignored(options: Mapping[str, Any]) -> str:
    if options.get("allow_interruptions") is False:
        return " Interruptions are not allowed in this session."
    return ""


def explain_stop(stop: GenerationStop, realtime: Realtime) -> str:
    """How the generation of an interrupted speech was stopped, in two sentences, plain text."""
    mine = _responses(stop.responses, realtime)
    state = {
        True: f"while {mine} was being generated",
        False: f"when {mine} was no longer being generated",
        None: f"playing {mine}; whether it was still being generated can't be seen",
    }[stop.under_way]
    text = f"Speech {stop.speech_id} was interrupted at {ns_text(stop.interrupt_ns)} {state}."
    if stop.cancel_ns is None:
        return f"{text} No cancel was sent{'' if stop.under_way is not False else ' or needed'}."
    delay = stop.cancel_after_interrupt_ns or 0
    when = f"{ns_text(abs(delay))} {'before' if delay < 0 else 'after'} the interrupt"
    late = stop.cancel_after_end_ns
    if late is None:
        when += ", and no end of the response was seen"
    elif late < 0:
        when += f", {ns_text(-late)} before the response ended"
    else:
        when += f", {ns_text(late)} after the response had ended"
    hit = f"hit {_responses(stop.hit, realtime)}" if stop.hit else "hit nothing"
    others = sorted(set(stop.hit) - set(stop.responses))
    if others and len(others) < len(stop.hit):
        hit += f", of which {_responses(tuple(others), realtime)} was not its own"
    elif others:
        hit += ", not its own"
    return f"{text} A cancel went out {when}; it {hit}."


def _responses(numbers: tuple[int, ...], realtime: Realtime) -> str:
    ids = {response.number: response.id for response in realtime.responses}
    named = [f"{n} ({ids[n]})" if ids.get(n) else str(n) for n in numbers]
    return f"response{'s' if len(named) > 1 else ''} {' and '.join(named)}"
