"""What the tests of the taps run in a child process: ``python -m tests.session_scenarios NAME…``.

Each scenario prints what it found as JSON; the tests say what it has to be. Without a name all run.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from livekit import rtc

from probe import compat
from probe.taps import sources
from probe.taps.calls import FAILURE, KIND, MARK_NAME, MARK_SINK, PUSH_FRAME, PUSH_SOURCE, end_of
from probe.taps.sink import ProbeAudioOutput
from probe.taps.taps import Taps as AllTaps
from tests.session_harness import (
    RATE,
    Agent,
    AgentSession,
    AudioOutput,
    AudioOutputCapabilities,
    Greeter,
    Leaf,
    Recorder,
    first_samples,
    frame,
    frames,
    run,
)

PROBED = os.environ.get("UNPROBED") is None


class Taps:
    """The taps over a list, or nothing at all where the call is to run without a probe."""

    def __init__(self, session: AgentSession, *, wire: bool = False) -> None:
        self.recorder = Recorder()
        self.taps: AllTaps | None = None
        if PROBED:
            self.taps = AllTaps(session, self.recorder.put, self.recorder.fault, wire=wire)
            self.taps.install()

    def remove(self) -> None:
        if self.taps is not None:
            self.taps.remove()


async def settle(seconds: float = 0.05) -> None:
    await asyncio.sleep(seconds)


async def finished(handle: Any, seconds: float = 3.0) -> bool:
    """Whether the speech comes to its end in time."""
    for _ in range(int(seconds / 0.01)):
        if handle.done():
            return True
        await asyncio.sleep(0.01)
    return bool(handle.done())


def history(session: AgentSession) -> list[list[Any]]:
    items = session.history.items
    return [
        [item.role, item.text_content, bool(item.interrupted)]
        for item in items
        if item.type == "message"
    ]


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


async def attach_detach_a_thousand_times() -> dict[str, Any]:
    """Nothing of a probe is left, however often it came."""
    session = AgentSession()
    leaf = Leaf()
    session.output.audio = leaf
    await session.start(Agent(instructions="scripted"))

    def traces() -> dict[str, Any]:
        gc.collect()
        return {
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks()),
            "files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
            "session_listeners": {str(k): len(v) for k, v in session._events.items() if v},
            "leaf_listeners": {str(k): len(v) for k, v in leaf._events.items() if v},
            "leaf_attributes": sorted(vars(leaf)),
            "output_attributes": sorted(vars(session.output)),
            "output_class": str(type(session.output)),
            "session_attributes": sorted(vars(session)),
            "probes": sum(isinstance(thing, ProbeAudioOutput) for thing in gc.get_objects()),
            "timers": len(getattr(asyncio.get_running_loop(), "_scheduled", [])) > 50,
        }

    before = traces()
    for _ in range(1000):
        Taps(session).remove()
        if _ % 100 == 0:
            await asyncio.sleep(0)
    await settle(0.1)
    after = traces()
    same = session.output.audio is leaf
    await session.aclose()
    return {"before": before, "after": after, "same": same}


async def recordings_leave_nothing() -> dict[str, Any]:
    """The same with whole recordings, which own a file and a thread."""
    import probe

    session = AgentSession()
    leaf = Leaf()
    session.output.audio = leaf
    await session.start(Agent(instructions="scripted"))
    before = [threading.active_count(), len(os.listdir("/proc/self/fd"))]
    folder = Path(tempfile.mkdtemp())
    names = set()
    for _ in range(20):
        with probe.attach(session, folder / "call.jsonl", wire=False) as recording:
            names.add(recording.path.name)
    after = [threading.active_count(), len(os.listdir("/proc/self/fd"))]
    same = session.output.audio is leaf
    await session.aclose()
    return {"before": before, "after": after, "same": same, "names": len(names)}


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


class Wrapper(AudioOutput):
    """A user's wrapper; keeps the next link under a name of its own as well."""

    def __init__(self, following: AudioOutput, label: str = "wrapper") -> None:
        super().__init__(
            label=label,
            capabilities=AudioOutputCapabilities(pause=True),
            next_in_chain=following,
            sample_rate=following.sample_rate,
        )
        self.following = self.next_in_chain

    async def capture_frame(self, frame: Any) -> None:
        await super().capture_frame(frame)
        await self.following.capture_frame(frame)

    def flush(self) -> None:
        super().flush()
        self.following.flush()

    def clear_buffer(self) -> None:
        self.following.clear_buffer()


