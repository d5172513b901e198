"""What differs between LiveKit releases, found by looking and never by version number.

The only module that knows private names. Everything here answers with "not known" rather than
raise, so that an unknown release is tapped as far as it can be.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import platform
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from importlib import metadata
from types import FrameType, SimpleNamespace
from typing import Any, get_args

from livekit import rtc
from livekit.agents import AgentSession
from livekit.agents.utils import aio
from livekit.agents.voice import agent_activity
from livekit.agents.voice import events as voice_events
from livekit.agents.voice.io import AudioOutput
from livekit.agents.voice.speech_handle import SpeechHandle

from probe.trace.events import InterruptedBy

_LONGEST_CHAIN = 64
"""Links followed before a chain is taken for a ring."""


def is_session(candidate: Any) -> bool:
    """Whether ``candidate`` is a LiveKit agent session."""
    return isinstance(candidate, AgentSession)


def started(session: Any) -> bool:
    """Whether the session runs, or is on its way: replies may hold its sink already."""
    return getattr(session, "_activity", None) is not None or bool(
        getattr(session, "_started", False)
    )


def runtime() -> dict[str, str]:
    """Versions of what records: language, platform, libraries. A library that is not installed as
    a distribution is left out."""
    found = {
        "language": "python",
        "language_version": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}".strip().lower(),
    }
    for key, distribution in (
        ("livekit", "livekit"),
        ("livekit_agents", "livekit-agents"),
        ("probe", "sinkprobe"),
    ):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[key] = metadata.version(distribution)
    return found


# -- the chain and its source --


def chain(head: Any) -> Iterator[Any]:
    """The links from ``head`` down to the leaf, both included."""
    link = head
    for _ in range(_LONGEST_CHAIN):
        if link is None:
            return
        yield link
        try:
            link = link.next_in_chain
        except Exception:  # a sink of the user's own; what can't be asked ends the chain
            return


def leaf(head: Any) -> Any:
    """The last link of the chain: where a call on ``head`` ends up."""
    return deque(chain(head), 1)[0]


def find_source(head: Any) -> rtc.AudioSource | None:
    """The `rtc.AudioSource` of the lowest link that holds one; None where there is none.

    Sinks of LiveKit and of users keep it under different names, so the attributes are looked
    through, LiveKit's own name first.
    """
    for link in reversed(list(chain(head))):
        attributes = dict(getattr(link, "__dict__", {}))
        named = attributes.pop("_audio_source", None)
        for value in (named, *attributes.values()):
            if isinstance(value, rtc.AudioSource):
                return value
    return None


def output_is_tappable(output: Any) -> bool:
    """Whether ``session.output`` hands out its sink through a property that can be wrapped."""
    return isinstance(inspect.getattr_static(type(output), "audio", None), property)


# -- the session's agent, its caller and its end --

CLOSING_CALL = "_aclose_impl"
"""Method of the session through which every way to close it goes, with the keyword ``reason``; it
is called as the closing begins, before any speech is interrupted for it."""


def current_agent(session: Any) -> Any:
    """The agent in charge, or about to be: it changes as a handoff begins. None: there is none."""
    return _attribute(session, "current_agent")


def room(session: Any) -> Any:
    """The room the session is in, or None."""
    return _attribute(_attribute(session, "_room_io"), "_room")


def linked_identity(session: Any) -> str | None:
    """Identity of the participant the session listens to, while they are there."""
    linked = _attribute(_attribute(session, "_room_io"), "linked_participant")
    return None if linked is None else str(linked.identity)


def disconnect_reason(participant: Any) -> str:
    """Why a participant left, as the room calls it; empty where it does not say."""
    reason = _attribute(participant, "disconnect_reason")
    try:
        return str(rtc.DisconnectReason.Name(reason)) if reason else ""
    except ValueError:
        return str(reason)


# -- speeches --


class _PublicSpeaking:
    """The attribute path of `speaking`, over what the session offers in public."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._activity = self

    @property
    def _current_speech(self) -> Any:
        handle = self._session.current_speech
        return None if handle is None else SimpleNamespace(_id=handle.id)


def speaking(session: Any) -> Any:
    """An object on which ``_activity._current_speech._id`` is the id of the current speech.

    ``_activity`` and ``_current_speech`` may be None. The session itself, where it has that path;
    read directly it costs a tenth of the public property.
    """
    activity = getattr(session, "_activity", None)
    direct = hasattr(session, "_activity") and hasattr(SpeechHandle, "id")
    if activity is not None:
        direct = direct and hasattr(activity, "_current_speech")
    handle: Any = SpeechHandle
    if direct and "_id" in handle.id.fget.__code__.co_names:
        return session
    return _PublicSpeaking(session)


def speech_of(speaking: Any) -> str | None:
    """Id of the current speech, by what `speaking` gave; None where there is none."""
    try:
        handle = speaking._activity._current_speech
        return None if handle is None else str(handle._id)
    except AttributeError:
        return None


