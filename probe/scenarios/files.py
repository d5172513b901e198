"""Scenarios as data: a user's TOML file, and the document a child process gets its call from.

A file describes a call of its own, or starts from one of the catalogue and changes it:

    base = "barge-in-activity"      # optional; the file's own keys go before the base's
    name = "two-words"              # default: the file's name
    summary = "…"                   # what happens, one line
    healthy = "…"                   # what a healthy build shows
    note = "…"                      # what a reader has to know about how it is staged
    needs = ["vad-before-model"]    # beside what steps and options imply
    subscribed = true               # whether somebody subscribes as the call starts
    ends = true                     # whether the reply has to end
    expect = ["verdict < clear"]    # what has to hold in the trace: `reports.assertions`

    [options]                       # of the session; what is left out stays as the release has it
    allow_interruptions = true
    min_duration_s = 0.5
    min_words = 0
    false_interruption_timeout_s = 0.6
    resume_false_interruption = true
    discard_audio_if_uninterruptible = true
    interruption_model = false
    backchannel_boundary_s = 1.0
    min_endpointing_delay_s = 0.3
    aec_warmup_s = 3.0              # left out: none

    [call]                          # where the axes stand unless the command line says otherwise
    pacing = "burst"                # burst, realtime, stalled
    frame_ms = 20
    rate_hz = 24000
    reply_ms = 2995
    at = 600                        # ms, or a place: `probe.scenarios.catalogue.PLACES`
    reply = "generated"             # generated, say, tool
    channels = 1                    # 1, 2
    close_ms = 0                    # how long the reply's audio stream takes to close

    [realtime]                      # a realtime model instead of an LLM and a TTS
    messages = [1, 1]               # messages of a reply, by their shares of its length
    speed = 4.0                     # how much faster than it plays it is generated (`realtime`)
    cancel_ms = 30                  # how long after a cancel the response ends
    streams = "channel"             # channel, generator
    detects_turns = true            # whether the model's server hears the caller; false: the
                                    # session's VAD, which pauses before it interrupts
    in_task = false                 # whether the reply is given inside an agent task

    [[steps]]                       # one after the other; `probe.scenarios.catalogue.STEPS`
    do = "land"
    [[steps]]
    do = "speak"
    ms = 600
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final, get_args

from probe.errors import ScenarioError
from probe.scenarios.catalogue import (
    CATALOGUE,
    PLACES,
    STEPS,
    STEPS_WITH_MS,
    Axes,
    Feature,
    RealtimeOptions,
    Scenario,
    SessionOptions,
    Step,
)

_FEATURES: Final[tuple[str, ...]] = get_args(Feature)


def _bool(value: Any) -> bool:
    return isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shares(value: Any) -> bool:
    return isinstance(value, list) and all(map(_integer, value))


def _place(value: Any) -> bool:
    return value in PLACES if isinstance(value, str) else _integer(value)


_Check = tuple[Callable[[Any], bool], str]

_BOOL: Final[_Check] = (_bool, "true or false")
_INTEGER: Final[_Check] = (_integer, "a whole number from 0")
_NUMBER: Final[_Check] = (_number, "a number from 0")
_TEXT: Final[_Check] = (_text, "some text")

_OPTIONS: Final[dict[str, _Check]] = {
    "allow_interruptions": _BOOL,
    "min_duration_s": _NUMBER,
    "min_words": _INTEGER,
    "false_interruption_timeout_s": _NUMBER,
    "resume_false_interruption": _BOOL,
    "discard_audio_if_uninterruptible": _BOOL,
    "interruption_model": _BOOL,
    "backchannel_boundary_s": _NUMBER,
    "min_endpointing_delay_s": _NUMBER,
    "aec_warmup_s": _NUMBER,
}
_CALL: Final[dict[str, _Check]] = {
    "pacing": _TEXT,
    "frame_ms": _NUMBER,
    "rate_hz": _INTEGER,
    "reply_ms": _INTEGER,
    "at": (_place, f"milliseconds from 0 or one of {', '.join(PLACES)}"),
    "reply": _TEXT,
    "channels": _INTEGER,
    "close_ms": _INTEGER,
}
_REALTIME: Final[dict[str, _Check]] = {
    "messages": (_shares, "a list of whole numbers"),
    "speed": _NUMBER,
    "cancel_ms": _INTEGER,
    "streams": _TEXT,
    "detects_turns": _BOOL,
    "in_task": _BOOL,
}
_SCENARIO: Final[dict[str, _Check]] = {
    "name": _TEXT,
    "summary": _TEXT,
    "healthy": _TEXT,
    "note": (lambda value: isinstance(value, str), "text"),
    "lands_before_first_frame": _BOOL,
    "subscribed": _BOOL,
    "ends": _BOOL,
}
_STEP: Final[dict[str, _Check]] = {
    "do": _TEXT,
    "ms": _INTEGER,
    "interruption": _BOOL,
    "message": _INTEGER,
}
_TABLES: Final = ("base", "needs", "expect", "options", "call", "realtime", "steps")


def load(path: Path) -> Scenario:
    """The scenario a TOML file describes.

    Raises: `ScenarioError`, one line with file and key, where the file can't be read or is wrong.
    """
    # Imported here: a call runs in environments that have no reader of TOML.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: expected a scenario file, can't read it ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: expected TOML, found an error: {error}") from error
    return from_document(document, where=str(path), name=path.stem)


def from_document(document: Mapping[str, Any], *, where: str, name: str | None = None) -> Scenario:
    """The scenario a document of plain values describes.

    Args:
        document: what the TOML file holds, see the module.
        where: where it came from, for messages.
        name: the name where the document and its base have none.

    Raises: `ScenarioError`, one line with place and key.
    """
    reader = _Reader(where)
    base = reader.base(document)
    reader.known(document, (*_SCENARIO, *_TABLES), "")
    values: dict[str, Any] = reader.values(
        {key: value for key, value in document.items() if key in _SCENARIO}, _SCENARIO, ""
    )
    values.setdefault("name", base.name if base and name is None else name or "scenario")
    options = reader.table(document, "options")
    axes = reader.table(document, "call")
    values["options"] = replace(
        base.options if base else SessionOptions(), **reader.values(options, _OPTIONS, "options.")
    )
    given_axes = reader.values(axes, _CALL, "call.")
    try:
        values["axes"] = replace(base.axes if base else Axes(), **given_axes)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: call.{error}") from error
    if "realtime" in document:
        values["realtime"] = reader.realtime(document, base.realtime if base else None)
    if "needs" in document:
        values["needs"] = reader.needs(document["needs"])
    # What holds for the base says nothing about a call that was changed.
    values["expect"] = reader.expect(document.get("expect", []))
    if "steps" in document:
        values["steps"] = reader.steps(document["steps"])
    if base is None and "steps" not in values:
        raise ScenarioError(
            f"{where}: expected [[steps]] or a `base` to take them from, found neither"
        )
    try:
        if base is None:
            values.setdefault("summary", "a scenario of your own")
            values.setdefault("healthy", "what its author expects")
            scenario = Scenario(**values)
        else:
            scenario = replace(base, **values)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from error
    if not scenario.options.interruption_model and any(
        step.do == "verdict" for step in scenario.steps
    ):
        raise ScenarioError(
            f"{where}: options.interruption_model: expected true, there is a `verdict` in the steps"
        )
    return scenario


def to_document(scenario: Scenario) -> dict[str, Any]:
    """The document that describes the scenario whole; `from_document` reads it back the same."""
    document = {
        field.name: getattr(scenario, field.name)
        for field in fields(scenario)
        if field.name in _SCENARIO
    }
    document["needs"] = sorted(scenario.needs)
    document["expect"] = list(scenario.expect)
    document["options"] = _without_none(asdict(scenario.options))
    document["call"] = asdict(scenario.axes)
    if scenario.realtime is not None:
        document["realtime"] = {
            **asdict(scenario.realtime),
            "messages": list(scenario.realtime.messages),
        }
    document["steps"] = [_without_none(asdict(step)) for step in scenario.steps]
    return document


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


class _Reader:
    """Reads the parts of a document, and says where it is wrong."""

    def __init__(self, where: str) -> None:
        self._where = where

    def fail(self, key: str, expected: str, found: Any) -> ScenarioError:
        return ScenarioError(f"{self._where}: {key}: expected {expected}, found {found!r}")

    def known(self, values: Mapping[str, Any], keys: tuple[str, ...], prefix: str) -> None:
        for key in values:
            if key not in keys:
                raise ScenarioError(
                    f"{self._where}: {prefix}{key}: unknown key, expected one of {', '.join(keys)}"
                )

    def values(
        self, values: Mapping[str, Any], checks: Mapping[str, _Check], prefix: str
    ) -> dict[str, Any]:
        self.known(values, tuple(checks), prefix)
        for key, value in values.items():
            holds, expected = checks[key]
            if not holds(value):
                raise self.fail(f"{prefix}{key}", expected, value)
        return dict(values)

    def table(self, document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        table = document.get(key, {})
        if not isinstance(table, Mapping):
            raise self.fail(key, f"a table [{key}]", table)
        return table

    def base(self, document: Mapping[str, Any]) -> Scenario | None:
        name = document.get("base")
        if name is None:
            return None
        if not isinstance(name, str) or name not in CATALOGUE:
            raise self.fail("base", f"one of {', '.join(CATALOGUE)}", name)
        return CATALOGUE[name]

    def needs(self, needs: Any) -> frozenset[Any]:
        if not isinstance(needs, list) or not all(need in _FEATURES for need in needs):
            raise self.fail("needs", f"a list of {', '.join(_FEATURES)}", needs)
        return frozenset(needs)

    def expect(self, expect: Any) -> tuple[str, ...]:
        """Assertions as they stand: a call's process has no use for them and can't read them."""
        if not isinstance(expect, list) or not all(_text(assertion) for assertion in expect):
            raise self.fail("expect", 'a list of assertions such as "verdict < clear"', expect)
        return tuple(expect)

    def realtime(
        self, document: Mapping[str, Any], base: RealtimeOptions | None
    ) -> RealtimeOptions:
        given = self.values(self.table(document, "realtime"), _REALTIME, "realtime.")
        if "messages" in given:
            given["messages"] = tuple(given["messages"])
        try:
            return replace(base or RealtimeOptions(), **given)
        except ScenarioError as error:
            raise ScenarioError(f"{self._where}: realtime.{error}") from error

    def steps(self, steps: Any) -> tuple[Step, ...]:
        if not isinstance(steps, list) or not steps:
            raise self.fail("steps", "[[steps]], one or more", steps)
        return tuple(self.step(number, step) for number, step in enumerate(steps, 1))

    def step(self, number: int, step: Any) -> Step:
        key = f"steps[{number}]"
        if not isinstance(step, Mapping):
            raise self.fail(key, "a table with `do`", step)
        values = self.values(step, _STEP, f"{key}.")
        if values.get("do") not in STEPS:
            raise self.fail(f"{key}.do", f"one of {', '.join(STEPS)}", values.get("do"))
        if values["do"] in STEPS_WITH_MS and "ms" not in values:
            raise ScenarioError(
                f"{self._where}: {key}.ms: expected milliseconds for `{values['do']}`"
            )
        return Step(**values)