def kinds(head: Any) -> list[str]:
    found = []
    while head is not None:
        found.append(type(head).__name__)
        head = head.next_in_chain
    return found


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


async def swapped_mid_session() -> dict[str, Any]:
    """Another sink is set, and another leaf under a wrapper where the release can do that."""

    class Sourced(Leaf):
        def __init__(self, queue_ms: int) -> None:
            super().__init__()
            self.source = rtc.AudioSource(RATE, 1, queue_ms)

        async def capture_frame(self, frame: Any) -> None:
            await super().capture_frame(frame)
            await self.source.capture_frame(frame)

    constructor = rtc.AudioSource.__init__
    session = AgentSession()
    first = Sourced(200)
    taps = Taps(session)
    second, third = Sourced(150), Sourced(250)
    session.output.audio = first
    await session.start(Agent(instructions="scripted"))
    done = [await finished(session.say("one", audio=frames(4)))]
    session.output.audio = second
    done.append(await finished(session.say("two", audio=frames(4, first=10_000))))
    can_swap = hasattr(session.output, "replace_audio_tail")
    if can_swap:
        session.output.audio = Wrapper(third)
        fourth = Sourced(350)
        session.output.replace_audio_tail(fourth)
    else:
        fourth = third
        session.output.audio = third
    done.append(await finished(session.say("three", audio=frames(4, first=20_000))))

    def tapped() -> list[list[Any]]:
        return [
            [event.NAME, event.source]
            for event in taps.recorder.records
            if not isinstance(event, list)
            and event.NAME in ("tapped", "untapped")
            and event.boundary == "pushed"
        ]

    at_once = tapped()
    pushes = [call[PUSH_SOURCE] for call in taps.recorder.named("push")]
    last_chain = len(fourth.calls)
    # as if the time had passed in which a queue plays out
    sources.PLAYED_OUT_NS = 0  # type: ignore[misc]  # for the test
    done.append(await finished(session.say("four", audio=frames(4, first=30_000))))
    later = tapped()
    await settle()
    await session.aclose()
    taps.remove()
    left = [
        sorted(set(vars(leaf.source)) & {"capture_frame", "clear_queue", "aclose"})
        for leaf in (first, second, third, fourth)
    ]
    for leaf in {first, second, third, fourth}:
        await leaf.source.aclose()
    return {
        "done": done,
        "captured": first_samples(taps.recorder),
        "tapped": at_once,
        "tapped_later": later,
        "pushes": pushes,
        "found": [
            [event.source, event.sink, event.queue_ms]
            for event in taps.recorder.named("tapped")
            if event.boundary == "pushed"
        ],
        "flushed": [
            call[MARK_SINK] for call in taps.recorder.named("mark") if call[MARK_NAME] == "flush"
        ],
        "constructor": rtc.AudioSource.__init__ is constructor,
        "fourth": last_chain,
        "can_swap": can_swap,
        "left": left,
        "faults": taps.recorder.faults,
    }


async def recording_ends_with_the_session() -> dict[str, Any]:
    """A recording closes itself shortly after the session has closed."""
    import probe

    session = AgentSession()
    folder = Path(tempfile.mkdtemp())
    recording = probe.attach(session, folder / "call.jsonl", wire=False, labels={"job": "a"})
    session.output.audio = Leaf()
    await session.start(Greeter(lambda: frames(10)))
    recording.mark("here")
    await settle(0.2)
    twice = ""
    try:
        probe.attach(session, folder / "again.jsonl")
    except probe.errors.ProbeError as error:
        twice = type(error).__name__
    await session.aclose()
    for _ in range(300):
        if recording.closed and b'"trailer"' in recording.path.read_bytes():
            break
        await asyncio.sleep(0.01)
    recording.close()

    def threads() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("sinkprobe")]

    for _ in range(100):
        if not threads():
            break
        await asyncio.sleep(0.01)
    lines = recording.path.read_text().splitlines()
    return {
        "first": lines[0][:40],
        "last": lines[-1],
        "lines": [line for line in lines if '"event":"bookmark"' in line],
        "captured": sum('"captured"' in line and '"frame"' in line for line in lines),
        "twice": twice,
        "output": str(type(session.output)),
        "threads": threads(),
    }