def running_speeches(session: Any) -> list[Any]:
    """Handles of the speeches the session already has: playing, paused, queued or prepared."""
    activity = getattr(session, "_activity", None)
    handles = [getattr(session, "current_speech", None)]
    if activity is not None:
        queued = list(getattr(activity, "_speech_q", ()))
        handles.extend(entry[-1] if isinstance(entry, tuple) else entry for entry in queued)
        handles.extend(list(getattr(activity, "_background_speeches", ())))
        for holder in ("_preemptive_generation", "_paused_speech"):
            held = getattr(activity, holder, None)
            for name in ("speech_handle", "handle"):
                held = getattr(held, name, held)
            handles.append(held)
    known: dict[int, Any] = {}
    for handle in handles:
        if isinstance(handle, SpeechHandle) and not handle.done():
            known.setdefault(id(handle), handle)
    return list(known.values())


def commit_future(handle: Any) -> Any:
    """The future that is done once the speech is interrupted, or None where there is none."""
    future = getattr(handle, "_interrupt_fut", None)
    return future if hasattr(future, "add_done_callback") else None


_SOURCES: dict[str, InterruptedBy] = {
    "audio_activity": "activity",
    "user_turn": "transcript",
    "programmatic": "programmatic",
}

_CALLERS: dict[str, InterruptedBy] = {
    "_interrupt_by_audio_activity": "activity",
    "_on_input_speech_started": "activity",
    "_interrupt_paused_speech": "transcript",
    "_cancel_speech_pause": "transcript",
    "_user_turn_completed_task": "transcript",
    "_user_turn_completed_impl": "transcript",
    "on_end_of_turn": "transcript",
    "on_final_transcript": "transcript",
}
"""Functions of the session's activity that interrupt a speech, on any release."""

_FRAMEWORK = "livekit."


def _says_source() -> bool:
    try:
        return "source" in inspect.signature(SpeechHandle.interrupt).parameters
    except (TypeError, ValueError):
        return False


_INTERRUPT_SAYS_SOURCE = _says_source()


def interrupted_by(kwargs: dict[str, Any], depth: int = 1) -> InterruptedBy | None:
    """Who asks a speech to stop, from within a replacement of its `interrupt`.

    ``kwargs`` are those of the call; ``depth`` is how many Python frames lie between the caller of
    `interrupt` and the caller of this function. Where the release says it, that is the answer;
    elsewhere the calling code is looked up: the nearest function known to interrupt on activity
    or on a transcript, unless code outside the framework stands before it.
    """
    if _INTERRUPT_SAYS_SOURCE:
        return _SOURCES.get(kwargs.get("source", "programmatic"))
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_FRAMEWORK):
            by = _CALLERS.get(frame.f_code.co_name)
            if by is not None:
                return by
        elif not module.startswith("probe."):
            return "programmatic"
        frame = frame.f_back
    return "programmatic"


# -- realtime models --


def realtime_session(session: Any) -> Any:
    """The session of the realtime model that the current agent speaks through, or None."""
    return _attribute(_attribute(session, "_activity"), "_rt_session")


def realtime_traits(realtime: Any) -> dict[str, Any]:
    """Model and abilities of a realtime session, with the fields of `RealtimeTapped`; what this
    release does not say is left out."""
    model = _attribute(realtime, "realtime_model")
    abilities = _attribute(realtime, "capabilities") or _attribute(model, "capabilities")
    found: dict[str, Any] = {"model": str(_attribute(model, "label") or "")}
    for key, name in (
        ("can_truncate", "message_truncation"),
        ("can_edit_context", "mutable_chat_context"),
        ("detects_turns", "turn_detection"),
    ):
        value = _attribute(abilities, name)
        if isinstance(value, bool):
            found[key] = value
    return found


def server_items(realtime: Any) -> list[tuple[str, str]] | None:
    """The conversation as the provider holds it: id and role of each message, id and kind of each
    other item, in its order. None where it can't be read. Costs as much as the conversation is
    long."""
    return _items(_attribute(realtime, "chat_ctx"))


def local_items(session: Any) -> list[tuple[str, str]] | None:
    """The conversation as the session's history has it, like `server_items`."""
    return _items(_attribute(session, "history"))


def agent_items(session: Any) -> list[tuple[str, str]] | None:
    """The context of the agent that is in charge, like `server_items`; None where none is. It holds
    what the agent brought along, and may hold stand-ins for what the provider created."""
    agent = _attribute(_attribute(session, "_activity"), "_agent")
    return _items(_attribute(agent, "_chat_ctx"))


def _items(context: Any) -> list[tuple[str, str]] | None:
    items = _attribute(context, "items")
    if items is None:
        return None
    return [
        (str(item.id), str(getattr(item, "role", None) or getattr(item, "type", "")))
        for item in list(items)
    ]


_ASKING: Any = getattr(agent_activity, "_SpeechHandleContextVar", None)


def asking_speech(session: Any) -> str | None:
    """Id of the speech whose task runs now, else of the current speech; None: there is neither."""
    handle = None if _ASKING is None else _ASKING.get(None)
    if handle is not None:
        try:
            running = asyncio.current_task()
        except RuntimeError:
            running = None
        # tasks of other speeches, and the user's own, inherit the variable
        if running is None or running not in (_attribute(handle, "_tasks") or ()):
            handle = None
    if handle is None:
        handle = _attribute(session, "current_speech")
    return None if handle is None else str(handle.id)


