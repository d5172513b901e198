"""Described audio that knows where it was: cut, taken in rows, and said as ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.conformance.content import Piece

Range = tuple["int | None", int]
"""Where values come from, and how many; None: nowhere that was seen."""


def length(piece: Piece) -> int:
    """Values of a piece."""
    if piece[0] in ("gain", "dither"):
        return sum(map(length, piece[-1]))
    return int(piece[2] if piece[0] in ("constant", "part") else piece[-1])


def cut(piece: Piece, start: int, stop: int) -> Piece:
    """Some of the values of a piece."""
    kind, *told = piece
    if (start, stop) == (0, length(piece)):
        return piece
    if kind in ("noise", "quiet"):
        return [kind, told[0], told[1] + start, stop - start]
    if kind == "part":
        return [kind, told[0] + start, stop - start, told[2]]
    if kind in ("gain", "dither"):
        return ["part", start, stop - start, [piece]]
    return [*piece[:-1], stop - start]


@dataclass(frozen=True)
class Span:
    """Values one behind the other, and where they were before."""

    piece: Piece
    origin: int | None = None

    @property
    def values(self) -> int:
        return length(self.piece)

    def cut(self, start: int, stop: int) -> Span:
        origin = None if self.origin is None else self.origin + start
        return Span(cut(self.piece, start, stop), origin)

    def placed(self, position: int) -> Span:
        return replace(self, origin=position)


class Row:
    """Spans in a row: taken from the front, put in at the back."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    @property
    def values(self) -> int:
        return sum(span.values for span in self.spans)

    def take(self, values: int) -> list[Span]:
        taken = []
        while values:
            span = self.spans.pop(0)
            if span.values > values:
                self.spans.insert(0, span.cut(values, span.values))
                span = span.cut(0, values)
            taken.append(span)
            values -= span.values
        return taken


def ranges(spans: list[Span]) -> list[Range]:
    """Where spans come from, joined where they go on."""
    found: list[Range] = []
    for span in spans:
        if found:
            start, values = found[-1]
            if span.origin == (None if start is None else start + values):
                found[-1] = (start, values + span.values)
                continue
        found.append((span.origin, span.values))
    return found