async def usage_errors() -> dict[str, Any]:
    """What can't be recorded says so, before anything is touched."""
    import probe

    session: Any = AgentSession()

    def refused(candidate: Any, path: str) -> list[Any]:
        try:
            probe.attach(candidate, path)
        except probe.errors.ProbeError as error:
            return [type(error).__name__, "\n" in str(error)]
        return []

    found: dict[str, Any] = {
        "no session": refused(object(), "x.jsonl"),
        "directory": refused(session, tempfile.mkdtemp()),
    }
    found["untouched"] = [type(session.output).__name__, len(session._events)]
    return found


async def options_are_told() -> dict[str, Any]:
    """The options that decide interruptions, under the same names on every release."""
    session = AgentSession()
    taps = Taps(session)
    session.output.audio = Leaf()
    before = taps.recorder.named("options")
    await session.start(Agent(instructions="scripted"))
    handle = session.say("hello", audio=frames(2))
    await finished(handle)
    first = [event.options for event in taps.recorder.named("options")]
    group = getattr(session.options, "interruption", None)
    if isinstance(group, dict):
        group["min_duration"] = 0.75
    else:
        session.options.min_interruption_duration = 0.75
    await finished(session.say("again", audio=frames(2)))
    later = [event.options["min_duration_s"] for event in taps.recorder.named("options")]
    await settle()
    await session.aclose()
    taps.remove()
    return {"before": len(before), "first": first[-1], "later": later}


async def verdict_kinds() -> dict[str, Any]:
    """Who asks a speech to stop, through the framework's own code on every release."""
    found: dict[str, Any] = {}

    async def by(name: str, stop: Any, **options: Any) -> None:
        session = AgentSession(**options)
        if hasattr(session, "_aec_warmup_remaining"):
            session._aec_warmup_remaining = 0.0
        session.output.audio = Leaf()
        taps = Taps(session)
        await session.start(Agent(instructions="scripted"))
        handle = session.say("a long story", audio=frames(400, pause=0.01))
        await settle(0.1)
        stop(session, handle)
        done = await finished(handle)
        called = taps.recorder.named("interrupt_called")
        committed = taps.recorder.named("speech_committed")
        found[name] = {
            "by": [event.by for event in called],
            "done": done,
            "ordered": [event.at_ns for event in called] <= [event.at_ns for event in committed],
            "committed": len(committed),
            "marks": [
                call[MARK_NAME]
                for call in taps.recorder.named("mark")
                if call[MARK_NAME] == "pause"
            ],
        }
        await settle()
        await session.aclose()
        taps.remove()

    def activity(session: Any, handle: Any) -> None:
        session._activity._interrupt_by_audio_activity()

    def transcript(session: Any, handle: Any) -> None:
        activity(session, handle)
        current = session._activity
        ends = getattr(current, "_cancel_speech_pause", None) or current._interrupt_paused_speech
        session.ending = asyncio.create_task(ends())

    def session_interrupt(session: Any, handle: Any) -> None:
        session.interrupt()

    def handle_interrupt(session: Any, handle: Any) -> None:
        handle.interrupt()

    def on_transcript(session: Any, handle: Any) -> None:
        # a user's own decision, from within the framework's handling of a transcript
        def decide(event: Any) -> None:
            session.interrupt()

        session.on("user_input_transcribed", decide)
        from livekit.agents import UserInputTranscribedEvent

        session._user_input_transcribed(
            UserInputTranscribedEvent(transcript="stop it", is_final=True)
        )

    await by("activity", activity, resume_false_interruption=False)
    await by("transcript", transcript)
    await by("session", session_interrupt)
    await by("handle", handle_interrupt)
    await by("user_code", on_transcript)
    return found


