"""Calls through the tap at the head of the sink, held against the same calls without it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from probe.taps.calls import FAILURE, KIND, end_of
from probe.taps.sink import ProbeAudioOutput
from probe.taps.taps import Taps as AllTaps
from tests.session_harness import (
    PROBED,
    Agent,
    AgentSession,
    AudioOutput,
    Greeter,
    Leaf,
    Recorder,
    Taps,
    Wrapper,
    finished,
    first_samples,
    frame,
    frames,
    history,
    kinds,
    settle,
)


async def greeting_before_start() -> dict[str, Any]:
    """Attached before the sink is set and the session started; the greeting comes in on_enter."""
    session = AgentSession()
    taps = Taps(session)
    leaf = Leaf()
    session.output.audio = leaf
    await session.start(Greeter(lambda: frames(20)))
    await settle(0.2)
    handle = session.say("and more", audio=frames(10, first=20_000))
    done = await finished(handle)
    seen = history(session)
    await settle()
    await session.aclose()
    taps.remove()
    return {
        "leaf": leaf.calls,
        "captured": first_samples(taps.recorder),
        "done": done,
        "history": seen,
        "ends": sorted({str(end_of(call)) for call in taps.recorder.named("capture")}),
        "faults": taps.recorder.faults,
    }


async def interrupted_reply() -> dict[str, Any]:
    """A reply is interrupted by code, then another is spoken."""
    session = AgentSession()
    leaf = Leaf()
    session.output.audio = leaf
    taps = Taps(session)
    await session.start(Agent(instructions="scripted"))
    started = asyncio.Event()

    async def endless() -> Any:
        for k in range(10):
            yield frame(k * 480)
        started.set()
        await asyncio.sleep(5)

    first = session.say("a long story", audio=endless())
    await started.wait()
    await settle()
    session.interrupt()
    done = [await finished(first)]
    second = session.say("afterwards", audio=frames(5, first=20_000))
    done.append(await finished(second))
    seen = history(session)
    await settle()
    await session.aclose()
    taps.remove()
    called = taps.recorder.named("interrupt_called")
    committed = taps.recorder.named("speech_committed")
    return {
        "leaf": leaf.calls,
        "done": done,
        "history": seen,
        "by": [event.by for event in called],
        "asked_first": bool(called) and called[0].at_ns <= committed[0].at_ns,
        "same_speech": [event.speech for event in called] == [event.speech for event in committed],
        "speech_done": [event.interrupted for event in taps.recorder.named("speech_done")],
        "faults": taps.recorder.faults,
    }


async def cancelled_first_capture() -> dict[str, Any]:
    """A reply is interrupted while its first capture waits for a subscriber, who comes later."""
    session = AgentSession()
    gate = asyncio.Event()
    leaf = Leaf(gate=gate)
    session.output.audio = leaf
    taps = Taps(session)
    await session.start(Agent(instructions="scripted"))
    first = session.say("greeting", audio=frames(5))
    await settle(0.1)
    session.interrupt()
    done = [await finished(first, 1.0)]
    gate.set()
    second = session.say("again", audio=frames(5, first=20_000))
    done.append(await finished(second, 1.0))
    third = session.say("once more", audio=frames(5, first=40_000))
    done.append(await finished(third, 1.0))
    found = {
        "leaf": leaf.calls,
        "done": done,
        "history": history(session),
        "ends": [end_of(call) for call in taps.recorder.named("capture")][:1],
        "faults": taps.recorder.faults,
    }
    taps.remove()
    return found


async def finish_inside_first_capture() -> dict[str, Any]:
    """A sink reports its segment finished from inside the first capture."""
    session = AgentSession()
    leaf = Leaf(finish_inside=True)
    session.output.audio = leaf
    taps = Taps(session)
    await session.start(Agent(instructions="scripted"))
    done = []
    for k in range(3):
        handle = session.say("one frame", audio=frames(1, first=k * 1000))
        done.append(await finished(handle, 1.0))
    found = {
        "leaf": leaf.calls,
        "done": done,
        "history": history(session),
        "faults": taps.recorder.faults,
    }
    taps.remove()
    return found


async def attached_mid_speech() -> dict[str, Any]:
    """The probe comes in the middle of a speech, leaves in the middle of the next, both go on."""
    session = AgentSession()
    leaf = Leaf()
    session.output.audio = leaf
    await session.start(Agent(instructions="scripted"))
    first = session.say("first", audio=frames(30, pause=0.005))
    await settle(0.06)
    before = len(leaf.calls)
    taps = Taps(session)
    done = [await finished(first)]
    captured = first_samples(taps.recorder)
    second = session.say("second", audio=frames(30, first=20_000, pause=0.005))
    await settle(0.06)
    taps.remove()
    left = len(first_samples(taps.recorder))
    after_leaving = [name for name in ("capture_frame", "flush") if name in vars(leaf)]
    done.append(await finished(second))
    third = session.say("third", audio=frames(5, first=40_000))
    done.append(await finished(third))
    captures = [call[1] for call in leaf.calls if call[0] == "capture"]
    tapped = [event.mid_speech for event in taps.recorder.named("tapped")]
    seen = history(session)
    await settle()
    await session.aclose()
    return {
        "leaf": leaf.calls,
        "done": done,
        "history": seen,
        "missed": before > 0 and captured == captures[30 - len(captured) : 30],
        "recorded_first": len(captured),
        "recorded_more": 0 < left - len(captured) < 30,
        "nothing_after": len(first_samples(taps.recorder)) == left,
        "after_leaving": after_leaving,
        "mid_speech": tapped[:1],
        "faults": taps.recorder.faults,
    }


async def tap_raises() -> dict[str, Any]:
    """Everything inside the tap fails; the call goes on as without it."""
    session = AgentSession()
    leaf = Leaf()
    session.output.audio = leaf
    recorder = Recorder()

    def put(record: Any) -> None:
        raise RuntimeError("no room")

    taps = AllTaps(session, put, recorder.fault, wire=False)
    if PROBED:
        taps.install()
    await session.start(Agent(instructions="scripted"))
    handle = session.say("hello", audio=frames(5))
    done = [await finished(handle)]
    second = session.say("hello", audio=frames(50, pause=0.01))
    await settle(0.1)
    session.interrupt()
    done.append(await finished(second))
    seen = history(session)
    await settle()
    await session.aclose()
    taps.remove()
    return {
        "leaf": [call for call in leaf.calls if call[0] != "capture"],
        "done": done,
        "history": seen,
        "faults": sorted({kind for kind, _ in recorder.faults}),
        "where": sorted({detail.split(":")[0] for _, detail in recorder.faults}),
    }


async def sink_raises() -> dict[str, Any]:
    """What the sink raises reaches the caller as it was; a cancelled capture is noted as that."""

    class Broken(Leaf):
        async def capture_frame(self, frame: Any) -> None:
            raise ValueError("broken sink")

        def pause(self) -> None:
            raise KeyError("broken pause")

    recorder = Recorder()
    probe = ProbeAudioOutput(Broken(), recorder.put)
    raised = []
    try:
        await probe.capture_frame(frame(0))
    except ValueError as error:
        raised.append(repr(error))
    try:
        probe.pause()
    except KeyError as error:
        raised.append(repr(error))
    waiting = ProbeAudioOutput(Leaf(gate=asyncio.Event()), recorder.put)
    task = asyncio.create_task(waiting.capture_frame(frame(0)))
    await asyncio.sleep(0)
    open_end = end_of(recorder.records[-1])
    task.cancel()
    cancelled = False
    try:
        await task
    except asyncio.CancelledError:
        cancelled = True
    return {
        "raised": raised,
        "ends": [[record[KIND], *record[FAILURE]] for record in recorder.records],
        "open_end": open_end,
        "cancelled": cancelled,
    }


async def wrapped_afterwards() -> dict[str, Any]:
    """A wrapper is made around what session.output.audio gives, and set."""
    session = AgentSession()
    taps = Taps(session)
    leaf = Leaf()
    session.output.audio = leaf
    handed_out = session.output.audio
    session.output.audio = Wrapper(session.output.audio)
    await session.start(Greeter(lambda: frames(10)))
    await settle(0.2)
    head = session.output.audio
    found = {
        "leaf": leaf.calls,
        "captured": first_samples(taps.recorder),
        "chain": [kind for kind in kinds(head) if not kind.endswith("ProbeAudioOutput")],
        "head_is_probe": isinstance(head, ProbeAudioOutput),
        "handed_out_is_probe": isinstance(handed_out, ProbeAudioOutput),
        "probes_in_chain": sum(kind == "ProbeAudioOutput" for kind in kinds(head)),
        "history": history(session),
        "faults": taps.recorder.faults,
    }
    await session.aclose()
    taps.remove()
    return found


async def answers_of_the_next_link() -> dict[str, Any]:
    """What is asked of the probe is answered by the sink, whatever the release asks."""
    leaf = Leaf()
    leaf.volume = 3  # type: ignore[attr-defined]
    recorder = Recorder()
    probe: Any = ProbeAudioOutput(leaf, recorder.put)
    heard: list[Any] = []
    probe.on("playback_finished", heard.append)
    await probe.capture_frame(frame(0))
    pending = getattr(probe, "_pending_playback_count", 1)
    probe.flush()
    event = await asyncio.wait_for(probe.wait_for_playout(), 1)
    probe.volume = 5
    probe.off("playback_finished", heard.append)
    names = [name for name in dir(AudioOutput) if not name.startswith(("__", "_abc_"))]
    missing = [
        name for name in names if not name.startswith("_AudioOutput__") and not hasattr(probe, name)
    ]
    return {
        "sample_rate": probe.sample_rate,
        "label": probe.label,
        "can_pause": probe.can_pause,
        "pending": pending,
        "position": event.playback_position,
        "heard": len(heard),
        "same_event": heard[0] is event,
        "volume": leaf.volume,  # type: ignore[attr-defined]
        "missing": missing,
        "next": probe.next_in_chain is leaf,
        "is_output": isinstance(probe, AudioOutput),
        "listeners": {str(k): len(v) for k, v in leaf._events.items()},
        "reports": [event.report for event in recorder.named("playback")],
    }


async def full_queue() -> dict[str, Any]:
    """While the writer is stuck, frames take the way that is bounded and counted, and back."""
    recorder = Recorder()
    queue: deque[Any] = deque(range(60_000))
    session = AgentSession()
    session.output.audio = Leaf()
    taps = AllTaps(session, recorder.put, recorder.fault, queue=queue, wire=False)
    taps.install()
    await session.start(Agent(instructions="scripted"))
    await settle()
    await finished(session.say("stuck", audio=frames(5)))
    counted, appended = len(recorder.named("capture")), len(queue)
    queue.clear()
    await settle()
    await finished(session.say("free", audio=frames(5)))
    found = {
        "counted": counted,
        "appended": appended,
        "later": [len(recorder.named("capture")), len(queue)],
    }
    await settle()
    await session.aclose()
    taps.remove()
    return found