def unread(stream: Any) -> Sequence[Any] | None:
    """What lies in a stream, live and not to be touched; None where that can't be looked at."""
    queue = _attribute(stream, "_queue")
    return queue if isinstance(queue, (deque, list)) else None


def stream_closed(stream: Any) -> bool | None:
    """Whether nothing more comes into a stream; None where it can't be asked."""
    closed = _attribute(stream, "closed")
    return closed if isinstance(closed, bool) else None


_ENDS: tuple[type[BaseException], ...] = (
    StopAsyncIteration,
    *(cls for cls in [getattr(aio, "ChanClosed", None)] if cls is not None),
)


def ends_stream(error: BaseException) -> bool:
    """Whether this is how a stream says that it has ended."""
    return isinstance(error, _ENDS)


def result_of(future: Any) -> Any:
    """The result of a future that has one, else None. Its exception is left unseen, so that asyncio
    still complains where nobody else looks at it."""
    if not future.done() or future.cancelled() or _attribute(future, "_exception") is not None:
        return None
    return future.result()


# -- options --


def interruption_options(session: Any) -> dict[str, Any]:
    """What decides interruptions, with the keys of `OptionsChanged`; what this release does not
    have, or can't be read now, is left out."""
    found: dict[str, Any] = {}
    options = getattr(session, "options", None)
    activity = getattr(session, "_activity", None)
    if options is None:
        return found
    grouped = _attribute(options, "interruption")

    def option(key: str, in_group: str, flat: str) -> None:
        if isinstance(grouped, dict):
            if in_group in grouped:
                found[key] = _plain(grouped[in_group])
        elif hasattr(options, flat):
            found[key] = _plain(getattr(options, flat))

    option("allow_interruptions", "enabled", "allow_interruptions")
    option("min_duration_s", "min_duration", "min_interruption_duration")
    option("min_words", "min_words", "min_interruption_words")
    option(
        "false_interruption_timeout_s", "false_interruption_timeout", "false_interruption_timeout"
    )
    option("resume_false_interruption", "resume_false_interruption", "resume_false_interruption")
    if hasattr(options, "aec_warmup_duration"):
        found["aec_warmup_s"] = _plain(options.aec_warmup_duration)
    # an agent overrides its session
    allowed = _attribute(activity, "allow_interruptions")
    if isinstance(allowed, bool):
        found["allow_interruptions"] = allowed
    for owner, name in (
        (activity, "turn_detection"),
        (activity, "_turn_detection"),
        (session, "turn_detection"),
    ):
        if hasattr(owner, name):
            found["turn_detection"] = _plain(_attribute(owner, name))
            break
    model = _model_on(session, activity, grouped)
    if model is not None:
        found["interruption_model"] = model
    sink = _attribute(_attribute(session, "output"), "audio")
    if sink is not None:
        found["can_pause"] = bool(_attribute(sink, "can_pause"))
    return found


def _model_on(session: Any, activity: Any, grouped: Any) -> bool | None:
    enabled = _attribute(activity, "_interruption_detection_enabled")
    if isinstance(enabled, bool):
        return enabled
    mode = grouped.get("mode") if isinstance(grouped, dict) else None
    if mode is None:
        mode = _attribute(session, "interruption_detection")
    return {"adaptive": True, "vad": False}.get(mode) if isinstance(mode, str) else None


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception:  # a property of a release not known here; what raises is not there
        return None


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    # detectors and the like: which one it is, nothing of what it holds
    return type(value).__name__


# -- what this release can't show --


def missing(session: Any) -> dict[str, str]:
    """Signals this release does not have, each with the reason in one line."""
    lacking: dict[str, str] = {}
    if not hasattr(AudioOutput, "on_playback_started"):
        lacking["playback_started"] = "sinks of this release do not report it"
    if not hasattr(AudioOutput, "on_playback_progressed"):
        lacking["playback_progressed"] = "sinks of this release do not report it"
    if not hasattr(AudioOutput, "pause"):
        lacking["pause"] = "sinks of this release can't pause"
    known = get_args(getattr(voice_events, "EventTypes", None))
    for event in ("speech_created", "overlapping_speech", "agent_false_interruption", "close"):
        if known and event not in known:
            lacking[event] = "sessions of this release have no such event"
    if not hasattr(AgentSession, CLOSING_CALL):
        lacking["session_closed"] = "seen at its end only: this release closes in another way"
    if not hasattr(session, "_room_io"):
        lacking["caller_left"] = "sessions of this release hold their room in another way"
    if not hasattr(AgentSession, "current_agent"):
        lacking["handed_over"] = "sessions of this release do not say which agent is in charge"
    if not _INTERRUPT_SAYS_SOURCE:
        lacking["interrupt_source"] = "not said by this release; told from the calling code"
    if not output_is_tappable(getattr(session, "output", None)):
        lacking["captured"] = "session.output of this release hands out its sink in another way"
    return lacking
