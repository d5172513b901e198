"""Scenarios in TOML files: a user's own, and those of the catalogue.

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
    at = 600                        # ms, or a place: `probe.scenarios.axes.PLACES`
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

    [[steps]]                       # one after the other; `probe.scenarios.script.STEPS`
    do = "land"
    [[steps]]
    do = "speak"
    ms = 600

Steps may also stand in one line, those that need nothing else by their name:

    steps = ["land", { do = "speak", ms = 600 }, "await-paused"]

Keys and types are checked here, before any call begins; what makes the call is handed a document
that is right (`probe.scenarios.document`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from probe.errors import ScenarioError
from probe.scenarios.axes import PLACES, Axes, Place
from probe.scenarios.document import from_document, to_document
from probe.scenarios.scenario import FEATURES, Feature, RealtimeOptions, Scenario, SessionOptions
from probe.scenarios.script import Step

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read"]


# --- What is in a file ---------------------------------------------------------------------------

_Keys = Mapping[str, tuple[Any, str]]
"""By key, the type msgspec checks a value by, and what it is in words."""

_Whole = Annotated[int, Meta(ge=0)]
_Text = Annotated[str, Meta(pattern=r"\S")]
_KINDS: Final[Mapping[Any, tuple[Any, str]]] = {
    bool: (bool, "true or false"),
    int: (_Whole, "a whole number from 0"),
    float: (Annotated[float, Meta(ge=0)], "a number from 0"),
    str: (_Text, "some text"),
    tuple[int, ...]: (list[_Whole], "a list of whole numbers"),
    int | Place: (_Whole | Place, f"milliseconds from 0 or one of {', '.join(PLACES)}"),
}
"""What a field of a scenario is in a file. A field of any other type has a key of its own."""


def _keys_of(kind: type) -> _Keys:
    keys = {}
    for name, hint in get_type_hints(kind).items():
        held, *others = get_args(hint) or (hint,)
        plain = held if others == [NoneType] else hint
        if get_origin(plain) is Literal:
            keys[name] = (plain, f"one of {', '.join(get_args(plain))}")
        elif plain in _KINDS:
            keys[name] = _KINDS[plain]
    return keys


def _table(keys: _Keys) -> Any:
    """A struct with these keys, of which none has to be there."""
    given = [(key, kind | UnsetType, UNSET) for key, (kind, _) in keys.items()]
    return msgspec.defstruct("Table", given, forbid_unknown_fields=True)


_TABLES: Final[Mapping[str, _Keys]] = {
    "options": _keys_of(SessionOptions),
    "call": _keys_of(Axes),
    "realtime": _keys_of(RealtimeOptions),
}
_STEP: Final = _keys_of(Step)
_FILE: Final[_Keys] = {
    **_keys_of(Scenario),
    "note": (str, "text"),
    "base": (_Text, "the name of a scenario"),
    "needs": (list[Feature], f"a list of {', '.join(FEATURES)}"),
    "expect": (list[_Text], 'a list of assertions such as "verdict < clear"'),
    **{key: (_table(keys), f"a table [{key}]") for key, keys in _TABLES.items()},
    "steps": (
        Annotated[list[_table(_STEP) | _Text], Meta(min_length=1)],  # type: ignore[misc]  # made here
        "[[steps]], one or more",
    ),
}
_STRUCT: Final = _table(_FILE)


# --- Where it is wrong ---------------------------------------------------------------------------


def _check(document: Mapping[str, Any]) -> None:
    """Raises: `ScenarioError` with the key, what was expected there, and what is there."""
    try:
        msgspec.convert(document, _STRUCT)
    except msgspec.ValidationError as error:
        raise ScenarioError(_said(str(error), document)) from error


def _said(error: str, document: Mapping[str, Any]) -> str:
    """An error of msgspec, ``… - at `$.steps[0].ms` ``, as a user reads it."""
    unknown = re.search(r"unknown field `(.*?)`(?: - at|$)", error)
    place = re.search(r" - at `\$\.(.*)`$", error)
    shown, keys, expected, found = "", _FILE, "", document
    for key, nth in re.findall(r"(\w+)(?:\[(\d+)\])?", place[1] if place else ""):
        shown += key
        found, (_, expected) = found[key], keys[key]
        keys = _TABLES.get(key, {})
        if nth and key == "steps":
            # A list of values is told as a whole, a table in a list by its number.
            shown += f"[{int(nth) + 1}]"
            found, expected, keys = found[int(nth)], "a table with `do`, or a step's name", _STEP
        shown += "."
    if unknown:
        return f"{shown}{unknown[1]}: unknown key, expected one of {', '.join(keys)}"
    return f"{shown.removesuffix('.')}: expected {expected}, found {found!r}"


# --- Reading it ----------------------------------------------------------------------------------


def read(path: Path, bases: Mapping[str, Scenario]) -> Scenario:
    """The scenario a TOML file describes.

    Args:
        path: the file.
        bases: what it may start from, by name.

    Raises: `ScenarioError`, one line with file and key, where the file can't be read or is wrong.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: expected a scenario file, can't read it ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: expected TOML, found an error: {error}") from error
    try:
        _check(document)
        scenario = from_document(_whole(document, path.stem, bases))
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from error
    if not scenario.steps:
        raise ScenarioError(
            f"{path}: expected [[steps]] or a `base` to take them from, found neither"
        )
    return scenario


def _whole(document: Mapping[str, Any], name: str, bases: Mapping[str, Scenario]) -> dict[str, Any]:
    """A document that was checked, with all that is left out in it."""
    given = {**document}
    base = given.pop("base", None)
    if base is None:
        start: dict[str, Any] = {
            "summary": "a scenario of your own",
            "healthy": "what its author expects",
            "needs": [],
            "steps": [],
            "options": {},
            "call": {},
        }
    elif base in bases:
        start = to_document(bases[base])
    else:
        raise ScenarioError(f"base: expected one of {', '.join(bases)}, found {base!r}")
    for key in _TABLES.keys() & given.keys():
        given[key] = {**start.get(key, {}), **given[key]}
    if "steps" in given:
        given["steps"] = [
            {"do": step} if isinstance(step, str) else {"do": None, **step}
            for step in given["steps"]
        ]
    # What holds for the base says nothing about a call that was changed.
    return {**start, "name": name, "expect": [], **given}
