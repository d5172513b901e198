"""What the session's tap sees of speeches, of who stops them, and of the options."""

from __future__ import annotations

import asyncio
from typing import Any

from probe import compat
from probe.taps.calls import MARK_NAME
from tests.session_harness import (
    Agent,
    AgentSession,
    Leaf,
    Taps,
    finished,
    frames,
    settle,
)


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