async def refused_interrupt() -> dict[str, Any]:
    """An interrupt that is not allowed raises as it did, and commits nothing."""
    session = AgentSession()
    session.output.audio = Leaf()
    taps = Taps(session)
    await session.start(Agent(instructions="scripted"))
    handle = session.say("keep on", audio=frames(20, pause=0.005), allow_interruptions=False)
    await settle()
    raised = ""
    try:
        handle.interrupt()
    except RuntimeError as error:
        raised = type(error).__name__
    done = await finished(handle)
    handle.interrupt(force=True)
    await settle()
    own = sorted(set(vars(handle)) & {"interrupt", "_cancel"})
    callbacks = len(handle._done_callbacks)
    await settle()
    await session.aclose()
    taps.remove()
    return {
        "raised": raised,
        "done": done,
        "calls": [[event.by, event.end] for event in taps.recorder.named("interrupt_called")],
        "committed": len(taps.recorder.named("speech_committed")),
        "own": own,
        "callbacks": callbacks,
        "allowed": [e.allow_interruptions for e in taps.recorder.named("speech_created")],
    }


async def running_speech_is_taken_along() -> dict[str, Any]:
    """A speech that began before the probe: its interrupt, commit and end are seen."""
    session = AgentSession()
    session.output.audio = Leaf()
    await session.start(Agent(instructions="scripted"))
    handle = session.say("a long story", audio=frames(400, pause=0.01))
    await settle(0.1)
    taps = Taps(session)
    handle.interrupt()
    done = await finished(handle)
    names = [
        event.NAME
        for event in taps.recorder.records
        if not isinstance(event, list) and getattr(event, "speech", None) == handle.id
    ]
    await settle()
    await session.aclose()
    taps.remove()
    return {"done": done, "names": names}


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


async def room_builds_the_sink() -> dict[str, Any]:
    """A room builds the output itself, and a greeting comes in on_enter; then a recorder is put
    around what session.output.audio gives, as a job does it."""
    session = AgentSession()
    taps = Taps(session, wire=True)
    unset_before = session.output.audio is None
    await session.start(Greeter(lambda: frames(20)), room=Room())
    head = session.output.audio
    leaf: Any = head
    while leaf.next_in_chain is not None:
        leaf = leaf.next_in_chain
    # what needs a server: publishing the track, and somebody who subscribes to it
    leaf._subscribed_fut.set_result(None)
    forwarding = asyncio.create_task(leaf._forward_audio())
    await settle(0.8)
    greeting = first_samples(taps.recorder)
    session.output.audio = Wrapper(session.output.audio, "recorder")
    done = await finished(session.say("more", audio=frames(10, first=20_000)))
    await settle(0.3)
    pushed = sum(call[PUSH_FRAME].samples_per_channel for call in taps.recorder.named("push"))
    tapped = {
        (event.boundary, event.source, event.queue_ms)
        for event in taps.recorder.named("tapped")
        if event.boundary == "pushed"
    }
    sent = [event for event in taps.recorder.named("tapped") if event.boundary == "sent"]
    found = {
        "unset_before": unset_before,
        "greeting": greeting == [k * 480 for k in range(20)],
        "more": len(first_samples(taps.recorder)) - len(greeting),
        "done": done,
        "pushed": pushed,
        "chain": [kind for kind in kinds(session.output.audio) if "Probe" not in kind],
        "probes": sum(kind == "ProbeAudioOutput" for kind in kinds(session.output.audio)),
        "sources": sorted(tapped),
        "sent": [[event.rate_hz, event.block_samples] for event in sent],
        "blocks": len(taps.recorder.named("blocks")) > 0,
        "faults": taps.recorder.faults,
    }
    taps.remove()
    forwarding.cancel()
    found["threads"] = [t.name for t in threading.enumerate() if t.name.startswith("sinkprobe")]
    return found


ENDINGS = (
    "session_closed", "caller_left", "handed_over", "interrupt_called", "speech_committed",
    "speech_done",
)  # fmt: skip


