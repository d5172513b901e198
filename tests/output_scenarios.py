"""The probe comes, follows the sink, and goes: what it finds and what it leaves."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from livekit import rtc

import probe
from probe.taps import sources
from probe.taps.calls import MARK_NAME, MARK_SINK, PUSH_FRAME, PUSH_SOURCE
from probe.taps.sink import ProbeAudioOutput
from tests.session_harness import (
    RATE,
    Agent,
    AgentSession,
    Greeter,
    Leaf,
    Room,
    Taps,
    Wrapper,
    finished,
    first_samples,
    frames,
    kinds,
    settle,
)


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


async def recorded_from_the_middle() -> dict[str, Any]:
    """One speech plays and two wait when the recording begins; one is made after that."""
    session = AgentSession()
    session.output.audio = Leaf()
    await session.start(Agent(instructions="scripted"))
    speeches = [
        session.say(f"speech {nth}", audio=frames(20, first=nth * 10_000, pause=0.005))
        for nth in range(3)
    ]
    await settle(0.05)
    recording = probe.attach(session, Path(tempfile.mkdtemp()) / "call.jsonl", wire=False)
    speeches.append(session.say("another", audio=frames(5, first=40_000)))
    done = [await finished(speech) for speech in speeches]
    recording.close()
    await session.aclose()
    return {
        "done": done,
        "speeches": [speech.id for speech in speeches],
        "trace": recording.path.read_text(),
    }


async def usage_errors() -> dict[str, Any]:
    """What can't be recorded says so, before anything is touched."""

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
