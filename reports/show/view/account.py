"""Where every sample went, as it is shown: the balance, what was lost, and what was claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reports.results import Amount, Analysis, Control, Length, Loss, Segment
from reports.show.view.quantity import ABOUT, Quantity, audio, time
from reports.show.wording import LOSSES, count_text
from reports.units import one_rate
from reports.verdicts.explanations import unjoined_text

__all__ = [
    "Balance",
    "BalanceRow",
    "Claim",
    "ControlView",
    "Lost",
    "balance",
    "balance_said",
    "claims",
    "concerned",
    "control",
    "losses",
    "swallowed",
    "under_way",
]

_NOTE: Final = (
    "captured{added} = pushed + dropped + held; pushed = sent + cleared + queued. The tail, a rest "
    "shorter than a block, is part of queued or cleared, or was sent with the next segment. "
    "Inserted silence and inherited audio are in no sum.{meaning}"
)

_BOTH: Final = ("captured", "pushed")
_ROWS: Final = (
    ("captured", 0, "captured", ("captured",)),
    ("pushed", 1, "pushed", ("pushed",)),
    ("dropped", 1, "dropped_samples", ("captured",)),
    ("held", 1, "held_samples", ("captured",)),
    ("sent", 2, "sent", ("pushed",)),
    ("cleared", 2, "cleared_samples", ("pushed",)),
    ("queued", 2, "queued_samples", ("pushed",)),
    ("unaccounted", 0, "unaccounted_samples", _BOTH),
    ("tail", 0, "tail_samples", ("pushed",)),
    ("inserted", 0, "inserted_samples", ("pushed",)),
    ("swallowed", 0, "swallowed_samples", ("captured",)),
)
"""Name, depth and field of every figure of the balance that is always shown, and the boundaries
whose samples it counts: a sink that resamples has two rates."""

_SELDOM: Final = (
    ("added", 0, "added_samples", ("pushed",)),
    ("inherited", 0, "inherited_samples", _BOTH),
    ("ambiguous", 0, "ambiguous_samples", _BOTH),
    ("sent later", 0, "sent_in_later_segments_samples", ("pushed",)),
    ("unknown", 0, "unknown_samples", _BOTH),
)
"""Those that are zero in a healthy call. The JSON report always has them."""

_BY_TIME: Final = ("pushed", "sent", "cleared", "queued")
"""Figures that are given to a segment by their time where the sink can't be followed."""


