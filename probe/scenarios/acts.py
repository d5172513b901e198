"""What each step of a script does on the stage of its call; what they are: `STEPS`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from probe.errors import ScenarioError
from probe.scenarios.axes import (
    AFTER_LAST_FRAME,
    BEFORE_FIRST_FRAME,
    FIRST_FRAME,
    SOURCE_RATE_HZ,
)
from probe.scenarios.models import MIC_FRAME_MS
from probe.scenarios.script import Step
from probe.scenarios.stage import Stage

__all__ = ["ACTS", "Act"]

Act = Callable[[Stage, Step], Awaitable[None]]

ACTS: Final[dict[str, Act]] = {}
"""By the name of the step, which is that of its function."""

_PARKED_MS: Final = 200
"""After how long a sink that has a frame to play has it at its closed gate, for certain."""

_CHUNK_MS: Final = 50
"""The room output hands audio on in frames of this length; a shorter rest stays inside it."""

_WORDS: Final = "hold on a second please"


def _step(act: Act) -> Act:
    ACTS[act.__name__.replace("_", "-")] = act
    return act


# --- Where the reply is --------------------------------------------------------------------------


@_step
async def land(stage: Stage, step: Step) -> None:
    axes, voice = stage.scenario.axes, stage.voice
    ms = axes.landing_ms if step.ms is None else step.ms
    if axes.at == BEFORE_FIRST_FRAME:
        await stage.until(lambda: voice.stalled, "the reply's audio to be due")
    elif axes.at == FIRST_FRAME:
        await stage.until(lambda: stage.captures > 0, "the reply's first frame")
    elif axes.at == AFTER_LAST_FRAME:
        await stage.until(
            lambda: _all_handed_over(stage), "the reply to be handed to the source", axes.reply_ms
        )
    elif axes.pacing == "stalled" and step.ms is None and _is_last_scripted(stage):
        await stage.until(lambda: voice.stalled, "the TTS to stall")
        await stage.until(
            lambda: _all_inside(stage), "everything delivered to be in the source's queue"
        )
    else:
        ms = ms or 0
        samples = ms * SOURCE_RATE_HZ // 1000
        await stage.until(
            lambda: stage.pushed_samples >= samples,
            f"{ms} ms of the reply to be handed to the source",
            ms,
        )


def _is_last_scripted(stage: Stage) -> bool:
    """Whether no other reply comes before the control."""
    return all(step.do not in ("reply", "await-reply") for step in stage.left)


def _all_handed_over(stage: Stage) -> bool:
    counts, realtime = stage.counts, stage.scenario.realtime
    parts = 2 if stage.scenario.axes.reply == "tool" else 1
    if realtime is not None:
        parts = len(realtime.messages)
    return (
        counts.flushes - stage.before_reply.flushes >= parts
        and counts.pushing == 0
        and counts.pushed_samples >= counts.captured_samples
    )


def _all_inside(stage: Stage) -> bool:
    # The room output keeps what is shorter than its frame, whatever its first frames were cut
    # to, and a resampler more than one of them as well: from 8 kHz it hands on 66 ms at a time.
    kept_ms = _CHUNK_MS
    if stage.scenario.axes.rate_hz != SOURCE_RATE_HZ:
        kept_ms += 2 * _CHUNK_MS
    inside_ms = stage.voice.reply.delivered_ms - stage.pushed_samples * 1000 / SOURCE_RATE_HZ
    # A whole frame, up to what a product of lengths is rounded by, would be handed on.
    return stage.counts.pushing == 0 and inside_ms < kept_ms - 1e-6


@_step
async def await_captured(stage: Stage, _: Step) -> None:
    stage.voice.go_on()
    await stage.until(lambda: stage.captures > 0, "the first capture to begin")


@_step
async def await_interrupted(stage: Stage, _: Step) -> None:
    await stage.until(lambda: bool(stage.reply.interrupted), "the speech to be interrupted")


@_step
async def await_end(stage: Stage, _: Step) -> None:
    reply = stage.reply
    if stage.told_to_stop:
        # A TTS that stalled does not come back at the very moment its reply is cut.
        await stage.signals.until(lambda: reply.interrupted or reply.done(), stage.limit_s)
    if not reply.interrupted:
        stage.voice.go_on()
    await stage.ended(reply, "reply", stage.scenario.reply_takes_ms + stage.scenario.axes.close_ms)


@_step
async def reply(stage: Stage, _: Step) -> None:
    stage.ask()


@_step
async def await_reply(stage: Stage, _: Step) -> None:
    await stage.until(
        lambda: len(stage.speeches) > stage.heard_after, "a reply to what the caller said"
    )
    stage.go_on_with(stage.speeches[stage.heard_after])


# --- The caller ----------------------------------------------------------------------------------


@_step
async def speak(stage: Stage, step: Step) -> None:
    stage.caller.speak(step.ms or 0)


@_step
async def hush(stage: Stage, _: Step) -> None:
    stage.caller.hush()
    if stage.hears_itself and not stage.server.hears:
        stage.server.sessions[-1].report_silence()
    if not stage.counts.paused:
        stage.voice.go_on()


@_step
async def wait(stage: Stage, step: Step) -> None:
    due = stage.caller.frames + (step.ms or 0) // MIC_FRAME_MS
    await stage.until(lambda: stage.caller.frames >= due, "the microphone to go on")


@_step
async def transcript(stage: Stage, _: Step) -> None:
    caller = stage.caller
    later = {step.do for step in stage.left}
    answered = stage.scenario.options.allow_interruptions is not False
    stage.told_to_stop = answered
    # Words that are followed by others, or by another reply of the script, bring no control.
    stage.control_due = answered and not later & {"transcript", "reply", "await-reply"}
    stage.heard_after = len(stage.speeches)
    if stage.hears_itself:
        stage.server.sessions[-1].report_words(_WORDS)
        if stage.control_due:
            stage.server.sessions[-1].respond()
    else:
        stage.stt.deliver(_WORDS, caller.spoke_from_unix_s, caller.spoke_until_unix_s)


@_step
async def verdict(stage: Stage, step: Step) -> None:
    if stage.detector is None:
        raise ScenarioError(f"{stage.scenario.name}: the session asked for no interruption model")
    stage.detector.judge(step.interruption)


@_step
async def subscribe(stage: Stage, _: Step) -> None:
    stage.room.subscribed.set()


# --- Code of the agent's -------------------------------------------------------------------------


@_step
async def interrupt(stage: Stage, _: Step) -> None:
    # The script goes on at once, as after a press of a button; `await-end` waits.
    stage.told_to_stop = True
    stage.session.interrupt()


@_step
async def interrupt_handle(stage: Stage, _: Step) -> None:
    stage.told_to_stop = True
    stage.reply.interrupt()


@_step
async def swap(stage: Stage, _: Step) -> None:
    stage.session.output.audio = stage.new_sink()


@_step
async def block(_: Stage, step: Step) -> None:
    time.sleep((step.ms or 0) / 1000)  # noqa: ASYNC251  # that is what the step is for


# --- The sink's gate -----------------------------------------------------------------------------


@_step
async def pause(stage: Stage, _: Step) -> None:
    stage.session.output.audio.pause()


@_step
async def resume(stage: Stage, _: Step) -> None:
    stage.session.output.audio.resume()


@_step
async def await_paused(stage: Stage, _: Step) -> None:
    await stage.until(lambda: stage.counts.paused, "the sink to be paused")
    if stage.scenario.axes.pacing != "stalled":
        stage.voice.go_on()


@_step
async def await_parked(stage: Stage, _: Step) -> None:
    if stage.voice.stalled:
        return  # that is the stall: nothing comes to stand at the gate
    counts, caller = stage.counts, stage.caller
    # What a sink of another kind does then can't be seen from outside, so it is given time.
    enough = caller.frames + _PARKED_MS // MIC_FRAME_MS
    await stage.until(
        # The room output's gate empties the source's queue as it stops its first frame.
        lambda: (
            counts.queue_clears > counts.clears_before_pause
            or (stage.makes_sink is not None and caller.frames >= enough)
        ),
        "a frame to stand at the closed gate",
    )


@_step
async def await_resumed(stage: Stage, _: Step) -> None:
    counts = stage.counts
    resumes = counts.resumes
    await stage.until(
        lambda: counts.resumes > resumes or not counts.paused, "the sink to be resumed"
    )
    stage.voice.go_on()


# --- The realtime model's server -----------------------------------------------------------------


@_step
async def await_created(stage: Stage, step: Step) -> None:
    number = step.message or 1
    if number > 1:
        stage.voice.go_on()  # a stall in an earlier message would keep it from being made

    def created() -> bool:
        response = stage.response
        return response is not None and len(response.created) >= number

    await stage.until(
        created, f"message {number} to exist on the server", stage.scenario.reply_takes_ms
    )


@_step
async def await_generated(stage: Stage, _: Step) -> None:
    stage.voice.go_on()

    def generated() -> bool:
        response = stage.response
        return response is not None and response.ended

    await stage.until(generated, "the server to end the response", stage.scenario.reply_takes_ms)


@_step
async def detect(stage: Stage, step: Step) -> None:
    def report() -> None:
        stage.caller.speak(0)
        stage.server.sessions[-1].report_speech()

    if step.message is None:
        report()
        return
    due = stage.before_reply.finishes + step.message
    reported = stage.counts.at_finish(due, report)
    await stage.until(
        reported.is_set, "the message to have been played", stage.scenario.reply_takes_ms
    )


@_step
async def respond(stage: Stage, _: Step) -> None:
    stage.heard_after = len(stage.speeches)
    stage.server.sessions[-1].respond()