def endings(recorder: Recorder) -> list[str]:
    """What ended, in the order of its times and, where those are one, as it was written."""
    events = [
        event for event in recorder.records if not isinstance(event, list) and event.NAME in ENDINGS
    ]
    return [event.NAME for event in sorted(events, key=lambda event: event.at_ns)]


async def closed_while_it_speaks() -> dict[str, Any]:
    """A session is closed, or shut down, in the middle of a speech; and one that never ran."""
    found: dict[str, Any] = {}

    async def by(name: str, close: Any) -> None:
        session = AgentSession()
        taps = Taps(session)
        session.output.audio = Leaf()
        await session.start(Agent(instructions="scripted"))
        handle = session.say("a long story", audio=frames(400, pause=0.01))
        await settle(0.1)
        await close(session)
        done = await finished(handle)
        await settle()
        closed = taps.recorder.named("session_closed")
        taps.remove()
        found[name] = {
            "endings": endings(taps.recorder),
            "reasons": [event.reason for event in closed],
            "done": done,
            "own": sorted(set(vars(session)) & {"_aclose_impl"}),
            "faults": taps.recorder.faults,
        }

    async def shut_down(session: Any) -> None:
        session.shutdown(drain=False)
        await settle(0.1)

    await by("aclose", lambda session: session.aclose())
    await by("shutdown", shut_down)
    idle = AgentSession()
    taps = Taps(idle)
    await idle.aclose()
    await settle()
    taps.remove()
    found["never started"] = endings(taps.recorder)
    return found


async def closed_in_another_way() -> dict[str, Any]:
    """A release that closes by a call not known here: its end is all that can be seen."""
    from livekit.agents import CloseReason

    session = AgentSession()
    compat.CLOSING_CALL = "_close_as_nobody_knows"
    taps = Taps(session)
    lacking = compat.missing(session)
    compat.CLOSING_CALL = "_aclose_impl"
    session.output.audio = Leaf()
    await session.start(Agent(instructions="scripted"))
    await session._aclose_impl(reason=CloseReason.JOB_SHUTDOWN)
    await settle()
    taps.remove()
    return {
        "reasons": [event.reason for event in taps.recorder.named("session_closed")],
        "missing": "session_closed" in lacking,
    }


class Room(rtc.Room):
    """Never connected. Such a one has no participants, and some releases register calls with it."""

    local_participant = MagicMock()  # type: ignore[assignment]


async def caller_leaves() -> dict[str, Any]:
    """Somebody else leaves the room, then the caller, who is being spoken to."""
    session = AgentSession()
    taps = Taps(session)
    room = Room()
    leaf = Leaf()
    session.output.audio = leaf
    await session.start(Agent(instructions="scripted"), room=room)
    caller, other = (
        MagicMock(identity=identity, disconnect_reason=rtc.DisconnectReason.CLIENT_INITIATED)
        for identity in ("caller", "other")
    )
    session._room_io._participant_available_fut.set_result(caller)
    handle = session.say("a long story", audio=frames(400, pause=0.01))
    await settle(0.1)
    room.emit("participant_disconnected", other)
    alone = len(taps.recorder.named("caller_left"))
    room.emit("participant_disconnected", caller)
    done = await finished(handle)
    await settle(0.2)
    room.emit("participant_disconnected", caller)
    listening = len(room._events.get("participant_disconnected", ()))
    taps.remove()
    return {
        "other": alone,
        "endings": endings(taps.recorder),
        "left": [event.reason for event in taps.recorder.named("caller_left")],
        "closed": [event.reason for event in taps.recorder.named("session_closed")],
        "done": done,
        "listening": listening,
        "faults": taps.recorder.faults,
    }


async def nobody_listens_to_a_room_any_more() -> dict[str, Any]:
    """The probe leaves while the session is in its room."""
    session = AgentSession()
    session.output.audio = Leaf()
    room = Room()
    await session.start(Agent(instructions="scripted"), room=room)

    def listening() -> int:
        return len(room._events.get("participant_disconnected", ()))

    counts = [listening()]
    taps = Taps(session)
    await settle()
    counts.append(listening())
    taps.remove()
    counts.append(listening())
    await session.aclose()
    return {"counts": counts}


