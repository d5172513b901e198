"""What the scripted calls know about LiveKit releases: found by looking, never by version.

Every private name the calls rely on is in here. What a release has not got is answered with a
reason instead of an exception, so that a scenario can say why it does not run.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, Final, TypeVar

from probe.errors import ScenarioError
from probe.scenarios.axes import BEFORE_FIRST_FRAME, SOURCE_RATE_HZ
from probe.scenarios.scenario import Feature, Scenario, SessionOptions

T = TypeVar("T")

INSTALL: Final = 'pip install "sinkprobe[agents]"'

_ROOM_OUTPUTS: Final = (
    ("livekit.agents.voice.room_io._output", "_ParticipantAudioOutput"),
    ("livekit.agents.voice.room_io.room_io", "_ParticipantAudioOutput"),
)
_TURN_OPTIONS: Final = ("livekit.agents.voice.turn", "TurnHandlingOptions")
_INTERRUPTION_OPTIONS: Final = ("livekit.agents.voice.turn", "InterruptionOptions")
_REALTIME_CAPABILITIES: Final = ("livekit.agents.llm", "RealtimeCapabilities")
_DETECTOR_MODULE: Final = "livekit.agents.inference"
_DETECTOR: Final = "AdaptiveInterruptionDetector"
_DETECTOR_STREAM: Final = ("livekit.agents.inference.interruption", "InterruptionStreamBase")


def _find(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def installed() -> str | None:
    """Version of the installed livekit-agents, ``None`` if there is none. Does not import it."""
    try:
        return metadata.version("livekit-agents")
    except metadata.PackageNotFoundError:
        return None


def require_livekit() -> str:
    """Version of the installed livekit-agents.

    Raises: `ScenarioError` with the command to install it.
    """
    version = installed()
    if version is None:
        raise ScenarioError(f"a scripted call needs livekit-agents: {INSTALL}")
    return version


def room_output_class() -> type[Any]:
    """The class through which an `AgentSession` plays into a room.

    Raises: `ScenarioError` where the release has none under a name that is known.
    """
    for module, name in _ROOM_OUTPUTS:
        found = _find(module, name)
        if found is not None:
            return found  # type: ignore[no-any-return]  # a class found by name
    raise ScenarioError(
        f"livekit-agents {require_livekit()}: expected the room output under one of "
        + ", ".join(f"{module}.{name}" for module, name in _ROOM_OUTPUTS)
    )


def _annotations(where: tuple[str, str]) -> frozenset[str]:
    found = _find(*where)
    return frozenset(getattr(found, "__annotations__", {}))


def _session_parameters() -> frozenset[str]:
    from livekit.agents import AgentSession

    return frozenset(inspect.signature(AgentSession.__init__).parameters)


def _lacks_model() -> str | None:
    if _find(_DETECTOR_MODULE, _DETECTOR) is None or _find(*_DETECTOR_STREAM) is None:
        return f"it has no interruption model ({_DETECTOR_MODULE}.{_DETECTOR})"
    return None


def _lacks_boundary() -> str | None:
    if "backchannel_boundary" not in _annotations(_INTERRUPTION_OPTIONS):
        return (
            "with the interruption model on, VAD can't pause a reply that has begun "
            "(no backchannel_boundary option)"
        )
    return None


def _lacks_warmup() -> str | None:
    if "aec_warmup_duration" not in _session_parameters():
        return "it knows no echo warm-up (no aec_warmup_duration option)"
    return None


def _lacks_pause() -> str | None:
    if "resume_false_interruption" not in _session_parameters():
        return "it does not pause (no resume_false_interruption option)"
    return None


def _lacks_stereo() -> str | None:
    from livekit.agents.utils.audio import AudioByteStream

    stream = AudioByteStream(SOURCE_RATE_HZ, 2)
    list(stream.push(bytes(4)))
    try:
        list(stream.flush())
    except ValueError:
        # The flush of the sink raises, and a reply that does not end in a whole frame never ends.
        return "its AudioByteStream can't flush what is left of a stereo reply"
    return None


def _lacks_realtime() -> str | None:
    if "mutable_chat_context" not in _annotations(_REALTIME_CAPABILITIES):
        return (
            "its realtime models can't have their conversation edited "
            "(no RealtimeCapabilities.mutable_chat_context)"
        )
    return None


_LACKS: Final[dict[Feature, Callable[[], str | None]]] = {
    "interruption-model": _lacks_model,
    "vad-before-model": _lacks_boundary,
    "pause": _lacks_pause,
    "echo-warmup": _lacks_warmup,
    "stereo": _lacks_stereo,
    "realtime": _lacks_realtime,
}

INSTEAD: Final[dict[Feature, str]] = {
    "interruption-model": "barge-in-activity",
    "vad-before-model": "barge-in-model",
    "pause": "barge-in-cut",
    "echo-warmup": "caller-ignored",
    "stereo": "it with --channels 1",
    "realtime": "barge-in-cut",
}
"""What comes closest where a release lacks the feature."""


def missing(scenario: Scenario) -> tuple[Feature, str] | None:
    """The first thing the installed release lacks for the scenario, and why; ``None``: it runs."""
    for feature, lacks in _LACKS.items():
        if feature not in scenario.required:
            continue
        if feature == "vad-before-model" and scenario.axes.at == BEFORE_FIRST_FRAME:
            continue  # before the first frame VAD decides on every release
        reason = lacks()
        if reason is not None:
            return feature, reason
    return None


def require(scenario: Scenario) -> None:
    """Raises: `ScenarioError` naming what the installed release lacks, and what to run instead."""
    version = require_livekit()
    lack = missing(scenario)
    if lack is None:
        return
    feature, reason = lack
    hint = f"run {INSTEAD[feature]} instead"
    if feature == "vad-before-model":
        hint += f", or with --at {BEFORE_FIRST_FRAME}"
    raise ScenarioError(f"{scenario.name} can't run on livekit-agents {version}: {reason}; {hint}")


def session_arguments(options: SessionOptions, turn_detection: str) -> dict[str, Any]:
    """Keyword arguments of `AgentSession` for these options, under the names the release knows.

    ``turn_detection`` is the mode in which it finds out that the caller's turn is over.
    """
    parameters = _session_parameters()
    arguments: dict[str, Any] = {}
    if "aec_warmup_duration" in parameters:
        arguments["aec_warmup_duration"] = options.aec_warmup_s
    arguments["user_away_timeout"] = None
    if "session_close_transcript_timeout" in parameters:
        arguments["session_close_transcript_timeout"] = 0.1
    if "turn_handling" in parameters:
        arguments["turn_handling"] = _turn_handling(options, turn_detection)
        return arguments
    flat = {
        "turn_detection": turn_detection,
        "preemptive_generation": False,
        "allow_interruptions": options.allow_interruptions,
        "min_interruption_duration": options.min_duration_s,
        "min_interruption_words": options.min_words,
        "false_interruption_timeout": options.false_interruption_timeout_s,
        "resume_false_interruption": options.resume_false_interruption,
        "discard_audio_if_uninterruptible": options.discard_audio_if_uninterruptible,
        "min_endpointing_delay": options.min_endpointing_delay_s,
    }
    arguments.update(_given(flat, parameters))
    return arguments


def _turn_handling(options: SessionOptions, turn_detection: str) -> dict[str, Any]:
    known = _annotations(_INTERRUPTION_OPTIONS)
    interruption = _given(
        {
            "enabled": options.allow_interruptions,
            "mode": "adaptive" if options.interruption_model else "vad",
            "min_duration": options.min_duration_s,
            "min_words": options.min_words,
            "false_interruption_timeout": options.false_interruption_timeout_s,
            "resume_false_interruption": options.resume_false_interruption,
            "discard_audio_if_uninterruptible": options.discard_audio_if_uninterruptible,
            # The second value holds back transcripts near the end of a reply; it stays as it comes.
            "backchannel_boundary": None
            if options.backchannel_boundary_s is None
            else (options.backchannel_boundary_s, 1.0),
        },
        known,
    )
    turn: dict[str, Any] = {
        "turn_detection": turn_detection,
        "endpointing": {"min_delay": options.min_endpointing_delay_s},
        "interruption": interruption,
    }
    if "preemptive_generation" in _annotations(_TURN_OPTIONS):
        turn["preemptive_generation"] = {"enabled": False}
    return turn


def _given(values: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and name in known}


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Has ``owner`` answer with ``value`` under ``name`` for as long as the block runs."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def realtime_capabilities(*, detects_turns: bool) -> Any:
    """What the scripted realtime model says it can do, in the fields the release has."""
    from livekit.agents import llm

    can = {
        "message_truncation": True,
        "turn_detection": detects_turns,
        "user_transcription": detects_turns,
        "auto_tool_reply_generation": False,
        "audio_output": True,
        "manual_function_calls": True,
        "can_disable_turn_detection": False,
        "mutable_chat_context": True,
        "mutable_instructions": True,
        "mutable_tools": True,
        "per_response_tool_choice": True,
    }
    return llm.RealtimeCapabilities(**_given(can, _annotations(_REALTIME_CAPABILITIES)))


def realtime_metrics(**figures: Any) -> Any:
    """Metrics of a realtime response, ``None`` where the release has none that can be made so."""
    found = _find("livekit.agents.metrics", "RealtimeModelMetrics")
    try:
        return found(
            input_token_details=found.InputTokenDetails(),
            output_token_details=found.OutputTokenDetails(),
            **figures,
        )
    except (AttributeError, TypeError, ValueError):
        return None


def make_verdict_model() -> type[Any]:
    """The stand-in for the interruption model's hosted service, on releases that have a model.

    It is fed like the real one and keeps the real one's books: an overlap that ends without a
    verdict is answered by LiveKit's own code. Only the positive verdict comes from the script. It
    is delivered even where the session no longer waits for one, which the real service does only
    while an answer is on its way: that is what lets a verdict fall on a reply VAD has paused.
    """
    from livekit.agents import inference, utils
    from livekit.agents.inference import interruption
    from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

    class VerdictStream(interruption.InterruptionStreamBase):
        _began: float | None = None
        _last_began: float | None = None

        # The base keeps the begin of the overlap under way here. A late verdict is about one that
        # is over, and says when that began.
        @property
        def _overlap_started_at(self) -> float | None:
            return self._began

        @_overlap_started_at.setter
        def _overlap_started_at(self, began: float | None) -> None:
            self._began = began
            self._last_began = began or self._last_began

        async def _run(self) -> None:
            windows: Any = utils.aio.Chan()
            await self._forward_data(windows)

        def judge(self, is_interruption: bool) -> None:
            finding = {
                "is_interruption": is_interruption,
                "overlap_started_at": self._last_began,
                "detected_at": time.time(),
                "probability": 1.0 if is_interruption else 0.0,
                "num_requests": 1,
            }
            self._overlap_started = False
            # Fields a release does not know are left out in validation.
            self.send(interruption.OverlappingSpeechEvent.model_validate(finding))

    class VerdictModel(inference.AdaptiveInterruptionDetector):
        def __init__(self) -> None:
            super().__init__(
                base_url="http://localhost",
                api_key="scripted",
                api_secret="scripted",
                http_session=object(),  # type: ignore[arg-type]  # only kept; nothing is sent
            )
            self._opened: list[VerdictStream] = []

        def judge(self, is_interruption: bool) -> None:
            """Gives the verdict on the stream the session opened last."""
            self._opened[-1].judge(is_interruption)

        def stream(self, **_: Any) -> Any:
            stream = VerdictStream(model=self, conn_options=DEFAULT_API_CONNECT_OPTIONS)
            self._opened.append(stream)
            return stream

    return VerdictModel


@contextmanager
def interruption_model(detector: Callable[[], Any] | None) -> Iterator[None]:
    """Lets sessions that start inside the block make ``detector`` where they would make the model.

    The session decides by itself whether it wants one; only the hosted service is stood in for.
    """
    if detector is None:
        yield
        return
    with replaced(importlib.import_module(_DETECTOR_MODULE), _DETECTOR, detector):
        yield
