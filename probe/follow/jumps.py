"""Where audio goes on that contradicts its continuation: forward, behind what was left out."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from probe.follow.store import VALUE_BYTES, is_constant, leading_run
from probe.follow.upstream import TELLING_BYTES, TELLING_VALUES, Held, Upstream

__all__ = ["CANDIDATES", "Part", "candidates", "choose", "place"]

Part = tuple["int | None", int]
"""``(position, values)``; a position of None is content never seen upstream."""

CANDIDATES: Final = 32


def candidates(upstream: Upstream, held: Held, expected: int) -> list[int]:
    """Positions where what contradicts is held whole, ascending, the first few."""
    rest, fence, store = held.rest, upstream.fence, upstream.store
    if fence is not None:
        # A clear announced this jump; what lies between was dropped by it.
        if store.matches(fence, held.data) and not held.in_time_from(fence):
            return [fence + held.fixed]
        in_time = held.in_time_from(fence - held.fixed) <= held.fixed
        if fence >= expected and in_time and store.matches(fence, rest):
            return [fence]
    found: list[int] = []
    position: int | None = expected
    while position is not None and len(found) < CANDIDATES:
        position = upstream.search(rest, position)
        if position is not None:
            if held.in_time_from(position - held.fixed) > held.fixed:
                break
            found.append(position)
            position += 1
    return found


def choose(upstream: Upstream, held: Held, start: int, found: list[int]) -> tuple[int, int, int]:
    """Which of the places it is, and where in the held data the jump lies.

    Args:
        start: where the held data begins if it continues.
        found: where what contradicts is held whole.

    Returns the position of the first contradicting value, how many held values lie before the
    jump, and over how many values in front of the contradiction the jump could have been.
    """
    fixed, fence = held.fixed, upstream.fence
    before, starts = held.before, held.starts()
    staying = held.strays(start)
    best: tuple[int, int, int, int, int, int] | None = None
    for position in found:
        moving = held.strays(position - fixed)
        reach = min(upstream.store.common_behind(position, before), fixed)
        reach = min(reach, fixed - held.in_time_from(position - fixed))
        behind = fence is not None and position >= fence
        if fence is not None and behind:
            reach = min(reach, position - fence)
        splits = {fixed}
        splits.update(start for start in starts if fixed - reach <= start <= fixed)
        for border in upstream.borders(position - reach, position)[-4:]:
            splits.add(fixed - (position - border))
        if behind:
            splits.add(fixed - reach)
        for split in splits:
            landing = position - (fixed - split)
            rank = 2 * (split not in starts)
            first = bisect_left(starts, split)
            strays = staying[0] - staying[first] + moving[first]
            if behind:
                # As much as can be is what was captured after the clear, which announced
                # the jump to just there.
                rank = -1 if landing == fence else rank
                option = (rank, strays, position, split, split, reach)
            else:
                rank += not upstream.is_border(landing)
                option = (rank, strays, position, -split, split, reach)
            if best is None or option < best:
                best = option
    assert best is not None
    _, _, position, _, split, reach = best
    return position, split, reach


def place(upstream: Upstream, piece: bytes, floor: int, depth: int = 0) -> list[Part]:
    """Place a piece that may hold jumps of its own, or audio never captured; the effort is
    bounded."""
    store = upstream.store
    values = len(piece) // VALUE_BYTES
    if not values:
        return []
    if store.matches(floor, piece):
        return [(floor, values)]
    position = upstream.fence
    if position is None or position < floor or not store.matches(position, piece):
        position = upstream.search(piece, floor)
    if position is not None:
        return [(position, values)]
    if depth > 3 or is_constant(piece):
        return [(None, values)]
    expected = store.head(floor, TELLING_VALUES)
    offset = piece.find(expected) if len(expected) == TELLING_BYTES else -1
    if offset > 0 and offset % VALUE_BYTES == 0 and not is_constant(expected):
        # Audio from before the probe came or that the sink put in, and the head of what was
        # captured right behind it.
        ahead = store.common_ahead(floor, piece[offset:])
        if offset + ahead * VALUE_BYTES == len(piece):
            return [(None, offset // VALUE_BYTES), (floor, ahead)]
    needle = _front_needle(piece)
    position = upstream.search(needle, floor) if needle else None
    if position is not None:
        ahead = store.common_ahead(position, piece)
        behind = piece[ahead * VALUE_BYTES :]
        return [(position, ahead), *place(upstream, behind, position + ahead, depth + 1)]
    needle = piece[-TELLING_BYTES:]
    if len(needle) < TELLING_BYTES or is_constant(needle):
        return [(None, values)]
    position = upstream.search(needle, floor)
    if position is None:
        return [(None, values)]
    stop = position + TELLING_VALUES
    reach = min(store.common_behind(stop, piece), stop - floor)
    front: list[Part] = [(None, values - reach)] if reach < values else []
    return [*front, (stop - reach, reach)]


def _front_needle(piece: bytes) -> bytes:
    """The front of ``piece``, just long enough to tell."""
    needle = piece[:TELLING_BYTES]
    if len(needle) == TELLING_BYTES and not is_constant(needle):
        return needle
    return piece[: (leading_run(piece) + TELLING_VALUES) * VALUE_BYTES]
