"""What happened around the moment an assertion is about, for the reader of one that fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reports.assertions.reading import Name
from reports.results import Analysis, BargeIn

__all__ = ["LAST_SENT", "Label", "MarkedMoment", "moments", "zero_of"]

LAST_SENT: Final = "last sample of the speech sent"

Label = tuple[int, str, str]
"""A moment that the story does not tell: when, what, and the assertion's name for it."""

_SAYS: Final = {
    "started": "first frame of the speech captured",
    "finished": "the sink reports the segment as finished",
}
"""Of instants that a barge-in's story does not tell."""


@dataclass(frozen=True, slots=True)
class MarkedMoment:
    """A moment around a barge-in, with the names the assertion has for it."""

    event: str
    from_zero_ns: int
    names: tuple[str, ...]


def zero_of(barge_in: BargeIn) -> tuple[str, int] | None:
    """What moments count from, and when that was; ``None``: nothing is known of the barge-in."""
    for name in ("verdict", "pause", "onset"):
        at_ns: int | None = getattr(barge_in, f"{name}_ns")
        if at_ns is not None:
            return name, at_ns
    return None


def moments(
    analysis: Analysis,
    barge_in: BargeIn,
    zero_ns: int,
    names: Iterable[Name],
    labels: Sequence[Label],
) -> tuple[MarkedMoment, ...]:
    """The story from just before to just after what the assertion is about, its names put in."""
    told = [(m.at_ns, m.event, ["verdict"] if m.verdict else []) for m in barge_in.story]
    about = {label for *_, label in labels}
    missing = False
    for name in names:
        about.add(name.name)
        if name.type == "instant":
            named_ns = name.read(analysis, barge_in).ns
            missing |= named_ns is None
            if named_ns is not None:
                _mark(told, named_ns, name.name, _SAYS.get(name.name, name.meaning))
    for at_ns, event, label in labels:
        _mark(told, at_ns, label, event)
    told.sort(key=lambda moment: moment[0])
    touched = [i for i, moment in enumerate(told) if about & set(moment[2])]
    if touched and not missing:
        told = told[max(touched[0] - 1, 0) : touched[-1] + 2]
    return tuple(
        MarkedMoment(event, at_ns - zero_ns, tuple(n for n in found if n in about))
        for at_ns, event, found in told
    )


_TOLD: Final = {
    "onset": "the caller starts",
    "pause": "pause",
    "verdict": "",
    "commit": "commit",
    "clear": "clear of the sink",
    "source_clear": "the source's queue",
    "resume": "resume",
    "last_sent": "last sample",
}
"""How the story's line for an instant begins."""


def _mark(told: list[tuple[int, str, list[str]]], at_ns: int, name: str, event: str) -> None:
    """Write a name beside the story's moment it stands for; add the moment where it has none."""
    begins = event if event == LAST_SENT else _TOLD.get(name)
    if begins is not None:
        for moment_ns, text, names in told:
            if moment_ns == at_ns and (text.startswith(begins) if begins else name in names):
                if name not in names:
                    names.append(name)
                return
    told.append((at_ns, event, [name]))