# --- The balance ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """One figure of every segment that is shown."""

    name: str
    depth: int
    """How far it is indented: what it is a part of."""
    is_fault: bool
    """Whether there must be none of it."""
    cells: tuple[Quantity, ...]

    @property
    def wrong(self) -> bool:
        """Whether there is some of what must not be."""
        return self.is_fault and any(cell.is_some for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Balance:
    """Segments and the total side by side, figure by figure."""

    heads: tuple[str, ...]
    rows: tuple[BalanceRow, ...]
    notes: tuple[str, ...]
    """What has to be known to read it; the first says how it adds up."""


def balance_said(analysis: Analysis) -> str:
    """Whether it adds up."""
    said = {True: "balances", False: "DOES NOT BALANCE", None: "balance not known"}
    return said[analysis.balanced]


def concerned(analysis: Analysis) -> list[Segment]:
    """Segments that have a barge-in or do not balance."""
    touched = {barge_in.segment for barge_in in analysis.barge_ins}
    return [s for s in analysis.segments if s.index in touched or s.balanced is False]


def balance(analysis: Analysis, columns: Sequence[Segment | None]) -> Balance:
    """The table that these segments need; ``None`` among them stands for the total."""
    every = [*columns, *analysis.segments, None]
    chosen = list(_ROWS)
    for row in _SELDOM:
        asked = every if row[0] == "inherited" else columns
        if any(_samples(analysis, column, row[2]) for column in asked):
            chosen.append(row)
    rows = tuple(
        BalanceRow(
            name,
            depth,
            field == "unaccounted_samples",
            tuple(_cell(analysis, column, name, field, of) for column in columns),
        )
        for name, depth, field, of in chosen
    )
    heads = ("total" if column is None else f"segment {column.index}" for column in columns)
    added, meaning = "", ""
    if any(row.name == "added" for row in rows):
        added, meaning = " + added", " Added is what the sink put in itself."
    note = _NOTE.format(added=added, meaning=meaning)
    return Balance(tuple(heads), rows, (note, *_unjoined(columns)))


def _cell(
    analysis: Analysis, column: Segment | None, name: str, field: str, of: Sequence[str]
) -> Quantity:
    samples = _samples(analysis, column, field)
    length = None if samples is None else Length(samples, _rate(analysis, column, of))
    hidden = column is not None and column.unjoined is not None
    return audio(length, by_time=hidden and name in _BY_TIME)


def _unjoined(columns: Sequence[Segment | None]) -> Iterable[str]:
    """Why segments have no balance of their own, once for all that share the reason."""
    segments: dict[str, list[str]] = {}
    for column in columns:
        if column is not None and (reason := unjoined_text(column)) is not None:
            segments.setdefault(reason, []).append(str(column.index))
    for reason, of in segments.items():
        yield (
            f"segment{'s' if len(of) > 1 else ''} {', '.join(of)}: {reason}; what left the sink is "
            f"given to a segment by its time ({ABOUT}), and what was lost in the sink is not known"
        )


def _samples(analysis: Analysis, column: Segment | None, field: str) -> int | None:
    """One figure of a segment, or of the total; ``None``: not known."""
    if column is None:
        return _of_total(analysis, field if field.endswith("_samples") else f"{field}_samples")
    if field == "inherited_samples" and column.partial and not column.inherited_samples:
        # Some was inside, and how much of it was this segment's can't be told.
        return None if analysis.totals.inherited_samples else 0
    figure: Amount | int | None = getattr(column, field)
    return figure.samples if isinstance(figure, Amount) else figure


def _of_total(analysis: Analysis, field: str) -> int | None:
    if field == "unaccounted_samples":
        return analysis.unaccounted_samples
    if field == "tail_samples" and analysis.totals.sent_samples is None:
        return None
    if field in ("tail_samples", "sent_in_later_segments_samples"):
        known = [getattr(segment, field) for segment in analysis.segments]
        return None if any(value is None for value in known) else sum(known)
    value: int | None = getattr(analysis.totals, field)
    return value


def _rate(analysis: Analysis, column: Segment | None, of: Sequence[str] = _BOTH) -> int | None:
    """The one rate that samples have at these boundaries; ``None``: there are several."""
    segments = analysis.segments if column is None else [column]
    return one_rate(
        geometry.rate_hz
        for segment in segments
        for boundary in of
        for geometry in segment.geometry.get(boundary, ())
    )


def under_way(analysis: Analysis, segment: Segment) -> str:
    """Of a partial segment, that its beginning is in no figure; empty for a whole one."""
    if not segment.partial:
        return ""
    samples, where = segment.inherited_samples, "inside already"
    # What was pushed before its first captured frame is in the total only.
    if sum(s.partial for s in analysis.segments) == 1:
        samples = analysis.totals.inherited_samples
    elif not samples and analysis.totals.inherited_samples:
        samples, where = analysis.totals.inherited_samples, "inside already, in the whole trace,"
    inside = audio(Length(samples, _rate(analysis, segment)))
    return (
        f"segment {segment.index} was under way when the probe came: {inside} {where} are "
        "inherited and in no balance; what was sent before is not known"
    )


# --- Lost and claimed ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lost:
    """A stretch of lost audio."""

    segment: int
    loss: Loss
    amount: Quantity
    why: str
    """``dropped: the sink was cleared``."""
    at: Quantity
    axis: str
    """The boundary its positions count at."""


def losses(segments: Iterable[Segment]) -> list[Lost]:
    """What these lost, the longest first."""
    found = [(segment, loss) for segment in segments for loss in segment.losses]
    return [
        Lost(
            segment.index,
            loss,
            audio(loss),
            f"{loss.what}: {LOSSES[loss.what, loss.cause]}",
            time(loss.at_ns),
            "captured" if loss.what == "dropped" else "pushed",
        )
        for segment, loss in sorted(found, key=lambda pair: -pair[1].samples)
    ]


def swallowed(segments: Iterable[Segment]) -> list[tuple[int, Quantity]]:
    """Segments of speeches that nobody interrupted, and how much of them was lost; most first."""
    lost = [
        (segment.index, Length(samples, one_rate(g.rate_hz for g in segment.geometry["captured"])))
        for segment in segments
        if (samples := segment.swallowed_samples)
    ]
    lost.sort(key=lambda pair: -pair[1].samples)
    return [(index, audio(length)) for index, length in lost]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the framework says was played of a segment, and what was sent."""

    segment: int
    claimed: Quantity
    sent: Quantity
    last_sent: Quantity
    """Place of the last sent sample in the captured audio."""
    is_made: bool
    """Whether the framework said anything."""
    under_way: str
    """That its beginning is in no figure; empty: it is whole."""


def claims(analysis: Analysis, segments: Iterable[Segment]) -> list[Claim]:
    """Of segments of which something was claimed, or that were under way when the probe came."""
    return [
        Claim(
            segment.index,
            time(segment.claimed_position_ns),
            audio(segment.sent_position, by_time=segment.unjoined is not None),
            audio(segment.last_sent_position),
            segment.claimed_position_ns is not None,
            under_way(analysis, segment),
        )
        for segment in segments
        if segment.claimed_position_ns is not None or segment.partial
    ]


@dataclass(frozen=True, slots=True)
class ControlView:
    """Whether the reply after the scripted barge-in came whole."""

    figures: str
    verdict: str
    """What the figures say; goes on where they end."""
    whole: bool | None
    """``None``: it can't be known."""


def control(found: Control) -> ControlView:
    """A control in words."""
    if found.segment is None:
        return ControlView("nothing of it ever reached the sink", "", False)
    return ControlView(
        f"segment {found.segment}: {count_text(found.sent_samples)} of "
        f"{count_text(found.captured_samples)} captured samples sent",
        {
            None: "; whether it arrived whole can't be known",
            True: ": whole, up to a tail of less than a block",
            False: ": NOT WHOLE",
        }[found.whole],
        found.whole,
    )
