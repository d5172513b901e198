"""A scenario as a document of plain values: what a child process, or Node, gets its call from.

Nothing in here needs more than the standard library: a call runs in environments of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from probe.errors import ScenarioError
from probe.scenarios.axes import Axes
from probe.scenarios.scenario import RealtimeOptions, Scenario, SessionOptions
from probe.scenarios.script import Step

__all__ = ["from_document", "to_document"]

_Part = TypeVar("_Part", Axes, RealtimeOptions, SessionOptions, Step)


def to_document(scenario: Scenario) -> dict[str, Any]:
    """The document that describes the scenario whole; `from_document` reads it back the same."""
    document = _known(asdict(scenario))
    document["needs"] = sorted(scenario.needs)
    document["expect"] = list(scenario.expect)
    document["options"] = _known(document["options"])
    document["call"] = document.pop("axes")
    document["steps"] = [_known(step) for step in document["steps"]]
    if scenario.realtime is not None:
        document["realtime"]["messages"] = list(scenario.realtime.messages)
    return document


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def from_document(document: Mapping[str, Any]) -> Scenario:
    """The scenario that a document describes, whose keys and types are as they have to be.

    Raises:
        ScenarioError: a value is out of its range, or values do not go together; with its key.
    """
    values = dict(document)
    steps, realtime = values.pop("steps"), values.pop("realtime", None)
    if realtime is not None:
        messages = {key: tuple(found) for key, found in realtime.items() if key == "messages"}
        realtime = _part("realtime", RealtimeOptions, {**realtime, **messages})
    return Scenario(
        needs=frozenset(values.pop("needs")),
        options=_part("options", SessionOptions, values.pop("options")),
        axes=_part("call", Axes, values.pop("call")),
        realtime=realtime,
        steps=tuple(_part(f"steps[{nth}]", Step, step) for nth, step in enumerate(steps, 1)),
        expect=tuple(values.pop("expect")),
        **values,
    )


def _part(key: str, kind: type[_Part], values: Mapping[str, Any]) -> _Part:
    try:
        return kind(**values)
    except ScenarioError as error:
        raise ScenarioError(f"{key}.{error}") from error