async def handed_over() -> dict[str, Any]:
    """Agents take over from each other; code interrupts a speech for it."""
    session = AgentSession()
    taps = Taps(session)
    session.output.audio = Leaf()
    first, second = Agent(instructions="one"), Agent(instructions="two")
    await session.start(first)
    await finished(session.say("hello", audio=frames(3)))
    session.update_agent(second)
    await settle(0.1)
    handle = session.say("a long story", audio=frames(400, pause=0.01))
    await settle(0.1)
    session.update_agent(first)
    session.interrupt()
    done = await finished(handle)
    await settle(0.1)
    taken = taps.recorder.named("handed_over")
    found = {
        "agents": [[event.old, event.new] for event in taken],
        "endings": endings(taps.recorder)[1:],
        "done": done,
        "faults": taps.recorder.faults,
    }
    await session.aclose()
    taps.remove()
    return found


ACTIVITY = "livekit.agents.voice.agent_activity"
SESSION = "livekit.agents.voice.agent_session"


async def callers() -> dict[str, Any]:
    """Who interrupts, read from the calling code: functions by module and name, outermost first."""
    paths = {
        "vad": [
            (ACTIVITY, "on_vad_inference_done"),
            (ACTIVITY, "_interrupt_by_audio_activity"),
        ],
        "stt": [(ACTIVITY, "on_final_transcript"), (ACTIVITY, "_interrupt_by_audio_activity")],
        "server": [(ACTIVITY, "_on_input_speech_started"), (ACTIVITY, "interrupt")],
        "pause": [(ACTIVITY, "_cancel_speech_pause")],
        "old pause": [(ACTIVITY, "_interrupt_paused_speech")],
        "turn": [(ACTIVITY, "_user_turn_completed_task")],
        "tool": [("my_agent", "tool"), (SESSION, "interrupt"), (ACTIVITY, "interrupt")],
        "user code": [
            (ACTIVITY, "on_final_transcript"),
            ("my_agent", "decide"),
            (SESSION, "interrupt"),
        ],
        "closing": [(SESSION, "_aclose_impl"), (ACTIVITY, "interrupt")],
    }

    def call(path: list[tuple[str, str]]) -> Any:
        def ask() -> Any:
            return compat.interrupted_by({}, depth=2)

        inner: Any = ask
        for module, name in reversed(path):
            names: dict[str, Any] = {"__name__": module, "inner": inner}
            exec(f"def {name}():\n    return inner()", names)
            inner = names[name]
        return inner()

    said = compat._INTERRUPT_SAYS_SOURCE
    compat._INTERRUPT_SAYS_SOURCE = False
    found = {name: call(path) for name, path in paths.items()}
    compat._INTERRUPT_SAYS_SOURCE = True
    for source in ("audio_activity", "user_turn", "programmatic", "something new"):
        found[f"source {source}"] = compat.interrupted_by({"source": source})
    compat._INTERRUPT_SAYS_SOURCE = said
    return found


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        greeting_before_start,
        interrupted_reply,
        cancelled_first_capture,
        finish_inside_first_capture,
        attached_mid_speech,
        attach_detach_a_thousand_times,
        recordings_leave_nothing,
        tap_raises,
        sink_raises,
        wrapped_afterwards,
        answers_of_the_next_link,
        swapped_mid_session,
        recording_ends_with_the_session,
        usage_errors,
        options_are_told,
        full_queue,
        room_builds_the_sink,
        closed_while_it_speaks,
        closed_in_another_way,
        caller_leaves,
        nobody_listens_to_a_room_any_more,
        handed_over,
        callers,
        verdict_kinds,
        refused_interrupt,
        running_speech_is_taken_along,
    )
}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    # one process for all of them: importing livekit-agents takes longer than every scenario
    for name in sys.argv[1:] or SCENARIOS:
        run(name, SCENARIOS[name])
    # the native library may abort while the interpreter shuts down
    os._exit(0)
