"""What ends a speech without anybody barging in: a close, a caller who leaves, a handoff."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from livekit import rtc

from probe import compat
from tests.session_harness import (
    Agent,
    AgentSession,
    Leaf,
    Recorder,
    Room,
    Taps,
    finished,
    frames,
    settle,
)

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
